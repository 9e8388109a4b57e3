"""A protocol that is not decisive can only say *promising* or *not*, never accept or reject (DESIGN 5).

Promising, after the last look: the estimate is at least 1 + d and total time agrees, or memory is saved and the
estimate is above 1 / (1 + memory_noninferiority); and no memory guardrail is broken.
"""

from __future__ import annotations

from campaign import units
from campaign.records import INCONCLUSIVE, Verdict
from campaign.verdicts import memory_capacity, memory_growth
from campaign.verdicts._case import Case
from campaign.verdicts.accept import suspicion

ORDER = 90


def rule(case: Case) -> Verdict | None:
    if case.protocol.decisive:
        return None
    published, change = case.screen, case.screen.memory
    found = published.effect
    fast = found.ratio >= 1 + case.d and found.total_ratio > 1
    light = change is not None and change.saved and found.ratio * (1 + case.protocol.memory_noninferiority) > 1
    guard = memory_capacity.exceeded(case) or memory_growth.grown(case)
    promising = (fast or light) and not guard
    sentence = (
        f"{units.ratio(found.ratio)} {units.interval(found.low, found.high)} over {found.rounds} rounds"
        f" against 1 + d = {1 + case.d:.3f}; a {case.protocol.name} look cannot decide"
    )
    if light and not fast:
        sentence += f"; memory {units.percent(change.ratio - 1)}" if change else ""
    decisive = case.plan.command.replace(f" protocol={case.protocol.name}", "")
    return case.verdict(
        INCONCLUSIVE,
        "promising" if promising else "not_promising",
        f"{sentence}; {guard}" if guard else sentence,
        f"decide it: {decisive}" if promising else "",
        published=published,
        suspect=suspicion(case, found) if promising else "",
    )
