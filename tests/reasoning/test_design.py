"""The turn order of a round: balanced, random, and the same for the same seed."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from campaign.design import leads, order, round_seed, start_order

arm_names = st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=6, unique=True)


@settings(max_examples=60, deadline=None)
@given(arm_names, st.integers(1, 41), st.integers(0, 2**63))
def test_every_arm_has_as_many_blocks_as_there_are_pairs(arms: list[str], pairs: int, seed: int) -> None:
    assert Counter(order(arms, pairs, random.Random(seed))) == {arm: pairs for arm in arms}


@settings(max_examples=60, deadline=None)
@given(arm_names, st.integers(2, 40), st.integers(0, 2**63))
def test_every_two_turns_are_a_permutation_and_its_reverse(arms: list[str], pairs: int, seed: int) -> None:
    turns = order(arms, pairs, random.Random(seed))
    n = len(arms)
    for start in range(0, 2 * n * (pairs // 2), 2 * n):
        first, second = turns[start : start + n], turns[start + n : start + 2 * n]
        assert sorted(first) == sorted(arms)
        assert second == first[::-1]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 20), st.integers(0, 2**63))
def test_two_arms_take_turns_as_ab_ba_or_ba_ab(half: int, seed: int) -> None:
    turns = "".join(order("AB", 2 * half, random.Random(seed)))
    assert {turns[start : start + 4] for start in range(0, len(turns), 4)} <= {"ABBA", "BAAB"}


def test_both_starts_occur_and_neither_is_rare() -> None:
    starts = Counter(order("AB", 2, random.Random(seed))[0] for seed in range(400))
    # 400 fair coins: 100 to 300 heads is 10 sd wide on either side.
    assert set(starts) == {"A", "B"} and 100 < starts["A"] < 300


def test_a_linear_drift_gives_both_arms_the_same_total_position() -> None:
    turns = order("AB", 40, random.Random(3))
    assert sum(i for i, arm in enumerate(turns) if arm == "A") == sum(i for i, arm in enumerate(turns) if arm == "B")


def test_the_same_seed_gives_the_same_order() -> None:
    assert order("AB", 40, random.Random(5)) == order("AB", 40, random.Random(5))
    assert order("AB", 40, random.Random(5)) != order("AB", 40, random.Random(6))


def test_processes_start_in_either_order() -> None:
    assert {start_order(("control", "treatment"), random.Random(seed)) for seed in range(40)} == {
        ("control", "treatment"),
        ("treatment", "control"),
    }


def test_every_round_of_a_plan_has_its_own_seed() -> None:
    seeds = {
        round_seed(seed, stage, index) for seed in range(5) for stage in ("screen", "confirm") for index in range(20)
    }
    assert len(seeds) == 200
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_round_seed_is_the_digest_of_its_words_on_every_machine() -> None:
    # printf '7:screen:0' | sha256sum -> first 16 hex digits, halved
    assert round_seed(7, "screen", 0) == int("443ad633c04b566c", 16) // 2


@pytest.mark.parametrize("arms, pairs", [(("a",), 2), (("a", "a"), 2), (("a", "b"), 0)])
def test_a_round_of_one_arm_a_repeated_arm_or_no_pairs_is_refused(arms: tuple[str, ...], pairs: int) -> None:
    with pytest.raises(ValueError, match="a round needs"):
        order(arms, pairs, random.Random(0))


def test_steps_before_blocks_are_the_least_or_one_more_and_none_where_none_are_wanted() -> None:
    drawn = leads(400, 1, random.Random(3))
    assert set(drawn) == {1, 2}
    # Fair draws: 200 of each, give or take five standard deviations of 10.
    assert 150 < drawn.count(1) < 250
    assert drawn == leads(400, 1, random.Random(3))
    assert leads(4, 0, random.Random(3)) == (0, 0, 0, 0)
