"""Effects against hand arithmetic and against scipy's own tests."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy
import pytest
from scipy import stats

from campaign.effects import effect, interval, pair_logs, readable, round_logs
from campaign.records import Block, Round
from tests.reasoning.made import made_round, ratio_round, trial, with_clock


def test_a_round_gives_the_median_of_its_pairs_not_the_ratio_of_medians() -> None:
    # pairs: log(2/1), log(4/4), log(3/2) -> median log 1.5; medians 3 and 2 would agree, totals 9/7 would not
    one = made_round((2.0, 4.0, 3.0), (1.0, 4.0, 2.0))
    assert pair_logs(one, "wall", "control", "treatment") == pytest.approx([math.log(2), 0.0, math.log(1.5)])
    assert round_logs([one], "wall")["treatment"] == pytest.approx([math.log(1.5)])


def test_pairs_are_neighbours_by_their_number_whatever_the_order_of_rows() -> None:
    one = made_round((2.0, 8.0, 3.0), (1.0, 2.0, 3.0))
    shuffled = replace(one, blocks=one.blocks[::-1])
    assert pair_logs(shuffled, "wall", "control", "treatment") == pytest.approx([math.log(2), math.log(4), 0.0])


def test_the_interval_is_students_t_over_rounds_by_hand() -> None:
    # m = 1, 2, 3 %: mean 2 %, sd 1 %; t(.975, 2) = 4.3027, t(.99, 2) = 6.9646, t(.95, 2) = 2.9200; sqrt 3 = 1.7321
    found = interval([0.01, 0.02, 0.03], 0.01, 0.05)
    assert found.mean == pytest.approx(0.02) and found.sd == pytest.approx(0.01)
    assert found.low == pytest.approx(0.02 - 0.0248415, abs=1e-6)
    assert found.high == pytest.approx(0.02 + 0.0248415, abs=1e-6)
    assert found.decision_low == pytest.approx(0.02 - 0.0402100, abs=1e-6)
    assert found.decision_high == pytest.approx(0.02 + 0.0168586, abs=1e-6)


@pytest.mark.parametrize("seed, rounds", [(1, 3), (2, 4), (3, 8), (4, 12)])
def test_the_bounds_agree_with_scipys_one_sample_t_test(seed: int, rounds: int) -> None:
    values = numpy.random.default_rng(seed).normal(0.01, 0.02, rounds)
    found = interval(values, 0.002, 0.01)
    two_sided = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((two_sided.low, two_sided.high))
    greater = stats.ttest_1samp(values, 0, alternative="greater").confidence_interval(0.998)
    less = stats.ttest_1samp(values, 0, alternative="less").confidence_interval(0.99)
    assert (found.decision_low, found.decision_high) == pytest.approx((greater.low, less.high))


def test_ties_do_not_claim_certainty() -> None:
    # equal values: sd is the floor of 0.0002, so the half-width is t(.975, 1) * 0.0002 / sqrt 2 = 12.706 * 0.00014142
    found = interval([0.05, 0.05], 0.01, 0.05)
    assert found.high - found.mean == pytest.approx(12.7062 * 0.0002 / math.sqrt(2), rel=1e-5)


def test_one_round_has_no_interval() -> None:
    with pytest.raises(ValueError, match="at least 2 rounds, got 1"):
        interval([0.05], 0.01, 0.05)


def test_an_effect_by_hand() -> None:
    # rounds with ratios 1.21 and 1.00: the geometric mean is 1.1
    rounds = [made_round((1.21, 2.42), (1.0, 2.0)), made_round((3.0, 3.0), (3.0, 3.0))]
    found = effect(rounds, "wall", 0.01, 0.05)
    assert found.ratio == pytest.approx(1.1)
    assert found.round_ratios == pytest.approx((1.21, 1.0))
    assert found.total_ratio == pytest.approx(1.1)  # sqrt(3.63/3 * 6/6)
    # medians of control: 1.815 and 3; of treatment 1.5 and 3; geometric means; 100 tokens a block
    assert found.control_step_seconds == pytest.approx(math.sqrt(1.815 * 3.0))
    assert found.treatment_step_seconds == pytest.approx(math.sqrt(1.5 * 3.0))
    assert found.control_tokens_per_second == pytest.approx(100 / math.sqrt(1.815 * 3.0))
    assert (found.control_max_seconds, found.treatment_max_seconds) == (3.0, 3.0)
    # p99 of control's 1.21, 2.42, 3, 3 lies between 3 and 3, of treatment's 1, 2, 3, 3 too
    assert (found.control_p99_seconds, found.treatment_p99_seconds) == pytest.approx((3.0, 3.0))
    assert found.rounds == 2
    assert found.sd_log == pytest.approx(math.log(1.21) / math.sqrt(2))


def test_the_published_case_study_speedup_is_reproduced() -> None:
    # case_studies.json, G_campaign: 13.65k -> 15.11k tokens/s over 16,384 tokens is 1.107
    control, treatment = 16384 / 13650, 16384 / 15110
    rounds = [made_round((control,) * 20, (treatment,) * 20, index=index) for index in range(3)]
    assert round(effect(rounds, "wall", 0.01, 0.05).ratio, 3) == 1.107


def test_an_edit_that_changes_tokens_per_step_is_compared_per_token() -> None:
    # treatment takes twice as long for three times the tokens: 1.5 times the speed
    one = made_round((1.0, 1.0), (2.0, 2.0))
    tripled = replace(one, blocks=tuple(replace(b, tokens=300) if b.arm == "treatment" else b for b in one.blocks))
    found = effect([tripled, tripled], "wall", 0.01, 0.05)
    assert found.ratio == pytest.approx(1.5) and found.total_ratio == pytest.approx(1.5)
    assert found.treatment_step_seconds == pytest.approx(2.0)
    assert found.treatment_tokens_per_second == pytest.approx(150.0)


def test_a_stall_moves_total_time_and_the_maximum_but_not_the_effect() -> None:
    rounds = [made_round((1.0,) * 5, (0.9, 0.9, 0.9, 0.9, 5.0), index=index) for index in range(3)]
    found = effect(rounds, "wall", 0.01, 0.05)
    assert found.ratio == pytest.approx(1 / 0.9)
    assert found.total_ratio == pytest.approx(5.0 / 8.6)
    assert found.treatment_max_seconds == 5.0


def test_each_clock_has_its_own_effect() -> None:
    one = with_clock(ratio_round(1.5), "cpu", (2.0, 2.0), (1.0, 1.0))
    assert effect([one, one], "wall", 0.01, 0.05).ratio == pytest.approx(1.5)
    assert effect([one, one], "cpu", 0.01, 0.05).ratio == pytest.approx(2.0)
    with pytest.raises(ValueError, match="the device clock was not read"):
        effect([one, one], "device", 0.01, 0.05)
    with pytest.raises(ValueError, match="no clock 'gpu'"):
        effect([one, one], "gpu", 0.01, 0.05)
    assert readable([one], "cpu") and not readable([one], "device")


def test_arms_whose_blocks_do_not_pair_up_are_refused() -> None:
    one = made_round((1.0, 1.0), (1.0, 1.0))
    with pytest.raises(ValueError, match="1 blocks of control against 2 of treatment"):
        pair_logs(replace(one, blocks=one.blocks[1:]), "wall", "control", "treatment")
    with pytest.raises(ValueError, match="took no time on the wall clock"):
        pair_logs(made_round((0.0, 1.0), (1.0, 1.0)), "wall", "control", "treatment")


def _four_arms(seconds: dict[str, float], index: int) -> Round:
    rows = [
        Block(arm, position, pair, 1, 100, value * (1 + pair), 1.0, None, 0)
        for pair in range(3)
        for position, (arm, value) in enumerate(seconds.items())
    ]
    one = made_round((1.0,), (1.0,), index=index)
    return replace(one, trials=tuple(trial(arm) for arm in seconds), order=(), blocks=tuple(rows))


def test_round_logs_of_several_arms_are_taken_against_the_root() -> None:
    # blocks of 2.0 s against 1.6, 1.25 and 1.25 s: 1.25x, 1.6x, 1.6x
    rounds = [_four_arms({"root": 2.0, "A": 1.6, "B": 1.25, "AB": 1.25}, index) for index in range(3)]
    logs = round_logs(rounds, "wall", "root")
    assert logs["root"] == pytest.approx([0.0] * 3)
    assert logs["A"] == pytest.approx([math.log(1.25)] * 3)
    assert logs["AB"] == pytest.approx([math.log(1.6)] * 3)
