"""Contrasts over several arms: their arithmetic, their intervals, and the words that these earn."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy
import pytest
from scipy import stats

from campaign.interactions import stack_word, word
from campaign.interactions.contrasts import byte_change, contrast, rounds_to_resolve
from campaign.interactions.departure import between, product_of, t975
from campaign.interactions.words import compared_word, departure_word, effect_word, interaction_word
from campaign.records import Contrast

D = 0.03


def of(ratio: float, low: float | None = None, high: float | None = None, sd: float = 0.01) -> Contrast:
    return Contrast(ratio, low or ratio, high or ratio, 4, sd)


def test_a_contrast_is_students_t_over_rounds_on_logs() -> None:
    logs = [0.10, 0.14, 0.09, 0.11]
    found = contrast(logs)
    # mean .11; sd sqrt((.01^2 + .03^2 + .02^2 + 0) / 3) = .0216; t(.975, 3) = 3.182
    assert found.ratio == pytest.approx(math.exp(0.11))
    assert found.sd_log == pytest.approx(0.021602, rel=1e-4)
    half = 3.182446 * 0.021602 / 2
    assert (found.low, found.high) == pytest.approx((math.exp(0.11 - half), math.exp(0.11 + half)), rel=1e-5)
    reference = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((math.exp(reference.low), math.exp(reference.high)))
    assert found.rounds == 4


def test_one_round_has_no_interval() -> None:
    with pytest.raises(ValueError, match="at least 2 rounds, got 1"):
        contrast([0.1])


def test_bytes_are_exact_when_every_arm_repeats_its_peak_in_three_rounds() -> None:
    found = byte_change([(1, [500, 500, 500]), (-1, [420, 420, 420]), (-1, [300, 300, 300]), (1, [200, 200, 200])])
    assert found is not None
    assert (found.bytes, found.low, found.high, found.exact) == (-20, -20, -20, True)


def test_bytes_of_two_rounds_are_never_called_exact() -> None:
    found = byte_change([(1, [500, 500]), (-1, [420, 420])])
    assert found is not None and (found.bytes, found.exact) == (80, False)


def test_bytes_whose_peaks_move_together_have_an_interval_of_no_width_and_are_not_exact() -> None:
    found = byte_change([(1, [500, 510, 520]), (-1, [420, 430, 440])])
    assert found is not None and (found.bytes, found.low, found.high, found.exact) == (80, 80, 80, False)


def test_bytes_that_scatter_have_a_t_interval() -> None:
    found = byte_change([(1, [1100, 1000, 1200]), (-1, [1000, 1000, 1000])])
    # differences 100, 0, 200: mean 100, sd 100, t(.975, 2) = 4.3027; half = 248.4
    assert found is not None and (found.bytes, found.low, found.high, found.exact) == (100, -148, 348, False)


def test_bytes_need_two_rounds_of_every_arm() -> None:
    assert byte_change([(1, [500]), (-1, [420])]) is None
    assert byte_change([(1, [500, 500, 500]), (-1, [])]) is None


@pytest.mark.parametrize(
    "interaction, expected",
    [
        ((1.05, 1.01, 1.09), "synergy"),
        ((0.95, 0.92, 0.98), "redundancy"),
        ((1.00, 0.98, 1.02), "additive within the floor"),
        # clear of 1 and smaller than d: inside the floor all the same
        ((1.015, 1.005, 1.025), "additive within the floor"),
        # clear of 1, below d, and the interval reaches beyond it
        ((1.025, 1.005, 1.045), "unresolved"),
        ((1.06, 0.95, 1.18), "unresolved"),
        # 1 / 1.03 = .9709: just below and just above
        ((0.970, 0.960, 0.980), "redundancy"),
        ((0.972, 0.960, 0.984), "unresolved"),
        ((1.03, 1.0001, 1.06), "synergy"),
    ],
)
def test_an_interaction_earns_its_word_by_sign_size_and_interval(interaction, expected) -> None:
    assert interaction_word(of(*interaction), D) == expected


def test_an_edit_worth_it_only_alone_is_masked_and_only_on_the_stack_enabled() -> None:
    worth, nothing = of(1.10, 1.08, 1.12), of(1.00, 0.99, 1.01)
    assert word(nothing, worth, of(0.91, 0.89, 0.93), D) == "masked"
    assert word(worth, nothing, of(1.10, 1.08, 1.12), D) == "enabled"


def test_masked_needs_the_stack_to_take_the_whole_gain_and_enabled_the_edit_to_be_nothing_alone() -> None:
    worth, some = of(1.20, 1.18, 1.22), of(1.06, 1.04, 1.08)
    assert word(some, worth, of(0.88, 0.86, 0.90), D) == "redundancy"
    assert word(worth, some, of(1.13, 1.11, 1.15), D) == "synergy"
    # not shown to be worth nothing: the upper bound reaches 1 + d
    assert word(of(1.0, 0.97, 1.04), worth, of(0.83, 0.80, 0.86), D) == "redundancy"
    # no redundancy shown, so nothing is masked, whatever the two say apart
    assert word(of(1.0, 0.99, 1.01), of(1.04, 1.001, 1.08), of(0.96, 0.90, 1.02), D) == "unresolved"


def test_an_effect_is_faster_slower_within_the_floor_or_unresolved() -> None:
    given = [(1.05, 1.02, 1.08), (0.9, 0.88, 0.93), (1.0, 0.99, 1.01), (1.05, 0.99, 1.11)]
    assert [effect_word(of(*one), D) for one in given] == ["faster", "slower", "within the floor", "unresolved"]


def test_the_published_leave_one_out_gains_of_sixteen_edits_are_synergy() -> None:
    # They multiply to 1.635 where 1.358 was measured: each is worth more with the others there.
    assert stack_word(1.358, 1.635, "leave_one_out", D) == "synergy"
    assert stack_word(of(1.358, 1.340, 1.376), 1.635, "leave_one_out", D) == "synergy"


def test_the_same_numbers_measured_on_root_are_redundancy() -> None:
    assert stack_word(1.358, 1.635, "isolated", D) == "redundancy"
    assert stack_word(1.635, 1.358, "isolated", D) == "synergy"
    assert stack_word(1.635, 1.358, "leave_one_out", D) == "redundancy"


@pytest.mark.parametrize("interaction", [0.1, -0.1])
def test_both_ways_of_measuring_the_parts_give_one_word(interaction: float) -> None:
    # Logs: A .2, B .3, both .5 + I. Alone they multiply to exp(.5), left out to exp(.5 + 2 I).
    total = math.exp(0.5 + interaction)
    isolated = stack_word(total, math.exp(0.2) * math.exp(0.3), "isolated", D)
    left_out = stack_word(total, math.exp(0.2 + interaction) * math.exp(0.3 + interaction), "leave_one_out", D)
    assert isolated == left_out == ("synergy" if interaction > 0 else "redundancy")


def test_recorded_gains_that_promise_more_than_was_measured_are_optimistic() -> None:
    assert stack_word(1.10, 1.15, "marginal", D) == "optimistic"
    assert stack_word(1.15, 1.10, "marginal", D) == "pessimistic"
    assert stack_word(1.10, 1.11, "marginal", D) == "consistent"


def test_the_interval_of_the_measured_whole_counts() -> None:
    assert stack_word(of(1.10, 1.00, 1.21), 1.15, "marginal", D) == "unresolved"
    assert stack_word(of(1.10, 1.09, 1.11), 1.10, "marginal", D) == "consistent"
    assert stack_word(of(1.10, 1.00, 1.21), 1.05, "isolated", D) == "unresolved"


def test_parts_of_few_rounds_are_not_taken_as_exact() -> None:
    # Two parts of 1.10 [1.00, 1.21] over 4 rounds: se of each log = (.1906 / 2) / 3.1824 = .02995, of both .04235 with
    # 6 degrees of freedom; half = 2.4469 x .0424 = .104, above log(1.30 / 1.21) = .0717.
    wide, tight = of(1.10, 1.00, 1.21), of(1.10, 1.095, 1.105)
    total = of(1.30, 1.28, 1.32)
    assert stack_word(total, product_of([wide, wide]), "isolated", D) == "unresolved"
    assert stack_word(total, product_of([tight, tight]), "isolated", D) == "synergy"
    # half = 2.4469 x sqrt(2) x .01715 = .0594, above log(1.21 / 1.15) = .0509
    some = of(1.10, 1.04, 1.16)
    assert stack_word(of(1.15, 1.145, 1.155), product_of([some, some]), "marginal", D) == "unresolved"
    assert stack_word(of(1.15, 1.145, 1.155), product_of([tight, tight]), "marginal", D) == "optimistic"


def test_the_interval_of_a_ratio_of_ratios_is_welchs() -> None:
    rng = numpy.random.default_rng(3)
    one, other = rng.normal(0.10, 0.04, 12), rng.normal(0.04, 0.05, 12)
    apart = between(contrast(one), contrast(other))
    reference = stats.ttest_ind(one, other, equal_var=False)
    half = stats.t.ppf(0.975, reference.df) * (one.mean() - other.mean()) / reference.statistic
    assert apart.rounds - 1 == pytest.approx(reference.df)
    mean = one.mean() - other.mean()
    assert (math.log(apart.low), math.log(apart.high)) == pytest.approx((mean - half, mean + half), abs=1e-5)


def test_the_quantile_is_students() -> None:
    for degrees in (1, 2, 3, 7, 12, 13, 20, 60, 1000):
        assert t975(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=2e-5)
    for degrees in (2.3, 5.5, 9.9, 12.5):
        assert 0 < t975(degrees) / stats.t.ppf(0.975, degrees) - 1 < 0.02
    assert t975(math.inf) == pytest.approx(1.959964)


@pytest.mark.parametrize(
    "again, before, expected",
    [
        # intervals that overlap say nothing by themselves: half = 2.4469 x sqrt(2) x .02995 = .104
        ((1.15, 1.05, 1.26), (1.10, 1.00, 1.21), "cannot tell"),
        ((1.101, 1.098, 1.104), (1.10, 1.097, 1.103), "the same"),
        ((1.20, 1.19, 1.21), (1.10, 1.09, 1.11), "faster"),
        ((1.05, 1.045, 1.055), (1.10, 1.095, 1.105), "slower"),
        # apart beyond doubt, and by less than d = 3 %: the same within it
        ((1.11, 1.109, 1.111), (1.10, 1.099, 1.101), "the same"),
    ],
)
def test_a_ratio_measured_again_is_the_same_only_where_that_is_shown(again, before, expected) -> None:
    assert compared_word(of(*again), of(*before), D) == expected


def test_a_departure_is_read_like_an_interaction() -> None:
    assert departure_word(of(1.2, 1.1, 1.3), D) == "synergy"


@pytest.mark.parametrize("total, product", [(0.0, 1.1), (1.1, 0.0), (1.1, -1.0), (1.1, math.inf)])
def test_a_ratio_that_is_not_above_zero_is_refused(total: float, product: float) -> None:
    with pytest.raises(ValueError, match="ratios are above 0"):
        stack_word(total, product, "isolated", D)


def test_an_unknown_kind_of_part_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="isolated, marginal, leave_one_out"):
        stack_word(1.1, 1.1, "added", D)


def test_an_unresolved_contrast_says_how_many_rounds_would_tell() -> None:
    # log 1.10 = .0953, sd .10: t(.975, R - 1) .10 / sqrt(R) falls below .0953 first at R = 7 (2.447 x .0378 = .0925)
    assert rounds_to_resolve(of(1.10, sd=0.10), D) == 7
    # nothing there: the interval must fit into +- log 1.03 = .02956; sd .02 first at R = 5 (2.776 x .00894 = .0248)
    assert rounds_to_resolve(of(1.0, sd=0.02), D) == 5
    assert rounds_to_resolve(of(1 + D, sd=5.0), D) is None


def test_the_words_load_without_numpy_and_the_records() -> None:
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, campaign.stack; from campaign.interactions import stack_word;"
            "print(stack_word(1.358, 1.635, 'leave_one_out', 0.03));"
            "print([m for m in ('numpy', 'scipy', 'pyDOE3', 'campaign.records') if m in sys.modules])",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split("\n")[:2] == ["synergy", "[]"]
