"""Every verdict rule has a case in which it answers, and the answer is the verdict.

Adding a rule is adding a module to `campaign/verdicts/` and a line to `CASES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from campaign import verdicts
from campaign.records import (
    Evidence,
    ExpectedChange,
    Memory,
    Need,
    ParityClaim,
    ParityMeasure,
    Plan,
    Probe,
    Surroundings,
    Verdict,
)
from campaign.verdicts._case import Case, Sorted
from tests.reasoning.made import (
    MIB,
    NULL,
    PARITY,
    PLAN,
    evidence,
    made_round,
    probe,
    ratio_round,
    with_blocks,
    with_clock,
    with_hypothesis,
    with_protocol,
)

FAST = (1.10, 1.11, 1.10, 1.09)
SAME = (1.001, 1.000, 0.999, 1.000)
SLOW = (0.90, 0.91, 0.90, 0.89)
OPEN = (0.99, 1.08) * 6
QUICK = with_protocol(PLAN, name="quick", decisive=False, looks=(3,), alpha_split=(1.0,), beta_split=(1.0,))
TRY = with_hypothesis(PLAN, asks="slower")
CPU_TIME = with_protocol(PLAN, clock="cpu")
STOLEN = Surroundings(steal=0.5)


def memory(before: int, after: int) -> dict[str, dict[str, Memory]]:
    """The arms' peaks in MiB under a limit of 1,000 MiB."""
    made = [Memory(size * MIB, limit_bytes=1000 * MIB) for size in (before, after)]
    return {"control_trial": {"memory": made[0]}, "treatment_trial": {"memory": made[1]}}


def claims(kind: str, bound: float = 1e-4) -> Plan:
    return with_hypothesis(PLAN, parity=ParityClaim(kind, bound))


LOSSES = ParityMeasure(False, 0.1, loss_apart=(0.0, 0.021), untold=("gradients",))


def watched() -> Probe:
    """The probe of commands in which nothing can be counted."""
    made = probe(before=0, after=0)
    return replace(made, arms=tuple(replace(arm, facts={"way": "command"}) for arm in made.arms))


def expects(change: str, counter: str = "op:kernels::prenorm_cpu", plan: Plan = PLAN) -> Plan:
    return with_hypothesis(plan, predicted_evidence=(ExpectedChange(counter, change),))


def disagreeing() -> list:
    """CPU time says 1.10, wall 1.00, each without scatter."""
    return [with_clock(ratio_round(1.0, index=index), "cpu", (1.1, 1.1), (1.0, 1.0)) for index in range(4)]


def stalls(stage: str = "screen", count: int = 4) -> list:
    """1.10 by the median pair, 0.5 by total time."""
    return [made_round((1.1,) * 5, (1.0,) * 4 + (7.0,), stage=stage, index=index) for index in range(count)]


def hidden() -> list:
    """Rounds whose median pair is equal and in which one of three steps of treatment takes five times as long."""
    return [made_round((1.0,) * 3, (1.0, 1.0, 5.0), index=index) for index in range(4)]


def with_each(screen: list, arm: str, **fields) -> Evidence:
    """Screening rounds with these fields in every block of `arm`."""
    return evidence(rounds=[with_blocks(one, arm, **fields) for one in screen])


def many(ratio: float = 1.1, pairs: int = 8) -> list:
    """One round of enough pairs for a test of ranks."""
    return [made_round((ratio,) * pairs, (1.0,) * pairs)]


HUGE = (1.60, 1.61, 1.60, 1.59)


def invalid(count: int, stage: str = "screen") -> list:
    return [ratio_round(1.1, stage=stage, index=100 + index, surroundings=STOLEN) for index in range(count)]


def again(ratios: tuple[float, ...]) -> list:
    """The rounds of a second confirmation."""
    return [ratio_round(ratio, stage="reconfirm", index=index) for index, ratio in enumerate(ratios)]


def led(control: float, treatment: float) -> Evidence:
    """Rounds of equal arms, each block of 1 s after a step that took this many seconds."""
    screen = [ratio_round(1.0) for _ in range(4)]
    for arm, seconds in {"control": control, "treatment": treatment}.items():
        screen = [with_blocks(one, arm, lead_steps=1, lead_wall_seconds=seconds) for one in screen]
    return evidence(rounds=screen)


