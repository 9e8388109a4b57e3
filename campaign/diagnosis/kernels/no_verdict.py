"""No verdict: a counter that a rule needs is not there, or all are and none of the rules fits. Always the last."""

from __future__ import annotations

from campaign.diagnosis.kernels._collect import command
from campaign.diagnosis.kernels.facts import Facts, Found, numbers

ORDER = 1000
NAMED = 3  # missing counters that the verdict itself names
_WORDS = {
    "registers": "LaunchStats",
    "theoretical occupancy": "Occupancy",
    "compute throughput": "SpeedOfLight",
    "DRAM throughput": "SpeedOfLight",
    "pipe utilization": "ComputeWorkloadAnalysis",
    "spill requests": "MemoryWorkloadAnalysis",
    "eligible warps": "SchedulerStats",
    "stall reasons": "WarpStateStats",
}


def rule(facts: Facts) -> Found | None:
    missing = _missing(facts)
    known = numbers(
        facts.said_registers(),
        facts.said_residency(),
        facts.said_spills(),
        *facts.said_use("tensor", "sm", "memory", "dram"),
        facts.said_issue(),
        facts.said_leading(),
    )
    if not missing:
        return Found(
            "no verdict: every counter is there and none of the rules fits",
            known,
            ("read the kernel's source page (ncu --set full --import-source on) at its leading stall",),
            "choosing an edit by one of these counters alone",
        )
    sections = tuple(dict.fromkeys(_WORDS[name] for name in missing))
    if "spill requests" in missing:  # older versions have the local traffic in the tables only
        sections += ("MemoryWorkloadAnalysis_Tables",)
    local = (facts.counters.local_requests or 0) > 0 and facts.counters.spill_requests is None
    lacking = ", ".join(missing) if len(missing) <= NAMED else f"{len(missing)} kinds of counters"
    return Found(
        f"no verdict: {lacking} not collected"
        + ("; local traffic may be spills or arrays that were never in registers" if local else ""),
        known,
        (f"collect them: {command(facts.counters.name, sections)}",),
        "deciding by registers or occupancy alone",
        missing,
    )


def _missing(facts: Facts) -> tuple[str, ...]:
    one = facts.counters
    there = {
        "registers": one.registers_per_thread is not None,
        "theoretical occupancy": facts.occupancy_percent is not None,
        "compute throughput": one.sm_percent is not None,
        "DRAM throughput": one.dram_percent is not None,
        "pipe utilization": bool(one.pipes_percent),
        "spill requests": facts.spills is not None,
        "eligible warps": facts.issue_active is not None or one.eligible_warps is not None,
        "stall reasons": bool(one.stalls_percent),
    }
    return tuple(name for name, known in there.items() if not known)
