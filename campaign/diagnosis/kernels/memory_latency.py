"""Memory latency, no spill: warps mostly wait for loads, nothing spills, and DRAM has room.

The leading stall is the long scoreboard, above 30 %; spills are known to be 0; DRAM is below its roof; and, where it
was counted, a scheduler issues in less than 0.6 of its cycles. Healthier than a spilling kernel: what it waits for is
its own data.
"""

from __future__ import annotations

from campaign.diagnosis.kernels.facts import (
    ISSUE_ACTIVE_LOW,
    LONG_SCOREBOARD,
    ROOF_PERCENT,
    STALL_HIGH_PERCENT,
    Facts,
    Found,
    numbers,
)

ORDER = 70


def rule(facts: Facts) -> Found | None:
    leading = facts.leading_stall
    if leading is None or leading[0] != LONG_SCOREBOARD or leading[1] <= STALL_HIGH_PERCENT:
        return None
    if facts.spills is not False or (facts.counters.dram_percent or 0) >= ROOF_PERCENT:
        return None
    if facts.issue_active is not None and facts.issue_active >= ISSUE_ACTIVE_LOW:
        return None
    return Found(
        "memory latency, no spill: healthier than a spilling kernel, lower priority",
        numbers(
            facts.said_registers(),
            facts.said_residency(),
            facts.said_spills(),
            *facts.said_use("memory", "dram", "l2"),
            facts.said_leading(),
            facts.said_issue(),
        ),
        (
            "more loads in flight: prefetch, asynchronous copies, a deeper pipeline, wider accesses",
            "keep what is read again closer: shared memory, an order of blocks that hits the L2",
        ),
        "splitting it or capping its registers against spills: there are none",
    )
