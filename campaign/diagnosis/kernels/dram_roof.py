"""At the DRAM roof: DRAM is used above 80 % and no matrix pipe is what the kernel is about.

Waiting warps are the consequence then, however many registers the kernel has and whatever its occupancy.
"""

from __future__ import annotations

from campaign.diagnosis.kernels.facts import LONG_SCOREBOARD, ROOF_PERCENT, TENSOR_BUSY_PERCENT, Facts, Found, numbers

ORDER = 30


def rule(facts: Facts) -> Found | None:
    dram = facts.counters.dram_percent
    if dram is None or dram < ROOF_PERCENT or (facts.tensor or 0) >= TENSOR_BUSY_PERCENT:
        return None
    return Found(
        "at the DRAM roof: fuse, reuse or drop the pass; the kernel alone has no ceiling left",
        numbers(*facts.said_use("dram", "sm"), facts.said_residency(), facts.said_stall(LONG_SCOREBOARD)),
        (
            "fuse it with what writes its input or reads its output",
            "reuse its result (cache it over steps, share it between readers), or drop the pass",
            "narrow what it moves: a smaller format, fewer tensors",
        ),
        "tuning its occupancy, registers or block size: the memory is full",
    )
