"""Tail effect: the last wave of blocks is so empty that a fifth of the kernel's time is idle multiprocessors.

waves / whole waves is at most 0.8, over more than one wave (a persistent kernel stays within one by design). Said only
where throughput was measured and no other rule spoke: a grid alone explains nothing.
"""

from __future__ import annotations

from campaign.diagnosis.kernels.facts import TAIL_GAIN, Facts, Found, numbers

ORDER = 80


def rule(facts: Facts) -> Found | None:
    efficiency = facts.wave_efficiency
    if efficiency is None or 1 - efficiency < TAIL_GAIN:
        return None
    if facts.counters.sm_percent is None and facts.tensor is None:
        return None
    waves = facts.counters.waves
    return Found(
        f"tail effect: a full last wave would give at most {1 / efficiency:.2f}x",
        numbers(
            f"{waves:g} waves" if waves is not None else "",
            f"wave efficiency {100 * efficiency:.0f} %",
            f"{facts.counters.grid_blocks:,} blocks" if facts.counters.grid_blocks else "",
            *facts.said_use("sm", "tensor", "dram"),
        ),
        (
            "a tile or block size whose grid fills whole waves, a persistent schedule, or split-K",
            "run it beside another kernel that can use the idle multiprocessors",
        ),
        "micro-optimising the block: the time is lost between blocks",
    )
