"""Simulated campaigns with a known truth: how often the whole rule is wrong, and how often it finds what is there.

Round medians are Gaussian (measurement 4.3); every campaign goes through `judge`. Seeds are fixed, so each test is
either true or false; the tolerances are three standard errors of the simulated share.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy
import pytest

from campaign import verdicts
from campaign.effects import interval
from campaign.records import Evidence, Need, ParityMeasure, Plan, Round, Verdict
from tests.reasoning.made import NULL, PLAN, PROTOCOL, probe, ratio_round, with_protocol

GREEN = probe(ParityMeasure(True, 0.0))


def _campaign(plan: Plan, effect: float, sd: float, rng: numpy.random.Generator) -> Verdict:
    """Measure until decided; each round's log ratio is normal around log(1 + effect)."""
    rounds: list[Round] = []
    while isinstance(answer := verdicts.judge(Evidence(plan, GREEN, tuple(rounds))), Need):
        have = sum(one.stage == answer.stage for one in rounds)
        for index in range(have, answer.rounds):
            ratio = math.exp(rng.normal(math.log1p(effect), sd))
            rounds.append(ratio_round(ratio, stage=answer.stage, index=index))
    return answer


def _verdicts(plan: Plan, effect: float, sd: float, campaigns: int, seed: int) -> Counter[str]:
    rng = numpy.random.default_rng(seed)
    return Counter(_campaign(plan, effect, sd, rng).verdict for _ in range(campaigns))


def test_noise_is_not_accepted_more_often_than_declared() -> None:
    found = _verdicts(PLAN, 0.0, 0.01, 2000, seed=1)
    assert found["accept"] <= 20  # 1 % of 2,000; the threshold d makes it rarer still
    assert found["reject"] > 1900  # and what is nothing is said to be too small, not left open


def test_an_edit_worth_ten_per_cent_is_accepted_on_a_quiet_and_found_on_a_noisy_machine() -> None:
    assert _verdicts(PLAN, 0.10, 0.01, 100, seed=2)["accept"] == 100
    # sd 3 %: the last look alone has a power above .99, the confirmation of 4 rounds at .05 one of .99
    noisy = _verdicts(PLAN, 0.10, 0.03, 200, seed=3)
    assert noisy["accept"] >= 180 and noisy["reject"] == 0


def test_a_slowdown_is_never_accepted() -> None:
    found = _verdicts(PLAN, -0.05, 0.02, 200, seed=4)
    assert found["accept"] == 0 and found["reject"] >= 190


@pytest.mark.parametrize("sd", [0.001, 0.05])
def test_a_null_is_never_accepted(sd: float) -> None:
    quick = with_protocol(NULL, looks=(4, 6), alpha_split=(0.5, 0.5), beta_split=(0.5, 0.5))
    assert set(_verdicts(quick, 0.0, sd, 100, seed=5)) == {"inconclusive"}
    assert set(_verdicts(quick, 0.2, sd, 20, seed=6)) == {"inconclusive"}


def test_a_protocol_that_is_not_decisive_never_decides() -> None:
    quick = with_protocol(PLAN, decisive=False, looks=(2, 3), alpha_split=(0.5, 0.5), beta_split=(0.5, 0.5))
    for effect in (-0.2, 0.0, 0.2):
        assert set(_verdicts(quick, effect, 0.01, 40, seed=7)) == {"inconclusive"}


def test_over_all_looks_the_lower_bound_of_noise_passes_one_as_often_as_alpha_says() -> None:
    rng = numpy.random.default_rng(8)
    campaigns, passed = 6000, 0
    for _ in range(campaigns):
        logs = rng.normal(0.0, 0.03, PROTOCOL.looks[-1])
        passed += any(
            interval(logs[:look], 0.01 * share, 0.05).decision_low > 0
            for look, share in zip(PROTOCOL.looks, PROTOCOL.alpha_split, strict=True)
        )
    # Bonferroni over correlated looks: below 1 %, above the largest single look's .4 %
    error = 3 * math.sqrt(0.01 * 0.99 / campaigns)
    assert 0.004 - error < passed / campaigns <= 0.01 + error


def test_an_edit_of_exactly_the_threshold_is_accepted_as_often_as_the_published_simulation_says() -> None:
    # measurement 4.3, Gaussian sd 1 %, d = 2 %, true effect d: 64 % pass the screen, 4 % are rejected, 33 % stay open
    plan = replace(PLAN, threshold=0.02)
    rng = numpy.random.default_rng(9)
    found: Counter[str] = Counter()
    campaigns = 300
    for _ in range(campaigns):
        rounds = [ratio_round(math.exp(rng.normal(math.log1p(0.02), 0.01)), index=index) for index in range(12)]
        answer = verdicts.judge(Evidence(plan, GREEN, tuple(rounds)))
        found[answer.stage if isinstance(answer, Need) else answer.verdict] += 1
    for kind, share in (("confirm", 0.64), ("reject", 0.04), ("inconclusive", 0.33)):
        error = 3 * math.sqrt(share * (1 - share) / campaigns) + 0.005  # the table is printed in whole per cents
        assert found[kind] / campaigns == pytest.approx(share, abs=error)


@pytest.mark.slow
def test_fresh_rounds_do_not_inherit_the_winners_curse() -> None:
    # true +2 %, d = 3 %, sd 2 %: what passes the screen must have shown 3 %, so it overstates; fresh rounds do not
    rng = numpy.random.default_rng(10)
    screened, published = [], []
    for _ in range(300):
        answer = _campaign(PLAN, 0.02, 0.02, rng)
        if answer.screening is not None and answer.effect is not None:
            screened.append(answer.screening.ratio)
            published.append(answer.effect.ratio)
    assert len(screened) >= 20
    assert min(screened) >= 1.03
    error = 3 * 0.02 / math.sqrt(4 * len(published))
    assert numpy.mean(published) == pytest.approx(1.02, abs=error)
