"""Tile selection or precision policy: a matrix kernel that uses its pipe in part, without spills and below the DRAM
roof, and whose warps do not mostly wait for loads.

The published case: tensor pipe 61 %, DRAM 51 %, occupancy 16.7 %, no spill, warps waiting for the math pipe. Another
tile, or another precision, comes before a rewrite.
"""

from __future__ import annotations

from campaign.diagnosis.kernels.facts import (
    LONG_SCOREBOARD,
    ROOF_PERCENT,
    TENSOR_BUSY_PERCENT,
    TENSOR_USED_PERCENT,
    Facts,
    Found,
    numbers,
)

ORDER = 90


def rule(facts: Facts) -> Found | None:
    tensor, leading = facts.tensor, facts.leading_stall
    if tensor is None or not TENSOR_USED_PERCENT <= tensor < TENSOR_BUSY_PERCENT:
        return None
    if facts.spills is not False or (facts.counters.dram_percent or 0) >= ROOF_PERCENT:
        return None
    if leading is None or leading[0] == LONG_SCOREBOARD:
        return None
    return Found(
        "less efficient, no spill: tile selection or precision policy before a rewrite",
        numbers(
            *facts.said_use("tensor", "dram", "l2", "sm"),
            facts.said_residency(),
            facts.said_spills(),
            facts.said_leading(),
        ),
        (
            "other tiles and schedules of the library (its heuristics or an autotuner), for this very shape",
            "a narrower operand format where the numerics allow it",
        ),
        "a rewrite, before the library's own choices are tried",
    )
