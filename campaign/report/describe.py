"""Parity, engagement and low precision of a decision in one line each, judged by the rules that the verdict used."""

from __future__ import annotations

from collections.abc import Callable

from campaign.records import ArmParity, ArmProbe, Evidence, ExpectedChange, ParityMeasure, Probe

NOT_PROBED = "not probed"
OTHERS = 3


def describe_parity(evidence: Evidence) -> str:
    """'rounding: ok; exact 2.1e-07 (at most 0.0001), treatment 0.031, control 0.03 (at most 1.25 times)'.

    Distances are relative L2 norms to the reference's gradients of step 1 (`campaign/parity.py`).
    """
    from campaign.verdicts.parity import broken

    claim, probe = evidence.plan.hypothesis.parity, evidence.probe
    if probe is None or probe.parity is None:
        return NOT_PROBED + _failures(probe)
    measured = probe.parity
    outcome = "RED" if broken(claim, measured, steps=evidence.plan.rules > 1) else "ok"
    parts = ["equal to the bit"] if measured.bitwise else _distances(measured, claim.bound, claim.factor)
    if not measured.bitwise and claim.kind != "bitwise":
        parts += _step_by_step(measured)
    parts.append(f"largest loss difference {measured.loss_difference:.3g}")
    return f"{claim.kind}: {outcome}; {', '.join(parts)}" + (f" ({measured.message})" if measured.message else "")


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
        said = {side: f"{max(values(arm)):.2g}" for side, arm in sides.items() if arm is not None}
        beside = ", ".join(f"{side} {value}" for side, value in said.items() if side)
        return f"{said['']} ({beside})"

    parts = [
        f"against the reference over {len(treatment.losses)} steps loss within {largest(lambda arm: arm.losses)}",
        f"gradient norm within {largest(lambda arm: arm.gradient_norms)}",
    ]
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
