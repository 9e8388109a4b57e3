"""The memory comparison: exact where every round repeats itself, else Student's t with a threshold of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from campaign.effects import memory_change
from campaign.records import Memory, MemoryChange, Protocol, Round
from tests.reasoning.made import MIB, PROTOCOL, ratio_round

GPU = replace(PROTOCOL, memory_min_effect=0.01, memory_min_bytes=0)


def _rounds(control: Sequence[int], treatment: Sequence[int]) -> list[Round]:
    return [
        ratio_round(
            1.0, index=index, control_trial={"memory": Memory(before)}, treatment_trial={"memory": Memory(after)}
        )
        for index, (before, after) in enumerate(zip(control, treatment, strict=True))
    ]


def _change(control: Sequence[int], treatment: Sequence[int], protocol: Protocol = PROTOCOL) -> MemoryChange:
    found = memory_change(_rounds(control, treatment), protocol, 0.01)
    assert found is not None
    return found


def test_values_that_every_round_repeats_are_subtracted() -> None:
    # the known case of 24 MiB: 400 -> 424 is +6 %, beyond 2 % and 8 MiB
    found = _change([400 * MIB] * 4, [424 * MIB] * 4)
    assert found.exact and found.grown and not found.saved
    assert found.ratio == found.low == found.high == pytest.approx(1.06)
    assert (found.control_bytes, found.treatment_bytes) == (400 * MIB, 424 * MIB)


@pytest.mark.parametrize(
    "control, treatment, saved",
    [
        (400, 393, False),  # 7 MiB: over 1.75 %, under 8 MiB
        (400, 392, True),  # 8 MiB are 2 %
        (1000, 985, False),  # 15 MiB: over 8 MiB, under 2 %
        (1000, 980, True),
    ],
)
def test_a_saving_must_pass_the_larger_of_share_and_bytes(control: int, treatment: int, saved: bool) -> None:
    assert _change([control * MIB] * 4, [treatment * MIB] * 4).saved is saved


def test_on_a_gpu_one_per_cent_is_enough_and_there_is_no_least_size() -> None:
    assert _change([1000] * 3, [990] * 3, GPU).saved
    assert not _change([1000] * 3, [991] * 3, GPU).saved
    assert _change([1000] * 3, [1010] * 3, GPU).grown


def test_two_equal_rounds_prove_no_exactness() -> None:
    assert not _change([400 * MIB] * 2, [424 * MIB] * 2).exact


def test_values_that_scatter_are_compared_by_t_over_rounds() -> None:
    # log ratios log 1.1, log 1.1 + 1 %, log 1.1 - 1 %: sd 1 %, half-width 4.3027 * 0.01 / sqrt 3 = 0.024841
    rounds = [1_000_000_000, round(1_000_000_000 / math.exp(0.01)), round(1_000_000_000 / math.exp(-0.01))]
    found = _change(rounds, [1_100_000_000] * 3)
    assert not found.exact and found.grown
    assert found.ratio == pytest.approx(1.1)
    assert found.low == pytest.approx(1.1 * math.exp(-0.0248415), rel=1e-6)
    assert found.high == pytest.approx(1.1 * math.exp(0.0248415), rel=1e-6)


def test_growth_within_the_scatter_of_rounds_is_not_growth() -> None:
    # estimate +3 %, beyond 2 %, but the rounds go from -7 % to +13 %
    found = _change([1000 * MIB] * 3, [930 * MIB, 1030 * MIB, 1130 * MIB])
    assert found.ratio > 1.02 and not found.grown and not found.saved


def test_a_round_without_memory_gives_no_comparison() -> None:
    rounds = [*_rounds([400], [400]), ratio_round(1.0, treatment_trial={"memory": None})]
    assert memory_change(rounds, PROTOCOL, 0.01) is None
    assert memory_change(_rounds([400], [400]), PROTOCOL, 0.01) is None
