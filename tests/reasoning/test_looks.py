"""Looks, confirmation, clocks and invalid rounds: what decides, on which rounds, at which alpha."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy import stats

from campaign import verdicts
from campaign.records import Memory, Need, Verdict
from tests.reasoning.made import (
    FAST,
    MIB,
    OPEN,
    PLAN,
    SAME,
    bad,
    evidence,
    judged,
    ratio_round,
    with_clock,
    with_hypothesis,
    with_protocol,
)


def test_a_look_judges_its_own_rounds_and_later_ones_cannot_change_what_it_decided() -> None:
    assert judged(SAME).reason == "too_small"
    assert judged((*SAME, 3.0, 3.0)).reason == "too_small"
    assert judged((*SAME, 3.0, 3.0)).effect == judged(SAME).effect


def test_an_open_look_needs_the_next_looks_rounds() -> None:
    for have, want in ((4, 6), (5, 6), (6, 8), (7, 8), (8, 12), (11, 12)):
        assert verdicts.judge(evidence(OPEN[:have])) == Need("screen", want)
    found = judged(OPEN)
    assert (found.reason, found.look, found.valid_rounds) == ("unresolved", 4, 12)
    assert found.alpha_spent == pytest.approx(0.01)


def test_each_look_uses_its_share_of_alpha_and_beta() -> None:
    # at look 1 of 4 rounds: alpha .01 * .2 = .002, beta .05 * .2 = .01
    found = judged(SAME).effect
    logs = [math.log(ratio) for ratio in SAME]
    assert found is not None
    low = stats.ttest_1samp(logs, 0, alternative="greater").confidence_interval(0.998).low
    high = stats.ttest_1samp(logs, 0, alternative="less").confidence_interval(0.99).high
    assert found.decision_low == pytest.approx(math.exp(low))
    assert found.decision_high == pytest.approx(math.exp(high))
    assert judged(SAME).alpha_spent == pytest.approx(0.002)


def test_a_halved_alpha_of_a_second_attempt_is_the_one_that_is_spent() -> None:
    found = judged(SAME, plan=replace(PLAN, attempt=2, alpha=0.005))
    assert found.alpha_spent == pytest.approx(0.001)
    assert any("attempt 2" in warning for warning in found.warnings)


def test_a_gain_below_d_is_never_an_accept_even_when_it_is_certain() -> None:
    # 2 % on every round, without scatter: real, and not worth 3 %
    found = judged((1.02,) * 4)
    assert (found.verdict, found.reason) == ("reject", "too_small")


def test_one_look_alone_gets_all_of_alpha() -> None:
    plan = with_protocol(PLAN, looks=(4,), alpha_split=(1.0,), beta_split=(1.0,))
    found = judged(SAME, plan=plan)
    assert (found.look, found.alpha_spent) == (1, pytest.approx(0.01))


def test_an_open_result_says_the_rounds_it_would_take() -> None:
    # mean (log .99 + log 1.08) / 2 = 3.35 %, above log 1.03: only an accept can come, in a second
    # attempt at half of the last look's alpha of .004;
    # sd = (log 1.08 - log .99) / 2 * sqrt(12/11) = 4.54 %
    mean, sd = (math.log(0.99) + math.log(1.08)) / 2, math.log(1.08 / 0.99) / 2 * math.sqrt(12 / 11)
    rounds = next(n for n in range(2, 99) if mean > stats.t.isf(0.002, n - 1) * sd / math.sqrt(n))
    remedy = judged(OPEN).remedy
    assert f"about {rounds} rounds" in remedy and f"'protocol.looks=[4,6,8,{max(rounds, 13)}]'" in remedy


def test_what_is_published_comes_from_fresh_rounds() -> None:
    found = judged(FAST, (1.05, 1.06, 1.05, 1.04))
    assert found.verdict == "accept"
    assert found.effect is not None and found.screening is not None
    assert found.effect.ratio == pytest.approx((1.05 * 1.06 * 1.05 * 1.04) ** 0.25)
    assert found.screening.ratio == pytest.approx((1.10 * 1.11 * 1.10 * 1.09) ** 0.25)
    assert (found.look, found.valid_rounds, found.alpha_spent) == (1, 8, pytest.approx(0.002))


def test_a_screen_that_accepts_asks_for_confirmation_until_it_is_whole() -> None:
    for have in range(4):
        assert verdicts.judge(evidence(FAST, FAST[:have])) == Need("confirm", 4)


def test_a_confirmation_is_judged_at_its_own_alpha() -> None:
    fresh = (1.00, 1.04, 1.02, 1.03)
    logs = [math.log(ratio) for ratio in fresh]
    low = stats.ttest_1samp(logs, 0, alternative="greater").confidence_interval(0.95).low
    assert low > 0  # at .05 it confirms, at the look's .002 it would not
    found = judged(FAST, fresh)
    assert found.verdict == "accept" and found.effect is not None
    assert found.effect.decision_low == pytest.approx(math.exp(low))


def test_equal_speed_with_memory_saved_is_an_accept_named_for_memory() -> None:
    saved = {"control_trial": {"memory": Memory(400 * MIB)}, "treatment_trial": {"memory": Memory(300 * MIB)}}
    found = judged(SAME, SAME, **saved)
    assert (found.verdict, found.reason) == ("accept", "memory")
    assert found.memory is not None and found.memory.saved and found.memory.exact
    assert "-25.0 %" in found.sentence


def test_memory_saved_at_a_speed_that_may_be_equal_waits_for_more_rounds() -> None:
    saved = {"control_trial": {"memory": Memory(400 * MIB)}, "treatment_trial": {"memory": Memory(300 * MIB)}}
    unclear = (0.995, 1.003, 0.997, 1.005)  # upper bound below 1.03, lower bound below 1/1.01
    assert judged(unclear).reason == "too_small"
    assert verdicts.judge(evidence(unclear, **saved)) == Need("screen", 6)


def test_memory_saved_does_not_excuse_a_slowdown() -> None:
    saved = {"control_trial": {"memory": Memory(400 * MIB)}, "treatment_trial": {"memory": Memory(300 * MIB)}}
    found = judged((0.90, 0.91, 0.90, 0.89), **saved)
    assert (found.verdict, found.reason) == ("reject", "slowdown") and "memory was saved" in found.sentence


def test_memory_may_grow_by_what_the_hypothesis_declared() -> None:
    # case_studies.json, G_campaign: 9.07 -> 12.06 GiB is +33 %, accepted because it was declared
    grown = {
        "control_trial": {"memory": Memory(9287 * MIB)},
        "treatment_trial": {"memory": Memory(12349 * MIB)},
    }
    assert judged(FAST, FAST, **grown).reason == "memory_growth"
    found = judged(FAST, FAST, plan=with_hypothesis(PLAN, memory_growth_limit=0.35), **grown)
    assert found.verdict == "accept" and found.memory is not None and found.memory.grown


def test_wall_stands_beside_cpu_time_and_cpu_time_beside_wall() -> None:
    rounds = [with_clock(ratio_round(ratio), "cpu", (1.001 * ratio,) * 2, (1.0, 1.0)) for ratio in SAME]
    by_wall, by_cpu = judged(rounds=rounds), judged(rounds=rounds, plan=with_protocol(PLAN, clock="cpu"))
    assert by_wall.effect is not None and by_wall.beside is not None
    assert (by_wall.effect.clock, by_wall.beside.clock) == ("wall", "cpu")
    assert by_cpu.effect == replace(by_wall.beside) and by_cpu.beside == by_wall.effect


def test_clocks_that_disagree_cannot_decide_unless_wall_is_the_one_that_decides() -> None:
    rounds = [with_clock(ratio_round(1.0, index=i), "cpu", (1.1, 1.1), (1.0, 1.0)) for i in range(4)]
    assert judged(rounds=rounds, plan=with_protocol(PLAN, clock="cpu")).reason == "clocks"
    assert judged(rounds=rounds).reason == "too_small"


def test_a_confirmation_on_which_wall_contradicts_is_no_accept() -> None:
    screen = [with_clock(ratio_round(ratio), "cpu", (ratio,) * 2, (1.0, 1.0)) for ratio in FAST]
    fresh = [with_clock(ratio_round(0.9, stage="confirm"), "cpu", (1.02,) * 2, (1.0, 1.0)) for _ in range(4)]
    assert judged(rounds=[*screen, *fresh], plan=with_protocol(PLAN, clock="cpu")).reason == "clocks"
    # rounds from -1 % to +7 % confirm at .05 without reaching 1 + d with certainty; wall is 10 % slower throughout
    open_ones = [
        with_clock(ratio_round(0.9, stage="confirm"), "cpu", (ratio,) * 2, (1.0, 1.0))
        for ratio in (1.01, 1.03, 1.02, 1.045)
    ]
    assert judged(rounds=[*screen, *open_ones], plan=with_protocol(PLAN, clock="cpu")).reason == "clocks"


def test_invalid_rounds_are_kept_and_not_counted() -> None:
    found = judged(SAME, rounds=bad(1))
    assert (found.valid_rounds, found.invalid_rounds) == (4, 1)
    assert found.effect == judged(SAME).effect  # the invalid round said 3.0
    assert verdicts.judge(evidence(SAME[:3], rounds=bad(1))) == Need("screen", 4)


def test_a_look_with_too_many_invalid_rounds_before_it_is_passed_over() -> None:
    # two invalid before four valid is a third; before eight it is a fifth
    early = [*bad(2), *(ratio_round(1.0, index=index) for index in range(4))]
    assert verdicts.judge(evidence(rounds=early)) == Need("screen", 6)
    six = [*early, *(ratio_round(1.0, index=index) for index in (4, 5))]
    assert verdicts.judge(evidence(rounds=six)) == Need("screen", 8)
    found = judged(rounds=[*six, *(ratio_round(1.0, index=index) for index in (6, 7))])
    assert (found.reason, found.look, found.alpha_spent) == ("too_small", 1, pytest.approx(0.002))


def test_four_invalid_rounds_of_twelve_end_the_result_with_their_code() -> None:
    assert verdicts.judge(evidence(SAME[:1], rounds=bad(3))) == Need("screen", 4)
    found = judged(SAME[:1], rounds=bad(4))
    assert (found.verdict, found.reason, found.invalid_rounds) == ("invalid", "steal", 4)
    assert "4 of 5 screen rounds were invalid (4 steal); 12 rounds survive 3" in found.sentence


def test_a_result_takes_a_bounded_number_of_rounds_however_bad_the_machine() -> None:
    rounds: list = []
    while isinstance(answer := verdicts.judge(evidence(rounds=rounds)), Need):
        # the worst order: as many invalid rounds as a stage survives, then open ratios, then a slim confirmation
        index = len(rounds)
        rounds.append(bad(1, answer.stage)[0] if index < 3 else ratio_round(OPEN[index % 2], stage=answer.stage))
        assert len(rounds) <= 12 + 3 + 4 + 1
    assert isinstance(answer, Verdict)
