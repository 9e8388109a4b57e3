"""The plan: which arms are compared, by which rule, on which machine and code; written before the first timing."""

from __future__ import annotations

import os
import time
import uuid
from typing import Any

from campaign import effects, machine, provenance, verdicts
from campaign.config import Job
from campaign.errors import BadInput
from campaign.ledger import Ledger, Stamp, history, now
from campaign.records import ACCEPT, RULES, Arm, Edit, Evidence, Floor, Hypothesis, Plan, Verdict, to_json
from campaign.report.progress import Progress

Arms = tuple[tuple[str, ...], Arm, Arm]


def declare(job: Job, ledger: Ledger, progress: Progress) -> Evidence:
    """The evidence to go on from: that of an interrupted run of exactly this plan, else a plan registered now."""
    for said in ledger.recover_inflight():
        progress.notice(said)
    arms = compose_arms(job, ledger)
    fingerprint = machine.fingerprint(job.device)
    warnings = machine.warnings(job.device)
    evidence = _interrupted(job, ledger, arms, fingerprint)
    if evidence is None:
        evidence = _registered(job, ledger, arms, fingerprint, warnings)
    else:
        progress.notice(f"going on with {evidence.plan.id}, interrupted after {len(evidence.rounds)} rounds")
    ledger.stamp = stamp_of(evidence.plan)
    progress.start(evidence.plan, warnings)
    return evidence


def _registered(job: Job, ledger: Ledger, arms: Arms, fingerprint: dict[str, Any], warnings: list[str]) -> Evidence:
    """Declare everything the verdict may use, before the first timing."""
    stack, control, treatment = arms
    snapshot = provenance.snapshot(job.root)
    floor = _floor(job, ledger, control, machine.fingerprint_hash(fingerprint))
    attempt = 1 + history.attempts(ledger, job.hypothesis.name, treatment.hash)
    plan = Plan(
        id=f"{job.hypothesis.name}-{time.strftime('%Y%m%dT%H%M%S')}-{uuid.uuid4().hex[:4]}",
        campaign=job.campaign,
        workload=job.workload,
        device=job.device,
        hypothesis=job.hypothesis,
        control=control,
        treatment=treatment,
        protocol=job.protocol,
        stack=stack,
        attempt=attempt,
        alpha=job.protocol.alpha / 2 ** (attempt - 1),
        threshold=effects.threshold(job.protocol, floor[1] if floor else None),
        floor_id=floor[0] if floor else "",
        memory_floor_bytes=floor[1].memory_range_bytes if floor else 0,
        fingerprint=fingerprint,
        code=code_of(job, control, treatment),
        source={
            **snapshot.source,
            "packages": provenance.packages(),
            "load": os.getloadavg()[0],
            "clocks": machine.clocks(job.device),
            "warnings": warnings,
        },
        machine_line=machine.describe(fingerprint),
        command=job.command,
        registered_at=now(),
        rules=RULES,
    )
    if snapshot.patch:
        ledger.keep(snapshot.patch, ".patch")
    ledger.stamp = stamp_of(plan)
    ledger.append("registered", plan.id, to_json(plan))
    return Evidence(plan, None)


def _interrupted(job: Job, ledger: Ledger, arms: Arms, fingerprint: dict[str, Any]) -> Evidence | None:
    """The evidence of the latest undecided plan of the same arms and rule, on this machine and code; None without."""
    _, control, treatment = arms
    unfinished = set(ledger.unfinished())
    for plan in reversed(ledger.plans()):
        same = (plan.control.hash, plan.treatment.hash, plan.protocol, plan.hypothesis, plan.fingerprint)
        wanted = (control.hash, treatment.hash, job.protocol, job.hypothesis, fingerprint)
        if plan.id in unfinished and same == wanted and plan.code == code_of(job, control, treatment):
            return ledger.evidence(plan.id)
    return None


def code_of(job: Job, *arms: Arm) -> str:
    """The hash of the code that trials of these arms run, as it is now."""
    return provenance.code_hash(job.root, [arm.target for arm in arms])


def compose_arms(job: Job, ledger: Ledger) -> Arms:
    """The names of the stack accepted on this workload and device, control (root + stack) and treatment (control +
    the hypothesis's edit)."""
    hypothesis = job.hypothesis
    accepted = _accepted_here(job, ledger)
    names = tuple(one.name for one in accepted)
    if hypothesis.name in names:
        raise BadInput(
            f"{hypothesis.name} is already in the accepted stack of campaign {job.campaign!r}",
            remedy=f"campaign stack --campaign {job.campaign} --revert {hypothesis.name} --why TEXT",
        )
    for one in accepted:
        if one.name in hypothesis.conflicts or hypothesis.name in one.conflicts:
            raise BadInput(
                f"{hypothesis.name} conflicts with {one.name}, which is in the accepted stack",
                remedy=f"campaign stack --campaign {job.campaign} --revert {one.name} --why TEXT",
            )
    missing = [name for name in hypothesis.requires if name not in names]
    if missing:
        raise BadInput(
            f"{hypothesis.name} requires {', '.join(missing)} in the accepted stack", remedy=f"hypothesis={missing[0]}"
        )
    edits: list[Edit] = [one.edit for one in accepted]
    control = job.arm("control", "+".join(("root", *names)), edits)
    treatment = job.arm("treatment", "+".join(("root", *names, hypothesis.name)), [*edits, hypothesis.edit])
    return names, control, treatment


def _accepted_here(job: Job, ledger: Ledger) -> list[Hypothesis]:
    """The stack's hypotheses, in order: what was accepted on another workload or device says nothing of this one.
    Each accept is judged again from its raw samples first, since control will be built on it."""
    found = []
    for decision in ledger.stack():
        if (decision.workload, decision.device) != (job.workload, job.device):
            continue
        evidence = ledger.evidence(decision.plan_id)
        again = verdicts.judge(evidence)
        if not (isinstance(again, Verdict) and again.verdict == ACCEPT):
            raise BadInput(
                f"decision {decision.id} says accept, but its samples do not: control cannot be built on it",
                remedy=f"campaign ledger --check --campaign {job.campaign}",
            )
        found.append(evidence.plan.hypothesis)
    return found


def _floor(job: Job, ledger: Ledger, control: Arm, fingerprint_hash: str) -> tuple[str, Floor] | None:
    """What A/A rounds of this control, or of the root it stands on, in blocks of the same length found here."""
    hashes = {control.hash, job.arm("root", "root", []).hash}

    def matches(plan: Plan) -> bool:
        ours, theirs = job.protocol, plan.protocol
        blocks = (ours.pairs, ours.block_steps, ours.block_minimum_seconds)
        return plan.control.hash in hashes and blocks == (
            theirs.pairs,
            theirs.block_steps,
            theirs.block_minimum_seconds,
        )

    return history.floor(ledger, fingerprint_hash, job.workload, job.protocol.clock, matches=matches)


def stamp_of(plan: Plan) -> Stamp:
    """What every ledger line written under this plan is stamped with."""
    return Stamp(
        host=str(plan.fingerprint.get("host", "")),
        fingerprint=machine.fingerprint_hash(plan.fingerprint),
        commit=str(plan.source.get("commit") or ""),
        patch=str(plan.source.get("patch_sha256") or ""),
    )
