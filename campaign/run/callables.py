"""Two callables from their parcels to a decision, through a ledger as any run.

take the device's lease -> probe, untimed -> register the plan -> rounds of interleaved blocks -> stop by the declared
rule -> decision. The arms that run carry the pickles; those that are recorded carry their digests alone.
"""

from __future__ import annotations

import base64
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from campaign import effects, lease, machine, parity, verdicts
from campaign.callables import NOT_A_STEP
from campaign.comparison import Comparison
from campaign.config import Job
from campaign.config.compose import composer_for
from campaign.config.packaged import packaged_root
from campaign.destination import NONE
from campaign.errors import BadInput
from campaign.executor import run_probe
from campaign.ledger import Ledger, history, now, open_ledger
from campaign.parcel import Parcel
from campaign.records import (
    RULES,
    Arm,
    ArmProbe,
    Edit,
    Evidence,
    Hypothesis,
    Need,
    ParityClaim,
    Plan,
    Probe,
    Protocol,
    to_json,
)
from campaign.records.plan import NOT_COMPARED
from campaign.report.progress import Progress
from campaign.run import conclude
from campaign.run.declare import check_place, code_of, new_id, source_of, stamp_of
from campaign.run.measure import measure_round

TARGET = "campaign.callables.CallableStep"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
LOG_CHARACTERS = 4000


@dataclass(frozen=True)
class Question:
    """What is asked: two parcels under a protocol. `claim` is None where the probe is to say whether there is a loss
    to compare, and then `loss` is the claim. `root` and `campaign` are where the ledger is; `kept` says that it is the
    caller's."""

    control: Parcel
    treatment: Parcel
    protocol: Protocol
    claim: ParityClaim | None
    loss: ParityClaim
    device: str
    tokens: int
    threads: int
    root: Path
    campaign: str
    kept: bool
    wait_seconds: float

    @property
    def arms(self) -> tuple[Arm, Arm]:
        """The arms as they run, with the pickles."""
        return self._arm("control", self.control), self._arm("treatment", self.treatment)

    def _arm(self, role: str, parcel: Parcel) -> Arm:
        config = {
            "device": self.device,
            "tokens": self.tokens,
            "threads": self.threads,
            "name": parcel.name,
            "sha256": parcel.sha256,
            "setup": parcel.setup,
            "sources": parcel.sources,
            "pickled": base64.b64encode(parcel.pickled).decode(),
            "path": [place or os.getcwd() for place in sys.path],
        }
        environment = dict.fromkeys(THREADS, str(self.threads)) if self.device == "cpu" else {}
        return Arm(role, parcel.name, TARGET, config, environment)

    @property
    def job(self) -> Job:
        """The same as what a run is asked for."""
        hypothesis = Hypothesis(
            name=self.treatment.name,
            claim=f"{self.treatment.name} does a step faster than {self.control.name}.",
            mechanism="two callables",
            acts_on="step",
            edit=Edit(),
            predicted_ratio=1 + self.protocol.min_effect,
            parity=self.claim or self.loss,
        )
        return Job(
            root=Path.cwd(),
            campaign=self.campaign,
            workload=self.control.name,
            device=self.device,
            hypothesis=hypothesis,
            protocol=self.protocol,
            tracking=NONE,
            lease_wait_seconds=self.wait_seconds,
            overrides=(),
            json=False,
            composer=composer_for(packaged_root()),
        )


def recorded(arm: Arm) -> Arm:
    """The arm as it is written down: without the pickle, which is code, and the path, which is of this machine."""
    return replace(arm, config={key: value for key, value in arm.config.items() if key not in ("pickled", "path")})


def compare(question: Question, progress: Progress) -> Comparison:
    """Measure to a decision. Raises BadInput for callables that cannot be stepped, LeaseHeld; an interrupt ends every
    trial and goes through."""
    job, arms = question.job, question.arms
    held = lease.hold(job.device, job.lease_wait_seconds, progress.waiting, holder=job.campaign)
    with held, open_ledger(question.root, job.campaign, writable=True) as ledger, progress:
        for said in (*ledger.notices, *ledger.recover_inflight()):
            progress.notice(said)
        _check_ledger(job, ledger)
        evidence = _declared(question, job, ledger, arms, progress)
        while isinstance(answer := verdicts.judge(evidence), Need):
            measured = measure_round(job, ledger, evidence.plan, evidence.rounds, answer, arms, progress)
            evidence = replace(evidence, rounds=(*evidence.rounds, measured))
            progress.round_done(measured, evidence)
        decision = conclude(ledger, evidence, answer)
        log = (ledger.folder / decision.log).read_text(errors="replace")[-LOG_CHARACTERS:] if decision.log else ""
    return Comparison(decision if question.kept else replace(decision, log=""), evidence, log)


