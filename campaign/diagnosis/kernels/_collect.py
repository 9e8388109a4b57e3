"""The `ncu` command that collects what is missing."""

from __future__ import annotations

import shlex

from campaign.diagnosis.names import symbol

# Section identifiers as `ncu --list-sections` prints them.
EVERYTHING = (
    "LaunchStats",
    "Occupancy",
    "SpeedOfLight",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis",
    "MemoryWorkloadAnalysis_Tables",
    "SchedulerStats",
    "WarpStateStats",
)


def command(name: str, sections: tuple[str, ...] = EVERYTHING) -> str:
    """One launch of the kernel, with the sections that hold the counters."""
    chosen = " ".join(f"--section {one}" for one in sections)
    return f"ncu {chosen} -k {shlex.quote(symbol(name))} -c 1 --csv --page raw PROGRAM > kernels.csv"
