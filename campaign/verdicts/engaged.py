"""Every predicted change must be seen by the untimed probe (DESIGN 2, "engaged"), else invalid, `not_engaged`: a gain
of an edit that did not change what ran is not the edit's. A counter that a probe does not have is 0. Predicted counts
are shown beside the measured ones and are no gate. Static evidence is looked up among the compiled kernels and nowhere
else. Where no compiler of this machine could tell the field, whether the edit engaged cannot be known: unavailable. So
it is in a command that is only watched, where nothing can be counted.

The sentence says whether anything at all changed, and what did instead, largest change first."""

from __future__ import annotations

import math
from collections.abc import Collection

from campaign.records import INVALID, UNAVAILABLE, ArmProbe, ExpectedChange, Verdict
from campaign.traits import uncounted
from campaign.verdicts._case import Case

ORDER = 50
LISTED = 5


def rule(case: Case) -> Verdict | None:
    probe, expected = case.evidence.probe, case.plan.hypothesis.predicted_evidence
    if probe is None or not expected:
        return None
    control, treatment = probe.arm("control"), probe.arm("treatment")
    missed = [change for change in expected if not seen(change, control, treatment)]
    if not missed:
        return None
    for arm in (control, treatment):
        if uncounted(arm.facts):
            return case.verdict(
                UNAVAILABLE,
                "unavailable",
                f"{arm.arm}: {missed[0].counter} cannot be counted in a command that is only watched",
                "two lines in its loop and _target_: campaign.launch.Script, or hypothesis.predicted_evidence=[]",
            )
    for change in missed:
        for arm in (control, treatment):
            untold = _untold(arm, change.counter)
            if untold:
                return case.verdict(UNAVAILABLE, "unavailable", *untold)
    told = "; ".join(
        f"{change.counter} {change.change}? {count(control, change.counter):g} -> {count(treatment, change.counter):g}"
        for change in missed[:3]
    )
    kernels = any(change.counter.startswith("kernel:") for change in missed) and case.plan.device == "cpu"
    others = changes(control, treatment, without=[change.counter for change in missed])
    instead = f"what changed instead: {'; '.join(others[:LISTED])}" if others else "nothing that was counted changed"
    return case.verdict(
        INVALID,
        "not_engaged",
        f"the edit did not change what ran: {told} a step"
        + (" (device kernels are counted on a device only)" if kernels else "")
        + f"; {instead}"
        + (f", and {len(others) - LISTED} more" if len(others) > LISTED else ""),
        f"correct edit or predicted_evidence in conf/hypothesis/{case.plan.hypothesis.name}.yaml",
    )


def count(arm: ArmProbe, counter: str) -> float:
    """What the probe of an arm has for `counter`. `kernel:NAME` sums the kernels whose name contains NAME;
    `static:KERNEL:FIELD` sums FIELD over the compiled variants of KERNEL for the arm's own device; any other counter is
    looked up as it stands."""
    kind, _, name = counter.partition(":")
    if kind == "static":
        kernel, _, field = name.rpartition(":")
        values = [row.get(field) for row in _compiled(arm) if row.get("kernel") == kernel]
        return float(sum(value for value in values if isinstance(value, int | float)))
    if kind == "kernel":
        return sum(
            value for key, value in arm.counters.items() if key.startswith("kernel:") and name in key[len("kernel:") :]
        )
    return arm.counters.get(counter, 0.0)


def _untold(arm: ArmProbe, counter: str) -> tuple[str, str] | None:
    """Why a static counter cannot be read for this arm's device, and what helps; None where it can be."""
    kind, _, name = counter.partition(":")
    kernel, _, field = name.rpartition(":")
    if kind != "static" or any(
        row.get("kernel") == kernel and isinstance(row.get(field), int | float) for row in _compiled(arm)
    ):
        return None
    target = arm.facts.get("static_target") or "its device"
    failed = [row for row in arm.static if row.get("kernel") == kernel and row.get("target") == target]
    reason = next((str(row["reason"]) for row in failed if row.get("reason")), f"nothing was compiled for {target}")
    remedy = next((str(row["remedy"]) for row in failed if row.get("remedy")), "campaign static, for all that was told")
    return f"{arm.arm}: {counter} cannot be read here: {reason}", remedy


def seen(change: ExpectedChange, control: ArmProbe, treatment: ArmProbe) -> bool:
    """Whether the counter changed as expected from control to treatment."""
    before, after = count(control, change.counter), count(treatment, change.counter)
    if change.change == "appears":
        return before == 0 < after
    if change.change == "vanishes":
        return after == 0 < before
    return after > before if change.change == "rises" else after < before


def changes(control: ArmProbe, treatment: ArmProbe, without: Collection[str] = ()) -> list[str]:
    """'op:aten::mm 12 -> 8' for each counter that differs between the arms, largest relative change first, what ran
    before what was compiled; `without` are counters already told (`kernel:NAME` covers the kernels that it sums)."""
    kernels = [counter.partition(":")[2] for counter in without if counter.startswith("kernel:")]
    found = []
    for counter in {*_counters(control), *_counters(treatment)} - set(without):
        if counter.startswith("kernel:") and any(name in counter for name in kernels):
            continue
        before, after = count(control, counter), count(treatment, counter)
        if before != after:
            size = -abs(math.log((after + 1) / (before + 1)))
            found.append((counter.startswith("static:"), size, counter, f"{counter} {before:g} -> {after:g}"))
    return [said for *_, said in sorted(found)]


def _counters(arm: ArmProbe) -> list[str]:
    """The arm's counters, and its compiled kernels' numbers as counters."""
    rows = [
        f"static:{row.get('kernel')}:{field}"
        for row in _compiled(arm)
        for field, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return [*arm.counters, *rows]


def _compiled(arm: ArmProbe) -> list[dict]:
    """The rows that a compiler could tell, for the device that the arm runs on."""
    target = arm.facts.get("static_target")
    return [row for row in arm.static if row.get("status") == "ok" and row.get("target") == target]