def _check_ledger(job: Job, ledger: Ledger) -> None:
    """Raises BadInput for a ledger about something else, and for one in which an edit was accepted: control would have
    to hold it, which nobody can tell of a callable."""
    check_place(job, ledger)
    accepted = [row["hypothesis"] for row in ledger.stack_rows()]
    if accepted:
        raise BadInput(
            f"{accepted[-1]} is accepted in {ledger.folder}: what is measured there next is measured on top of it, and"
            " a callable does not say what it holds",
            remedy=f"ledger='runs/{job.campaign}-2', with {accepted[-1]} as its control",
        )


def _declared(question: Question, job: Job, ledger: Ledger, arms: Sequence[Arm], progress: Progress) -> Evidence:
    """The plan, registered, and the probe. The probe comes first: only it can tell whether there is a loss to claim
    anything about. Nothing is timed before the plan is in the ledger."""
    begun = time.perf_counter()
    plan, warnings = _plan(job, ledger, *map(recorded, arms))
    with tempfile.TemporaryDirectory(prefix="campaign-probe-") as folder:
        # Two arms are looked at whatever is claimed of them: neither has a reference.
        two = replace(plan.hypothesis, parity=ParityClaim("bitwise"))
        live = replace(plan, hypothesis=two, control=arms[0], treatment=arms[1])
        probes, gradients = run_probe(live, job.root, Path(folder), progress.probing)
        _refuse(probes)
        told = any(probe.losses for probe in probes.values())
        claim = question.claim or (question.loss if told else ParityClaim(NOT_COMPARED))
        ok = claim.kind != NOT_COMPARED and all(probe.status == "ok" for probe in probes.values())
        found = parity.measure(probes, gradients, claim) if ok else None
        looked = tuple(replace(probe, log=_kept(ledger, probe.log)) for probe in probes.values())
    plan = replace(plan, hypothesis=replace(plan.hypothesis, parity=claim))
    ledger.stamp = stamp_of(plan)
    ledger.claim(plan.id)
    ledger.append("registered", plan.id, to_json(plan))
    probe = Probe(looked, found, wall_seconds=time.perf_counter() - begun)
    ledger.append("probe", f"{plan.id}-probe", {"plan_id": plan.id, **to_json(probe)})
    progress.start(plan, warnings)
    return Evidence(plan, probe)


def _plan(job: Job, ledger: Ledger, control: Arm, treatment: Arm) -> tuple[Plan, list[str]]:
    """What is declared, but for the parity claim, and what is wrong with the machine."""
    fingerprint, warnings = machine.fingerprint(job.device), machine.warnings(job.device)
    attempt = 1 + history.attempts(ledger, job.hypothesis.name, treatment.hash)
    plan = Plan(
        id=new_id(job.hypothesis.name),
        campaign=job.campaign,
        workload=job.workload,
        device=job.device,
        hypothesis=job.hypothesis,
        control=control,
        treatment=treatment,
        protocol=job.protocol,
        stack=(),
        attempt=attempt,
        alpha=job.protocol.alpha / 2 ** (attempt - 1),
        threshold=effects.threshold(job.protocol, None),
        floor_id="",
        fingerprint=fingerprint,
        code=code_of(job, control, treatment),
        source=source_of(job, ledger, warnings),
        machine_line=machine.describe(fingerprint),
        command=f"campaign.measure({job.workload}, {job.hypothesis.name})",
        registered_at=now(),
        rules=RULES,
        two_arms="two callables have no stack",
    )
    return plan, warnings


def _refuse(probes: Mapping[str, ArmProbe]) -> None:
    """Raises BadInput for a callable that came through and is no step."""
    for probe in probes.values():
        if probe.message.startswith(NOT_A_STEP):
            raise BadInput(probe.message.removeprefix(NOT_A_STEP), remedy=probe.remedy)


def _kept(ledger: Ledger, log: str) -> str:
    data = Path(log).read_bytes() if log else b""
    return ledger.keep(data, ".log") if data else ""
