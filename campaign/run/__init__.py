"""One hypothesis from its composed arms to its decision. Reads top to bottom like the main job in the README.

compose arms -> take the device's lock -> register the plan (`declare`) -> probe, untimed -> rounds of interleaved
blocks (`measure`) -> stop by the declared rule -> decision appended and fsynced -> shown -> mirrored to MLflow.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from campaign import lease, tracking, verdicts
from campaign.config import Job
from campaign.errors import EXIT_DECIDED, EXIT_NO_DECISION, TrackingFailed
from campaign.ledger import Ledger, now, open_ledger
from campaign.records import ACCEPT, INVALID, UNAVAILABLE, ArmProbe, Decision, Evidence, Need, Trial, Verdict, to_json
from campaign.report.describe import describe_engagement, describe_low_precision, describe_parity
from campaign.report.progress import Progress
from campaign.report.verdict_text import decision_json, decision_text
from campaign.run.declare import declare
from campaign.run.measure import measure_round, probe_arms


def main(job: Job) -> int:
    """Measure `job` to a decision and return the exit code (0 decided, 3 invalid or unavailable).

    Raises CampaignError for what the person can mend. An interrupt ends every trial and goes through; what was
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
        evidence = declare(job, ledger, progress)
        evidence, verdict = _gather(job, ledger, evidence, progress)
        decision = _decide(ledger, evidence, verdict)
        progress.decision(decision_json(decision) if job.json else decision_text(decision, ledger.file))
        _mirror(job, ledger, decision, progress)
    return EXIT_NO_DECISION if verdict.verdict in (INVALID, UNAVAILABLE) else EXIT_DECIDED


def _gather(job: Job, ledger: Ledger, evidence: Evidence, progress: Progress) -> tuple[Evidence, Verdict]:
    """Probe once, then measure until the declared rule says stop."""
    if evidence.probe is None:
        evidence = replace(evidence, probe=probe_arms(job, ledger, evidence.plan, progress))
    while isinstance(answer := verdicts.judge(evidence), Need):
        measured = measure_round(job, ledger, evidence, answer, progress)
        evidence = replace(evidence, rounds=(*evidence.rounds, measured))
        progress.round_done(measured, evidence)
    return evidence, answer


def _decide(ledger: Ledger, evidence: Evidence, verdict: Verdict) -> Decision:
    plan, probe = evidence.plan, evidence.probe
    ended: list[ArmProbe | Trial] = [*(probe.arms if probe else ())]
    ended += [trial for one in evidence.rounds for trial in one.trials]
    failed = [one.log for one in ended if one.log and one.status not in ("ok", "interrupted")]
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
    """Record the stack as it now stands, after an accept or a revocation."""
    stack = ledger.stack()
    body = {"decisions": [one.id for one in stack], "head": [one.hypothesis for one in stack]}
    ledger.append("stack", f"stack-{uuid.uuid4().hex[:12]}", body)


def _mirror(job: Job, ledger: Ledger, decision: Decision, progress: Progress) -> None:
    if job.tracking == "none":
        return
    progress.notice("mirroring the decision to MLflow")
    try:
        tracking.sync(ledger, [decision.id])
    except TrackingFailed as failure:
        progress.notice(f"warning: {failure}")
    except KeyboardInterrupt:
        progress.notice("interrupted while mirroring: the decision stands; campaign sync completes its MLflow view")
        raise
