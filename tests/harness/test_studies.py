"""Studies on real processes: the stack revalidated, edits combined, a set taken apart, and each of them interrupted."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace

import pytest

from campaign.cli import main
from campaign.errors import BadInput, UnknownName
from campaign.ledger import open_ledger
from campaign.report.progress import Progress
from campaign.run import measure, studies
from campaign.run.context import hypothesis_job, study_job
from campaign.run.factorial import design, factorial, seconds_of
from campaign.run.revalidate import changed_rows, retried
from tests.builders import PROJECT, laid_down

# Root waits 80 ms a step; half_sleep and half_nap leave 10 ms of each half. So much, and three rounds, so that a busy
# machine's scatter leaves nothing open.
ROUNDS = ["protocol.pairs=4", "protocol.looks=[3]", "protocol.confirm_rounds=3", "protocol.suspect_ratio=9"]
WAITS = ["workload=tiny", "tracking=none", "workload.sleep=0.04", "workload.nap=0.04", *ROUNDS]
HYPOTHESIS = """\
# @package _global_
hypothesis:
  claim: A claim for a test.
  mechanism: a planted change
  acts_on: sleep
  predicted_ratio: 1.3
  parity: {kind: bitwise}
"""
BOTH = """\
  parts:
    sleep: {overrides: [workload.sleep=0.01]}
    nap: {overrides: [workload.nap=0.01]}
"""


def edit(*overrides: str, more: str = "") -> str:
    return f"{HYPOTHESIS}  edit: {{overrides: [{', '.join(overrides)}]}}\n{more}"


FILES = {
    "more_work": edit("workload.work=9000"),
    "both": HYPOTHESIS + BOTH,
    "padded": edit("workload.ballast=1000"),
    "fragile": edit("workload.nap=0.01", "workload.fault=needs_less_sleep"),
    "leaning": edit("workload.work=19", more="  requires: [half_sleep]\n"),
    "apart": edit("workload.work=18", more="  conflicts: [half_sleep]\n"),
}


def lay_down(tmp_path, monkeypatch):
    root = laid_down(PROJECT, tmp_path, monkeypatch)
    for name, text in FILES.items():
        (root / "conf" / "hypothesis" / f"{name}.yaml").write_text(text)
    return root


@pytest.fixture
def project(tmp_path, monkeypatch):
    return lay_down(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def stacked_runs(tmp_path_factory):
    """A ledger in which more_work was rejected on root, then half_sleep and half_nap accepted."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        root = lay_down(tmp_path_factory.mktemp("stacked"), monkeypatch)
        for name in ("more_work", "half_sleep", "half_nap"):
            assert main([*WAITS, f"hypothesis={name}", "protocol.arms=2"]) == 0
    return root / "runs"


@pytest.fixture
def stacked(project, stacked_runs):
    """A project with that ledger, from which each test goes on by itself."""
    shutil.copytree(stacked_runs, project / "runs", dirs_exist_ok=True)
    assert standing(project) == ["half_sleep", "half_nap"]
    return project


def standing(project):
    with open_ledger(project, "default", writable=False) as ledger:
        return [one.hypothesis for one in ledger.stack()]


def findings(project):
    with open_ledger(project, "default", writable=False) as ledger:
        return ledger.findings()


def kinds(project):
    lines = (project / "runs" / "default" / "ledger.jsonl").read_text().splitlines()
    return [json.loads(line)["kind"] for line in lines]


def terms(found):
    return {term.name: term for term in found.finding.terms}


def near(value):
    return pytest.approx(value, rel=0.2)