# rule, verdict (or the stage needed), reason (or the rounds needed), evidence
CASES: list[tuple[str, str, str | int, Callable[[], Evidence]]] = [
    ("unavailable", "unavailable", "unavailable", lambda: evidence(of=probe(None, status="unavailable"))),
    (
        "unavailable",
        "unavailable",
        "unavailable",
        lambda: evidence(SAME[:1], treatment_trial={"status": "unavailable", "message": "no compiler"}),
    ),
    *[
        ("failed", "invalid", status, lambda status=status: evidence(of=probe(None, status=status)))
        for status in ("crashed", "out_of_memory", "killed", "hung", "garbage")
    ],
    ("failed", "invalid", "hung", lambda: evidence(FAST, rounds=[ratio_round(1, control_trial={"status": "hung"})])),
    (
        "no_change",
        "invalid",
        "no_change",
        lambda: evidence(plan=replace(PLAN, treatment=replace(PLAN.control, role="treatment"))),
    ),
    ("comparable", "invalid", "code_changed", lambda: evidence(SAME, rounds=[ratio_round(1.0, code="other")])),
    (
        "comparable",
        "invalid",
        "fingerprint",
        lambda: evidence(SAME[:1], treatment_trial={"fingerprint": {"torch": "2.12.0"}}),
    ),
    ("parity", "invalid", "not_probed", lambda: replace(evidence(FAST), probe=None)),
    ("parity", "invalid", "parity", lambda: evidence(of=probe(None))),
    ("parity", "invalid", "parity", lambda: evidence(plan=claims("bitwise"))),
    ("parity", "invalid", "parity", lambda: evidence(of=probe(replace(PARITY, exact_distance=1.1e-4)))),
    ("parity", "invalid", "parity", lambda: evidence(of=probe(replace(PARITY, exact_distance=None)))),
    ("parity", "invalid", "parity", lambda: evidence(of=probe(replace(PARITY, treatment_distance=0.0376)))),
    ("parity", "invalid", "parity", lambda: evidence(of=probe(replace(PARITY, treatment_distance=float("nan"))))),
    (
        "parity",
        "invalid",
        "parity",
        lambda: evidence(plan=claims("precision"), of=probe(replace(PARITY, control_distance=None))),
    ),
    ("parity", "invalid", "parity", lambda: evidence(plan=claims("loss", 0.02), of=probe(LOSSES))),
    ("engaged", "unavailable", "unavailable", lambda: evidence(of=watched())),
    *[
        (
            "engaged",
            "invalid",
            "not_engaged",
            lambda b=before, a=after, c=change: evidence(plan=expects(c), of=probe(before=b, after=a)),
        )
        for change, before, after in (
            ("appears", 0, 0),
            ("appears", 1, 9),
            ("vanishes", 9, 1),
            ("vanishes", 0, 0),
            ("rises", 9, 9),
            ("rises", 9, 8),
            ("falls", 9, 9),
            ("falls", 8, 9),
        )
    ],
    ("engaged", "invalid", "not_engaged", lambda: evidence(plan=expects("appears", "kernel:prenorm"))),
    ("same_tokens", "invalid", "tokens", lambda: with_each(many(), "treatment", tokens=200)),
    ("background_work", "invalid", "background_work", lambda: with_each(many(), "control", idle_cpu_seconds=0.013)),
    ("background_work", "invalid", "background_work", lambda: with_each(many(), "treatment", idle_cpu_seconds=0.011)),
    ("own_clock", "invalid", "own_clock", lambda: with_each(many(), "treatment", turn_seconds=1.03)),
    ("last_step", "invalid", "last_step", lambda: with_each(many(), "treatment", loss=2.56)),
    ("untimed_steps", "invalid", "untimed_steps", lambda: led(1.05, 1.25)),
    ("last_step", "invalid", "last_step", lambda: with_each(many(), "treatment", gradient_norm=0.91)),
    ("last_step", "invalid", "last_step", lambda: evidence(FAST, treatment_trial={"unmoved": ("blocks.0.bias",)})),
    ("restarted", "invalid", "restarted", lambda: evidence(FAST, treatment_trial={"restart_sha256": "b" * 64})),
    ("restarted", "invalid", "restarted", lambda: evidence(FAST, control_trial={"restart_loss": 3.0000002})),
    ("restarted", "invalid", "restarted", lambda: evidence(FAST, treatment_trial={"weighed_loss": 3.0})),
    ("disturbed", "invalid", "steal", lambda: evidence(SAME[:2], rounds=invalid(4))),
    ("disturbed", "invalid", "steal", lambda: evidence(FAST, FAST[:1], rounds=invalid(2, "confirm"))),
    ("rounds", "screen", 4, lambda: evidence()),
    ("rounds", "screen", 4, lambda: evidence(FAST[:3])),
    ("rounds", "screen", 6, lambda: evidence(OPEN[:4])),
    ("tried", "reject", "slower", lambda: evidence(SLOW, plan=TRY)),
    ("tried", "inconclusive", "not_slower", lambda: evidence(SAME, plan=TRY)),
    ("tried", "inconclusive", "not_slower", lambda: evidence(FAST, plan=TRY, **memory(400, 460))),
    ("tried", "inconclusive", "cant_tell", lambda: evidence((0.93, 1.06) * 6, plan=TRY)),
    ("tried", "inconclusive", "tail", lambda: evidence(plan=TRY, rounds=hidden())),
    ("null", "inconclusive", "floor", lambda: evidence(SAME * 3, plan=NULL, of=probe(ParityMeasure(True, 0.0)))),
    ("null", "inconclusive", "biased", lambda: evidence(FAST * 3, plan=NULL, of=probe(ParityMeasure(True, 0.0)))),
    ("quick", "inconclusive", "promising", lambda: evidence(FAST[:3], plan=QUICK)),
    ("quick", "inconclusive", "not_promising", lambda: evidence(SAME[:3], plan=QUICK)),
    ("quick", "inconclusive", "not_promising", lambda: evidence(FAST[:3], plan=QUICK, **memory(400, 460))),
    ("quick", "inconclusive", "promising", lambda: evidence(SAME[:3], plan=QUICK, **memory(400, 300))),
    ("memory_capacity", "reject", "memory_capacity", lambda: evidence(FAST, **memory(955, 955))),
    ("memory_growth", "reject", "memory_growth", lambda: evidence(FAST, **memory(400, 424))),
    ("clocks", "inconclusive", "clocks", lambda: evidence(plan=CPU_TIME, rounds=disagreeing())),
    ("accept", "confirm", 4, lambda: evidence(FAST)),
    ("accept", "accept", "faster", lambda: evidence(FAST, FAST)),
    ("accept", "inconclusive", "unconfirmed", lambda: evidence(FAST, SAME)),
    ("accept", "reconfirm", 4, lambda: evidence(HUGE, HUGE)),
    ("accept", "accept", "faster", lambda: evidence(HUGE, HUGE, rounds=again(HUGE))),
    ("accept", "inconclusive", "unconfirmed", lambda: evidence(HUGE, HUGE, rounds=again(SAME))),
    ("accept", "inconclusive", "tail", lambda: evidence(rounds=stalls())),
    ("accept", "inconclusive", "tail", lambda: evidence(FAST, rounds=stalls("confirm"))),
    ("memory_saved", "confirm", 4, lambda: evidence(SAME, **memory(400, 300))),
    ("memory_saved", "accept", "memory", lambda: evidence(SAME, SAME, **memory(400, 300))),
    ("memory_saved", "inconclusive", "unconfirmed", lambda: evidence(SAME, SLOW, **memory(400, 300))),
    ("reject", "reject", "too_small", lambda: evidence(SAME)),
    ("reject", "reject", "slowdown", lambda: evidence(SLOW)),
    ("unresolved", "inconclusive", "unresolved", lambda: evidence(OPEN)),
]


