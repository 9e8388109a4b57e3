"""An interrupted sweep that is asked for again, and what other processes decide meanwhile."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from campaign import machine
from campaign.cli.running import sweep
from campaign.config import jobs
from campaign.errors import BadInput
from campaign.run.declare import code_of, compose_arms
from campaign.run.sweep import AUTOPILOT, JOBS, Recalled, begun
from campaign.verdicts import stale
from tests.front.test_sweeps import Outcomes
from tests.reasoning import made
from tests.report import written


def ran_as_planned(one, plan):
    """A round that ran the plan's code on the plan's machine."""
    trials = tuple(replace(trial, fingerprint={}) for trial in one.trials)
    return replace(one, code=plan.code, trials=trials)


@pytest.fixture(scope="module")
def two_jobs(lent_project):
    return jobs(lent_project, ["-m", "hypothesis=prenorm_fusion,register_cap", "campaign.name=demo"])


@pytest.fixture
def two(lent, two_jobs):
    """Two jobs of one campaign, and what writes a decision on one of them as its run would."""

    def decide(ledger, job, **changes):
        id = f"{job.hypothesis.name}-{len(ledger.decision_rows()) + 1}"
        too_late, faster = changes.pop("too_late", False), changes.pop("faster", False)
        arms = compose_arms(job, ledger)
        same = {
            "command": job.command,
            "edit": job.hypothesis.edit,
            "fingerprint": machine.fingerprint(job.device),
            "code": code_of(job, arms.control, arms.treatment),
            "control": replace(made.PLAN.control, target=arms.control.target),
            "treatment": replace(made.PLAN.treatment, target=arms.treatment.target),
        }
        plan = written.plan(job.hypothesis.name, id=id, **(same | changes))
        measured = written.evidence(plan, *((written.SCREEN, written.CONFIRM) if faster else (written.SLOWER,)))
        measured = replace(measured, rounds=tuple(ran_as_planned(one, plan) for one in measured.rounds))
        if too_late:
            return written.record(
                ledger, measured, verdict=stale(written.decide(ledger, measured).verdict, plan, ["x"])
            )
        return written.record(ledger, measured)

    def mine(sweep, job, **changes):
        decision = decide(sweep.ledger, job, **changes)
        sweep.made(decision.id)
        return decision

    decide.mine = mine
    return two_jobs, decide


def test_sweep_that_did_not_end_is_gone_on_with_and_one_that_ended_is_done_again(two):
    found, decide = two
    first, second = found
    with begun(JOBS, found, []) as entered:
        assert (entered["demo"].resumed, entered["demo"].recall(first)) == (False, Recalled())
        decision = decide.mine(entered["demo"], first)
    with begun(JOBS, found, []) as entered:
        sweep = entered["demo"]
        assert sweep.resumed
        assert [row["id"] for row in sweep.recall(first).rows] == [decision.id]
        assert sweep.recall(first) == Recalled(), "each decision is one job's"
        assert sweep.recall(second) == Recalled()
        sweep.end()
    with begun(JOBS, found, []) as entered:
        assert (entered["demo"].resumed, entered["demo"].recall(first)) == (False, Recalled())


def test_sweep_of_other_jobs_or_of_another_kind_is_another_sweep(two):
    found, _ = two
    with begun(JOBS, found, []):
        pass
    for kind, jobs_, words in ((JOBS, found[:1], []), (AUTOPILOT, found[:1], ["--only=a"])):
        with begun(kind, jobs_, words) as entered:
            assert not entered["demo"].resumed
    with begun(AUTOPILOT, found[:1], ["--only=b"]) as entered:
        assert not entered["demo"].resumed
    with begun(AUTOPILOT, found[:1], ["--only=b"]) as entered:
        assert entered["demo"].resumed


def test_sweep_that_a_live_process_works_on_is_not_taken_over(two):
    found, decide = two
    with begun(JOBS, found, []) as live:
        decide.mine(live["demo"], found[0])
        with begun(JOBS, found, []) as entered:
            assert entered["demo"].id != live["demo"].id
            assert (entered["demo"].resumed, entered["demo"].recall(found[0])) == (False, Recalled())


def test_decision_that_came_too_late_is_measured_again_after_an_interruption(two):
    found, decide = two
    with begun(JOBS, found, []) as entered:
        decide.mine(entered["demo"], found[0], too_late=True)
    with begun(JOBS, found, []) as entered:
        assert entered["demo"].recall(found[0]) == Recalled()
        decide.mine(entered["demo"], found[0])
        rows = entered["demo"].recall(found[0]).rows
        assert [row["verdict"]["reason"] for row in rows] == ["stale", "slowdown"]


def test_what_an_interrupted_sweep_had_decided_is_shown_and_not_run_again(two, capsys):
    found, decide = two
    with begun(JOBS, found, []) as entered:
        decide.mine(entered["demo"], found[0])
    measure = Outcomes(0)
    with begun(JOBS, found, []) as entered:
        assert sweep(found, measure, entered) == 0
    assert measure.started == ["register_cap"]
    said = capsys.readouterr()
    assert "2 of 2 decided, 1 of them before the interruption" in said.out
    assert "reject (slowdown)" in next(line for line in said.out.splitlines() if "prenorm_fusion" in line)


def test_false_accepts_are_expected_by_the_alpha_of_each_attempt_times_that_of_the_confirmation(two, capsys):
    found, decide = two
    found = [replace(job, json=True) for job in found]
    attempts = iter((1, 2))

    def measure(job, made) -> int:
        with written.opened(job.root, job.campaign) as ledger:
            made(decide(ledger, job, attempt=next(attempts)).id)
        return 0

    assert sweep(found, measure) == 0
    said = json.loads(capsys.readouterr().out)
    protocol = found[0].protocol
    assert (protocol.alpha, protocol.confirm_alpha) == (0.01, 0.025)
    # .01 x .025, and half of that for the second attempt
    assert said["false_accepts_expected"] == pytest.approx(0.000375)
    assert (said["tests"], said["decided"]) == (2, 2)


@pytest.mark.parametrize(
    ("change", "says"),
    [({"code": "0ther"}, "by other code"), ({"fingerprint": {"host": "there"}}, "on another machine")],
)
def test_what_other_code_or_another_machine_decided_before_an_interruption_is_measured_again(two, capsys, change, says):
    found, decide = two
    with begun(JOBS, found, []) as entered:
        decide.mine(entered["demo"], found[0], **change)
    measure = Outcomes(0, 0)
    with begun(JOBS, found, []) as entered:
        assert sweep(found, measure, entered) == 0
        assert entered["demo"].outdated == {"prenorm_fusion-1-decision"}
    assert measure.started == ["prenorm_fusion", "register_cap"]
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "measured again" in line]
    assert f"decided before the interruption, {says}" in line
    with begun(JOBS, found, []) as entered:
        decision = decide.mine(entered["demo"], found[0])
        assert [row["id"] for row in entered["demo"].recall(found[0]).rows] == [decision.id]


def test_an_accept_of_other_code_that_is_in_the_stack_stands_and_is_told(two, capsys):
    found, decide = two
    with begun(JOBS, found, []) as entered:
        decide.mine(entered["demo"], found[0], faster=True, code="0ther")
    measure = Outcomes(0)
    with begun(JOBS, found, []) as entered:
        assert sweep(found, measure, entered) == 0
    assert measure.started == ["register_cap"]
    said = capsys.readouterr().out
    assert "decided by other code; it is in the stack and stands" in said


def test_what_another_process_decides_on_the_same_is_not_a_sweeps_row_and_not_its_test(two, capsys):
    found, decide = two
    found = [replace(job, json=True) for job in found]

    def measure(job, made) -> int:
        with written.opened(job.root, job.campaign) as ledger:
            decide(ledger, job)  # while this one waits for the device
            if job is found[0]:
                raise BadInput("it is in the stack already")
            made(decide(ledger, job).id)
        return 0

    with begun(JOBS, found, []) as entered:
        assert sweep(found, measure, entered) == 4
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [(row["verdict"], row["sequence"]) for row in said["sweep"]] == [("refused", None), ("reject", 3)]
    assert said["tests"] == 1
    with begun(JOBS, found, []) as entered:
        assert entered["demo"].recall(found[0]) == Recalled()
        assert [row["sequence"] for row in entered["demo"].recall(found[1]).rows] == [3]


def test_a_job_refused_after_its_decision_came_too_late_is_refused_and_its_test_counts(two, capsys):
    found, decide = two
    found = [replace(job, json=True) for job in found[:1]]

    def measure(job, made) -> int:
        with written.opened(job.root, job.campaign) as ledger:
            made(decide(ledger, job, too_late=True).id)
        raise BadInput("it is in the stack already")

    assert sweep(found, measure) == 4
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [(row["verdict"], row["why"]) for row in said["sweep"]] == [("refused", "it is in the stack already")]
    assert said["tests"] == 1
