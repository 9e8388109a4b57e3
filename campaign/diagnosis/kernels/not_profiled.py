"""A launch that failed, or whose counters are all missing: nothing is said of it, and nothing is 0."""

from __future__ import annotations

from campaign.diagnosis.kernels._collect import command
from campaign.diagnosis.kernels.facts import Facts, Found

ORDER = 10


def rule(facts: Facts) -> Found | None:
    if facts.counters.profiled:
        return None
    return Found(
        "not profiled: the launch failed under the profiler, or none of its counters could be collected",
        (f"{len(facts.counters.failed)} counters could not be collected",) if facts.counters.failed else (),
        (f"profile it again: {command(facts.counters.name)}",),
        "reading its zeros as measurements",
        facts.counters.failed,
    )
