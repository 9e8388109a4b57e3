"""Every predicted change of a counter must be seen by the untimed probe (DESIGN 2, "engaged"), else invalid,
`not_engaged`: a gain of an edit that did not change what ran is not the edit's. A counter that a probe does not have
is 0. Predicted counts are shown beside the measured ones and are no gate."""

from __future__ import annotations

from collections.abc import Mapping

from campaign.records import INVALID, ExpectedChange, Verdict
from campaign.verdicts._case import Case

ORDER = 50


def rule(case: Case) -> Verdict | None:
    probe, expected = case.evidence.probe, case.plan.hypothesis.predicted_evidence
    if probe is None or not expected:
        return None
    control, treatment = probe.arm("control").counters, probe.arm("treatment").counters
    missed = [change for change in expected if not seen(change, control, treatment)]
    if not missed:
        return None
    told = "; ".join(
        f"{change.counter} {change.change}? {count(control, change.counter):g} -> {count(treatment, change.counter):g}"
        for change in missed[:3]
    )
    kernels = any(change.counter.startswith("kernel:") for change in missed) and case.plan.device == "cpu"
    return case.verdict(
        INVALID,
        "not_engaged",
        f"the edit did not change what ran: {told} a step"
        + (" (device kernels are counted on a device only)" if kernels else ""),
        f"correct edit or predicted_evidence in conf/hypothesis/{case.plan.hypothesis.name}.yaml",
    )


def count(counters: Mapping[str, float], counter: str) -> float:
    """How often `counter` ran in one step: `kernel:NAME` sums the kernels whose name contains NAME, any other counter
    is looked up as it stands."""
    kind, _, name = counter.partition(":")
    if kind == "kernel":
        return sum(
            value for key, value in counters.items() if key.startswith("kernel:") and name in key[len("kernel:") :]
        )
    return counters.get(counter, 0.0)


def seen(change: ExpectedChange, control: Mapping[str, float], treatment: Mapping[str, float]) -> bool:
    """Whether the counter changed as expected from control to treatment."""
    before, after = count(control, change.counter), count(treatment, change.counter)
    if change.change == "appears":
        return before == 0 < after
    if change.change == "vanishes":
        return after == 0 < before
    return after > before if change.change == "rises" else after < before
