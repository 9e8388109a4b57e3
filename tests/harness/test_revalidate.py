"""The stack revalidated on real processes: left out edit by edit, taken back, tried again, and interrupted."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from campaign.cli import main
from campaign.ledger import open_ledger
from campaign.report.progress import Progress
from campaign.run import conduct, measure, revalidate, studies
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
    """Words, and code since, under which half_sleep no longer pays: root itself waits no longer. Worth it is only
    1.3x, so that the scatter of a busy machine does not matter."""
    code = (stacked / "tiny.py").read_text()
    assert '"sleep": sleep + nap' in code
    (stacked / "tiny.py").write_text(code.replace('"sleep": sleep + nap', '"sleep": min(sleep, 0.01) + nap'))
    return ["protocol.min_effect=0.3", "--rounds", "3"]


@pytest.mark.slow
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


def reverting(monkeypatch, *names):
    """Before the first round of each study, a person takes the next of `names` out of the stack."""
    real, left = measure.run_round, list(names)

    def run_round(study, request):
        if left and request.stage == "group-1" and request.index == 0:
            assert main(["stack", "--revert", left.pop(0), "--why", "another process says so"]) == 0
        return real(study, request)

    monkeypatch.setattr(measure, "run_round", run_round)


@pytest.mark.slow
def test_a_leave_one_out_of_a_stack_that_moved_meanwhile_takes_nothing_out(stacked, worn, monkeypatch, capsys):
    reverting(monkeypatch, "half_nap")
    assert main(["revalidate", *worn, "--apply"]) == 0
    said = capsys.readouterr().out
    assert "declared on root+half_sleep+half_nap, and head is root+half_sleep" in said
    first, again, *_ = findings(stacked)
    assert "half_sleep" in first.finding.retire, "it would have been taken out by this one"
    assert (first.stack, again.stack) == (("half_sleep", "half_nap"), ("half_sleep",))
    with open_ledger(stacked, "default", writable=False) as ledger:
        why = {entry.body["decision_id"]: entry.body["why"] for entry in ledger.store.entries({"revoked"})}
        sleep = next(row["id"] for row in ledger.decision_rows() if row["hypothesis"] == "half_sleep")
    assert again.id in why[sleep]


@pytest.mark.slow
def test_leave_one_out_and_headline_are_about_one_stack(stacked, monkeypatch, capsys):
    real, done = measure.run_round, []

    def run_round(study, request):
        if study.id.startswith("headline") and not done:
            done.append(main(["stack", "--revert", "half_nap", "--why", "another process says so"]))
        return real(study, request)

    monkeypatch.setattr(measure, "run_round", run_round)
    assert main(["revalidate", "--rounds", "2"]) == 0
    assert done == [0]
    both, one = ("half_sleep", "half_nap"), ("half_sleep",)
    assert [(found.finding.kind, found.stack) for found in findings(stacked)] == [
        ("leave_one_out", both),
        ("headline", both),
        ("leave_one_out", one),
        ("headline", one),
    ]
    assert "the stack moved since leave_one_out-" in capsys.readouterr().out


@pytest.mark.slow
def test_a_stack_that_moves_each_time_ends_without_a_finding_of_it(stacked, monkeypatch, capsys):
    monkeypatch.setattr(revalidate, "MOST_STALE", 1)
    reverting(monkeypatch, "half_nap")
    assert main(["revalidate", "--rounds", "2"]) == 3
    assert "the stack moved in each of 1 measurements" in capsys.readouterr().err
    assert standing(stacked) == ["half_sleep"]
    assert not list((stacked / "runs/default/claims").iterdir())


@pytest.mark.slow
def test_a_finding_of_a_verb_that_did_not_reach_its_end_is_taken_and_not_measured_again(stacked, monkeypatch, capsys):
    real = measure.run_round

    def until_the_headline(study, request):
        if study.id.startswith("headline"):
            raise KeyboardInterrupt
        return real(study, request)

    with monkeypatch.context() as patched:
        patched.setattr(measure, "run_round", until_the_headline)
        assert main(["revalidate", "--rounds", "2"]) == 130
    (first,) = findings(stacked)
    claims = stacked / "runs/default/claims"
    assert [one.name for one in claims.iterdir()] == [first.study_id], "as SIGKILL leaves it"
    capsys.readouterr()
    assert main(["revalidate", "--rounds", "2"]) == 0
    assert f"{first.study_id} had its finding at" in capsys.readouterr().out
    assert [found.finding.kind for found in findings(stacked)] == ["leave_one_out", "headline"]
    assert not list(claims.iterdir())
    with monkeypatch.context() as patched:
        patched.setattr(measure, "run_round", interrupt)
        assert main(["revalidate", "--rounds", "2"]) == 130, "what ended is measured anew"


@pytest.mark.slow
def test_a_finding_left_in_the_middle_of_another_stack_or_question_is_not_taken(stacked):
    job = study_job(stacked, "default", [])
    assert main(["revalidate", "--rounds", "2"]) == 0
    (left_out, _) = findings(stacked)
    claim = stacked / "runs/default/claims" / left_out.study_id
    claim.touch()
    with open_ledger(stacked, "default", writable=True) as ledger:
        assert conduct._left_unsaid(ledger, studies.leave_one_out(job, ledger, 3)) is None
        study = studies.leave_one_out(job, ledger, 2)
        first, second = ledger.stack()
        ledger.revoke(first.id, "for a test")
        assert conduct._left_unsaid(ledger, study) is None
        ledger.rule(first.id, "accept", "for a test")  # it is there again, and last
        assert conduct._left_unsaid(ledger, study) is None
        ledger.revoke(second.id, "for a test")
        ledger.rule(second.id, "accept", "for a test")
        assert conduct._left_unsaid(ledger, study) == left_out


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_another_question_does_not_go_on_with_an_interrupted_one(stacked, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(measure, "run_round", interrupt)
        assert main(["revalidate", "--rounds", "3"]) == 130
    job = study_job(stacked, "default", ["protocol.pairs=6"])
    with open_ledger(stacked, "default", writable=True) as ledger:
        assert conduct._interrupted(ledger, studies.leave_one_out(job, ledger, 3)) is None
        same = study_job(stacked, "default", [])
        assert conduct._interrupted(ledger, studies.leave_one_out(same, ledger, 2)) is None
        assert conduct._interrupted(ledger, studies.leave_one_out(same, ledger, 3)) is not None


@pytest.mark.slow
def test_an_edit_that_another_requires_is_not_left_out(stacked, monkeypatch):
    job = study_job(stacked, "default", [])
    accepted = [hypothesis_job(job, name).hypothesis for name in ("half_sleep", "half_nap", "leaning")]
    monkeypatch.setattr(studies, "accepted_here", lambda *_: accepted)
    with open_ledger(stacked, "default", writable=True) as ledger:
        study = studies.leave_one_out(job, ledger)
    assert study.subjects == ("half_nap", "leaning")
    assert [arm.role for arm in study.arms] == ["head", "without_half_nap", "without_leaning"]
    assert study.stack == ("half_sleep", "half_nap", "leaning")
