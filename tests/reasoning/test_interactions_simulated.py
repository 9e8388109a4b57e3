"""Estimates over several arms on a simulated machine with a known truth.

Seeds are fixed, so each test is either true or false; tolerances are three standard errors of the simulated share.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from benchmarks.interactions import FIRST, PLANTED
from benchmarks.simulated import Bench, Machine, plan_of, study_of
from campaign.interactions import combined, design
from campaign.interactions.words import word
from campaign.records import Contrast, Plan
from tests.reasoning.made import PROTOCOL

CAMPAIGNS = 300
MACHINE = Machine(process=0.01, block=0.03)
QUIET = Machine(process=0.005, block=0.01)
# Fewer pairs than the gates on order and trend look at.
FEW = replace(PROTOCOL, pairs=6)
PLAN: Plan = plan_of("b", FEW, 0.03, ("a",))
HELD = {
    "control": frozenset("a"),
    "treatment": frozenset("ab"),
    "root": frozenset[str](),
    "solo": frozenset("b"),
}


def bench(alone: float, together: float, seed: int, machine: Machine = MACHINE) -> Bench:
    def game(held: frozenset[str]) -> float:
        return FIRST * ("a" in held) + alone * ("b" in held) + together * (held >= {"a", "b"})

    return Bench(machine, FEW, game, seed)


def holds(found: Contrast, log: float) -> bool:
    return math.log(found.low) <= log <= math.log(found.high)


@pytest.mark.slow
def test_the_intervals_of_four_arms_hold_the_planted_values_as_often_as_they_say() -> None:
    machine = bench(0.10, -0.05, seed=11)
    held = dict.fromkeys(("marginal", "isolated", "cumulative", "interaction"), 0)
    truth = {"marginal": 0.05, "isolated": 0.10, "cumulative": FIRST + 0.05, "interaction": -0.05}
    for _ in range(CAMPAIGNS):
        found = combined([machine.round(HELD, "screen") for _ in range(6)], PLAN)
        assert found is not None
        for name in held:
            held[name] += holds(getattr(found, name), truth[name])
    error = 3 * math.sqrt(0.95 * 0.05 / CAMPAIGNS)
    assert {name: count / CAMPAIGNS for name, count in held.items()} == pytest.approx(
        dict.fromkeys(held, 0.95), abs=error
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "enabled", "redundancy", "synergy"])
def test_the_word_of_a_large_interaction_is_right(kind: str) -> None:
    alone, together = PLANTED[kind]
    exact = [Contrast(*[math.exp(log)] * 3, 0, 0.0) for log in (alone + together, alone, together)]
    assert word(*exact, 0.03) == kind
    machine = bench(alone, together, seed=12, machine=QUIET)
    made = [combined([machine.round(HELD, "screen") for _ in range(6)], PLAN) for _ in range(100)]
    right = sum(found is not None and found.word == kind for found in made)
    assert right >= 90


@pytest.mark.slow
def test_shapley_shares_hold_the_planted_ones_as_often_as_they_say() -> None:
    machine = bench(0.10, -0.05, seed=13)
    members, _ = design(("a", "b"))
    study = study_of("factorial", members, "root", FEW, 0.03, 4)
    held = {"a": 0, "b": 0}
    for _ in range(CAMPAIGNS):
        for share in machine.found(study).shares:
            held[share.name] += holds(share.effect, {"a": FIRST, "b": 0.10}[share.name] - 0.025)
    error = 3 * math.sqrt(0.95 * 0.05 / CAMPAIGNS)
    assert {name: count / CAMPAIGNS for name, count in held.items()} == pytest.approx(
        dict.fromkeys(held, 0.95), abs=error
    )
