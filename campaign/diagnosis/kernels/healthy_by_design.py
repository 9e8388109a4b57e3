"""Healthy, with low occupancy by design: the pipe that the kernel is about is busy.

The matrix pipe at 70 % or more of its cycles, or compute throughput at 80 % or more. Warp-specialised matrix kernels
run one block on a multiprocessor, and most of their warps sleep: neither is a fault.
"""

from __future__ import annotations

from campaign.diagnosis.kernels.facts import (
    OCCUPANCY_LOW_PERCENT,
    ROOF_PERCENT,
    TENSOR_BUSY_PERCENT,
    Facts,
    Found,
    numbers,
)

ORDER = 60


def rule(facts: Facts) -> Found | None:
    tensor, sm = facts.tensor, facts.counters.sm_percent
    if tensor is not None and tensor >= TENSOR_BUSY_PERCENT:
        what = "the target pipe is busy"
    elif sm is not None and sm >= ROOF_PERCENT:
        what = "the compute units are busy"
    else:
        return None
    percent, blocks = facts.occupancy_percent, facts.blocks_resident
    low = (percent is not None and percent <= OCCUPANCY_LOW_PERCENT) or blocks == 1
    return Found(
        f"healthy: {what}" + (", low occupancy is by design" if low else ""),
        numbers(
            *facts.said_use("tensor", "sm", "memory", "l2", "dram"),
            f"{blocks} block{'s' if blocks != 1 else ''} on a multiprocessor" if blocks else "",
            facts.said_residency(),
            facts.said_leading(),
        ),
        ("leave it; less work (a narrower format, a smaller product) is what is left to win",),
        "raising its occupancy" if low else "rewriting it",
    )
