"""What comes before speed: who fails first, parity, engagement, nulls, and the warnings beside a verdict."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from campaign import verdicts
from campaign.effects import detectable_sds
from campaign.records import Arm, ArmParity, ExpectedChange, Memory, Need, ParityClaim, ParityMeasure, Surroundings
from tests.reasoning.made import (
    EXACT,
    FAST,
    MIB,
    NULL,
    PARITY,
    PLAN,
    SAME,
    evidence,
    judged,
    made_round,
    probe,
    ratio_round,
    with_clock,
    with_hypothesis,
    with_protocol,
)


def test_an_arm_that_cannot_run_here_is_unavailable_before_anything_else_is_wrong() -> None:
    found = judged(SAME, of=probe(None, status="unavailable", message="no CUDA", remedy="a GPU"), code="other")
    assert (found.verdict, found.remedy) == ("unavailable", "a GPU")
    assert "treatment" in found.sentence and "no CUDA" in found.sentence


def test_a_crash_comes_before_parity_and_parity_before_engagement() -> None:
    red = replace(PARITY, exact_distance=1.0)
    assert judged(of=probe(red, after=0, status="crashed")).reason == "crashed"
    assert judged(of=probe(red, after=0)).reason == "parity"
    assert judged(of=probe(after=0)).reason == "not_engaged"


def test_an_edit_with_red_parity_is_invalid_however_fast_it_is() -> None:
    found = judged(FAST, FAST, of=probe(replace(PARITY, exact_distance=1.0)))
    assert (found.verdict, found.reason, found.effect) == ("invalid", "parity", None)
    assert found.valid_rounds == 8


def test_a_memory_limit_comes_before_speed() -> None:
    full = {"memory": Memory(955 * MIB, limit_bytes=1000 * MIB)}
    found = judged(FAST, FAST, control_trial=full, treatment_trial=full)
    assert (found.verdict, found.reason) == ("reject", "memory_capacity")
    assert "955.0 MiB plus 5% is above the limit of 1000.0 MiB" in found.sentence


def test_a_failed_trial_names_the_arm_the_failure_and_the_log() -> None:
    crashed = ratio_round(1.0, treatment_trial={"status": "crashed", "message": "ValueError: no"}, index=4)
    found = judged(FAST[:3], rounds=[crashed])
    assert "screen-4: treatment ended as crashed: ValueError: no (log: raw/treatment.log)" in found.sentence
    assert PLAN.command in found.remedy


def test_equal_to_the_bit_is_within_every_class() -> None:
    same = ParityMeasure(True, 0.0)
    for kind in ("bitwise", "rounding", "precision"):
        plan = with_hypothesis(PLAN, parity=ParityClaim(kind))
        assert verdicts.judge(evidence(plan=plan, of=probe(same))) == Need("screen", 4)


def test_rounding_leaves_room_for_rounding_where_control_is_the_reference_itself() -> None:
    itself = ArmParity((0.0, 0.0), (0.0, 0.0))
    near = replace(PARITY, control_distance=0.0, treatment_distance=2e-7, control=itself, treatment=EXACT)
    assert verdicts.judge(evidence(of=probe(near))) == Need("screen", 4)
    assert judged(of=probe(replace(near, treatment_distance=1.1e-4))).reason == "parity"


def test_precision_may_move_by_its_factor_and_no_further() -> None:
    plan = with_hypothesis(PLAN, parity=ParityClaim("precision", factor=1.25))
    at = replace(PARITY, control_distance=0.04, treatment_distance=0.05, exact_distance=None, exact=None)
    assert verdicts.judge(evidence(plan=plan, of=probe(at))) == Need("screen", 4)
    found = judged(plan=plan, of=probe(replace(at, treatment_distance=0.0501)))
    assert found.reason == "parity" and "0.0501" in found.sentence and "0.05" in found.sentence


def test_missing_distances_say_why() -> None:
    odd = ParityMeasure(False, 0.1, message="the arms train different parameters: a.b")
    assert "different parameters: a.b" in judged(of=probe(odd)).sentence


@pytest.mark.parametrize(
    "change, before, after", [("appears", 0, 1), ("vanishes", 2, 0), ("rises", 1, 2), ("falls", 2, 1)]
)
def test_each_expected_change_is_seen_when_it_happens(change: str, before: float, after: float) -> None:
    plan = with_hypothesis(PLAN, predicted_evidence=(ExpectedChange("op:kernels::prenorm_cpu", change),))
    assert verdicts.judge(evidence(plan=plan, of=probe(before=before, after=after))) == Need("screen", 4)


def test_predicted_counts_are_no_gate() -> None:
    plan = with_hypothesis(PLAN, predicted_evidence=(ExpectedChange("op:kernels::prenorm_cpu", "appears", 0, 12),))
    assert verdicts.judge(evidence(plan=plan, of=probe(after=9))) == Need("screen", 4)


def test_a_kernel_counter_sums_the_kernels_whose_names_contain_it() -> None:
    plan = with_hypothesis(PLAN, predicted_evidence=(ExpectedChange("kernel:norm", "rises"),))
    arms = probe().arms
    control = replace(arms[0], counters={"kernel:layer_norm_a": 2.0, "kernel:gemm": 50.0})
    treatment = replace(arms[1], counters={"kernel:layer_norm_a": 1.0, "kernel:rms_norm_b": 2.0})
    seen = replace(probe(), arms=(control, treatment))
    assert verdicts.judge(evidence(plan=plan, of=seen)) == Need("screen", 4)
    missed = judged(plan=plan, of=replace(probe(), arms=(control, replace(treatment, counters={}))))
    assert "kernel:norm rises? 2 -> 0" in missed.sentence


def test_a_null_is_never_accepted_even_when_it_measures_fast() -> None:
    green = probe(ParityMeasure(True, 0.0))
    answer = judged(FAST * 3, plan=NULL, of=green)
    assert (answer.verdict, answer.reason) == ("inconclusive", "biased")
    assert answer.alpha_spent == 0.0 and answer.floor is not None
    assert verdicts.judge(evidence(FAST, plan=NULL, of=green)) == Need("screen", 12)


def test_a_null_tells_the_floor_of_the_machine() -> None:
    found = judged((1.01, 1 / 1.01, 1.0) * 4, plan=NULL, of=probe(ParityMeasure(True, 0.0)))
    assert found.reason == "floor" and found.floor is not None
    # of twelve: four at +x, four at -x, four at 0, x = log 1.01: sd = x sqrt(8/11)
    sd = math.log(1.01) * math.sqrt(8 / 11)
    assert found.floor.between_rounds_sd == pytest.approx(sd)
    assert found.floor.within_round_sd == pytest.approx(0.0, abs=1e-12)
    assert found.floor.resolves["12"] == pytest.approx(math.expm1(sd * detectable_sds(12, 0.01, 0.95)))
    assert verdicts.floor(evidence((1.01, 1 / 1.01, 1.0) * 4, plan=NULL)) == found.floor


def test_a_promising_first_look_names_the_command_that_decides() -> None:
    plan = with_protocol(
        replace(PLAN, command="python -m campaign hypothesis=fusion protocol=quick"),
        name="quick",
        decisive=False,
        looks=(3,),
        alpha_split=(1.0,),
        beta_split=(1.0,),
    )
    found = judged(FAST[:3], plan=plan)
    assert (found.reason, found.remedy) == ("promising", "decide it: python -m campaign hypothesis=fusion")
    assert found.alpha_spent == 0.0


def test_only_a_null_may_compare_an_arm_with_itself() -> None:
    same = replace(PLAN, treatment=Arm("treatment", "x", PLAN.control.target, PLAN.control.config))
    found = judged(FAST, plan=same)
    assert (found.verdict, found.reason) == ("invalid", "no_change") and "ops.prenorm=cpu" in found.sentence


def warned(word: str, *args, **kwargs) -> bool:
    return any(word in warning for warning in judged(*args, **kwargs).warnings)


def test_a_quiet_clean_result_has_no_warnings() -> None:
    assert judged(SAME).warnings == ()


def test_each_warning_is_given_for_its_own_cause() -> None:
    assert warned("hypothesis=aa_null", SAME, plan=replace(PLAN, floor_id=""))
    assert warned("predicts no evidence", SAME, plan=with_hypothesis(PLAN, predicted_evidence=()))
    assert warned("emulated", SAME, treatment_trial={"facts": {"threads": 1, "low_precision": "emulated"}})
    assert warned("not steady after warm-up in 4 of 4", SAME, treatment_trial={"steady": False})
    assert warned("compiled 8 graphs", SAME, treatment_trial={"recompiled": 2})
    assert warned("pressure reached 30%", SAME, surroundings=Surroundings(pressure=0.30))
    assert warned("1.10 of its CPU time", rounds=[
        with_clock(ratio_round(ratio), "cpu", (ratio / 1.1,) * 2, (1.0, 1.0)) for ratio in SAME
    ])  # fmt: skip
    stalled = [made_round((1.0,) * 5, (1.0,) * 4 + (1.2,), index=index) for index in range(4)]
    assert warned("p99 step is 1.20 s, control's 1.00 s", rounds=stalled)
    drifting = [made_round((1.0,) * 5 + (1.5,) * 5, (1.0,) * 5 + (1.5,) * 5, index=index) for index in range(4)]
    assert warned("own level moved by 50%", rounds=drifting)