def test_every_rule_has_a_case() -> None:
    names = {module.__name__.rsplit(".", 1)[1] for module in verdicts.rules()}
    assert names == {rule for rule, *_ in CASES}


def test_every_rule_has_a_place_of_its_own_and_says_what_it_is() -> None:
    orders = [module.ORDER for module in verdicts.rules()]
    assert orders == sorted(set(orders))
    assert all(module.__doc__ and len(module.__doc__) > 60 for module in verdicts.rules())


@pytest.mark.parametrize(
    "rule, kind, detail, make",
    CASES,
    ids=[f"{rule}-{kind}-{detail}-{i}" for i, (rule, kind, detail, _) in enumerate(CASES)],
)
def test_the_rule_answers_and_its_answer_is_the_verdict(
    rule: str, kind: str, detail: str | int, make: Callable[[], Evidence]
) -> None:
    found = make()
    answer = verdicts.judge(found)
    if isinstance(answer, Need):
        assert (answer.stage, answer.rounds) == (kind, detail)
    else:
        assert (answer.verdict, answer.reason) == (kind, detail)
        assert len(answer.sentence) > 20
    assert _first_to_answer(found) == rule


def _first_to_answer(found: Evidence) -> str:
    rounds = Sorted.of(found)
    for look in Case.looks(found.plan):
        case = Case(found, look, rounds)
        for module in verdicts.rules():
            if module.ORDER <= verdicts.last_order(case) and module.rule(case) is not None:
                return module.__name__.rsplit(".", 1)[1]
    raise AssertionError("no rule answered")


@pytest.mark.parametrize(
    "make", [make for *_, make in CASES], ids=[f"{rule}-{i}" for i, (rule, *_) in enumerate(CASES)]
)
def test_the_same_evidence_gives_the_same_answer_and_it_can_be_written_down(make: Callable[[], Evidence]) -> None:
    import json

    from campaign.records import from_json, to_json

    answer = verdicts.judge(make())
    assert verdicts.judge(make()) == answer
    assert from_json(type(answer), json.loads(json.dumps(to_json(answer), allow_nan=False))) == answer
    if isinstance(answer, Verdict) and answer.verdict in ("invalid", "unavailable"):
        assert answer.effect is None and answer.remedy
