"""Parity and engagement in one line each."""

from __future__ import annotations

from dataclasses import replace

from campaign.records import ExpectedChange, ParityClaim, ParityMeasure
from campaign.report.describe import describe_engagement, describe_parity
from tests.reasoning import made


def test_parity_shows_the_distances_beside_what_is_allowed():
    assert describe_parity(made.evidence()) == (
        "rounding: ok; exact 2e-07 (at most 0.0001), treatment 0.031, control 0.03 (at most 1.25 times), largest loss "
        "difference 0.0001"
    )


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
    assert describe_engagement(made.evidence(plan=plan)) == "nothing predicted"
