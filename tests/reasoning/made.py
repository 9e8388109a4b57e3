"""Evidence made by hand for the reasoning tests: small plans, rounds with chosen block times, probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from campaign import verdicts
from campaign.records import (
    RULES,
    Arm,
    ArmParity,
    ArmProbe,
    Block,
    Edit,
    Evidence,
    ExpectedChange,
    Hypothesis,
    Memory,
    ParameterError,
    ParityClaim,
    ParityMeasure,
    Plan,
    Probe,
    Protocol,
    Round,
    Study,
    Surroundings,
    Trial,
    Verdict,
)

MIB = 1024**2

PROTOCOL = Protocol(
    name="standard",
    decisive=True,
    clock="wall",
    looks=(4, 6, 8, 12),
    alpha=0.01,
    beta=0.05,
    alpha_split=(0.2, 0.2, 0.2, 0.4),
    beta_split=(0.2, 0.2, 0.2, 0.4),
    min_effect=0.03,
    pairs=2,
    block_steps=1,
    block_minimum_seconds=0.05,
    warmup_minimum_steps=5,
    warmup_window_steps=5,
    warmup_tolerance=0.05,
    warmup_limit_steps=50,
    confirm_rounds=4,
    confirm_alpha=0.05,
    invalid_share_limit=0.2,
    contention_limit=1.3,
    gate_alpha=0.001,
    memory_min_effect=0.02,
    memory_min_bytes=8 * MIB,
    memory_noninferiority=0.01,
    memory_margin=0.05,
    probe_steps=3,
    start_deadline_seconds=60.0,
    reply_deadline_seconds=60.0,
    seed=1,
)

HYPOTHESIS = Hypothesis(
    name="fusion",
    claim="one pass less",
    mechanism="one kernel for two passes",
    acts_on="ops.prenorm",
    edit=Edit(overrides=("ops.prenorm=cpu",)),
    predicted_ratio=1.1,
    parity=ParityClaim("rounding"),
    predicted_evidence=(ExpectedChange("op:kernels::prenorm_cpu", "appears", 0, 9),),
)

PLAN = Plan(
    id="plan-1",
    campaign="default",
    workload="tiny",
    device="cpu",
    hypothesis=HYPOTHESIS,
    control=Arm("control", "root", "models.Workload", {"ops": "reference"}),
    treatment=Arm("treatment", "root+fusion", "models.Workload", {"ops": "cpu"}),
    protocol=PROTOCOL,
    stack=(),
    attempt=1,
    alpha=0.01,
    threshold=0.03,
    floor_id="floor-1",
    fingerprint={"torch": "2.13.0", "host": "a"},
    code="c0de",
    source={},
    machine_line="a machine",
    command="python -m campaign hypothesis=fusion",
    registered_at="2026-01-01T00:00:00Z",
    rules=RULES,
)


def study(arms: Sequence[str], base: str = "root", plan: Plan = PLAN, **changes: Any) -> Study:
    """A study of these roles in one group, under the plan's protocol, on its machine and code. A role names its
    subjects: `root` has none, `A+B` has A and B."""
    members = {role: () if role == "root" else tuple(role.split("+")) for role in arms}
    values: dict[str, Any] = {
        "id": "study-1",
        "kind": "factorial",
        "arms": tuple(Arm(role, role, "models.Workload", {"role": role}) for role in arms),
        "base": base,
        "subjects": tuple(dict.fromkeys(name for names in members.values() for name in names)),
        "members": members,
        "groups": (tuple(arms),),
        "rounds": 4,
    }
    shared = {field.name: getattr(plan, field.name) for field in fields(Study) if hasattr(plan, field.name)}
    return Study(**(shared | values | changes))


NULL = replace(
    PLAN,
    hypothesis=replace(HYPOTHESIS, name="aa_null", null=True, predicted_evidence=(), parity=ParityClaim("bitwise")),
    treatment=replace(PLAN.control, role="treatment"),
)

NEAR = ArmParity(
    losses=(0.001, 0.002),
    gradient_norms=(0.010, 0.020),
    worst=ParameterError("blocks.0.weight", error=0.05, cosine=0.998, share=0.2, control_error=0.04, noise=0.01),
)
EXACT = ArmParity((2e-7, 3e-7), (4e-7, 5e-7), replace(NEAR.worst, error=6e-6))
PARITY = ParityMeasure(
    False,
    1e-4,
    control_distance=0.030,
    treatment_distance=0.031,
    exact_distance=2e-7,
    control=NEAR,
    treatment=NEAR,
    exact=EXACT,
)
SHA256 = "a" * 64  # the digest of step 1's gradients, in the probe and in each restarted trial


def probe(parity: ParityMeasure | None = PARITY, before: float = 0.0, after: float = 9.0, **treatment: Any) -> Probe:
    """A green probe, unless told otherwise; `before` and `after` count kernels::prenorm_cpu."""
    counter = "op:kernels::prenorm_cpu"
    control = ArmProbe("control", "ok", (3.0, 2.9), (1.0, 0.9), SHA256, {counter: before} if before else {})
    other = ArmProbe("treatment", "ok", (3.0, 2.9), (1.0, 0.9), SHA256, {counter: after} if after else {})
    return Probe((control, replace(other, **treatment)), parity)


def blocks(arm: str, times: Sequence[float], first: Sequence[bool], clock: str = "wall") -> list[Block]:
    """One block of 100 tokens in 1 step per time; `first[k]` says whether the arm goes first in pair k."""
    made = []
    for pair, seconds in enumerate(times):
        position = 2 * pair + (0 if first[pair] else 1)
        wall = seconds if clock == "wall" else 1.0
        cpu = seconds if clock == "cpu" else 0.98 * seconds
        turn = wall + 0.001
        made.append(Block(arm, position, pair, 1, 100, wall, cpu, None, 0, 0.0005, 2.5 - 0.01 * pair, 0.8, turn))
    return made


def trial(arm: str, **changes: Any) -> Trial:
    made = Trial(
        id=f"t-{arm}",
        arm=arm,
        status="ok",
        log=f"raw/{arm}.log",
        warmup_seconds=(0.1,) * 10,
        steady=True,
        memory=Memory(400 * MIB, process_peak_bytes=600 * MIB, limit_bytes=8192 * MIB),
        fingerprint={"torch": "2.13.0", "device": "cpu"},
        facts={"threads": 1},
        loss=2.5,
        gradient_norm=0.8,
        restart_loss=3.0,
        restart_gradient_norm=1.0,
        restart_sha256=SHA256,
        weighed_loss=2.7,
    )
    return replace(made, **changes)


def made_round(
    control: Sequence[float],
    treatment: Sequence[float],
    *,
    stage: str = "screen",
    index: int = 0,
    control_trial: dict[str, Any] | None = None,
    treatment_trial: dict[str, Any] | None = None,
    surroundings: Surroundings | None = None,
    code: str = "c0de",
) -> Round:
    """A round whose blocks took these seconds, in the order AB BA AB BA."""
    control_first = [pair % 2 == 0 for pair in range(len(control))]
    rows = blocks("control", control, control_first)
    rows += blocks("treatment", treatment, [not first for first in control_first])
    rows.sort(key=lambda block: block.position)
    return Round(
        id=f"{stage}-{index}",
        stage=stage,
        index=index,
        order=tuple(block.arm for block in rows),
        trials=(trial("control", **(control_trial or {})), trial("treatment", **(treatment_trial or {}))),
        surroundings=surroundings or Surroundings(load=1.0, pressure=0.0, steal=0.0),
        code=code,
        wall_seconds=10.0,
        timed_seconds=sum(block.wall_seconds for block in rows),
        blocks=tuple(rows),
    )


def ratio_round(ratio: float, *, stage: str = "screen", index: int = 0, **changes: Any) -> Round:
    """A round in which every pair has this control / treatment ratio (treatment takes 1 s a block)."""
    return made_round((ratio, ratio), (1.0, 1.0), stage=stage, index=index, **changes)


def evidence(
    screen: Sequence[float] = (),
    confirm: Sequence[float] = (),
    *,
    plan: Plan = PLAN,
    of: Probe | None = None,
    rounds: Sequence[Round] = (),
    **changes: Any,
) -> Evidence:
    """Evidence of rounds with these ratios, all valid unless `changes` (see `made_round`) say otherwise, then
    `rounds`."""
    made = [ratio_round(ratio, index=index, **changes) for index, ratio in enumerate(screen)]
    made += [ratio_round(ratio, stage="confirm", index=index, **changes) for index, ratio in enumerate(confirm)]
    return Evidence(plan, of or probe(), (*made, *rounds))


def with_blocks(one: Round, arm: str, **fields: Any) -> Round:
    """The round with these fields in every block of `arm`."""
    return replace(one, blocks=tuple(replace(b, **fields) if b.arm == arm else b for b in one.blocks))


def with_protocol(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, protocol=replace(plan.protocol, **changes))


def with_hypothesis(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, hypothesis=replace(plan.hypothesis, **changes))


def with_clock(one: Round, clock: str, control: Sequence[float], treatment: Sequence[float]) -> Round:
    """The round with these times on `clock` and the others left alone."""
    times = {"control": control, "treatment": treatment}
    rows = tuple(replace(block, **{f"{clock}_seconds": times[block.arm][block.pair]}) for block in one.blocks)
    return replace(one, blocks=tuple(replace(block, turn_seconds=block.wall_seconds + 0.001) for block in rows))


FAST = (1.10, 1.11, 1.10, 1.09)
SAME = (1.001, 1.000, 0.999, 1.000)
OPEN = (0.99, 1.08) * 6
STOLEN = Surroundings(steal=0.5)


def judged(*args, **kwargs) -> Verdict:
    answer = verdicts.judge(evidence(*args, **kwargs))
    assert isinstance(answer, Verdict), answer
    return answer


def bad(count: int, stage: str = "screen") -> list:
    return [ratio_round(3.0, stage=stage, index=50 + index, surroundings=STOLEN) for index in range(count)]
