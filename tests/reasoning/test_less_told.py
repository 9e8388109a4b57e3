"""Workloads that tell less than the reference does: what is held to what, and what is said of the rest."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from campaign import verdicts
from campaign.effects import resolves
from campaign.records import ExpectedChange, Need, ParityClaim, ParityMeasure, Probe, Round
from campaign.stability import round_faults
from tests.reasoning.made import (
    FAST,
    NULL,
    PARITY,
    PLAN,
    evidence,
    judged,
    made_round,
    probe,
    ratio_round,
    with_blocks,
    with_hypothesis,
    with_protocol,
)

LOSS = with_hypothesis(PLAN, parity=ParityClaim("loss", bound=0.02), predicted_evidence=())
BITWISE = with_hypothesis(PLAN, parity=ParityClaim("bitwise"))
NEAR = ParityMeasure(False, 0.05, loss_apart=(0.0, 0.02), untold=("gradient norm", "gradients"))
SILENT = ParityMeasure(False, None, untold=("loss", "gradient norm", "gradients"))
NOTHING = {"restart_sha256": "", "restart_loss": None, "restart_gradient_norm": None, "weighed_loss": None}
QUIET = {"loss": None, "gradient_norm": None, **NOTHING}


def passes(*args: Any, **kwargs: Any) -> bool:
    """Whether nothing stops the evidence short of a look."""
    return isinstance(verdicts.judge(evidence(*args, **kwargs)), Need)


def seen(found: ParityMeasure, **facts: Any) -> Probe:
    """The probe with these facts in both arms."""
    made = probe(found)
    return replace(made, arms=tuple(replace(arm, facts=facts) for arm in made.arms))


# The claim about losses.


def test_losses_within_the_bound_of_controls_are_all_that_a_loss_claim_asks() -> None:
    assert passes(plan=LOSS, of=probe(NEAR))
    assert passes(plan=LOSS, of=probe(replace(NEAR, norm_apart=(3.0, 3.0), gradient_distance=0.9)))
    found = judged(plan=LOSS, of=probe(replace(NEAR, loss_apart=(0.0, 0.0201, 0.5))))
    assert found.reason == "parity" and "parity.bound" in found.remedy
    assert "the loss of step 2 of 3 differs by 0.0201 of control's, the limit is 0.02" in found.sentence
    assert judged(plan=LOSS, of=probe(replace(NEAR, loss_apart=(math.nan,)))).reason == "parity"


def test_a_loss_claim_without_losses_is_invalid_and_the_remedy_says_how_they_are_told() -> None:
    told = {
        "models.Workload": "campaign.record(loss=loss)",
        "campaign.launch.Script": "campaign.record(loss=loss)",
        "campaign.launch.Command": "workload.steps",
        "campaign.callables.CallableStep": "return the loss",
    }
    for target, remedy in told.items():
        plan = replace(LOSS, control=replace(LOSS.control, target=target))
        found = judged(plan=plan, of=probe(SILENT))
        assert found.reason == "parity" and remedy in found.remedy, target
        assert "neither its loss nor its gradients" in found.sentence
    gradients = replace(SILENT, untold=("loss",), gradient_distance=0.0)
    assert "does not tell its loss" in judged(plan=LOSS, of=probe(gradients)).sentence
    one = replace(NEAR, loss_apart=(), unlike=("treatment tells the loss of 0 probed steps, control of 8",))
    assert "treatment tells the loss of 0 probed steps" in judged(plan=LOSS, of=probe(one)).sentence


def test_bits_are_compared_of_what_there_is_and_nothing_is_not_equal_to_nothing() -> None:
    assert passes(plan=BITWISE, of=probe(ParityMeasure(True, 0.0, untold=("gradient norm", "gradients"))))
    found = judged(plan=BITWISE, of=probe(SILENT))
    assert found.reason == "parity" and "campaign.record(loss=loss)" in found.remedy
    hidden = replace(NEAR, unlike=("control tells its gradients, treatment does not",), untold=())
    assert "control tells its gradients, treatment does not" in judged(plan=BITWISE, of=probe(hidden)).sentence


@pytest.mark.parametrize("kind", ["rounding", "precision"])
def test_a_reference_is_no_use_without_gradients_and_losses(kind: str) -> None:
    plan = with_hypothesis(PLAN, parity=ParityClaim(kind))
    found = judged(plan=plan, of=probe(replace(NEAR, exact_distance=None)))
    assert found.reason == "parity" and "parity.kind=loss" in found.remedy
    assert "does not tell its gradients" in found.sentence
    blind = {name: replace(getattr(PARITY, name), losses=()) for name in ("control", "treatment", "exact")}
    found = judged(plan=plan, of=probe(replace(PARITY, untold=("loss",), **blind)))
    assert found.reason == "parity" and "steps after the first are unknown" in found.sentence


def test_gradient_norms_may_be_missing_of_both_arms_and_not_of_treatment_alone() -> None:
    normless = {name: replace(getattr(PARITY, name), gradient_norms=()) for name in ("control", "treatment", "exact")}
    assert passes(of=probe(replace(PARITY, untold=("gradient norm",), **normless)))
    said = "treatment tells the gradient norm of 0 probed steps, control of 4"
    assert said in judged(of=probe(replace(PARITY, unlike=(said,), **normless))).sentence


def test_a_null_that_tells_nothing_still_gives_the_floor() -> None:
    found = judged((1.001, 0.999) * 6, plan=NULL, of=probe(SILENT), control_trial=QUIET, treatment_trial=QUIET)
    assert found.reason == "floor" and found.floor is not None
    assert "losses, gradient norms and gradients were not looked at: the workload does not tell them" in found.warnings
    apart = replace(NEAR, loss_apart=(0.1,), untold=("gradients",))
    found = judged(plan=NULL, of=probe(apart))
    assert found.reason == "parity" and "seeds" in found.remedy


# Several ranks.


def test_several_ranks_may_differ_from_bit_to_bit_by_the_order_of_their_sums_and_no_more() -> None:
    near = replace(NEAR, loss_apart=(0.0, 0.00099), norm_apart=(0.00099,), gradient_distance=0.000099, untold=())
    assert passes(plan=BITWISE, of=seen(near, ranks=2))
    assert not passes(plan=BITWISE, of=seen(near, ranks=1))
    for far in ({"loss_apart": (0.00101,)}, {"norm_apart": (0.00101,)}, {"gradient_distance": 0.000101}):
        found = judged(plan=BITWISE, of=seen(replace(near, **far), ranks=2))
        assert found.reason == "parity" and "2 ranks does not explain" in found.sentence
    other = replace(near, gradient_distance=None, message="the arms train different parameters: w")
    assert "different parameters" in judged(plan=BITWISE, of=seen(other, ranks=2)).sentence


def test_an_edit_does_not_set_its_own_allowance_by_saying_that_it_has_many_ranks() -> None:
    near = replace(NEAR, loss_apart=(0.0, 1e-6), untold=("gradient norm", "gradients"))
    made = probe(near)
    boasting = replace(made, arms=(made.arms[0], replace(made.arms[1], facts={"ranks": 8})))
    assert judged(plan=BITWISE, of=boasting).reason == "parity"


def test_timed_losses_of_several_ranks_are_held_to_a_limit_and_not_to_the_bit() -> None:
    ranks = {"facts": {"threads": 1, "ranks": 2}}
    green = seen(ParityMeasure(True, 0.0), ranks=2)
    both = {"control_trial": ranks, "treatment_trial": ranks | {"weighed_loss": 2.7000001}}
    # the later half of control's losses: 2.46, 2.45, 2.44, 2.43, of which 2.47 is 1.0 % off at the median, 2.53 3.5 %
    near = with_blocks(made_round((1.0,) * 8, (1.0,) * 8, **both), "treatment", loss=2.47)
    assert passes(rounds=[near], plan=BITWISE, of=green)
    assert judged(rounds=[with_blocks(near, "treatment", loss=2.53)], plan=BITWISE, of=green).reason == "last_step"
    restarted = {"restart_sha256": "b" * 64, "restart_loss": 3.0029, "restart_gradient_norm": 0.9991}
    assert passes(FAST[:1], control_trial=ranks, treatment_trial=ranks | restarted)
    assert judged(FAST[:1], treatment_trial=restarted).reason == "restarted"


# What was timed.


def quiet(**fields: Any) -> Round:
    """A round of 8 pairs of equal arms that tell neither losses nor norms and have no restart."""
    one = made_round((1.0,) * 8, (1.0,) * 8, control_trial=QUIET, treatment_trial=QUIET)
    return with_blocks(with_blocks(one, "control", loss=None, gradient_norm=None), "treatment", **{
        "loss": None, "gradient_norm": None, **fields
    })  # fmt: skip


def test_steps_that_tell_nothing_are_decided_on_their_times_and_the_verdict_says_what_nobody_saw() -> None:
    rounds = [replace(quiet(), id=f"r{index}") for index in range(4)]
    found = judged(rounds=rounds, plan=LOSS, of=probe(NEAR))
    assert found.reason == "too_small"
    said = " | ".join(found.warnings)
    assert "gradient norms and gradients were not looked at: the workload does not tell them" in said
    assert "no restart(): that what was timed is what was probed is not shown" in said
    assert "no loss was told with the timed steps" in said


def test_what_control_tells_of_its_timed_steps_treatment_must_tell_too() -> None:
    one = made_round((1.0,) * 8, (1.0,) * 8)
    silent = with_blocks(one, "treatment", loss=None)
    found = judged(rounds=[silent], plan=LOSS, of=probe(NEAR))
    assert found.reason == "last_step" and "does not tell the loss of 8 of 8 timed blocks" in found.sentence
    normless = with_blocks(one, "treatment", gradient_norm=None)
    assert passes(rounds=[normless], plan=LOSS, of=probe(NEAR)), "a loss claim says nothing of norms"
    assert judged(rounds=[normless]).reason == "last_step"
    assert passes(rounds=[with_blocks(silent, "control", loss=None)], plan=LOSS, of=probe(NEAR))


def test_a_wider_loss_claim_widens_what_timed_losses_may_do_and_a_narrow_one_does_not_narrow_it() -> None:
    one = made_round((1.0,) * 8, (1.0,) * 8)
    # the later half of control's losses: 2.46, 2.45, 2.44, 2.43, of which 2.6 is 6.3 % off at the median
    far = with_blocks(one, "treatment", loss=2.6)
    for bound, stopped in ((0.02, True), (0.06, True), (0.07, False)):
        plan = with_hypothesis(LOSS, parity=ParityClaim("loss", bound=bound))
        assert passes(rounds=[far], plan=plan, of=probe(NEAR)) is not stopped, bound
    near = with_blocks(one, "treatment", loss=2.49)  # 1.8 %
    assert passes(rounds=[near], plan=with_hypothesis(LOSS, parity=ParityClaim("loss", 0.001)), of=probe(
        replace(NEAR, loss_apart=(0.0,))
    ))  # fmt: skip


def test_a_restart_is_compared_by_the_loss_where_there_are_no_gradients() -> None:
    restarted = {"restart_gradient_norm": None}
    assert passes(FAST[:1], plan=LOSS, of=probe(NEAR), treatment_trial=restarted | {"restart_loss": 3.059})
    far = judged(FAST[:1], plan=LOSS, of=probe(NEAR), treatment_trial=restarted | {"restart_loss": 3.061})
    assert far.reason == "restarted" and "the limit is 2.0%" in far.sentence  # 3.0 * 1.02 = 3.06
    bare = probe(ParityMeasure(True, 0.0), gradient_norms=())
    bare = replace(bare, arms=(replace(bare.arms[0], gradient_norms=()), bare.arms[1]))
    both = {"control_trial": restarted, "treatment_trial": restarted}
    assert passes(FAST[:1], plan=BITWISE, of=bare, **both)
    off = {"control_trial": restarted, "treatment_trial": restarted | {"restart_loss": 3.0000001}}
    assert judged(FAST[:1], plan=BITWISE, of=bare, **off).reason == "restarted"
    untold = restarted | {"restart_loss": None}
    found = judged(FAST[:1], plan=LOSS, of=probe(NEAR), treatment_trial=untold)
    assert found.reason == "restarted" and "the probe told its loss" in found.sentence


def test_batches_of_different_lengths_are_compared_pair_by_pair() -> None:
    one = made_round((1.0,) * 8, (1.0,) * 8)
    ragged = replace(one, blocks=tuple(replace(block, tokens=100 + block.pair) for block in one.blocks))
    assert passes(rounds=[ragged])
    odd = tuple(
        replace(block, tokens=500) if block.arm == "treatment" and block.pair == 3 else block for block in ragged.blocks
    )
    found = judged(rounds=[replace(ragged, blocks=odd)])
    assert found.reason == "tokens" and "treatment says 500 tokens a step in pair 4, control 103" in found.sentence


# A command that is only watched: whole processes in turn.

TURNS = {"facts": {"threads": 2, "protocol": "processes in turn", "way": "command"}, **NOTHING}


def in_turn(ratio: float = 1.0, pairs: int = 8, **fields: Any) -> Round:
    one = made_round((ratio,) * pairs, (1.0,) * pairs, control_trial=TURNS, treatment_trial=TURNS)
    return replace(with_blocks(one, "treatment", **fields), together=False)


def test_a_watched_command_has_no_turns_and_no_time_between_its_blocks() -> None:
    late = in_turn(turn_seconds=5.0, idle_cpu_seconds=0.5)
    assert passes(rounds=[late], plan=LOSS, of=probe(NEAR))
    held = replace(late, trials=tuple(replace(trial, facts={"threads": 1}) for trial in late.trials))
    assert judged(rounds=[held], plan=LOSS, of=probe(NEAR)).reason == "background_work"
    clock = with_blocks(held, "treatment", idle_cpu_seconds=0.0)
    assert judged(rounds=[clock], plan=LOSS, of=probe(NEAR)).reason == "own_clock"


def test_processes_in_turn_have_no_order_within_a_pair() -> None:
    # control takes 1.0 s where its place is the first of the pair and 1.2 s where it is the second
    times = [1.0 if pair % 2 == 0 else 1.2 for pair in range(8)]
    scattered = [time * by for time, by in zip(times, (1, 1, 1.001, 1.001, 0.999, 0.999, 1, 1), strict=True)]
    one = made_round(scattered, scattered, control_trial=TURNS, treatment_trial=TURNS)
    assert [fault.code for fault in round_faults(one, PLAN)] == ["order_effect"]
    assert round_faults(replace(one, together=False), PLAN) == ()


def test_the_weaker_protocol_is_named_with_the_floor_that_it_reached() -> None:
    ratios = (0.98, 1.02, 0.97, 1.03, 0.99, 1.01) * 2
    rounds = [replace(in_turn(ratio), id=f"r{index}") for index, ratio in enumerate(ratios)]
    found = judged(rounds=rounds, plan=LOSS, of=probe(NEAR))
    weaker = next(said for said in found.warnings if said.startswith("the weaker protocol"))
    assert found.effect is not None
    count, scatter = found.effect.rounds, found.effect.sd_log
    logs = [math.log(ratio) for ratio in ratios[:count]]
    mean = sum(logs) / count
    assert scatter == pytest.approx(math.sqrt(sum((log - mean) ** 2 for log in logs) / (count - 1)))
    assert (
        f"rounds scatter by {scatter:.2%}, and {count} rounds of them resolve {resolves(scatter, count):.1%}" in weaker
    )
    assert "campaign.steps" in weaker
    apart = [replace(one, trials=tuple(replace(t, facts={"threads": 1}) for t in one.trials)) for one in rounds]
    said = judged(rounds=apart, plan=LOSS, of=probe(NEAR)).warnings
    assert any(one.startswith("the arms did not fit side by side") for one in said)


def test_nobody_can_say_whether_an_edit_engaged_in_a_command_that_is_only_watched() -> None:
    plan = with_hypothesis(LOSS, predicted_evidence=(ExpectedChange("op:aten::mm", "falls"),))
    found = judged(plan=plan, of=seen(NEAR, way="command"))
    assert (found.verdict, found.reason) == ("unavailable", "unavailable")
    assert "campaign.launch.Script" in found.remedy


# Steps that wait by design.


def test_a_step_that_waits_by_design_is_measured_where_the_protocol_says_so_beforehand() -> None:
    waits = [with_blocks(replace(quiet(cpu_seconds=0.5), id=f"r{i}"), "control", cpu_seconds=0.5) for i in range(5)]
    stopped = judged(rounds=waits, plan=LOSS, of=probe(NEAR))
    assert stopped.reason == "contention" and "protocol.contention_limit=null" in stopped.remedy
    found = judged(rounds=waits, plan=with_protocol(LOSS, contention_limit=None), of=probe(NEAR))
    assert found.reason == "too_small"
    assert any("reached 2.00 of its CPU time" in said and "waits by design" in said for said in found.warnings)
    # two threads: wall time is below CPU time, and the ratio says nothing of neighbours
    two = {"threads": 2}
    several = [replace(one, trials=tuple(replace(trial, facts=two) for trial in one.trials)) for one in waits]
    assert judged(rounds=several, plan=LOSS, of=probe(NEAR)).reason == "too_small"


def test_steps_that_are_not_compared_are_decided_on_their_times_alone() -> None:
    plan = with_hypothesis(LOSS, parity=ParityClaim("none"))
    rounds = [with_blocks(ratio_round(1.0, index=index), "treatment", loss=9.0) for index in range(4)]
    found = judged(rounds=rounds, plan=plan, of=probe(None))
    assert found.reason == "too_small"
    assert "what the arms compute was not compared: nothing shows that it is the same" in found.warnings
