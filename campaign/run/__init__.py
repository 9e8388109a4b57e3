"""One hypothesis from its composed arms to its decision. Reads top to bottom like the main job in the README.

compose arms -> take the device's lock -> register the plan (`declare`) -> probe, untimed -> rounds of interleaved
blocks (`measure`) -> stop by the declared rule -> decision appended and fsynced -> shown -> mirrored to MLflow.
Where the stack moved meanwhile the decision is stale and all of it is done again on the present one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace

from campaign import lease, tracking, verdicts
from campaign.config import Job
from campaign.destination import NONE, is_server
from campaign.errors import EXIT_DECIDED, EXIT_NO_DECISION, TrackingFailed
from campaign.ledger import Ledger, now, open_ledger
from campaign.provenance import Checkout
from campaign.records import (
    ACCEPT,
    INVALID,
    UNAVAILABLE,
    ArmProbe,
    Decision,
    Evidence,
    Need,
    Trial,
    Verdict,
    to_json,
)
from campaign.report.describe import describe_engagement, describe_low_precision, describe_parity
from campaign.report.progress import Progress
from campaign.report.verdict_text import decision_json, decision_text
from campaign.run.declare import declare
from campaign.run.measure import arms_left, measure_round, probe_arms
from campaign.run.trees import places

MOST_STALE = 3  # measurements of one run that may come too late, each a whole one
Made = Callable[[str], None]  # is told the id of a decision


def _unheard(id: str) -> None:
    """Where nobody asks which decisions were made."""


def main(job: Job, made: Made = _unheard) -> int:
    """Measure `job` to a decision and return the exit code (0 decided, 3 invalid or unavailable).

    `made` is told the id of each decision that this makes, as soon as it is in the ledger; a stale one is followed by
    another. Raises CampaignError for what the person can mend. An interrupt ends every trial and goes through; what was
    measured stays in the ledger and the same command goes on from it.
    """
    progress = Progress(json=job.json)
    with (
        lease.hold(job.device, job.lease_wait_seconds, progress.waiting, holder=job.campaign),
        open_ledger(job.root, job.campaign, writable=True) as ledger,
        progress,
    ):
        for notice in ledger.notices:
            progress.notice(notice)
        decision = decide(job, ledger, progress, made)
    return EXIT_NO_DECISION if decision.verdict.verdict in (INVALID, UNAVAILABLE) else EXIT_DECIDED


def decide(job: Job, ledger: Ledger, progress: Progress, made: Made = _unheard) -> Decision:
    """The decision on `job`, measured again where the stack moved meanwhile; an accepted set is taken apart. The
    device's lease is the caller's."""
    decision = _left_whole(job, ledger, made) or _left_unsaid(job, ledger, progress, made)
    decision = decision or _decided(job, ledger, progress, made)
    for _ in range(MOST_STALE - 1):
        if decision.verdict.reason != verdicts.STALE:
            break
        decision = _decided(job, ledger, progress, made)
    _take_apart(job, ledger, decision, progress)
    return decision


def _decided(job: Job, ledger: Ledger, progress: Progress, made: Made) -> Decision:
    """Declare, measure, decide, show and mirror once."""
    evidence = declare(job, ledger, progress)
    evidence, verdict = _gather(job, ledger, evidence, progress)
    decision = conclude(ledger, evidence, verdict)
    made(decision.id)
    _say(job, ledger, decision, progress)
    return decision


def _say(job: Job, ledger: Ledger, decision: Decision, progress: Progress) -> None:
    progress.decision(decision_json(decision) if job.json else decision_text(decision, ledger.file))
    mirror(job, ledger, [decision.id], progress)


def _gather(job: Job, ledger: Ledger, evidence: Evidence, progress: Progress) -> tuple[Evidence, Verdict]:
    """Probe once, then measure until the declared rule says stop."""
    with places(job.root, ledger, evidence.plan.arms) as where:
        return gather(job, ledger, evidence, progress, where)


def gather(
    job: Job, ledger: Ledger, evidence: Evidence, progress: Progress, where: Mapping[str, Checkout]
) -> tuple[Evidence, Verdict]:
    """The same, where the worktrees of arms with code of their own stand already, by role."""
    plan = evidence.plan
    if evidence.probe is None:
        evidence = replace(evidence, probe=probe_arms(job, ledger, plan, progress, where))
    while isinstance(answer := verdicts.judge(evidence), Need):
        arms = arms_left(plan, evidence.rounds)
        measured = measure_round(job, ledger, plan, evidence.rounds, answer, arms, progress, where)
        evidence = replace(evidence, rounds=(*evidence.rounds, measured))
        progress.round_done(measured, evidence)
    return evidence, answer


def conclude(ledger: Ledger, evidence: Evidence, verdict: Verdict) -> Decision:
    """Write the decision, and the stack where it moves by it. Between the look at the stack and the line nobody else
    may write, so that the order of the lines shows which decisions were stale."""
    plan, probe = evidence.plan, evidence.probe
    ended: list[ArmProbe | Trial] = [*(probe.arms if probe else ())]
    ended += [trial for one in evidence.rounds for trial in one.trials]
    failed = [one.log for one in ended if one.log and one.status not in ("ok", "interrupted")]
    with ledger.transaction():
        if ledger.moved_since(plan):
            verdict = verdicts.stale(verdict, plan, [one.hypothesis for one in ledger.stack()])
        decision = Decision(
            id=f"{plan.id}-decision",
            plan_id=plan.id,
            sequence=ledger.next_sequence(),
            hypothesis=plan.hypothesis.name,
            claim=plan.hypothesis.claim,
            workload=plan.workload,
            device=plan.device,
            predicted_ratio=plan.hypothesis.predicted_ratio,
            verdict=verdict,
            stack=plan.stack,
            overrides=plan.hypothesis.edit.overrides,
            attempt=plan.attempt,
            parity=describe_parity(evidence),
            engagement=describe_engagement(evidence),
            low_precision=describe_low_precision(evidence),
            machine_line=plan.machine_line,
            command=plan.command,
            decided_at=now(),
            wall_seconds=sum(one.wall_seconds for one in evidence.rounds) + (probe.wall_seconds if probe else 0.0),
            timed_seconds=sum(one.timed_seconds for one in evidence.rounds),
            log=failed[-1] if failed else "",
        )
        ledger.append("decision", decision.id, to_json(decision))
        if verdict.verdict == ACCEPT:
            write_stack(ledger)
    return decision


def write_stack(ledger: Ledger) -> None:
    """Record the stack as it now stands, after an accept, a revocation or a ruling."""
    stack = ledger.stack()
    body = {"decisions": [one.id for one in stack], "head": [one.hypothesis for one in stack]}
    ledger.append("stack", f"stack-{uuid.uuid4().hex[:12]}", body)


def _left_whole(job: Job, ledger: Ledger, made: Made) -> Decision | None:
    """The accept of this very set whose run was killed before it was taken apart: the same command goes on there."""
    if not job.hypothesis.parts:
        return None
    from campaign.run.studies import whole_sets

    found = (one for one in whole_sets(ledger) if ledger.plan(one.plan_id).hypothesis == job.hypothesis)
    if decision := next(found, None):
        made(decision.id)
    return decision


def _left_unsaid(job: Job, ledger: Ledger, progress: Progress, made: Made) -> Decision | None:
    """The newest decision, where this very job made it and its process was killed before it ended: it is shown and
    mirrored, and measured anew only when it is asked for once more."""
    rows = ledger.decision_rows()
    if not rows or rows[-1]["command"] != job.command or not ledger.take_over(rows[-1]["plan_id"]):
        return None
    plan, decision = ledger.plan(rows[-1]["plan_id"]), ledger.decisions()[-1]
    if (plan.hypothesis, plan.protocol) != (job.hypothesis, job.protocol) or decision.verdict.reason == verdicts.STALE:
        return None
    progress.notice(f"{plan.id} was decided and its process killed before it ended: this is that decision")
    if decision.verdict.verdict == ACCEPT:
        write_stack(ledger)
    made(decision.id)
    _say(job, ledger, decision, progress)
    return decision


def _take_apart(job: Job, ledger: Ledger, decision: Decision, progress: Progress) -> None:
    """An accepted set is measured without each of its parts."""
    if decision.verdict.verdict == ACCEPT and job.hypothesis.parts:
        from campaign.run.studies import take_apart

        take_apart(job, ledger, decision, progress)


def mirror(job: Job, ledger: Ledger, ids: list[str], progress: Progress) -> None:
    """Write the decisions or findings with these ids to MLflow; its failing is a warning, since they stand already."""
    if job.tracking == NONE:
        return
    progress.notice("mirroring to MLflow" + (f" at {job.tracking}" if is_server(job.tracking) else ""))
    try:
        tracking.send(ledger, ids, job.tracking)
    except TrackingFailed as failure:
        progress.notice(f"warning: {failure}")
    except KeyboardInterrupt:
        progress.notice("interrupted while mirroring: what was found stands; campaign sync completes its MLflow view")
        raise
