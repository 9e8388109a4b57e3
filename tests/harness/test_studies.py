"""Studies on real processes: edits combined, a set taken apart; and where they take workload and protocol from."""

from __future__ import annotations

import pytest

from campaign.cli import main
from campaign.errors import BadInput, UnknownName
from campaign.ledger import open_ledger
from campaign.run import measure, studies
from campaign.run.context import study_job
from campaign.run.factorial import design, factorial, seconds_of
from tests.harness.studied import WAITS, findings, interrupt, kinds, near, standing, terms


def test_an_accepted_set_is_taken_apart(study_project, capsys):
    assert main([*WAITS, "hypothesis=both", "protocol.confirm_rounds=2"]) == 0
    assert standing(study_project) == ["both"]
    (found,) = findings(study_project)
    assert "the parts of a set of sleep, nap" in capsys.readouterr().out
    assert found.finding.kind == "parts"
    assert terms(found)["sleep"].effect.ratio == near(2.5)
    assert terms(found)["nap"].effect.ratio == near(2.5)
    assert found.finding.total.ratio == near(4)
    with open_ledger(study_project, "default", writable=False) as ledger:
        (study,) = ledger.studies()
        (decision,) = ledger.stack()
    assert study.of == decision.id
    assert {arm.role: arm.name for arm in study.arms} == {
        "head": "root+both",
        "without_sleep": "root+both without sleep",
        "without_nap": "root+both without nap",
        "root": "root",
    }


@pytest.mark.slow
@pytest.mark.parametrize("again", [[*WAITS, "hypothesis=both", "protocol.confirm_rounds=2"], ["revalidate"]])
def test_a_set_whose_run_was_killed_before_it_was_taken_apart_is_taken_apart_later(study_project, monkeypatch, again):
    with monkeypatch.context() as patched:
        patched.setattr(studies, "take_apart", interrupt)
        assert main([*WAITS, "hypothesis=both", "protocol.confirm_rounds=2"]) == 130
    assert standing(study_project) == ["both"]
    assert findings(study_project) == []
    assert main(again) == 0
    assert [found.finding.kind for found in findings(study_project)].count("parts") == 1
    assert kinds(study_project).count("decision") == 1
    # It is in the stack and taken apart: nothing is left to go on with.
    assert main([*WAITS, "hypothesis=both"]) == 2


def test_edits_are_combined_on_root_and_their_shares_multiply_to_the_whole(study_project, capsys):
    assert main(["interactions", "half_sleep", "half_nap", *WAITS, "--rounds", "3", "--yes"]) == 0
    said = capsys.readouterr()
    assert "half_sleep, half_nap on root: 4 arms (every combination), 3 rounds of 4 arms" in said.err
    assert "not in the stack, and not probed here: half_sleep, half_nap" in said.err
    (found,) = findings(study_project)
    effects = terms(found)
    # 80, 50, 50 and 20 ms: (5/2) / (8/5) = 25/16; the main effect is the mean of log 8/5 and log 5/2, log 2.
    assert effects["half_sleep"].effect.ratio == near(2)
    assert effects["half_nap"].effect.ratio == near(2)
    assert effects["half_sleep:half_nap"].effect.ratio == near(25 / 16)
    first, second = found.finding.shares
    assert first.effect.ratio * second.effect.ratio == pytest.approx(found.finding.total.ratio, rel=1e-9)
    assert kinds(study_project).count("blocks") == 3


def test_edits_are_combined_on_the_rest_of_the_stack(stacked):
    job = study_job(stacked, "default", [])
    with open_ledger(stacked, "default", writable=True) as ledger:
        made = design(job, ledger, ["half_nap", "more_work"], "head", {"more_work": []})
        study = factorial(job, ledger, made, 2, "head")
    arms = {arm.role: arm for arm in study.arms}
    assert list(arms) == ["root", "half_nap", "more_work", "half_nap+more_work"]
    assert arms["root"].name == "root+half_sleep"
    assert [arms[role].config["sleep"] for role in arms] == [0.01] * 4
    changes = {"nap": 0.01, "work": 9000}
    assert arms["half_nap+more_work"].config == arms["root"].config | changes
    assert study.stack == ("half_sleep", "half_nap")
    assert study.command.startswith("python -m campaign interactions half_nap more_work --on head --campaign default")


def test_sixteen_combinations_are_split_into_rounds_that_each_hold_root(study_project):
    job = study_job(study_project, "default", WAITS)
    with open_ledger(study_project, "default", writable=False) as ledger:
        made = design(job, ledger, ["half_sleep", "half_nap", "more_work", "padded"])
        assert seconds_of(ledger, made, 6, 4) is None, "no round was measured here"
    assert len(made.arms) == 16
    # 15 arms beside root, at most 7 of them in a round
    assert [len(group) for group in made.groups] == [6, 6, 6]
    assert all(group[0] == "root" for group in made.groups)
    assert sorted(role for group in made.groups for role in group[1:]) == sorted(set(made.members) - {"root"})


def test_the_time_of_a_factorial_is_that_of_earlier_rounds_by_arm(stacked):
    job = study_job(stacked, "default", [])
    with open_ledger(stacked, "default", writable=False) as ledger:
        made = design(job, ledger, ["half_sleep", "half_nap"])
        bodies = [entry.body for entry in ledger.store.entries({"blocks"})][-20:]
        an_arm = sum(body["wall_seconds"] / 2 for body in bodies) / len(bodies)
        # 5 rounds of 4 arms
        assert seconds_of(ledger, made, 5, 4) == pytest.approx(20 * an_arm)
        assert seconds_of(ledger, made, 5, 40) is None, "no round of as many pairs"


