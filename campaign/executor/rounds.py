"""One round: a fresh process per arm, warmed up together, whose blocks take turns. One arm steps at a time."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from campaign.copies import Checkout
from campaign.errors import TrialFailed
from campaign.executor.process import TrialProcess, build_request
from campaign.records import Arm, Block, Memory, Plan, Protocol, Round, Study, Surroundings, Trial, from_json, to_json
from campaign.timing import is_steady, steps_per_block


@dataclass
class _Running:
    """A trial while it runs; becomes `records.Trial`."""

    process: TrialProcess
    trial: Trial
    warmup: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class RoundRequest:
    """What to run: the arms in the order they start, the turns in full, and where it is written.

    Not `together`, the arms' processes run one after another, each with its own turns of `order` in a row, because
    they do not fit on the device side by side. `leads` are the steps before the blocks of each pair. `inflight`
    receives each block's row as it is measured, flushed before the next block. `watch(pids)` is entered around the
    timed part and gives the surroundings afterwards.
    """

    id: str
    stage: str
    index: int
    arms: Sequence[Arm]
    order: Sequence[str]
    code: str
    root: Path
    logs: Path
    inflight: Path
    watch: Callable[[Sequence[int]], AbstractContextManager[Callable[[], Surroundings]]]
    after_block: Callable[[int, int], None]
    together: bool = True
    leads: Sequence[int] = ()
    places: Mapping[str, Checkout] = field(default_factory=dict)


def run_round(plan: Plan | Study, request: RoundRequest) -> Round:
    """Run one round to its end, or to the first trial that fails; either way the round that comes back has a trial
    for each arm that was started and every block that was measured."""
    begun = time.perf_counter()
    running: dict[str, _Running] = {}
    blocks: list[Block] = []
    seen: list[Surroundings] = []
    with request.inflight.open("w") as file:
        try:
            if request.together:
                _run_group(plan, request, request.arms, request.watch, running, blocks, file, seen)
            else:
                # One watch over all, since each arm alone would say nothing of the time between.
                with request.watch(()) as seen_all:
                    for arm in request.arms:
                        _run_group(plan, request, [arm], _unwatched, running, blocks, file, [])
                seen.append(seen_all())
        except TrialFailed as failure:
            _mark_failed(running, failure)
    return Round(
        id=request.id,
        stage=request.stage,
        index=request.index,
        order=tuple(request.order),
        trials=tuple(running[arm.role].trial for arm in request.arms if arm.role in running),
        surroundings=seen[0] if seen else Surroundings(),
        code=request.code,
        together=request.together,
        wall_seconds=time.perf_counter() - begun,
        timed_seconds=sum(block.wall_seconds for block in blocks),
        blocks=tuple(blocks),
    )


@contextmanager
def _unwatched(pids: Sequence[int]) -> Iterator[Callable[[], Surroundings]]:
    yield Surroundings


def _run_group(
    plan: Plan | Study,
    request: RoundRequest,
    arms: Sequence[Arm],
    watch: Callable[[Sequence[int]], AbstractContextManager[Callable[[], Surroundings]]],
    running: dict[str, _Running],
    blocks: list[Block],
    file: TextIO,
    seen: list[Surroundings],
) -> None:
    """Start `arms` side by side, warm them up, time their turns, look at what they computed and hold, end them."""
    roles = [arm.role for arm in arms]
    with ExitStack() as stack:
        _start(plan, request, arms, stack, running)
        group = {role: running[role] for role in roles}
        _warm_up(plan.protocol, group)
        turns = [(position, role) for position, role in enumerate(request.order) if role in group]
        # Every arm takes blocks of the same length, so an arm that runs alone takes over the first one's.
        steps = blocks[0].steps if blocks else _steps_per_block(plan.protocol, group)
        with watch([one.process.pid for one in group.values()]) as surroundings:
            _take_turns(plan.protocol, request, group, turns, steps, blocks, file)
        seen.append(surroundings())
        _finish(plan.protocol, group)


def _start(
    plan: Plan | Study, request: RoundRequest, arms: Sequence[Arm], stack: ExitStack, running: dict[str, _Running]
) -> None:
    variables = {name: value for arm in plan.arms for name, value in arm.environment.items()}
    for arm in arms:
        log = request.logs / f"{request.id}-{arm.role}.log"
        place = request.places.get(arm.role)
        process = stack.enter_context(TrialProcess(arm, log, place))
        running[arm.role] = _Running(process, Trial(f"{request.id}-{arm.role}", arm.role, "ok", log=str(log)))
        process.send("build", **build_request(arm, place.root if place else request.root, "", variables))
    group = [running[arm.role] for arm in arms]
    for one in group:
        reply = one.process.receive("build", plan.protocol.start_deadline_seconds)
        facts = {**reply["facts"], "low_precision": reply["low_precision"]}
        one.trial = replace(
            one.trial,
            start_seconds=time.perf_counter() - one.process.started,
            fingerprint=reply["fingerprint"],
            facts=facts,
        )
    if plan.device == "cpu":
        core = sorted(os.sched_getaffinity(0))[-_threads(group) :]
        for one in group:
            one.process.ask("pin", plan.protocol.reply_deadline_seconds, cores=core)


def _threads(group: Sequence[_Running]) -> int:
    return max(int(one.trial.facts.get("threads", 1)) for one in group)


def _warm_up(protocol: Protocol, running: Mapping[str, _Running]) -> None:
    """Step the arms in turn until each is steady on the deciding clock, or the cap is reached."""

    def steady(one: _Running) -> bool:
        return is_steady(
            one.warmup, protocol.warmup_minimum_steps, protocol.warmup_window_steps, protocol.warmup_tolerance
        )

    for _ in range(protocol.warmup_limit_steps):
        for one in running.values():
            reply = one.process.ask("block", protocol.reply_deadline_seconds, steps=1)
            one.warmup.append(reply[f"{protocol.clock}_seconds"])
        if all(steady(one) for one in running.values()):
            break
    for one in running.values():
        one.process.ask("settle", protocol.reply_deadline_seconds)
        one.trial = replace(one.trial, warmup_seconds=tuple(one.warmup), steady=steady(one))


def _steps_per_block(protocol: Protocol, running: Mapping[str, _Running]) -> int:
    window = protocol.warmup_window_steps
    step_seconds = min(statistics.median(one.warmup[-window:]) for one in running.values())
    return steps_per_block(step_seconds, protocol.block_steps, protocol.block_minimum_seconds)


def _take_turns(
    protocol: Protocol,
    request: RoundRequest,
    running: Mapping[str, _Running],
    turns: Sequence[tuple[int, str]],
    steps: int,
    blocks: list[Block],
    file: TextIO,
) -> None:
    seen: dict[str, int] = dict.fromkeys(running, 0)
    for position, role in turns:
        one = running[role]
        sent = time.perf_counter()
        lead = request.leads[seen[role]] if request.leads else 0
        reply = one.process.ask("block", protocol.reply_deadline_seconds, steps=steps, lead=lead)
        turn_seconds = time.perf_counter() - sent
        one.trial = replace(one.trial, recompiled=one.trial.recompiled + reply["recompiled"])
        block = _block(role, position, seen[role], reply, turn_seconds)
        seen[role] += 1
        blocks.append(block)
        _write(file, block)
        request.after_block(len(blocks), len(request.order))


def _block(role: str, position: int, pair: int, reply: Mapping[str, Any], turn_seconds: float) -> Block:
    return Block(
        arm=role,
        position=position,
        pair=pair,
        steps=reply["steps"],
        tokens=reply["tokens"],
        wall_seconds=reply["wall_seconds"],
        cpu_seconds=reply["cpu_seconds"],
        device_seconds=reply["device_seconds"],
        involuntary_switches=reply["involuntary_switches"],
        idle_cpu_seconds=reply["idle_cpu_seconds"],
        loss=reply["loss"],
        gradient_norm=reply["gradient_norm"],
        turn_seconds=turn_seconds,
        lead_steps=reply.get("lead_steps", 0),
        lead_wall_seconds=reply.get("lead_wall_seconds", 0.0),
        lead_cpu_seconds=reply.get("lead_cpu_seconds", 0.0),
    )


def _write(file: TextIO, block: Block) -> None:
    file.write(json.dumps(to_json(block), allow_nan=False) + "\n")
    file.flush()


def _finish(protocol: Protocol, running: Mapping[str, _Running]) -> None:
    """The clock has stopped: the last timed step, step 1 again, and memory. Memory comes last, since it watches what
    is dispatched, after which torch.compile may stand aside."""
    for one in running.values():
        last = one.process.ask("last", protocol.reply_deadline_seconds)
        again = one.process.ask("restart", protocol.reply_deadline_seconds)
        memory = one.process.ask("memory", protocol.reply_deadline_seconds)
        one.trial = replace(
            one.trial,
            memory=from_json(Memory, {key: value for key, value in memory.items() if key != "ok"}),
            loss=last["loss"],
            gradient_norm=last["gradient_norm"],
            restart_loss=again["loss"],
            restart_gradient_norm=again["gradient_norm"],
            restart_sha256=again["gradients_sha256"],
            weighed_loss=memory["loss"],
            unmoved=tuple(last["unmoved"]),
        )
        one.process.check_copies(protocol.reply_deadline_seconds)
        one.process.ask("exit", protocol.reply_deadline_seconds)


def _mark_failed(running: dict[str, _Running], failure: TrialFailed) -> None:
    """The arm that failed says why; the others were interrupted by it and say that."""
    for role, one in running.items():
        if role == failure.arm:
            one.trial = replace(one.trial, status=failure.reason, message=failure.message, remedy=failure.remedy)
        else:
            one.trial = replace(one.trial, status="interrupted", message=f"ended because {failure.arm} failed")
