"""Equal speed with memory saved is an accept for memory, named so (DESIGN 5, measurement 5.6).

Where speed does not accept: memory is saved by at least its threshold and speed is not inferior, that is, its
one-sided lower bound at the look's alpha is above 1 / (1 + memory_noninferiority). Fresh rounds must then say both
again, speed at `confirm_alpha`; otherwise inconclusive, `unconfirmed`.
"""

from __future__ import annotations

from campaign import units
from campaign.records import ACCEPT, INCONCLUSIVE, Need, Verdict
from campaign.verdicts._case import Case

ORDER = 140


def rule(case: Case) -> Verdict | Need | None:
    if not case.can_decide:
        return None
    screened = case.screen.memory
    if screened is None or not screened.saved or not case.not_inferior(case.screen.effect):
        return None
    if not case.confirmed:
        return Need("confirm", case.confirm_rounds)
    change, found = case.confirm.memory, case.confirm.effect
    least = 1 / (1 + case.protocol.memory_noninferiority)
    if change is None or not change.saved or not case.not_inferior(found):
        memory = units.percent(change.ratio - 1) if change else "not measured"
        return case.verdict(
            INCONCLUSIVE,
            "unconfirmed",
            f"over {found.rounds} fresh rounds memory changed by {memory} and speed's lower bound is"
            f" {found.decision_low:.3f}; memory must be saved and the bound above {least:.3f}",
            f"a repeat is attempt {case.plan.attempt + 1}, with half the alpha: {case.plan.command}",
            published=case.confirm,
        )
    return case.verdict(
        ACCEPT,
        "memory",
        f"peak memory went from {units.size(change.control_bytes)} to {units.size(change.treatment_bytes)}"
        f" ({units.percent(change.ratio - 1)}) at {units.ratio(found.ratio)}"
        f" {units.interval(found.low, found.high)}: speed's lower bound {found.decision_low:.3f} is above {least:.3f}",
        f"see what is accepted so far: campaign stack --campaign {case.plan.campaign}",
        published=case.confirm,
    )
