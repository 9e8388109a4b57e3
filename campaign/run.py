"""One hypothesis from its composed arms to its decision. Reads top to bottom like DESIGN.md section 3.

compose arms -> take the device's lock -> register the plan -> probe, untimed -> rounds of interleaved blocks
-> stop by the declared rule -> decision appended and fsynced -> mirrored to MLflow -> shown.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from campaign import design, effects, lease, machine, parity, provenance, tracking, verdicts
from campaign.config import Job
from campaign.errors import EXIT_DECIDED, EXIT_NO_DECISION, BadInput, TrackingFailed
from campaign.executor import run_probe, run_round
from campaign.executor.rounds import RoundRequest
from campaign.ledger import Ledger, Stamp, now, open_ledger
from campaign.records import (
    ACCEPT,
    INVALID,
    UNAVAILABLE,
    Arm,
    ArmProbe,
    Decision,
    Edit,
    Evidence,
    Need,
    Plan,
    Probe,
    Round,
    Surroundings,
    Trial,
    Verdict,
    to_json,
)
from campaign.report import Progress, decision_json, decision_text, describe_engagement, describe_parity


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
        evidence = _resume(job, ledger, progress) or _register(job, ledger, progress)
        evidence, verdict = _gather(job, ledger, evidence, progress)
        decision = _decide(ledger, evidence, verdict)
        _mirror(job, ledger, decision, progress)
        progress.decision(decision_json(decision) if job.json else decision_text(decision, ledger.file))
    return EXIT_NO_DECISION if verdict.verdict in (INVALID, UNAVAILABLE) else EXIT_DECIDED


def compose_arms(job: Job, ledger: Ledger) -> tuple[tuple[str, ...], Arm, Arm]:
    """The accepted stack's names, control (root + stack) and treatment (control + the hypothesis's edit)."""
    hypothesis = job.hypothesis
    plans = {plan.id: plan for plan in ledger.plans()}
    accepted = [plans[decision.plan_id].hypothesis for decision in ledger.stack()]
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


def _register(job: Job, ledger: Ledger, progress: Progress) -> Evidence:
    """Declare everything the verdict may use, before the first timing."""
    stack, control, treatment = compose_arms(job, ledger)
    fingerprint = machine.fingerprint(job.device)
    snapshot = provenance.snapshot(job.root)
    floor = ledger.floor(machine.fingerprint_hash(fingerprint), job.workload, job.protocol.clock)
    attempt = 1 + ledger.attempts(job.hypothesis.name, treatment.hash)
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
        fingerprint=fingerprint,
        code=provenance.code_hash(job.root),
        source={**snapshot.source, "packages": provenance.packages(), "load": os.getloadavg()[0]},
        machine_line=machine.describe(fingerprint),
        command=job.command,
        registered_at=now(),
    )
    if snapshot.patch:
        ledger.keep(snapshot.patch, ".patch")
    ledger.stamp = stamp_of(plan)
    ledger.append("registered", plan.id, to_json(plan))
    progress.start(plan, machine.warnings(job.device))
    return Evidence(plan, None)


def _resume(job: Job, ledger: Ledger, progress: Progress) -> Evidence | None:
    """The evidence of an interrupted run of exactly this plan on this machine and code, to go on from."""
    ledger.recover_inflight()
    _, control, treatment = compose_arms(job, ledger)
    fingerprint = machine.fingerprint(job.device)
    for plan in reversed([plan for plan in ledger.plans() if plan.id in ledger.unfinished()]):
        same = (plan.control.hash, plan.treatment.hash, plan.protocol, plan.hypothesis, plan.fingerprint)
        if same == (control.hash, treatment.hash, job.protocol, job.hypothesis, fingerprint):
            if plan.code != provenance.code_hash(job.root):
                continue
            ledger.stamp = stamp_of(plan)
            evidence = ledger.evidence(plan.id)
            progress.notice(f"going on with {plan.id}, interrupted after {len(evidence.rounds)} rounds")
            progress.start(plan, machine.warnings(job.device))
            return evidence
    return None


def _gather(job: Job, ledger: Ledger, evidence: Evidence, progress: Progress) -> tuple[Evidence, Verdict]:
    """Probe once, then measure until the declared rule says stop."""
    if evidence.probe is None:
        evidence = replace(evidence, probe=_probe(job, ledger, evidence.plan, progress))
    while isinstance(answer := verdicts.judge(evidence), Need):
        measured = _round(job, ledger, evidence, answer, progress)
        evidence = replace(evidence, rounds=(*evidence.rounds, measured))
        progress.round_done(measured, evidence)
    return evidence, answer


def _probe(job: Job, ledger: Ledger, plan: Plan, progress: Progress) -> Probe:
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="campaign-probe-") as name:
        probes, gradients = run_probe(plan, job.root, Path(name), progress.probing)
        ok = all(probe.status == "ok" for probe in probes.values())
        measured = parity.measure(probes, gradients) if ok else None
        arms = tuple(replace(probe, log=_keep_log(ledger, probe.log)) for probe in probes.values())
    probe = Probe(arms, measured, wall_seconds=time.perf_counter() - begun)
    ledger.append("probe", f"{plan.id}-probe", {"plan_id": plan.id, **to_json(probe)})
    return probe


def _round(job: Job, ledger: Ledger, evidence: Evidence, need: Need, progress: Progress) -> Round:
    plan = evidence.plan
    index = sum(one.stage == need.stage for one in evidence.rounds)
    rng = random.Random(design.round_seed(plan.protocol.seed, need.stage, index))
    arms = design.start_order((plan.control, plan.treatment), rng)
    # A fresh suffix: a run that died between a round's lines goes on with a new round, not with half of the old one.
    round_id = f"{plan.id}-{need.stage}-{index + 1:02d}-{uuid.uuid4().hex[:4]}"

    @contextmanager
    def watch(pids: Sequence[int]) -> Iterator[Callable[[], Surroundings]]:
        with machine.Watch(plan.device, ours=pids) as watching:
            yield watching.surroundings

    progress.round_started(need.stage, index, need.rounds)
    with tempfile.TemporaryDirectory(prefix="campaign-round-") as logs:
        request = RoundRequest(
            id=round_id,
            stage=need.stage,
            index=index,
            arms=arms,
            order=design.order([arm.role for arm in arms], plan.protocol.pairs, rng),
            code=provenance.code_hash(job.root),
            root=job.root,
            logs=Path(logs),
            inflight=ledger.inflight(round_id),
            watch=watch,
            after_block=progress.block,
            together=all(one.together for one in evidence.rounds),
        )
        measured = run_round(plan, request)
        if request.together and any(trial.status == "out_of_memory" for trial in measured.trials):
            _note_that_they_do_not_fit(ledger, measured, progress)
            measured = run_round(plan, replace(request, inflight=ledger.inflight(round_id), together=False))
        trials = tuple(replace(trial, log=_keep_log(ledger, trial.log)) for trial in measured.trials)
    measured = replace(measured, trials=trials, blocks_file=ledger.seal(round_id) if measured.blocks else "")
    for trial in trials:
        ledger.append("trial", trial.id, {"plan_id": plan.id, "round_id": round_id, **to_json(trial)})
    body = to_json(replace(measured, trials=(), blocks=()))
    body |= {"plan_id": plan.id, "trial_ids": [trial.id for trial in trials]}
    ledger.append("blocks", round_id, {key: body[key] for key in body if key not in ("trials", "blocks")})
    return measured


def _note_that_they_do_not_fit(ledger: Ledger, measured: Round, progress: Progress) -> None:
    """Keep what the round measured side by side, and say why its processes now run one after another."""
    failed = next(trial for trial in measured.trials if trial.status == "out_of_memory")
    text = f"{failed.arm} ran out of memory beside the other arm ({failed.message}): from here on processes alternate"
    body = {"text": text, "round_id": measured.id, "raw": ledger.seal(measured.id) if measured.blocks else ""}
    ledger.append("note", f"{measured.id}-apart", body)
    progress.notice(text)


def _keep_log(ledger: Ledger, log: str) -> str:
    data = Path(log).read_bytes() if log else b""
    return ledger.keep(data, ".log") if data else ""


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
        low_precision=_low_precision(evidence),
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


def _low_precision(evidence: Evidence) -> str:
    arms = evidence.probe.arms if evidence.probe else ()
    return next((str(arm.facts["low_precision"]) for arm in arms if "low_precision" in arm.facts), "unknown")


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


def stamp_of(plan: Plan) -> Stamp:
    """What every ledger line written under this plan is stamped with."""
    return Stamp(
        host=str(plan.fingerprint.get("host", "")),
        fingerprint=machine.fingerprint_hash(plan.fingerprint),
        commit=str(plan.source.get("commit") or ""),
        patch=str(plan.source.get("patch_sha256") or ""),
    )
