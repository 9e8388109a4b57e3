"""Too many memory instructions: the queue in front of the load/store units is full, not the memory behind it.

The leading stall is a throttled instruction queue (lg, mio, tex) above 30 %, or the load/store pipe or L1 is used above
80 %, while DRAM is not and no matrix pipe is busy.
"""

from __future__ import annotations

from campaign.diagnosis.kernels.facts import (
    QUEUES,
    ROOF_PERCENT,
    STALL_HIGH_PERCENT,
    TENSOR_BUSY_PERCENT,
    Facts,
    Found,
    numbers,
)

ORDER = 50


def rule(facts: Facts) -> Found | None:
    if (facts.tensor or 0) >= TENSOR_BUSY_PERCENT:
        return None
    leading = facts.leading_stall
    queued = leading is not None and leading[0] in QUEUES and leading[1] > STALL_HIGH_PERCENT
    lsu = facts.counters.pipes_percent.get("lsu")
    used = max(lsu or 0, facts.counters.l1_percent or 0)
    if not queued and used < ROOF_PERCENT:
        return None
    return Found(
        "too many memory instructions: the load/store queue is full, not the memory",
        numbers(
            facts.said_leading() if queued else "",
            f"load/store pipe {lsu:.1f} %" if lsu is not None else "",
            *facts.said_use("l1", "dram", "sm"),
            facts.said_residency(),
        ),
        (
            "fewer and wider accesses: vector loads, more reuse in registers or shared memory",
            "a larger tile a thread, so that each loaded value is used more often",
        ),
        "more warps: they wait in the same queue",
    )