def test_a_combination_that_cannot_run_costs_its_own_numbers_only(study_project):
    # fragile raises where root's 40 ms of sleep are still there, and not beside half_sleep.
    assert main(["interactions", "half_sleep", "fragile", *WAITS, "--rounds", "2", "--yes"]) == 0
    (found,) = findings(study_project)
    assert list(found.finding.failed) == ["fragile"]
    assert found.finding.shares == ()
    assert found.finding.total.ratio == near(4)
    assert kinds(study_project).count("blocks") == 3


def test_nobody_at_the_terminal_and_no_yes_measures_nothing(study_project, capsys):
    assert main(["interactions", "half_sleep", "half_nap", *WAITS]) == 2
    said = capsys.readouterr().err
    assert "3 rounds of 4 arms" in said
    assert "--yes" in said
    assert not (study_project / "runs" / "default" / "ledger.jsonl").exists()


@pytest.mark.parametrize(("answer", "code"), [("n\n", 3), ("\n", 3), ("", 3), ("y\n", 130)])
def test_a_person_is_asked_before_anything_is_measured(study_project, monkeypatch, answer, code):
    import io
    import sys

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(measure, "run_round", interrupt)
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["interactions", "half_sleep", "half_nap", *WAITS, "--rounds", "2"]) == code
    assert (study_project / "runs" / "default" / "ledger.jsonl").exists() is (code == 130)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["half_sleep"], "between at least two edits"),
        ([], "the stack of campaign 'default' holds 0 edits"),
        (["half_sleep", "half_sleep"], "half_sleep is named twice"),
        (["half_sleep", "aa_null"], "aa_null is an A/A null"),
        (["half_sleep", "no_sleep"], "half_sleep and no_sleep set the same key"),
        (["half_sleep", "apart"], "half_sleep and apart conflict"),
        (["half_nap", "leaning"], "leaning requires half_sleep"),
        (["half_sleep", "half_snap"], "did you mean 'half_nap'?"),
        (["half_sleep", "half_nap", "--rounds", "1"], "one round has no scatter"),
        (["half_sleep", "half_nap", "hypothesis=both"], "no hypothesis is chosen"),
        (["half_sleep", "half_nap", "--on", "tail"], "invalid choice: 'tail'"),
    ],
)
def test_what_cannot_be_combined_is_refused_before_anything_starts(study_project, capsys, words, said):
    assert main(["interactions", *words, "--yes", *WAITS]) == 2
    assert said in capsys.readouterr().err
    assert not (study_project / "runs" / "default" / "ledger.jsonl").exists()


def test_the_whole_stack_is_combined_where_no_edit_is_named(stacked, capsys):
    assert main(["interactions"]) == 2
    assert "half_sleep, half_nap on root: 4 arms" in capsys.readouterr().err


def test_a_study_measures_where_the_campaign_did(stacked):
    job = study_job(stacked, "default", [])
    assert (job.workload, job.tracking, job.protocol.pairs) == ("tiny", "none", 4)
    assert job.arm("root", "root", []).config["nap"] == 0.04
    assert not any(text.startswith("hypothesis") for text in job.overrides)


def test_words_given_with_a_study_win_over_those_recorded(stacked):
    job = study_job(stacked, "default", ["workload.nap=0.05", "protocol=quick"])
    root = job.arm("root", "root", [])
    assert (root.config["nap"], root.config["sleep"]) == (0.05, 0.04)
    assert job.protocol.name == "quick"
    assert job.protocol.pairs != 4, "another protocol comes without the words for the one before"


def test_a_null_or_a_first_look_since_does_not_change_how_a_campaign_measures(stacked, monkeypatch):
    monkeypatch.setattr(measure, "run_round", interrupt)
    place = ["workload=tiny", "tracking=none", "workload.sleep=0.03"]
    assert main([*place, "hypothesis=aa_null"]) == 130
    assert main([*place, "hypothesis=more_work", "protocol=quick"]) == 130
    assert kinds(stacked).count("registered") == 5
    job = study_job(stacked, "default", [])
    assert (job.arm("root", "root", []).config["sleep"], job.protocol.name) == (0.04, "standard")


def test_a_study_elsewhere_or_of_a_campaign_that_is_not_there_or_named_twice_is_refused(stacked, capsys):
    with pytest.raises(UnknownName, match="no campaign 'defalt'"):
        study_job(stacked, "defalt", [])
    with pytest.raises(BadInput, match="no hypothesis is chosen"):
        study_job(stacked, "default", ["hypothesis.null=true"])
    (stacked / "conf" / "workload" / "other.yaml").write_text((stacked / "conf" / "workload" / "tiny.yaml").read_text())
    for verb in (["revalidate"], ["interactions", "half_sleep", "half_nap", "--yes"]):
        assert main([*verb, "workload=other"]) == 2
        assert "belongs to tiny on cpu, and this is other on cpu" in capsys.readouterr().err
    assert main(["revalidate", "--campaign", "other", "campaign.name=default"]) == 2
    assert "say the same thing twice" in capsys.readouterr().err
