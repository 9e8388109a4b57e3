"""Register pressure with spills: only where the whole chain is there.

1. Residency: many registers a thread (128 or more), or registers are what limits how many warps fit.
2. Spills: requests counted by a counter of spilling. Local traffic as a whole is none: it also holds arrays.
3. Issue collapse: a scheduler issues in less than 0.6 of its cycles.
4. Exposed latency: more than 30 % of the time between instructions is waiting for a long scoreboard.

Registers alone decide nothing: two kernels with 168 each differ only in their spills, and one of them is healthy.
"""

from __future__ import annotations

from campaign.diagnosis.kernels.facts import (
    ISSUE_ACTIVE_LOW,
    LONG_SCOREBOARD,
    REGISTERS_HIGH,
    STALL_HIGH_PERCENT,
    Facts,
    Found,
    numbers,
)

ORDER = 20


def rule(facts: Facts) -> Found | None:
    registers = facts.counters.registers_per_thread or 0
    if registers < REGISTERS_HIGH and not facts.registers_limit:
        return None
    if not facts.counters.spill_requests:
        return None
    if facts.issue_active is None or facts.issue_active >= ISSUE_ACTIVE_LOW:
        return None
    if (facts.stall(LONG_SCOREBOARD) or 0) <= STALL_HIGH_PERCENT:
        return None
    return Found(
        "register pressure with spills: the chain is complete (residency, spills, exposed latency, issue collapse)",
        numbers(
            facts.said_registers(),
            facts.said_residency(),
            facts.said_spills(),
            facts.said_issue(),
            facts.said_stall(LONG_SCOREBOARD),
        ),
        (
            "reduce live state: narrower or recomputed values, a smaller tile, more warps a block",
            "split a favourable phase into a kernel of its own, so that each part's state fits",
        ),
        "a lower register cap: it puts more of the live state into local memory",
    )
