"""The gates on what the probe saw, and on gains that are too good: what each lets pass and what it stops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from campaign import verdicts
from campaign.records import ArmParity, ExpectedChange, Need, ParityClaim, ParityMeasure, Probe, from_json, to_json
from tests.reasoning.made import (
    EXACT,
    FAST,
    NEAR,
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
)

OLD = replace(PLAN, rules=1)
GREEN = probe(ParityMeasure(True, 0.0))
BITWISE = with_hypothesis(PLAN, parity=ParityClaim("bitwise"))


def passes(*args, **kwargs) -> bool:
    """Whether nothing stops the evidence short of a look."""
    return isinstance(verdicts.judge(evidence(*args, **kwargs)), Need)


def rounds(pairs: int = 8, arm: str = "treatment", **fields) -> list:
    return [with_blocks(made_round((1.0,) * pairs, (1.0,) * pairs), arm, **fields)]


def test_two_clean_equal_arms_pass_every_gate() -> None:
    assert passes(rounds=rounds())
    assert passes(rounds=rounds(), plan=BITWISE, of=GREEN)
    assert passes(rounds=rounds(), plan=NULL, of=GREEN)


# Parity, by the limits that follow from bound 1e-4, factor 1.25, control's distance .030 and its errors in `NEAR`.
LOSS = 1.25 * (2 * 0.002 + 0.05 * 0.030)  # 0.006875
NORM = 1.25 * (2 * 0.020 + 1.5 * 0.030)  # 0.10625
PARAMETER = 1.25 * 2 * (0.04 + 0.01)  # 0.125


@pytest.mark.parametrize(
    ("arm", "changes", "says"),
    [
        ("treatment", {"losses": (0.0, LOSS * 1.001)}, "as configured the loss of step 2 of 2"),
        ("treatment", {"gradient_norms": (NORM * 1.001, 0.0)}, "the gradient norm of step 1 of 2"),
        ("treatment", {"worst": replace(NEAR.worst, error=PARAMETER * 1.001)}, "the gradient of blocks.0.weight"),
        ("treatment", {"worst": replace(NEAR.worst, error=float("nan"))}, "is nan from the reference's"),
        ("treatment", {"silent": ("a.bias", "b.bias")}, "a.bias and 1 more is all zero"),
        ("exact", {"losses": (0.0, 0.00101)}, "with quantization off the loss of step 2"),
        ("exact", {"gradient_norms": (0.00101, 0.0)}, "with quantization off the gradient norm of step 1"),
        ("exact", {"worst": replace(EXACT.worst, error=0.00101)}, "with quantization off the gradient of"),
        ("exact", {"silent": ("a.bias",)}, "a.bias is all zero"),
    ],
)
def test_a_step_or_a_parameter_beyond_its_limit_is_red_though_the_whole_gradient_is_near(arm, changes, says) -> None:
    red = replace(PARITY, **{arm: replace(getattr(PARITY, arm), **changes)})
    found = judged(of=probe(red))
    assert (found.reason, says in found.sentence) == ("parity", True), found.sentence


@pytest.mark.parametrize(
    ("arm", "changes"),
    [
        ("treatment", {"losses": (0.0, LOSS * 0.999)}),
        ("treatment", {"gradient_norms": (NORM * 0.999, 0.0)}),
        ("treatment", {"worst": replace(NEAR.worst, error=PARAMETER * 0.999)}),
        ("exact", {"losses": (0.0, 0.00099), "gradient_norms": (0.00099, 0.0)}),
        ("exact", {"worst": replace(EXACT.worst, error=0.00099)}),
    ],
)
def test_what_is_within_its_limit_passes(arm, changes) -> None:
    assert passes(of=probe(replace(PARITY, **{arm: replace(getattr(PARITY, arm), **changes)})))


def test_a_precision_claim_has_no_exact_arm_and_the_same_limits_as_configured() -> None:
    plan = with_hypothesis(PLAN, parity=ParityClaim("precision"))
    alone = replace(PARITY, exact=None, exact_distance=None)
    assert passes(plan=plan, of=probe(alone))
    far = replace(alone, treatment=replace(NEAR, losses=(0.0, LOSS * 1.001)))
    assert judged(plan=plan, of=probe(far)).reason == "parity"


def test_a_plan_that_recorded_whole_gradients_alone_is_judged_by_them_and_a_new_one_is_not() -> None:
    alone = replace(PARITY, control=None, treatment=None, exact=None)
    assert passes(plan=OLD, of=probe(alone))
    assert "distances are missing" in judged(of=probe(alone)).sentence


def test_an_old_ledgers_lines_load_without_the_fields_that_it_did_not_have() -> None:
    old = to_json(evidence(FAST, plan=OLD))
    new = ("idle_cpu_seconds", "loss", "gradient_norm", "turn_seconds")
    for one in old["rounds"]:
        one["blocks"] = [{key: block[key] for key in block if key not in new} for block in one["blocks"]]
        for trial in one["trials"]:
            for key in [key for key in trial if key.startswith("restart_") or key in ("unmoved", "weighed_loss")]:
                del trial[key]
    for name in ("control", "treatment", "exact"):
        del old["probe"]["parity"][name]
    for arm in old["probe"]["arms"]:
        del arm["static"]
    del old["plan"]["rules"], old["plan"]["protocol"]["suspect_ratio"], old["plan"]["hypothesis"]["ceiling_ratio"]
    loaded = from_json(type(evidence()), old)
    assert loaded.plan.rules == 1
    assert verdicts.judge(loaded) == Need("confirm", 4)


def test_an_old_plan_is_never_suspect_and_meets_none_of_the_later_gates() -> None:
    huge = (1.60, 1.61, 1.60, 1.59)
    found = judged(huge, huge, plan=OLD, treatment_trial={"restart_loss": None, "unmoved": ("w",)})
    assert (found.verdict, found.suspect) == ("accept", "")


# Suspect gains.


def test_a_gain_above_one_and_a_half_is_published_from_a_second_confirmation_and_marked() -> None:
    huge, less = (1.60, 1.61, 1.60, 1.59), (1.55, 1.56, 1.55, 1.54)
    for have in range(4):
        fresh = [ratio_round(ratio, stage="reconfirm", index=index) for index, ratio in enumerate(less[:have])]
        assert verdicts.judge(evidence(huge, huge, rounds=fresh)) == Need("reconfirm", 4)
    fresh = [ratio_round(ratio, stage="reconfirm", index=index) for index, ratio in enumerate(less)]
    found = judged(huge, huge, rounds=fresh)
    assert (found.verdict, found.reason) == ("accept", "faster")
    assert found.effect is not None and found.effect.ratio == pytest.approx((1.55 * 1.56 * 1.55 * 1.54) ** 0.25)
    assert "above 1.500x" in found.suspect and "confirmed twice" in found.sentence and "revert" in found.remedy
    assert (found.valid_rounds, found.screening.rounds) == (12, 4)


def test_a_gain_above_what_a_profile_allows_is_suspect_however_small() -> None:
    capped = with_hypothesis(PLAN, ceiling_ratio=1.08)
    assert verdicts.judge(evidence(FAST, FAST, plan=capped)) == Need("reconfirm", 4)
    assert judged(FAST, FAST, plan=with_hypothesis(PLAN, ceiling_ratio=1.12)).suspect == ""
    assert judged(FAST, FAST).suspect == ""


def test_a_suspect_gain_that_a_second_confirmation_does_not_show_is_no_accept() -> None:
    huge = (1.60, 1.61, 1.60, 1.59)
    fresh = [ratio_round(ratio, stage="reconfirm", index=index) for index, ratio in enumerate((1.0, 1.01, 0.99, 1.0))]
    found = judged(huge, huge, rounds=fresh)
    assert (found.verdict, found.reason, bool(found.suspect)) == ("inconclusive", "unconfirmed", True)


# Engagement by static evidence, and what changed instead.


def arms(control: dict | None = None, treatment: dict | None = None) -> Probe:
    """The green probe with these fields in its arms."""
    plain = probe()
    before, after = plain.arms
    return replace(plain, arms=(replace(before, **(control or {})), replace(after, **(treatment or {}))))


def row(spills: int | None, **changes) -> dict:
    return {"kernel": "backward", "target": "cpu", "spill_instructions": spills, "status": "ok"} | changes


def compiled(*rows: dict, target: str = "cpu") -> dict:
    return {"static": rows, "facts": {"static_target": target}, "counters": {}}


def test_static_evidence_is_that_of_the_device_that_the_arm_runs_on() -> None:
    plan = with_hypothesis(PLAN, predicted_evidence=(ExpectedChange("static:backward:spill_instructions", "rises"),))
    other = row(99, target="sm_90")
    assert passes(plan=plan, of=arms(compiled(row(2), other), compiled(row(3), other)))
    assert passes(plan=plan, of=arms(compiled(row(0)), compiled(row(1), row(1))))
    assert not passes(plan=plan, of=arms(compiled(row(2)), compiled(row(2), other)))
    found = judged(plan=plan, of=arms(compiled(row(2)), compiled(row(2), other)))
    assert (found.verdict, found.reason) == ("invalid", "not_engaged")


def test_what_no_compiler_here_can_tell_is_unavailable_and_not_an_edit_that_changed_nothing() -> None:
    plan = with_hypothesis(PLAN, predicted_evidence=(ExpectedChange("static:backward:spill_instructions", "rises"),))
    untold = row(None, status="unavailable", reason="objdump is not installed", remedy="install binutils")
    found = judged(plan=plan, of=arms(compiled(row(2)), compiled(untold)))
    assert (found.verdict, found.remedy) == ("unavailable", "install binutils")
    assert "objdump is not installed" in found.sentence
    found = judged(plan=plan, of=arms(compiled(target="sm_80"), compiled(target="sm_80")))
    assert found.verdict == "unavailable" and "nothing was compiled for sm_80" in found.sentence


def test_static_evidence_and_counters_of_one_name_never_mix() -> None:
    name = "static:backward:spill_instructions"
    plan = with_hypothesis(PLAN, predicted_evidence=(ExpectedChange(name, "rises"),))
    assert not passes(plan=plan, of=arms({"counters": {name: 0.0}}, {"counters": {name: 5.0}}))


def test_an_edit_that_changed_nothing_is_told_from_one_that_changed_something_else() -> None:
    same = arms({"counters": {"op:aten::mm": 4.0}}, {"counters": {"op:aten::mm": 4.0}})
    assert "nothing that was counted changed" in judged(of=same).sentence
    before = {f"op:{name}": 1.0 for name in "abcdefg"}
    after = {f"op:{name}": float(index + 2) for index, name in enumerate("abcdefg")}
    said = judged(of=arms({"counters": before}, {"counters": after})).sentence
    # largest first: g 1 -> 8, f 1 -> 7, ..., c 1 -> 4; a and b are the two more
    assert "what changed instead: op:g 1 -> 8; op:f 1 -> 7; op:e 1 -> 6; op:d 1 -> 5; op:c 1 -> 4, and 2 more" in said


def test_a_reference_alone_allows_rounding_and_no_more() -> None:
    itself = replace(PARITY, control_distance=0.0, control=ArmParity((0.0, 0.0), (0.0, 0.0)))
    exact = replace(itself, treatment=EXACT, treatment_distance=2e-7)
    assert passes(of=probe(exact))
    far = replace(exact, treatment=replace(EXACT, losses=(0.0, 0.00101)))
    assert judged(of=probe(far)).reason == "parity"
