"""Parity, engagement and low precision of a decision in one line each, judged by the rules that the verdict used."""

from __future__ import annotations

from campaign.records import Evidence, ExpectedChange, ParityMeasure, Probe

NOT_PROBED = "not probed"


def describe_parity(evidence: Evidence) -> str:
    """'rounding: ok; exact 2.1e-07 (at most 0.0001), treatment 0.031, control 0.03 (at most 1.25 times)'.

    Distances are relative L2 norms to the reference's gradients of step 1 (`campaign/parity.py`).
    """
    from campaign.verdicts.parity import broken

    claim, probe = evidence.plan.hypothesis.parity, evidence.probe
    if probe is None or probe.parity is None:
        return NOT_PROBED + _failures(probe)
    measured = probe.parity
    outcome = "RED" if broken(claim, measured) else "ok"
    parts = ["equal to the bit"] if measured.bitwise else _distances(measured, claim.bound, claim.factor)
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


def describe_engagement(evidence: Evidence) -> str:
    """'op:a::b appears: 0 -> 12 (predicted 0 -> 12)' for each predicted change, in counts a step."""
    probe, expected = evidence.probe, evidence.plan.hypothesis.predicted_evidence
    if probe is None:
        return NOT_PROBED
    seen = {one.arm: one.counters for one in probe.arms if one.status == "ok"}
    if not {"control", "treatment"} <= seen.keys():
        return NOT_PROBED + _failures(probe)
    if not expected:
        return "nothing predicted"
    return "; ".join(_change(change, seen["control"], seen["treatment"]) for change in expected)


def _change(change: ExpectedChange, control: dict[str, float], treatment: dict[str, float]) -> str:
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
