"""The plan: which arms are compared, by which rule, on which machine and code; written before the first timing."""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from campaign import effects, machine, provenance, verdicts
from campaign.config import Job
from campaign.errors import BadInput
from campaign.ledger import Ledger, Stamp, history, now
from campaign.records import ACCEPT, RULES, Arm, Evidence, Floor, Hypothesis, Plan, Study, Verdict, to_json
from campaign.report.progress import Progress
from campaign.run.roots import check_roots
from campaign.run.trees import Composition, pinned, uncoded

TRIES = "try"  # the campaign of `campaign try`


@dataclass(frozen=True)
class Arms:
    """What one run compares. `stack` are the names of the accepted edits in order; `root` and `solo` are None where
    `two_arms` says why."""

    stack: tuple[str, ...]
    control: Arm
    treatment: Arm
    root: Arm | None = None
    solo: Arm | None = None
    two_arms: str = ""
    about: dict[str, dict[str, Any]] = field(default_factory=dict)  # where edits of code came from, by hypothesis
    warnings: tuple[str, ...] = ()

    @property
    def hashes(self) -> tuple[str, ...]:
        return tuple(arm.hash if arm else "" for arm in (self.control, self.treatment, self.root, self.solo))


def declare(job: Job, ledger: Ledger, progress: Progress) -> Evidence:
    """The evidence to go on from: that of an interrupted run of exactly this plan, else a plan registered now."""
    for said in ledger.recover_inflight():
        progress.notice(said)
    fingerprint = machine.fingerprint(job.device)
    warnings = machine.warnings(job.device)
    evidence = None
    while evidence is None:
        check_place(job, ledger)
        standing = standing_of(ledger)
        arms = compose_arms(job, ledger)
        evidence = _interrupted(job, ledger, arms, fingerprint)
        if evidence is not None:
            progress.notice(f"going on with {evidence.plan.id}, interrupted after {len(evidence.rounds)} rounds")
        else:
            floor = floor_for(job, ledger, arms.control, fingerprint)
            attempt = 1 + history.attempts(ledger, job.hypothesis.name, arms.treatment.hash)
            told = [*warnings, *arms.warnings]
            evidence = registered(job, ledger, arms, standing, fingerprint, told, floor=floor, attempt=attempt)
    ledger.stamp = stamp_of(evidence.plan)
    progress.start(evidence.plan, evidence.plan.source.get("warnings", warnings))
    return evidence


def standing_of(ledger: Ledger) -> tuple[tuple[str, str] | None, list[str]]:
    """What arms are composed on: the place, and the decisions in the stack."""
    return ledger.place(), [row["id"] for row in ledger.stack_rows()]


def registered(
    job: Job,
    ledger: Ledger,
    arms: Arms,
    standing: tuple[tuple[str, str] | None, list[str]],
    fingerprint: dict[str, Any],
    warnings: list[str],
    *,
    floor: tuple[str, Floor] | None,
    attempt: int,
) -> Evidence | None:
    """Declare everything the verdict may use, before the first timing. None, and nothing is written, where the ledger
    is no longer `standing` as when the arms were composed: the plan would be stale at its own line."""
    parts = provenance.code_parts(job.root, [arms.control.target, arms.treatment.target])
    source = {**source_of(job, ledger, warnings), "code_parts": parts}
    source |= {"edits": arms.about} if arms.about else {}
    plan = Plan(
        id=new_id(job.hypothesis.name),
        campaign=job.campaign,
        workload=job.workload,
        device=job.device,
        hypothesis=job.hypothesis,
        control=arms.control,
        treatment=arms.treatment,
        protocol=job.protocol,
        stack=arms.stack,
        attempt=attempt,
        alpha=job.protocol.alpha / 2 ** (attempt - 1),
        threshold=effects.threshold(job.protocol, floor[1] if floor else None),
        floor_id=floor[0] if floor else "",
        memory_floor_bytes=floor[1].memory_range_bytes if floor else 0,
        fingerprint=fingerprint,
        code=code_of(job, arms.control, arms.treatment),
        source=source,
        machine_line=machine.describe(fingerprint),
        command=job.command,
        registered_at=now(),
        rules=RULES,
        root=arms.root,
        solo=arms.solo,
        two_arms=arms.two_arms,
    )
    ledger.stamp = stamp_of(plan)
    with ledger.transaction():
        if standing_of(ledger) != standing:
            return None
        ledger.claim(plan.id)
        ledger.append("registered", plan.id, to_json(plan))
    return Evidence(plan, None)


def new_id(name: str) -> str:
    """A fresh id for a plan or a study: the name, the second, and four random characters."""
    return f"{name}-{time.strftime('%Y%m%dT%H%M%S')}-{uuid.uuid4().hex[:4]}"


def source_of(job: Job, ledger: Ledger, warnings: list[str]) -> dict[str, Any]:
    """Where the code comes from and what the machine is like now; a dirty tree's patch is kept beside the ledger."""
    snapshot = provenance.snapshot(job.root)
    if snapshot.patch:
        ledger.keep(snapshot.patch, ".patch")
    return {
        **snapshot.source,
        "packages": provenance.packages(),
        "load": os.getloadavg()[0],
        "clocks": machine.clocks(job.device),
        "warnings": warnings,
    }