def test_the_stack_is_left_out_edit_by_edit_and_ends_with_root_against_head(stacked, capsys):
    assert main(["revalidate", "--rounds", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    left_out, headline = findings(stacked)
    # Waits of 80, 50, 50 and 20 ms: each edit left out 50/20, together 80/20.
    assert (left_out.finding.kind, headline.finding.kind) == ("leave_one_out", "headline")
    gains = [term.effect.ratio for term in left_out.finding.terms]
    assert gains == [near(2.5), near(2.5)]
    assert left_out.finding.total.ratio == near(4)
    assert left_out.finding.product == pytest.approx(gains[0] * gains[1])
    assert left_out.finding.sum == pytest.approx(gains[0] + gains[1] - 1)
    assert left_out.finding.retire == ()
    assert headline.finding.effect.ratio == near(4)
    assert headline.finding.valid_rounds == 2
    shape = r"[\d.]+k? -> [\d.]+k tokens/s, [\d.]+x \[[\d.]+, [\d.]+\], memory .* -> .*, 8 matched blocks"
    assert re.fullmatch(shape, headline.finding.sentence)
    assert said["schema"] == 1
    done = said["revalidate"]
    assert done["leave_one_out"]["id"] == left_out.id
    assert done["headline"]["finding"]["sentence"] == headline.finding.sentence
    assert (done["proposed"], done["revoked"]) == ([], [])
    # On the stack of its day 8/5 and 5/2, which multiply to 4. Two arms were timed: nothing is known of half_nap alone.
    marginal, others = done["parts"]
    assert (marginal["kind"], marginal["product"]) == ("marginal", near(4))
    assert (others["kind"], others["product"]) == ("leave_one_out", left_out.finding.product)
    (changed,) = done["changed"]
    assert (changed["hypothesis"], changed["change"]) == ("more_work", "joined since: half_sleep, half_nap")
    assert standing(stacked) == ["half_sleep", "half_nap"]
    with open_ledger(stacked, "default", writable=False) as ledger:
        (study, _) = ledger.studies()
        rounds = ledger.study_evidence(study.id).rounds
    roles = {"head", "without_half_sleep", "without_half_nap", "root"}
    assert all({trial.arm for trial in one.trials} == roles for one in rounds)
    assert study.members["without_half_nap"] == ("half_sleep",)
    assert study.protocol.looks == (3,), "an A/A null's own looks are not those of a study"


@pytest.fixture
def worn(stacked):
    """Words under which half_sleep no longer pays: root itself waits no longer. Worth it is only 1.3x, so that the
    scatter of a busy machine does not matter."""
    return ["workload.sleep=0.01", "protocol.min_effect=0.3", "--rounds", "3"]


def test_what_no_longer_pays_is_taken_out_when_asked_and_the_rest_is_measured_again(stacked, worn, capsys):
    assert main(["revalidate", *worn, "--apply"]) == 0
    assert "taken out, since they no longer pay: half_sleep" in capsys.readouterr().out
    assert standing(stacked) == ["half_nap"]
    first, again, headline = findings(stacked)
    assert (first.finding.subjects, again.finding.subjects) == (("half_sleep", "half_nap"), ("half_nap",))
    # 10 + 40 ms against 10 + 10 ms, and root is what is left without the one edit
    assert terms(again)["half_nap"].effect.ratio == near(2.5)
    assert headline.stack == ("half_nap",)
    with open_ledger(stacked, "default", writable=False) as ledger:
        (entry,) = ledger.store.entries({"revoked"})
        (*_, stack) = ledger.store.entries({"stack"})
    assert entry.body["why"].startswith("no longer pays: adds ") and first.id in entry.body["why"]
    assert stack.body["head"] == ["half_nap"]


@pytest.mark.slow
def test_what_a_person_ruled_in_is_proposed_and_never_taken_out_without_one(stacked, worn, capsys):
    with open_ledger(stacked, "default", writable=True) as ledger:
        decision = ledger.stack()[0]
        ledger.rule(decision.id, "accept", "needed by the next release")
    assert main(["revalidate", *worn, "--apply"]) == 0
    assert standing(stacked) == ["half_sleep", "half_nap"]
    assert findings(stacked)[0].finding.retire == ("half_sleep",)
    said = capsys.readouterr().out
    assert "no longer pays, still in the stack: half_sleep" in said
    assert "campaign stack --revert half_sleep" in said


def test_a_row_whose_neighbours_changed_is_decided_anew(stacked, capsys):
    assert main(["revalidate", "--rounds", "2", "--retry", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)["revalidate"]
    (again,) = done["retried"]
    assert (again["again"].split()[0], again["decision"]["verdict"]["verdict"]) == ("more_work", "reject")
    assert again["decision"]["stack"] == ["half_sleep", "half_nap"]
    assert done["headline"] is not None
    with open_ledger(stacked, "default", writable=False) as ledger:
        plan = ledger.plans()[-1]
    assert (plan.hypothesis.name, plan.protocol.pairs) == ("more_work", 4)


def test_a_row_that_clashes_with_the_stack_since_costs_itself_only(stacked):
    job = study_job(stacked, "default", [])
    with open_ledger(stacked, "default", writable=True) as ledger:
        (row,) = changed_rows(ledger)
        row = replace(row, hypothesis="no_sleep", name="no_sleep", command="python -m campaign hypothesis=no_sleep")
        done = retried(job, ledger, Progress(), row)
    assert done.decision is None
    assert "half_sleep and no_sleep set the same key" in done.why


def test_an_empty_stack_is_said_and_measures_nothing(project, capsys):
    assert main(["revalidate", "workload=tiny"]) == 0
    assert "the stack is empty: head is root" in capsys.readouterr().out
    assert not (project / "runs" / "default" / "ledger.jsonl").exists()


def test_an_interrupted_study_goes_on_from_its_finished_rounds(stacked, monkeypatch, capsys):
    real, begun = measure.run_round, []

    def until_the_second(plan, request):
        begun.append(request.id)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return real(plan, request)

    monkeypatch.setattr(measure, "run_round", until_the_second)
    before = kinds(stacked).count("blocks")
    assert main(["revalidate", "--rounds", "2"]) == 130
    assert kinds(stacked).count("blocks") - before == 1
    assert main(["revalidate", "--rounds", "2"]) == 0
    assert "interrupted after 1 rounds" in capsys.readouterr().out
    # 2 of leave-one-out and 2 of the headline, the one from before among them
    assert kinds(stacked).count("blocks") - before == 4
    assert kinds(stacked).count("study") == 2
    assert [found.sequence for found in findings(stacked)] == [1, 2]


def test_another_question_does_not_go_on_with_an_interrupted_one(stacked, monkeypatch):
    monkeypatch.setattr(measure, "run_round", interrupt)
    assert main(["revalidate", "--rounds", "3"]) == 130
    monkeypatch.undo()
    monkeypatch.chdir(stacked)
    job = study_job(stacked, "default", ["protocol.pairs=6"])
    with open_ledger(stacked, "default", writable=True) as ledger:
        assert studies._interrupted(ledger, studies.leave_one_out(job, ledger, 3)) is None
        same = study_job(stacked, "default", [])
        assert studies._interrupted(ledger, studies.leave_one_out(same, ledger, 2)) is None
        assert studies._interrupted(ledger, studies.leave_one_out(same, ledger, 3)) is not None


def interrupt(*_):
    raise KeyboardInterrupt


def test_an_accepted_set_is_taken_apart(project, capsys):
    assert main([*WAITS, "hypothesis=both"]) == 0
    assert standing(project) == ["both"]
    (found,) = findings(project)
    assert "the parts of a set of sleep, nap" in capsys.readouterr().out
    assert found.finding.kind == "parts"
    assert terms(found)["sleep"].effect.ratio == near(2.5)
    assert terms(found)["nap"].effect.ratio == near(2.5)
    assert found.finding.total.ratio == near(4)
    with open_ledger(project, "default", writable=False) as ledger:
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
def test_a_set_whose_run_was_killed_before_it_was_taken_apart_is_taken_apart_by_revalidate(project, monkeypatch):
    monkeypatch.setattr(studies, "take_apart", interrupt)
    assert main([*WAITS, "hypothesis=both"]) == 130
    assert standing(project) == ["both"]
    assert findings(project) == []
    assert main(["revalidate", "--rounds", "2"]) == 0
    assert [found.finding.kind for found in findings(project)] == ["leave_one_out", "parts", "headline"]
    assert main(["revalidate", "--rounds", "2"]) == 0
    assert [found.finding.kind for found in findings(project)].count("parts") == 1


def test_edits_are_combined_on_root_and_their_shares_multiply_to_the_whole(project, capsys):
    assert main(["interactions", "half_sleep", "half_nap", *WAITS, "--rounds", "3", "--yes"]) == 0
    said = capsys.readouterr()
    assert "half_sleep, half_nap on root: 4 arms (every combination), 3 rounds of 4 arms" in said.err
    assert "not in the stack, and not probed here: half_sleep, half_nap" in said.err
    (found,) = findings(project)
    effects = terms(found)
    # 80, 50, 50 and 20 ms: (5/2) / (8/5) = 25/16; the main effect is the mean of log 8/5 and log 5/2, log 2.
    assert effects["half_sleep"].effect.ratio == near(2)
    assert effects["half_nap"].effect.ratio == near(2)
    assert effects["half_sleep:half_nap"].effect.ratio == near(25 / 16)
    first, second = found.finding.shares
    assert first.effect.ratio * second.effect.ratio == pytest.approx(found.finding.total.ratio, rel=1e-9)
    assert kinds(project).count("blocks") == 3


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


def test_sixteen_combinations_are_split_into_rounds_that_each_hold_root(project):
    job = study_job(project, "default", WAITS)
    with open_ledger(project, "default", writable=False) as ledger:
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


def test_a_combination_that_cannot_run_costs_its_own_numbers_only(project):
    # fragile raises where root's 40 ms of sleep are still there, and not beside half_sleep.
    assert main(["interactions", "half_sleep", "fragile", *WAITS, "--rounds", "2", "--yes"]) == 0
    (found,) = findings(project)
    assert list(found.finding.failed) == ["fragile"]
    assert found.finding.shares == ()
    assert found.finding.total.ratio == near(4)
    assert kinds(project).count("blocks") == 3


def test_nobody_at_the_terminal_and_no_yes_measures_nothing(project, capsys):
    assert main(["interactions", "half_sleep", "half_nap", *WAITS]) == 2
    said = capsys.readouterr().err
    assert "3 rounds of 4 arms" in said
    assert "--yes" in said
    assert not (project / "runs" / "default" / "ledger.jsonl").exists()


@pytest.mark.parametrize(("answer", "code"), [("n\n", 3), ("\n", 3), ("", 3), ("y\n", 130)])
def test_a_person_is_asked_before_anything_is_measured(project, monkeypatch, answer, code):
    import io
    import sys

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(measure, "run_round", interrupt)
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["interactions", "half_sleep", "half_nap", *WAITS, "--rounds", "2"]) == code
    assert (project / "runs" / "default" / "ledger.jsonl").exists() is (code == 130)


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
def test_what_cannot_be_combined_is_refused_before_anything_starts(project, capsys, words, said):
    assert main(["interactions", *words, "--yes", *WAITS]) == 2
    assert said in capsys.readouterr().err
    assert not (project / "runs" / "default" / "ledger.jsonl").exists()


def test_the_whole_stack_is_combined_where_no_edit_is_named(stacked, capsys):
    assert main(["interactions"]) == 2
    assert "half_sleep, half_nap on root: 4 arms" in capsys.readouterr().err


def test_an_edit_that_another_requires_is_not_left_out(stacked, monkeypatch):
    job = study_job(stacked, "default", [])
    accepted = [hypothesis_job(job, name).hypothesis for name in ("half_sleep", "half_nap", "leaning")]
    monkeypatch.setattr(studies, "accepted_here", lambda *_: accepted)
    with open_ledger(stacked, "default", writable=True) as ledger:
        study = studies.leave_one_out(job, ledger)
    assert study.subjects == ("half_nap", "leaning")
    assert [arm.role for arm in study.arms] == ["head", "without_half_nap", "without_leaning"]
    assert study.stack == ("half_sleep", "half_nap", "leaning")


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
