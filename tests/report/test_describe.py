"""Parity and engagement in one line each."""

from __future__ import annotations

from dataclasses import replace

from campaign.records import ExpectedChange, ParityClaim, ParityMeasure
from campaign.report.describe import describe_engagement, describe_parity
from tests.reasoning import made


def test_parity_shows_the_distances_beside_what_is_allowed():
    assert describe_parity(made.evidence()) == (
        "rounding: ok; exact 2e-07 (at most 0.0001), treatment 0.031, control 0.03 (at most 1.25 times), against the "
        "reference over 2 steps loss within 0.002 (control 0.002, exact 3e-07), gradient norm within 0.02 (control "
        "0.02, exact 5e-07), nearest to its limit blocks.0.weight with an error of 0.05 (control 0.04, cosine 0.9980), "
        "largest loss difference 0.0001"
    )


def test_a_plan_of_before_is_described_as_it_was():
    old = replace(made.PLAN, rules=1)
    alone = replace(made.PARITY, control=None, treatment=None, exact=None)
    assert describe_parity(made.evidence(plan=old, of=made.probe(alone))) == (
        "rounding: ok; exact 2e-07 (at most 0.0001), treatment 0.031, control 0.03 (at most 1.25 times), largest loss "
        "difference 0.0001"
    )
    nothing = made.with_hypothesis(old, predicted_evidence=())
    assert describe_engagement(made.evidence(plan=nothing)) == "nothing predicted"


def test_parity_outside_the_claim_is_red():
    far = ParityMeasure(False, 0.5, control_distance=0.01, treatment_distance=0.02, exact_distance=2e-7)
    assert describe_parity(made.evidence(of=made.probe(far))).startswith("rounding: RED; exact 2e-07")


def test_a_bitwise_claim_is_said_in_bits():
    plan = made.with_hypothesis(made.PLAN, parity=ParityClaim("bitwise"))
    equal, apart = (made.evidence(plan=plan, of=made.probe(ParityMeasure(same, 0.0))) for same in (True, False))
    assert describe_parity(equal) == "bitwise: ok; equal to the bit, largest loss difference 0"
    assert describe_parity(apart) == "bitwise: RED; not equal to the bit, largest loss difference 0"


def test_an_arm_that_failed_is_named_instead():
    failed = made.evidence(of=made.probe(None, status="crashed"))
    assert describe_parity(failed) == "not probed (treatment crashed)"
    assert describe_engagement(failed) == "not probed (treatment crashed)"
    assert describe_parity(replace(failed, probe=None)) == "not probed"
    assert describe_engagement(replace(failed, probe=None)) == "not probed"


def test_engagement_shows_counts_predictions_and_what_was_not_seen():
    expected = (
        ExpectedChange("op:kernels::prenorm_cpu", "appears", 0, 9),
        ExpectedChange("op:kernels::prenorm_cpu", "falls"),
    )
    plan = made.with_hypothesis(made.PLAN, predicted_evidence=expected)
    assert describe_engagement(made.evidence(plan=plan)) == (
        "op:kernels::prenorm_cpu appears: 0 -> 9 (predicted 0 -> 9); NOT SEEN op:kernels::prenorm_cpu falls: 0 -> 9"
    )


def test_a_hypothesis_without_predictions_says_so():
    plan = made.with_hypothesis(made.PLAN, predicted_evidence=())
    said = describe_engagement(made.evidence(plan=plan))
    assert said == "nothing predicted; also changed: op:kernels::prenorm_cpu 0 -> 9"


def test_what_changed_beside_the_prediction_is_told_largest_first_and_three_at_most():
    plain = made.probe()
    control, treatment = plain.arms
    control = replace(control, counters={"op:a": 10.0, "op:b": 10.0, "op:c": 10.0, "op:d": 1.0, "op:same": 3.0})
    treatment = replace(
        treatment,
        counters={**treatment.counters, "op:a": 11.0, "op:b": 0.0, "op:c": 4.0, "op:d": 2.0, "op:same": 3.0},
    )
    said = describe_engagement(made.evidence(of=replace(plain, arms=(control, treatment))))
    # by |log((after + 1) / (before + 1))|: b 11 -> 1, c 11 -> 5, d 2 -> 3, a 11 -> 12
    assert said.endswith("; also changed: op:b 10 -> 0, op:c 10 -> 4, op:d 1 -> 2 and 1 more")


def test_a_loss_claim_shows_what_was_compared_and_names_what_was_not():
    plan = made.with_hypothesis(made.PLAN, parity=ParityClaim("loss", bound=0.02))
    found = ParityMeasure(False, 0.03, loss_apart=(0.0, 0.0125), untold=("gradient norm", "gradients"))
    assert describe_parity(made.evidence(plan=plan, of=made.probe(found))) == (
        "loss: ok; loss within 0.013 of control's over 2 steps (at most 0.02), largest loss difference 0.03, gradient "
        "norms and gradients were not looked at: the workload does not tell them"
    )
    more = replace(found, loss_apart=(0.021,), norm_apart=(0.5,), gradient_distance=0.25, untold=())
    assert describe_parity(made.evidence(plan=plan, of=made.probe(more))) == (
        "loss: RED; loss within 0.021 of control's over 1 step (at most 0.02), gradient norm within 0.5, gradients "
        "0.25 from control's, largest loss difference 0.03"
    )


def test_what_tells_nothing_is_described_without_numbers():
    nothing = ParityMeasure(False, None, untold=("loss", "gradient norm", "gradients"))
    for kind, said in (("loss", "loss: RED; "), ("bitwise", "bitwise: RED; not equal to the bit, ")):
        plan = made.with_hypothesis(made.PLAN, parity=ParityClaim(kind))
        assert describe_parity(made.evidence(plan=plan, of=made.probe(nothing))) == (
            f"{said}losses, gradient norms and gradients were not looked at: the workload does not tell them"
        )
    plan = made.with_hypothesis(made.PLAN, parity=ParityClaim("none"))
    assert describe_parity(made.evidence(plan=plan, of=made.probe(None))) == "none: not compared"


def test_several_ranks_show_how_far_the_order_of_their_sums_took_them():
    plan = made.with_hypothesis(made.PLAN, parity=ParityClaim("bitwise"))
    found = ParityMeasure(False, 3e-7, loss_apart=(0.0, 1e-7), norm_apart=(2e-7,), gradient_distance=4e-7)
    probe = made.probe(found)
    probe = replace(probe, arms=tuple(replace(arm, facts={"ranks": 2}) for arm in probe.arms))
    assert describe_parity(made.evidence(plan=plan, of=probe)) == (
        "bitwise: ok; not equal to the bit, loss within 1e-07 of control's over 2 steps, gradient norm within 2e-07, "
        "gradients 4e-07 from control's, largest loss difference 3e-07"
    )


def test_a_command_in_which_nothing_can_be_counted_says_so():
    plan = made.with_hypothesis(made.PLAN, predicted_evidence=())
    probe = made.probe(before=0, after=0)
    probe = replace(probe, arms=tuple(replace(arm, facts={"way": "command"}) for arm in probe.arms))
    said = describe_engagement(made.evidence(plan=plan, of=probe))
    assert said == "nothing predicted; nothing can be counted in a command that is only watched"
