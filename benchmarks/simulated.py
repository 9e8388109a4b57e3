"""A machine that exists on paper: rounds of any arms whose true speeds are known, with a CPU's kinds of noise.

A block's log time is the arm's true one, plus the machine's level at that turn (it wanders, and all arms meet it),
plus its process's own bias (fresh in each round, the same for all of the process's blocks), plus scatter from block to
block, with a stall now and then. The second is what interleaving cancels, the third what only more rounds do
(reference measurement 2: process bias 1 % to 3 %, scatter of single blocks several per cent).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy

from campaign import design, verdicts
from campaign.interactions import active_roles, find
from campaign.records import (
    RULES,
    Arm,
    ArmProbe,
    Block,
    Edit,
    Evidence,
    Finding,
    Hypothesis,
    Memory,
    Need,
    ParityClaim,
    ParityMeasure,
    Plan,
    Probe,
    Protocol,
    Round,
    Study,
    StudyEvidence,
    Surroundings,
    Trial,
    Verdict,
)

STEP_SECONDS = 0.05
SHA256 = "a" * 64
FINGERPRINT = {"host": "paper"}
ARM = ArmProbe("control", "ok", (3.0, 2.9), (1.0, 0.9), SHA256)
PROBE = Probe((ARM, ArmProbe("treatment", "ok", (3.0, 2.9), (1.0, 0.9), SHA256)), ParityMeasure(True, 0.0))
Game = Callable[[frozenset[str]], float]


@dataclass(frozen=True)
class Machine:
    """Standard deviations of log times: of a process's bias, of single blocks, and of the level's step from turn to
    turn; `stalls` is the share of blocks that take half as long again."""

    process: float
    block: float
    level: float = 0.004
    stalls: float = 0.02


class Bench:
    """Measures what it is asked for, with true logs from `game`: how much faster an arm that holds some edits is than
    root (log). One random generator for everything, so that a seed says it all."""

    def __init__(self, machine: Machine, protocol: Protocol, game: Game, seed: int) -> None:
        self.machine, self.protocol, self.game = machine, protocol, game
        self.rng, self.turns, self.ids = numpy.random.default_rng(seed), random.Random(seed), count(1)

    def decided(self, plan: Plan, held: Mapping[str, frozenset[str]]) -> Verdict:
        """The verdict on `plan`; `held` says which edits are in the arm of each role."""
        rounds: list[Round] = []
        while isinstance(answer := verdicts.judge(Evidence(plan, PROBE, tuple(rounds))), Need):
            have = sum(one.stage == answer.stage for one in rounds)
            for _ in range(max(1, answer.rounds - have)):
                rounds.append(self.round({arm.role: held[arm.role] for arm in plan.arms}, answer.stage))
        return answer

    def found(self, study: Study) -> Finding:
        """The finding of `study`."""
        rounds: list[Round] = []
        while isinstance(answer := find(evidence := StudyEvidence(study, tuple(rounds))), Need):
            have = sum(one.stage == answer.stage for one in rounds)
            # All that one group wants at once: asking after each round would give the same, and take longer.
            missing = study.rounds - have if len(study.groups) == 1 else 1
            for _ in range(max(1, missing)):
                roles = active_roles(evidence, answer.stage)
                rounds.append(self.round({role: frozenset(study.members[role]) for role in roles}, answer.stage))
        return answer

    def round(self, held: Mapping[str, frozenset[str]], stage: str) -> Round:
        """One round of these arms."""
        arms, pairs = list(held), self.protocol.pairs
        order = design.order(arms, pairs, self.turns)
        noise = self.machine
        logs = numpy.full(len(order), math.log(STEP_SECONDS)) + self.rng.normal(0.0, 0.2)
        logs += numpy.cumsum(self.rng.normal(0.0, noise.level, len(order)))
        logs += self.rng.normal(0.0, noise.block, len(order))
        logs += math.log(1.5) * (self.rng.random(len(order)) < noise.stalls)
        own = {arm: self.rng.normal(0.0, noise.process) - self.game(there) for arm, there in held.items()}
        rows = []
        for position, (arm, log) in enumerate(zip(order, logs.tolist(), strict=True)):
            seconds, pair = math.exp(log + own[arm]), position // len(arms)
            loss, norm = 3.0 - 0.01 * pair, 1.0 - 0.001 * pair
            rows.append(
                Block(arm, position, pair, 1, 100, seconds, 0.98 * seconds, None, 0, 1e-5, loss, norm, seconds + 1e-4)
            )
        number = next(self.ids)
        return Round(
            id=f"{stage}-{number}",
            stage=stage,
            index=number,
            order=order,
            trials=tuple(_trial(f"{number}-{arm}", arm) for arm in arms),
            surroundings=Surroundings(load=1.0, pressure=0.0, steal=0.0),
            code="paper",
            wall_seconds=0.0,
            timed_seconds=0.0,
            blocks=tuple(rows),
        )


def plan_of(name: str, protocol: Protocol, threshold: float, stack: Sequence[str] = (), *, null: bool = False) -> Plan:
    """A plan on the edit `name`; with a stack it has four arms."""
    claim = ParityClaim("bitwise")
    four = bool(stack)
    return Plan(
        id=f"{name}-plan",
        campaign="paper",
        workload="paper",
        device="cpu",
        hypothesis=Hypothesis(name, "planted", "planted", "time", Edit(), 1.0, claim, null=null),
        control=_arm("control"),
        treatment=_arm("control" if null else "treatment", role="treatment"),
        protocol=protocol,
        stack=tuple(stack),
        attempt=1,
        alpha=protocol.alpha,
        threshold=threshold,
        floor_id="floor",
        fingerprint=FINGERPRINT,
        code="paper",
        source={},
        machine_line="a machine on paper",
        command="python benchmarks/interactions.py",
        registered_at="2026-01-01T00:00:00Z",
        rules=RULES,
        root=_arm("root") if four else None,
        solo=_arm("solo") if four else None,
    )


def study_of(
    kind: str,
    members: Mapping[str, tuple[str, ...]],
    base: str,
    protocol: Protocol,
    threshold: float,
    rounds: int,
    generators: tuple[str, ...] = (),
) -> Study:
    """A study of these arms in rounds of at most eight."""
    from campaign.interactions import groups

    subjects = max(members.values(), key=len)
    return Study(
        id=f"{kind}-study",
        kind=kind,
        campaign="paper",
        workload="paper",
        device="cpu",
        arms=tuple(_arm(role) for role in members),
        base=base,
        subjects=subjects,
        members=dict(members),
        groups=groups(list(members), base),
        protocol=protocol,
        rounds=rounds,
        stack=subjects,
        threshold=threshold,
        floor_id="floor",
        fingerprint=FINGERPRINT,
        code="paper",
        source={},
        machine_line="a machine on paper",
        command="python benchmarks/interactions.py",
        registered_at="2026-01-01T00:00:00Z",
        generators=generators,
    )


def _arm(name: str, role: str = "") -> Arm:
    return Arm(role or name, name, "paper.Paper", {"name": name})


def _trial(id: str, arm: str) -> Trial:
    return Trial(
        id=id,
        arm=arm,
        status="ok",
        warmup_seconds=(STEP_SECONDS,) * 10,
        steady=True,
        memory=Memory(400 << 20, limit_bytes=8 << 30),
        loss=2.5,
        gradient_norm=0.8,
        fingerprint=FINGERPRINT,
        facts={"threads": 1},
        restart_loss=3.0,
        restart_gradient_norm=1.0,
        restart_sha256=SHA256,
        weighed_loss=2.7,
    )
