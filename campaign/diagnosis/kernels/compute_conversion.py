"""Compute-heavy conversion: a kernel that only converts or lays out data, with busy compute units and DRAM that is not.

By NVIDIA's thresholds: compute at 60 % or more, DRAM below. Faster memory or fewer copies do not help it.
"""

from __future__ import annotations

from campaign.diagnosis.kernels.facts import CONVERTING, LATENCY_BOUND_PERCENT, Facts, Found, numbers

ORDER = 40


def rule(facts: Facts) -> Found | None:
    sm, dram = facts.counters.sm_percent, facts.counters.dram_percent
    if facts.family not in CONVERTING or sm is None or dram is None:
        return None
    if sm < LATENCY_BOUND_PERCENT or dram >= LATENCY_BOUND_PERCENT:
        return None
    return Found(
        "compute-heavy format conversion: not copy traffic",
        numbers(*facts.said_use("sm", "dram"), facts.said_registers(), facts.said_residency(), facts.said_leading()),
        (
            "convert once and share the result: cache converted weights, quantize an activation for all its readers",
            "cheaper arithmetic in the conversion: hardware conversion instructions, scales by exponent, wider vectors",
            "fuse the conversion into the kernel that produces its input",
        ),
        "removing copies on its account: it does not wait for memory",
    )
