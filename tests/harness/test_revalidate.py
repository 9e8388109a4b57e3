"""The stack revalidated on real processes: left out edit by edit, taken back, tried again, and interrupted."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from campaign.cli import main
from campaign.ledger import open_ledger
from campaign.report.progress import Progress
from campaign.run import measure, studies
from campaign.run.context import hypothesis_job, study_job
from campaign.run.revalidate import changed_rows, retried
from tests.harness.studied import findings, interrupt, kinds, near, standing, terms


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


@pytest.mark.slow
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


def test_an_empty_stack_is_said_and_measures_nothing(study_project, capsys):
    assert main(["revalidate", "workload=tiny"]) == 0
    assert "the stack is empty: head is root" in capsys.readouterr().out
    assert not (study_project / "runs" / "default" / "ledger.jsonl").exists()


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
    with monkeypatch.context() as patched:
        patched.setattr(measure, "run_round", interrupt)
        assert main(["revalidate", "--rounds", "3"]) == 130
    job = study_job(stacked, "default", ["protocol.pairs=6"])
    with open_ledger(stacked, "default", writable=True) as ledger:
        assert studies._interrupted(ledger, studies.leave_one_out(job, ledger, 3)) is None
        same = study_job(stacked, "default", [])
        assert studies._interrupted(ledger, studies.leave_one_out(same, ledger, 2)) is None
        assert studies._interrupted(ledger, studies.leave_one_out(same, ledger, 3)) is not None


def test_an_edit_that_another_requires_is_not_left_out(stacked, monkeypatch):
    job = study_job(stacked, "default", [])
    accepted = [hypothesis_job(job, name).hypothesis for name in ("half_sleep", "half_nap", "leaning")]
    monkeypatch.setattr(studies, "accepted_here", lambda *_: accepted)
    with open_ledger(stacked, "default", writable=True) as ledger:
        study = studies.leave_one_out(job, ledger)
    assert study.subjects == ("half_nap", "leaning")
    assert [arm.role for arm in study.arms] == ["head", "without_half_nap", "without_leaning"]
    assert study.stack == ("half_sleep", "half_nap", "leaning")
