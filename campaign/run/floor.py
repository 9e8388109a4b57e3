"""An A/A floor for `campaign doctor`: a few rounds that leave no plan in the ledger, or the null hypothesis itself."""

from __future__ import annotations

import random
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from campaign import design, effects, machine, units
from campaign.config import Job, load
from campaign.config.ideas import NULL
from campaign.errors import BadInput
from campaign.executor import run_round
from campaign.executor.rounds import RoundRequest
from campaign.ledger import Ledger, now
from campaign.provenance import Checkout
from campaign.records import RULES, Floor, Plan, Round, Surroundings
from campaign.report.progress import Progress
from campaign.run.context import key_of
from campaign.run.declare import check_place, code_of, compose_arms, new_id
from campaign.run.trees import places
from campaign.stability import Fault, most_frequent, round_faults

SHORT_ROUNDS = 3
MOST_REPLACED = 2  # of a short floor: more invalid rounds say that the machine is disturbed, which is what was asked
Say = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """What A/A rounds came to. `floor` is None where too few rounds counted, and `fault` says what most of the others
    failed by. `decision` is the id of the null's decision, whose floor counts for later plans; empty for a short floor,
    whose raw block times are in `raw`, beside the ledger. `why` says what a null's decision said where it gave none."""

    full: bool
    protocol: str
    clock: str
    valid: int
    invalid: int
    floor: Floor | None
    fault: Fault | None = None
    decision: str = ""
    raw: tuple[str, ...] = ()
    why: str = ""
    reason: str = ""


def short_floor(study: Job, ledger: Ledger, fingerprint: dict[str, Any], say: Say) -> Measured:
    """A few A/A rounds of head under the quick protocol. No plan is registered, so that the ledger is about no workload
    by it, and no later plan takes d from it. The device's lease is the caller's.

    A trial that fails ends it. Raises BadInput where the arms cannot be composed.
    """
    left = [text for text in study.overrides if key_of(text) != "protocol"]
    job = load(study.root, [*left, "protocol=quick", f"hypothesis={NULL}"], searchpath=study.composer.searchpath)
    check_place(job, ledger)
    plan = _undeclared(job, ledger, fingerprint)
    rounds: list[Round] = []
    faults: list[tuple[Fault, ...]] = []
    raw: list[str] = []
    with places(job.root, ledger, plan.arms) as where:
        while faults.count(()) < SHORT_ROUNDS and len(rounds) - faults.count(()) <= MOST_REPLACED:
            measured = _round(job, ledger, plan, len(rounds), raw, where)
            rounds.append(measured)
            faults.append(round_faults(measured, plan))
            came = f"not counted ({faults[-1][0].code})" if faults[-1] else "counted"
            say(f"A/A round {len(rounds)}: {came}, took {units.seconds(measured.wall_seconds)}")
            if any(trial.status != "ok" for trial in measured.trials):
                break
    counted = [one for one, found in zip(rounds, faults, strict=True) if not found]
    enough = len(counted) == SHORT_ROUNDS
    return Measured(
        full=False,
        protocol=job.protocol.name,
        clock=job.protocol.clock,
        valid=len(counted),
        invalid=len(rounds) - len(counted),
        floor=effects.floor(counted, plan.protocol) if enough else None,
        fault=most_frequent(faults),
        raw=tuple(raw),
    )


def full_floor(study: Job, ledger: Ledger) -> Measured:
    """The A/A null itself, by the protocol that the campaign measures by: its decision is written and shown on standard
    error, and its floor counts. The device's lease is the caller's. Raises BadInput for a protocol that decides
    nothing."""
    from campaign.run import decide

    job = load(study.root, [*study.overrides, f"hypothesis={NULL}"], searchpath=study.composer.searchpath)
    if not job.protocol.decisive:
        raise BadInput(
            f"protocol={job.protocol.name} decides nothing, so its floor would not count",
            remedy="campaign doctor --full protocol=standard",
        )
    progress = Progress(json=False, output=sys.stderr)
    with progress:
        decision = decide(job, ledger, progress)
    verdict = decision.verdict
    return Measured(
        full=True,
        protocol=job.protocol.name,
        clock=job.protocol.clock,
        valid=verdict.valid_rounds,
        invalid=verdict.invalid_rounds,
        floor=verdict.floor if verdict.reason in ("floor", "biased") else None,
        decision=decision.id,
        why=verdict.sentence,
        reason=verdict.reason,
    )


def _undeclared(job: Job, ledger: Ledger, fingerprint: dict[str, Any]) -> Plan:
    """The plan that rounds and their gates ask for; it is in no ledger."""
    arms = compose_arms(job, ledger)
    return Plan(
        id=new_id("doctor"),
        campaign=job.campaign,
        workload=job.workload,
        device=job.device,
        hypothesis=job.hypothesis,
        control=arms.control,
        treatment=arms.treatment,
        protocol=replace(job.protocol, looks=(SHORT_ROUNDS,)),
        stack=arms.stack,
        attempt=1,
        alpha=job.protocol.alpha,
        threshold=job.protocol.min_effect,
        floor_id="",
        fingerprint=fingerprint,
        code=code_of(job, arms.control, arms.treatment),
        source={},
        machine_line=machine.describe(fingerprint),
        command=job.command,
        registered_at=now(),
        rules=RULES,
        two_arms="a null has no edit to be alone with",
    )


def _round(job: Job, ledger: Ledger, plan: Plan, index: int, raw: list[str], where: Mapping[str, Checkout]) -> Round:
    """One round; its block times are kept beside the ledger under the name that is added to `raw`, and the log of a
    trial that failed as well."""
    rng = random.Random(design.round_seed(plan.protocol.seed, "screen", index))
    arms = design.start_order((plan.control, plan.treatment), rng)
    order = design.order([arm.role for arm in arms], plan.protocol.pairs, rng)
    leads = design.leads(plan.protocol.pairs, plan.protocol.lead_steps, rng)

    @contextmanager
    def watch(pids: Sequence[int]) -> Iterator[Callable[[], Surroundings]]:
        with machine.Watch(plan.device, ours=pids) as watching:
            yield watching.surroundings

    with tempfile.TemporaryDirectory(prefix="campaign-doctor-") as name:
        inflight = Path(name) / "blocks.jsonl"
        request = RoundRequest(
            id=f"{plan.id}-{index + 1:02d}-{uuid.uuid4().hex[:4]}",
            stage="screen",
            index=index,
            arms=arms,
            order=order,
            code=plan.code,
            root=job.root,
            logs=Path(name),
            inflight=inflight,
            watch=watch,
            after_block=lambda done, of: None,
            leads=leads,
            places=where,
        )
        measured = run_round(plan, request)
        if measured.blocks:
            raw.append(ledger.keep(inflight.read_bytes(), ".jsonl"))
        trials = tuple(replace(trial, log=_kept(ledger, trial.log, trial.status)) for trial in measured.trials)
    # Where the code was edited meanwhile the two arms may have run different code: the round's gate says so.
    return replace(measured, trials=trials, code=code_of(job, plan.control, plan.treatment))


def _kept(ledger: Ledger, log: str, status: str) -> str:
    data = Path(log).read_bytes() if log and status not in ("ok", "interrupted") else b""
    return str(ledger.path(ledger.keep(data, ".log"))) if data else ""
