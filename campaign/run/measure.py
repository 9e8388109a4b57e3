"""The measurements that a plan or a study asks for, each appended to the ledger as soon as it is whole."""

from __future__ import annotations

import random
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from campaign import design, machine, parity
from campaign.config import Job
from campaign.executor import run_probe, run_round
from campaign.executor.rounds import RoundRequest
from campaign.launch import IN_TURN
from campaign.ledger import Ledger
from campaign.provenance import Checkout
from campaign.records import Arm, Need, Plan, Probe, Round, Study, Surroundings, to_json
from campaign.report.progress import Progress
from campaign.run.declare import code_of

NOWHERE: Mapping[str, Checkout] = {}  # where no arm has code of its own


def probe_arms(
    job: Job, ledger: Ledger, plan: Plan, progress: Progress, where: Mapping[str, Checkout] = NOWHERE
) -> Probe:
    """The parity and engagement probe, untimed. Arms with code of their own run `where` their role says."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="campaign-probe-") as name:
        probes, gradients = run_probe(plan, job.root, Path(name), progress.probing, where)
        ok = all(probe.status == "ok" for probe in probes.values())
        measured = parity.measure(probes, gradients, plan.hypothesis.parity) if ok else None
        arms = tuple(replace(probe, log=_keep_log(ledger, probe.log)) for probe in probes.values())
    probe = Probe(arms, measured, wall_seconds=time.perf_counter() - begun)
    ledger.append("probe", f"{plan.id}-probe", {"plan_id": plan.id, **to_json(probe)})
    return probe


def arms_left(plan: Plan, rounds: Sequence[Round]) -> tuple[Arm, ...]:
    """The arms of the plan's next round: root and solo stay out once one of them has failed, since the verdict is
    between control and treatment."""
    deciding = (plan.control, plan.treatment)
    roles = [arm.role for arm in deciding]
    broken = [
        trial
        for one in rounds
        for trial in one.trials
        if trial.arm not in roles and trial.status not in ("ok", "interrupted")
    ]
    return deciding if broken else plan.arms


def measure_round(
    job: Job,
    ledger: Ledger,
    plan: Plan | Study,
    rounds: Sequence[Round],
    need: Need,
    arms: Sequence[Arm],
    progress: Progress,
    where: Mapping[str, Checkout] = NOWHERE,
) -> Round:
    """One more round of the stage that `need` names, of `arms`, after the `rounds` there are; arms with code of their
    own run `where` their role says. Where the arms do not
    fit side by side it is measured again with whole processes in turn, and so is every later one."""
    index = sum(one.stage == need.stage for one in rounds)
    rng = random.Random(design.round_seed(plan.protocol.seed, need.stage, index))
    arms = design.start_order(tuple(arms), rng)
    order = design.order([arm.role for arm in arms], plan.protocol.pairs, rng)
    leads = design.leads(plan.protocol.pairs, plan.protocol.lead_steps, rng)
    hashed = (plan.control, plan.treatment) if isinstance(plan, Plan) else plan.arms

    @contextmanager
    def watch(pids: Sequence[int]) -> Iterator[Callable[[], Surroundings]]:
        with machine.Watch(plan.device, ours=pids) as watching:
            yield watching.surroundings

    def measure(together: bool) -> Round:
        # A fresh suffix: a run that died between a round's lines goes on with a new round, not with half of the old.
        round_id = f"{plan.id}-{need.stage}-{index + 1:02d}-{uuid.uuid4().hex[:4]}"
        code = code_of(job, *hashed)
        with tempfile.TemporaryDirectory(prefix="campaign-round-") as logs:
            request = RoundRequest(
                id=round_id,
                stage=need.stage,
                index=index,
                arms=arms,
                order=order,
                code=code,
                root=job.root,
                logs=Path(logs),
                inflight=ledger.inflight(round_id),
                watch=watch,
                after_block=lambda done, of: progress.block(done, of, order[done] if together and done < of else ""),
                together=together,
                leads=leads,
                places=where,
            )
            measured = run_round(plan, request)
            trials = tuple(replace(trial, log=_keep_log(ledger, trial.log)) for trial in measured.trials)
        for trial in trials:
            ledger.append("trial", trial.id, {"plan_id": plan.id, "round_id": round_id, **to_json(trial)})
        # Whichever of the two differs from the plan's says that the code changed under our feet.
        code = code if code != plan.code else code_of(job, *hashed)
        blocks_file = ledger.seal(round_id) if measured.blocks else ""
        return replace(measured, trials=trials, code=code, blocks_file=blocks_file)

    progress.round_started(need.stage, index, need.rounds)
    together = plan.arms[0].target not in IN_TURN and all(one.together for one in rounds)
    measured = measure(together)
    out_of_memory = [trial for trial in measured.trials if trial.status == "out_of_memory"]
    if together and out_of_memory:
        failed = out_of_memory[0]
        text = f"{failed.arm} ran out of memory beside the other arms ({failed.message}): processes alternate from here"
        body = {"text": text, "plan_id": plan.id, "trial": failed.id, "raw": measured.blocks_file}
        ledger.append("note", f"{measured.id}-apart", body)
        progress.notice(text)
        measured = measure(together=False)
    body = to_json(replace(measured, trials=(), blocks=()))
    body |= {"plan_id": plan.id, "trial_ids": [trial.id for trial in measured.trials]}
    ledger.append("blocks", measured.id, {key: body[key] for key in body if key not in ("trials", "blocks")})
    return measured


def _keep_log(ledger: Ledger, log: str) -> str:
    data = Path(log).read_bytes() if log else b""
    return ledger.keep(data, ".log") if data else ""
