"""Parity, engagement and low precision of a decision in one line each, judged by the rules that the verdict used."""

from __future__ import annotations

from collections.abc import Callable

from campaign.records import ArmParity, ArmProbe, Evidence, ExpectedChange, ParityClaim, ParityMeasure, Probe
from campaign.records.plan import NOT_COMPARED, REFERENCED
from campaign.traits import not_looked_at, ranks, uncounted
from campaign.units import counted

NOT_PROBED = "not probed"
NOT_COMPARED_WORDS = "none: not compared"
OTHERS = 3


def describe_parity(evidence: Evidence) -> str:
    """'rounding: ok; exact 2.1e-07 (at most 0.0001), treatment 0.031, control 0.03 (at most 1.25 times)'.

    Distances are relative L2 norms to the reference's gradients of step 1 (`campaign/parity.py`).
    """
    from campaign.verdicts.parity import judged

    claim, probe = evidence.plan.hypothesis.parity, evidence.probe
    if claim.kind == NOT_COMPARED and probe is not None:
        return NOT_COMPARED_WORDS + _failures(probe)
    if probe is None or probe.parity is None:
        return NOT_PROBED + _failures(probe)
    measured = probe.parity
    outcome = "RED" if judged(evidence) else "ok"
    referenced = claim.kind in REFERENCED
    if measured.bitwise:
        parts = ["equal to the bit"]
    elif referenced:
        parts = [*_distances(measured, claim.bound, claim.factor), *_step_by_step(measured)]
    else:
        parts = _against_control(measured, claim, several=ranks(probe.arm("control").facts) > 1)
    if measured.loss_difference is not None:
        parts.append(f"largest loss difference {measured.loss_difference:.3g}")
    parts += [not_looked_at(measured.untold)] if measured.untold else []
    parts += measured.unlike
    return f"{claim.kind}: {outcome}; {', '.join(parts)}" + (f" ({measured.message})" if measured.message else "")


def _against_control(measured: ParityMeasure, claim: ParityClaim, *, several: bool) -> list[str]:
    """'loss within 0.0012 of control's over 8 steps (at most 0.02), gradients 0.0004 from control's'. Several ranks
    that are to be equal to the bit may differ in the order of their sums, and by how much is shown."""
    if claim.kind == "bitwise" and not several:
        return ["not equal to the bit"]
    parts = [] if claim.kind == "loss" else ["not equal to the bit"]
    if measured.loss_apart:
        limit = f" (at most {claim.bound:g})" if claim.kind == "loss" else ""
        over = counted(len(measured.loss_apart), "step")
        parts.append(f"loss within {max(measured.loss_apart):.2g} of control's over {over}{limit}")
    if measured.norm_apart:
        parts.append(f"gradient norm within {max(measured.norm_apart):.2g}")
    if measured.gradient_distance is not None:
        parts.append(f"gradients {measured.gradient_distance:.2g} from control's")
    return parts


def _distances(measured: ParityMeasure, bound: float, factor: float) -> list[str]:
    parts = []
    if measured.exact_distance is not None:
        parts.append(f"exact {measured.exact_distance:.3g} (at most {bound:g})")
    if measured.treatment_distance is not None:
        parts.append(f"treatment {measured.treatment_distance:.3g}")
    if measured.control_distance is not None:
        parts.append(f"control {measured.control_distance:.3g} (at most {factor:g} times)")
    return parts or ["not equal to the bit"]


def _step_by_step(measured: ParityMeasure) -> list[str]:
    """'against the reference over 4 steps loss within 0.0013 (control 0.001, exact 2e-07), gradient norm within 0.003
    (...)', then the parameter that is nearest to its limit."""
    sides = {"": measured.treatment, "control": measured.control, "exact": measured.exact}
    treatment = measured.treatment
    if treatment is None:
        return []

    def largest(values: Callable[[ArmParity], tuple[float, ...]]) -> str:
        said = {side: f"{max(values(arm)):.2g}" for side, arm in sides.items() if arm is not None and values(arm)}
        beside = ", ".join(f"{side} {value}" for side, value in said.items() if side)
        return f"{said['']} ({beside})"

    over = f"against the reference over {len(treatment.losses)} steps"
    parts = []
    if treatment.losses:
        parts.append(f"{over} loss within {largest(lambda arm: arm.losses)}")
    if treatment.gradient_norms:
        parts.append(f"gradient norm within {largest(lambda arm: arm.gradient_norms)}")
    worst = treatment.worst
    if worst is not None:
        parts.append(
            f"nearest to its limit {worst.name} with an error of {worst.error:.2g} (control {worst.control_error:.2g},"
            f" cosine {worst.cosine:.4f})"
        )
    return parts


def describe_engagement(evidence: Evidence) -> str:
    """'op:a::b appears: 0 -> 12 (predicted 0 -> 12)' for each predicted change, in counts a step; then the largest of
    the changes that were not predicted."""
    from campaign.verdicts.engaged import changes

    plan, probe = evidence.plan, evidence.probe
    if probe is None:
        return NOT_PROBED
    seen = {one.arm: one for one in probe.arms if one.status == "ok"}
    if not {"control", "treatment"} <= seen.keys():
        return NOT_PROBED + _failures(probe)
    expected, arms = plan.hypothesis.predicted_evidence, (seen["control"], seen["treatment"])
    said = "; ".join(_change(change, *arms) for change in expected) or "nothing predicted"
    if plan.rules < 2 or plan.hypothesis.null:
        return said
    if all(uncounted(arm.facts) for arm in arms):
        return f"{said}; nothing can be counted in a command that is only watched"
    others = changes(*arms, without=[change.counter for change in expected])
    more = f" and {len(others) - OTHERS} more" if len(others) > OTHERS else ""
    return f"{said}; also changed: {', '.join(others[:OTHERS])}{more}" if others else said


def _change(change: ExpectedChange, control: ArmProbe, treatment: ArmProbe) -> str:
    from campaign.verdicts.engaged import count, seen

    before, after = count(control, change.counter), count(treatment, change.counter)
    said = f"{change.counter} {change.change}: {before:g} -> {after:g}"
    if change.control is not None or change.treatment is not None:
        predicted = ["?" if value is None else f"{value:g}" for value in (change.control, change.treatment)]
        said += f" (predicted {' -> '.join(predicted)})"
    return said if seen(change, control, treatment) else f"NOT SEEN {said}"


def describe_low_precision(evidence: Evidence) -> str:
    """What the probed workload said of its low precision (`emulated`, `hardware`, `none`), or `unknown`."""
    arms = evidence.probe.arms if evidence.probe else ()
    return next((str(arm.facts["low_precision"]) for arm in arms if "low_precision" in arm.facts), "unknown")


def _failures(probe: Probe | None) -> str:
    failed = [f"{one.arm} {one.status}" for one in (probe.arms if probe else ()) if one.status != "ok"]
    return f" ({', '.join(failed)})" if failed else ""
