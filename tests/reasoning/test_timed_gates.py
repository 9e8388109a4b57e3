"""The gates on what was timed: that all of it was, and that it was the training step to the end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from campaign import verdicts
from campaign.records import Need, ParityClaim, ParityMeasure
from tests.reasoning.made import (
    FAST,
    PLAN,
    evidence,
    judged,
    made_round,
    probe,
    ratio_round,
    with_blocks,
    with_hypothesis,
)

GREEN = probe(ParityMeasure(True, 0.0))
BITWISE = with_hypothesis(PLAN, parity=ParityClaim("bitwise"))


def passes(*args, **kwargs) -> bool:
    """Whether nothing stops the evidence short of a look."""
    return isinstance(verdicts.judge(evidence(*args, **kwargs)), Need)


def rounds(pairs: int = 8, arm: str = "treatment", **fields) -> list:
    return [with_blocks(made_round((1.0,) * pairs, (1.0,) * pairs), arm, **fields)]


# Work where no clock looks. A round of 8 blocks of 1 s (0.98 s of CPU time), control's idle time 0.5 ms each.


def test_a_hand_over_of_a_millisecond_and_a_hundredth_of_the_block_pass() -> None:
    # either arm: 8 (1 ms + 1 % of .98 s) + 1.5 ms = 87.9 ms = 8 * 10.99; treatment: control's 4 ms + 8 (.1 ms +
    # 9.8 ms) + 1.5 ms = 84.7 ms = 8 * 10.59
    both = with_blocks(rounds(idle_cpu_seconds=0.0109)[0], "control", idle_cpu_seconds=0.0109)
    assert passes(rounds=[both])
    assert passes(rounds=rounds(idle_cpu_seconds=0.0105))
    assert judged(rounds=rounds(idle_cpu_seconds=0.0107)).reason == "background_work"
    assert passes(rounds=rounds(arm="control", idle_cpu_seconds=0.0109))
    found = judged(rounds=rounds(arm="control", idle_cpu_seconds=0.0111))
    assert found.reason == "background_work" and "control used 88.8 ms" in found.sentence and found.remedy


def test_work_in_a_few_of_the_blocks_counts_as_much_as_in_all() -> None:
    one = rounds()[0]
    some = tuple(
        replace(block, idle_cpu_seconds=0.1) if block.arm == "treatment" and block.pair == 3 else block
        for block in one.blocks
    )
    assert judged(rounds=[replace(one, blocks=some)]).reason == "background_work"


def test_openmp_threads_that_spin_on_are_no_background_work() -> None:
    threads = {"facts": {"threads": 3}}
    spinning = made_round((1.0,) * 8, (1.0,) * 8, control_trial=threads, treatment_trial=threads)
    # two further threads: 60 ms a block beside the 11 ms
    assert passes(rounds=[with_blocks(spinning, "control", idle_cpu_seconds=0.07)])
    found = judged(rounds=[with_blocks(spinning, "control", idle_cpu_seconds=0.072)])
    assert found.reason == "background_work"


def test_an_edit_does_not_set_its_own_allowance_by_saying_that_it_has_many_threads() -> None:
    boasting = made_round((1.0,) * 8, (1.0,) * 8, treatment_trial={"facts": {"threads": 16}})
    assert judged(rounds=[with_blocks(boasting, "treatment", idle_cpu_seconds=0.0107)]).reason == "background_work"
    assert judged(rounds=[with_blocks(boasting, "treatment", idle_cpu_seconds=0.0107)]).remedy.startswith(
        f"OMP_WAIT_POLICY=passive {PLAN.command} "
    )
    other = {"restart_sha256": "b" * 64, "restart_loss": 3.0029, "restart_gradient_norm": 0.9991}
    assert judged(FAST[:1], treatment_trial={**other, "facts": {"threads": 16}}).reason == "restarted"


def test_turns_that_are_longer_than_the_trial_says_are_told_when_they_are_so_throughout() -> None:
    # the limit is control's 1 ms + 1 ms + 2 % of 1 s = 22 ms
    assert passes(rounds=rounds(turn_seconds=1.0215))
    assert judged(rounds=rounds(turn_seconds=1.0225)).reason == "own_clock"
    assert passes(rounds=rounds(pairs=7, turn_seconds=1.5)), "seven blocks say too little"
    busy = with_blocks(rounds(turn_seconds=1.5)[0], "control", turn_seconds=1.5)
    assert passes(rounds=[busy]), "a busy machine delays both arms"


def test_a_slow_turn_now_and_then_is_no_slow_clock() -> None:
    one = rounds()[0]
    some = tuple(
        replace(block, turn_seconds=1.5) if block.arm == "treatment" and block.pair < 5 else block
        for block in one.blocks
    )
    # five of eight: the median is late, and ranks of 3 early among 8 are no certainty at .0001
    assert passes(rounds=[replace(one, blocks=some)])


# The last timed steps. Control's losses are 2.50, 2.49, ..., norms 0.8; log(1.0253) = .02499, log(1.1274) = .1199.


@pytest.mark.parametrize(("field", "within", "beyond"), [("loss", 1.0253, 1.0254), ("gradient_norm", 1.1274, 1.1276)])
def test_losses_and_norms_of_the_timed_steps_must_stay_with_controls(field, within, beyond) -> None:
    def scaled(by: float) -> list:
        one = rounds()[0]
        blocks = tuple(
            replace(block, **{field: getattr(block, field) * by}) if block.arm == "treatment" else block
            for block in one.blocks
        )
        return [replace(one, blocks=blocks)]

    assert passes(rounds=scaled(within))
    found = judged(rounds=scaled(beyond))
    assert found.reason == "last_step" and "after 18 steps" in found.sentence


def test_two_trainings_may_drift_apart_with_the_steps_up_to_twice_the_limit() -> None:
    def after(warmup: int, loss: float) -> list:
        trials = {"warmup_seconds": (0.1,) * warmup}
        one = made_round((1.0,) * 8, (1.0,) * 8, control_trial=trials, treatment_trial=trials)
        return [with_blocks(with_blocks(one, "control", loss=1.0), "treatment", loss=loss)]

    # log 1.037 = .0363: beyond .025, within .025 * 1.5 = .0375; log 1.05 = .0488, within .05
    assert judged(rounds=after(92, 1.037)).reason == "last_step"
    assert passes(rounds=after(142, 1.037))
    assert passes(rounds=after(192, 1.05))
    assert passes(rounds=after(992, 1.05))
    assert judged(rounds=after(992, 1.0514)).reason == "last_step"


def test_a_spike_at_one_step_is_no_difference_unless_the_claim_is_bitwise() -> None:
    one = rounds()[0]
    spike = tuple(
        replace(block, loss=9.0) if block.arm == "treatment" and block.pair == 7 else block for block in one.blocks
    )
    assert passes(rounds=[replace(one, blocks=spike)])
    found = judged(rounds=[replace(one, blocks=spike)], plan=BITWISE, of=GREEN)
    assert found.reason == "last_step" and "1 of 8 timed blocks" in found.sentence


def test_arms_that_took_different_numbers_of_steps_are_not_compared_and_a_warning_says_so() -> None:
    longer = {"warmup_seconds": (0.1,) * 11}
    apart = [
        with_blocks(ratio_round(1.0, index=index, treatment_trial=longer), "treatment", loss=9.0) for index in range(4)
    ]
    found = judged(rounds=apart)
    assert found.reason == "too_small"
    assert any("4 of 4 rounds the arms took different numbers of steps" in warning for warning in found.warnings)


def test_a_parameter_that_no_step_of_control_changes_may_rest_in_treatment_too() -> None:
    rests = {"unmoved": ("embedding.unused",)}
    assert passes(FAST[:1], control_trial=rests, treatment_trial=rests)
    assert passes(FAST[:1], control_trial=rests)
    found = judged(FAST[:1], treatment_trial=rests)
    assert found.reason == "last_step" and "embedding.unused" in found.sentence


# The restart. The probe's step 1 has loss 3.0, norm 1.0 and `SHA256`.


def test_on_a_device_a_restarted_step_may_differ_by_a_thousandth_and_on_one_cpu_thread_by_nothing() -> None:
    near = {"restart_sha256": "b" * 64, "restart_loss": 3.0029, "restart_gradient_norm": 0.9991}
    far = {**near, "restart_gradient_norm": 0.9989}
    on_cuda, threads = replace(PLAN, device="cuda:0"), {"facts": {"threads": 2}}
    assert passes(FAST[:1], plan=on_cuda, treatment_trial=near)
    assert judged(FAST[:1], plan=on_cuda, treatment_trial=far).reason == "restarted"
    assert passes(FAST[:1], treatment_trial={**near, **threads}, control_trial=threads)
    assert judged(FAST[:1], treatment_trial=near).reason == "restarted"
    assert judged(FAST[:1], control_trial=near).reason == "restarted"


def test_a_workload_without_a_restart_is_not_checked_and_a_warning_says_so() -> None:
    cannot = {"restart_loss": None, "restart_gradient_norm": None, "restart_sha256": ""}
    found = judged((1.0,) * 4, control_trial=cannot, treatment_trial=cannot)
    assert found.reason == "too_small"
    assert any("no restart()" in warning for warning in found.warnings)


def test_an_edit_that_takes_the_restart_away_is_wrong() -> None:
    cannot = {"restart_loss": None, "restart_gradient_norm": None, "restart_sha256": ""}
    found = judged(FAST[:1], treatment_trial=cannot)
    assert found.reason == "restarted" and "control has a restart()" in found.sentence


def test_the_step_whose_memory_was_measured_must_be_controls_too() -> None:
    # control's is 2.7
    assert passes(FAST[:1], treatment_trial={"weighed_loss": 2.96})
    assert judged(FAST[:1], treatment_trial={"weighed_loss": 2.98}).reason == "restarted"
    found = judged(FAST[:1], plan=BITWISE, of=GREEN, treatment_trial={"weighed_loss": 2.7000001})
    assert found.reason == "restarted" and "memory" in found.sentence


# Steps before the blocks, which no effect sees.


def led(treatment_seconds: float, rounds: int = 4) -> list:
    """Rounds of equal arms, whose steps before the blocks of 1 s took 1.05 s in control and these in treatment."""
    control = [with_blocks(ratio_round(1.0), "control", lead_steps=1, lead_wall_seconds=1.05) for _ in range(rounds)]
    return [with_blocks(one, "treatment", lead_steps=2, lead_wall_seconds=2 * treatment_seconds) for one in control]


def test_work_put_into_the_untimed_steps_is_told_by_their_cost_beside_the_timed_ones() -> None:
    # 1.05 * 1.10 = 1.155: a tenth more than control's, which cold caches alone do not explain
    assert judged(rounds=led(1.15)).reason != "untimed_steps"
    found = judged(rounds=led(1.16))
    assert found.reason == "untimed_steps" and "cost 10.5% more" in found.sentence
    assert judged(rounds=led(0.5)).reason != "untimed_steps", "dearer timed steps are the edit's own loss"
    assert passes(rounds=led(2.0, rounds=2)), "two rounds say too little"
