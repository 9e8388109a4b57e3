"""Reject when the one-sided upper bound is below 1 + d: `too_small`, or `slowdown` where it is below 1 (DESIGN 5).

With memory saved, a speed that may still prove not inferior waits for the next look (see `memory_saved`).
"""

from __future__ import annotations

from campaign import units
from campaign.records import REJECT, Verdict
from campaign.verdicts._case import REJECTS, SLOWER, Case

ORDER = 150


def rule(case: Case) -> Verdict | None:
    found, standing = case.screen.effect, case.standing(case.screen.effect)
    if standing not in (REJECTS, SLOWER) or _may_save_memory(case):
        return None
    shown = f"{units.ratio(found.ratio)} {units.interval(found.low, found.high)} over {found.rounds} rounds"
    level = f"the upper bound {found.decision_high:.3f} at beta {case.screen.beta:.3g}"
    saved = case.screen.memory is not None and case.screen.memory.saved
    beside = "; memory was saved, but equal speed is not shown" if saved else ""
    if standing == SLOWER:
        sentence = f"a slowdown: {shown}; {level} is below 1{beside}"
        return case.verdict(REJECT, "slowdown", sentence, published=case.screen)
    return case.verdict(
        REJECT,
        "too_small",
        f"{shown}; {level} is below 1 + d = {1 + case.d:.3f}{beside}",
        "if a smaller gain is worth its code, declare it beforehand: protocol.min_effect"
        if case.d <= case.protocol.min_effect
        else "d is what this machine resolves: quieten it and measure it again: python -m campaign hypothesis=aa_null",
        published=case.screen,
    )


def _may_save_memory(case: Case) -> bool:
    change, least = case.screen.memory, 1 / (1 + case.protocol.memory_noninferiority)
    hopeful = case.screen.effect.decision_high >= least
    return change is not None and change.saved and hopeful and not case.is_last_look
