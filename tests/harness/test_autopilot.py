"""`campaign run --all` on real processes, from the floor to the page, killed on the way and given again."""

from __future__ import annotations

import json

import pytest

from campaign.cli import main
from campaign.ledger import open_ledger
from tests.harness.test_main_job import BASE, decisions, kinds, wait_for

# .09 s a step: half_nap makes it .04 (2.25x), half_sleep then .02 (2x). more_sleep makes it slower.
# Rounds enough for that in spite of what else runs.
PLACE = ["workload.sleep=0.03", "workload.nap=0.06", "protocol.looks=[4]", "protocol.confirm_rounds=3"]
ORDER = ["aa_null", "broken", "more_sleep", "half_nap", "half_sleep"]  # predicted 2.0, 2.0, 1.33, 1.33, by name


@pytest.fixture
def few(project):
    """The command that goes through four ideas."""
    (project / "conf/ideas").mkdir(exist_ok=True)
    (project / "conf/ideas/few.yaml").write_text("- half_sleep\n- half_nap\n- more_sleep\n- broken\n")
    return ["run", "--all", "--only", "few", *PLACE]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_campaign_by_itself_ends_with_its_stack_its_headline_and_its_page(project, few, capsys):
    assert main([*few, *BASE]) == 4  # broken has no decision
    found = decisions(project)
    assert [one.hypothesis for one in found] == ORDER
    assert [one.verdict.verdict for one in found[2:]] == ["reject", "accept", "accept"]
    with open_ledger(project, "default", writable=False) as ledger:
        assert [one.hypothesis for one in ledger.stack()] == ["half_nap", "half_sleep"]
        headline = ledger.findings()[-1].finding
    # .09 s on root against .02 s on head, and well under 1 ms of work beside
    assert headline.kind == "headline" and headline.effect.ratio == pytest.approx(4.5, rel=0.2)
    said = capsys.readouterr().out
    assert "stopped: every idea was tried" in said
    assert "since slower: more_sleep" in said
    assert f"headline: {headline.sentence}" in said
    page = project / "runs/default/campaign.md"
    assert f"page: {page}" in said
    text = page.read_text()
    assert headline.sentence in text and "half_nap" in text and "broken" in text
    assert kinds(project)[-1] == "sweep"

    # Given again, it measures nothing that is decided: the floor holds, what was invalid is tried, the stack is too.
    assert main([*few, *BASE, "--json"]) == 4
    printed = capsys.readouterr()
    assert [one.hypothesis for one in decisions(project)] == [*ORDER, "broken"]
    assert "floor: measured here less than seven days ago" in printed.err
    last = json.loads(printed.out.splitlines()[-1])
    assert (last["schema"], last["jobs"], last["autopilot"]["stopped"]) == (1, 1, "tried")
    assert last["autopilot"]["headline"].endswith("matched blocks")


@pytest.mark.slow
def test_a_budget_ends_it_in_time_and_says_what_was_left_out(project, few, capsys):
    assert main([*few, *BASE, "--budget", "1s"]) == 0
    assert [one.hypothesis for one in decisions(project)] == ["aa_null"]
    said = capsys.readouterr().out
    assert "stopped: the budget of 1.00 s is spent" in said and "kept back to revalidate" in said
    left_out = next(line for line in said.splitlines() if "for want of time" in line)
    assert all(name in left_out for name in ORDER[1:])
    assert (project / "runs/default/campaign.md").exists()


def test_a_ledger_of_another_workload_is_refused_before_anything_is_timed(project, few, capsys):
    (project / "conf/workload/other.yaml").write_text((project / "conf/workload/tiny.yaml").read_text())
    assert main([*BASE, "hypothesis=broken"]) == 3
    assert main([*few, "workload=other", "tracking=none"]) == 2
    assert "belongs to tiny on cpu" in capsys.readouterr().err
    assert len(decisions(project)) == 1


def test_another_campaign_on_the_device_ends_it_at_once(project, few, command, capsys):
    other = command("hypothesis=more_sleep", "campaign.name=other", "protocol.pairs=2000")
    wait_for(other, "screen round 1")
    assert main([*few, *BASE]) == 2
    assert "is in use by" in capsys.readouterr().err


def test_a_protocol_that_accepts_nothing_is_refused(project, few, capsys):
    assert main([*few, *BASE, "protocol=quick"]) == 2
    assert "can accept nothing" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_killed_campaign_goes_on_and_comes_to_the_same(project, few, command):
    words = few[1:]
    for until in ("screen round 2", "try: half_nap", "try: half_sleep", "revalidation of the stack"):
        process = command(*words)
        wait_for(process, until)
        process.kill()
        process.wait()
    last = command(*words)
    said, _ = last.communicate(timeout=110)
    assert last.returncode == 4, said
    assert "going on where it was interrupted" in said
    found = decisions(project)
    assert [one.hypothesis for one in found] == ORDER
    assert [one.verdict.verdict for one in found[2:]] == ["reject", "accept", "accept"]
    assert all(one.attempt == 1 for one in found)
    assert kinds(project).count("registered") == len(ORDER)
