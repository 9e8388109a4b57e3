"""What a number of rounds can find, and what A/A rounds say about a machine."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy
import pytest
from scipy import stats

from campaign.effects import detectable_sds, floor, resolves, rounds_needed, scatter_bounds, threshold
from campaign.records import Floor, Memory
from tests.reasoning.made import MIB, PROTOCOL, made_round

# measurement.md 5.2: the smallest effect found at alpha .01 with power .9, in sds of one round
PUBLISHED = {3: 6.2, 4: 3.4, 5: 2.5, 6: 2.1, 8: 1.6, 10: 1.35, 12: 1.2}


@pytest.mark.parametrize("rounds, sds", PUBLISHED.items())
def test_the_published_table_of_detectable_effects_is_reproduced(rounds: int, sds: float) -> None:
    # the table is printed to 2 or 3 digits
    assert detectable_sds(rounds, 0.01, 0.9) == pytest.approx(sds, abs=0.05 if sds > 1.4 else 0.01)


@pytest.mark.parametrize("rounds", [2, 3, 6, 12])
@pytest.mark.parametrize("power", [0.9, 0.95])
def test_the_detectable_effect_has_its_power_by_scipys_noncentral_t(rounds: int, power: float) -> None:
    sds = detectable_sds(rounds, 0.01, power)
    critical = stats.t.isf(0.01, rounds - 1)
    assert stats.nct.sf(critical, rounds - 1, sds * math.sqrt(rounds)) == pytest.approx(power, abs=1e-4)


def test_what_is_resolved_is_a_fraction_of_speed() -> None:
    # 6.199 sds of 10 % in log are 0.6199: exp(0.6199) - 1 = 0.8587
    assert resolves(0.1, 3, 0.01, 0.9) == pytest.approx(0.8587, abs=2e-4)
    assert resolves(0.0, 3, 0.01, 0.9) == pytest.approx(6.199 * 0.0002, rel=0.002)  # never below the sd floor


def test_one_round_resolves_nothing() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        resolves(0.01, 1)


def test_the_rounds_an_open_result_would_take_are_the_first_that_decide() -> None:
    # mean 2 %, sd 3 %, d 3 %: only a reject can come; gap log 1.03 - 0.02 = 0.009559; beta .02 one-sided
    needed = rounds_needed(0.02, 0.03, 0.03, 0.004, 0.02)
    assert needed is not None

    def half_width(rounds: int) -> float:
        return float(stats.t.isf(0.02, rounds - 1)) * 0.03 / math.sqrt(rounds)

    assert half_width(needed) < math.log(1.03) - 0.02 < half_width(needed - 1)


def test_the_rounds_towards_an_accept_use_alpha_and_the_distance_to_nothing_gained() -> None:
    needed = rounds_needed(0.05, 0.04, 0.03, 0.004, 0.02)
    assert needed is not None
    widths = [float(stats.t.isf(0.004, n - 1)) * 0.04 / math.sqrt(n) for n in (needed - 1, needed)]
    assert widths[1] < 0.05 < widths[0]


def test_an_estimate_just_below_the_threshold_is_beyond_any_number_of_rounds() -> None:
    assert rounds_needed(math.log(1.03) - 1e-5, 0.03, 0.03, 0.004, 0.02) is None


def _aa_rounds() -> list:
    # per-round medians 0, +1 %, -1 % (logs); pairs at the median +- 2 % within each
    rounds = []
    for index, middle in enumerate((0.0, 0.01, -0.01)):
        control = [math.exp(middle + shift) for shift in (-0.02, 0.0, 0.02)]
        peaks = [Memory((400 + index + extra) * MIB) for extra in (0, 5)]
        rounds.append(
            made_round(
                control,
                (1.0,) * 3,
                index=index,
                control_trial={"memory": peaks[0]},
                treatment_trial={"memory": peaks[1]},
            )
        )
    return rounds


def test_the_floor_of_a_machine_by_hand() -> None:
    found = floor(_aa_rounds(), PROTOCOL)
    assert found.clock == "wall" and found.rounds == 3
    assert found.between_rounds_sd == pytest.approx(0.01)  # of 0, 1 %, -1 %
    assert found.within_round_sd == pytest.approx(0.02)  # of -2 %, 0, 2 % in each
    assert found.memory_range_bytes == 7 * MIB  # 400 to 407
    assert {"2", "3", "4", "6", "8", "12"} <= set(found.resolves)
    assert found.resolves["4"] == pytest.approx(math.expm1(0.01 * detectable_sds(4, 0.01, 0.95)))
    sizes = [found.resolves[str(count)] for count in (3, 4, 5, 6, 8, 10, 12)]
    assert sizes == sorted(sizes, reverse=True)


def test_d_is_the_larger_of_what_is_worth_having_and_what_is_resolved() -> None:
    quiet = Floor("wall", 10, 0.001, 0.01, {}, 0)
    noisy = Floor("wall", 10, 0.10, 0.2, {}, 0)
    assert threshold(PROTOCOL, None) == 0.03
    assert threshold(PROTOCOL, quiet) == 0.03
    # a first look of two rounds does not raise d to what two rounds tell: the floor's own rounds count
    two = replace(PROTOCOL, looks=(2,))
    assert threshold(two, replace(noisy, rounds=10)) == pytest.approx(resolves(0.10, 10))
    assert threshold(PROTOCOL, noisy) == pytest.approx(resolves(0.10, 12))  # the protocol's last look has 12 rounds


def test_the_detectable_effect_is_found_as_often_as_it_says() -> None:
    rng = numpy.random.default_rng(11)
    sds = detectable_sds(6, 0.01, 0.9)
    values = rng.normal(sds, 1.0, (20_000, 6))
    found = stats.ttest_1samp(values, 0, axis=1, alternative="greater").pvalue < 0.01
    assert found.mean() == pytest.approx(0.9, abs=0.01)  # 4.7 sd of a share of 20,000


def test_the_bounds_of_a_scatter_are_those_of_measurement_5_2_and_of_the_chi_square_table() -> None:
    # the 0.9 quantiles below and above: 4.168 and 14.684 with 9 degrees of freedom, 0.211 and 4.605 with 2
    assert scatter_bounds(0.02, 10) == pytest.approx(
        (0.02 * math.sqrt(9 / 14.684), 0.02 * math.sqrt(9 / 4.168)), rel=1e-3
    )
    assert scatter_bounds(1.0, 3) == pytest.approx((math.sqrt(2 / 4.605), math.sqrt(2 / 0.2107)), rel=1e-3)
    assert scatter_bounds(1.0, 10)[1] == pytest.approx(1.47, abs=0.005)