def _interrupted(job: Job, ledger: Ledger, arms: Arms, fingerprint: dict[str, Any]) -> Evidence | None:
    """The evidence of the latest undecided plan of the same arms and rule, on this machine and code, that no live
    process works on; None without."""
    unfinished = set(ledger.unfinished())
    for plan in reversed(ledger.plans()):
        of_plan = Arms(plan.stack, plan.control, plan.treatment, plan.root, plan.solo, plan.two_arms)
        same = (of_plan.hashes, plan.protocol, plan.hypothesis, plan.fingerprint)
        wanted = (arms.hashes, job.protocol, job.hypothesis, fingerprint)
        if plan.id not in unfinished or same != wanted or plan.code != code_of(job, arms.control, arms.treatment):
            continue
        if not ledger.moved_since(plan) and ledger.claim(plan.id):
            return ledger.evidence(plan.id)
    return None


def code_of(job: Job, *arms: Arm) -> str:
    """The hash of the code that trials of these arms run, as it is now."""
    return provenance.code_hash(job.root, [arm.target for arm in arms], pinned=pinned(arms))


def compose_arms(job: Job, ledger: Ledger) -> Arms:
    """Control (root + the accepted stack), treatment (control + the hypothesis's edit), and where the stack is not
    empty root and solo (root + the edit).

    What was accepted on another workload or device says nothing of this one. Raises BadInput where the edit is in the
    stack already or clashes with one that is, or what it requires is not in the stack.
    """
    hypothesis = job.hypothesis
    accepted = accepted_here(job, ledger) if ledger.place() == place_of(job) else []
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
    edits = [(one.name, one.edit) for one in accepted]
    own = (hypothesis.name, hypothesis.edit)
    made = Composition(job, ledger, [*edits, own])
    control = made.arm("control", "+".join(("root", *names)), edits)
    treatment = made.arm("treatment", "+".join(("root", *names, hypothesis.name)), [*edits, own])
    two_arms = _two_arms(job, names)
    root = solo = None
    if not two_arms:
        try:
            root, solo = made.arm("root", "root", []), made.arm("solo", f"root+{hypothesis.name}", [own])
        except BadInput as error:  # what was written on the stack need not apply without it
            root, two_arms = None, error.message
    return Arms(names, control, treatment, root, solo, two_arms, made.about, tuple(made.warnings))


def _two_arms(job: Job, stack: tuple[str, ...]) -> str:
    """Why root and solo are not timed; empty where they are."""
    if not stack:
        return "the stack is empty: control is root"
    if job.protocol.arms == 2:
        return "protocol.arms=2"
    if job.hypothesis.null:
        return "a null has no edit to be alone with"
    if job.hypothesis.requires:
        return f"{job.hypothesis.name} requires {', '.join(job.hypothesis.requires)}: it is not an edit of root"
    return ""


def place_of(job: Job) -> tuple[str, str]:
    """The workload and the kind of device that a job is about."""
    return job.workload, job.device.partition(":")[0]


def check_place(job: Job, ledger: Ledger) -> None:
    """Raises BadInput where the ledger belongs to another workload or another kind of device."""
    place, here = ledger.place(), place_of(job)
    if job.campaign == TRIES:
        raise BadInput(
            f"campaign {TRIES!r} holds what `campaign try` measured, and has no stack",
            remedy="campaign.name=NAME, another name",
        )
    if place is not None and place != here:
        raise BadInput(
            f"campaign {job.campaign!r} belongs to {place[0]} on {place[1]}, and this is {here[0]} on {here[1]}: a"
            " ledger is about one workload on one kind of device",
            remedy=f"campaign.name={here[0]}_{here[1]}, or another name that no campaign has",
        )


def accepted_here(job: Job, ledger: Ledger) -> list[Hypothesis]:
    """The stack's hypotheses, in order. Each measured accept is judged again from its raw samples first, since control
    will be built on it; one that a person ruled stands on that person's word.

    Raises BadInput where one was measured on another root than that of `job`: their gains are of different things.
    """
    found = []
    ruled = {row["id"] for row in ledger.stack_rows() if row["ruling"] == ACCEPT}
    check_roots(job, ledger)
    for decision in ledger.stack():
        if decision.id in ruled:
            found.append(ledger.plan(decision.plan_id).hypothesis)
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


def floor_for(job: Job, ledger: Ledger, control: Arm, fingerprint: dict[str, Any]) -> tuple[str, Floor] | None:
    """What A/A rounds of this control, or of the root it stands on, in blocks of the same length found here."""
    hashes = {uncoded(control), job.arm("root", "root", []).hash}

    def matches(plan: Plan) -> bool:
        ours, theirs = job.protocol, plan.protocol
        blocks = (ours.pairs, ours.block_steps, ours.block_minimum_seconds)
        return uncoded(plan.control) in hashes and blocks == (
            theirs.pairs,
            theirs.block_steps,
            theirs.block_minimum_seconds,
        )

    fingerprint_hash = machine.fingerprint_hash(fingerprint)
    return history.floor(ledger, fingerprint_hash, job.workload, job.protocol.clock, matches=matches)


def stamp_of(plan: Plan | Study) -> Stamp:
    """What every ledger line written under this plan is stamped with."""
    return Stamp(
        host=str(plan.fingerprint.get("host", "")),
        fingerprint=machine.fingerprint_hash(plan.fingerprint),
        commit=str(plan.source.get("commit") or ""),
        patch=str(plan.source.get("patch_sha256") or ""),
    )
