"""Accept a speedup in two steps (DESIGN 5).

Screen: at a look, the one-sided lower bound above 1 and the estimate at least 1 + d. Then confirm: fresh rounds, whose
effect alone is published (the screening estimate suffers the winner's curse), with their lower bound at
`confirm_alpha` above 1; otherwise inconclusive, `unconfirmed`. In both steps the tail guard: a median that accepts
while total time shows no gain is inconclusive, `tail`.
"""

from __future__ import annotations

from campaign import units
from campaign.records import ACCEPT, INCONCLUSIVE, Need, Verdict
from campaign.verdicts._case import ACCEPTS, Case, Judged

ORDER = 130


def rule(case: Case) -> Verdict | Need | None:
    if not case.can_decide or case.standing(case.screen.effect) != ACCEPTS:
        return None
    if case.screen.effect.total_ratio <= 1:
        return _tail(case, case.screen)
    if not case.confirmed:
        return Need("confirm", case.confirm_rounds)
    found = case.confirm.effect
    shown = f"{units.ratio(found.ratio)} {units.interval(found.low, found.high)} over {found.rounds} fresh rounds"
    screened = f"screened at {units.ratio(case.screen.effect.ratio)} over {case.screen.effect.rounds}"
    if not found.decision_low > 1:
        return case.verdict(
            INCONCLUSIVE,
            "unconfirmed",
            f"{shown} ({screened}): the lower bound {found.decision_low:.3f} at alpha"
            f" {case.protocol.confirm_alpha:g} is not above 1",
            f"a repeat is attempt {case.plan.attempt + 1}, with half the alpha: {case.plan.command}",
            published=case.confirm,
        )
    if found.total_ratio <= 1:
        return _tail(case, case.confirm)
    return case.verdict(
        ACCEPT,
        "faster",
        f"{shown} ({screened}): the lower bound {found.decision_low:.3f} is above 1, and the screening estimate was at"
        f" least 1 + d = {1 + case.d:.3f}",
        f"see what is accepted so far: campaign stack --campaign {case.plan.campaign}",
        published=case.confirm,
    )


def _tail(case: Case, stage: Judged) -> Verdict:
    found = stage.effect
    return case.verdict(
        INCONCLUSIVE,
        "tail",
        f"the median pair says {units.ratio(found.ratio)}, total time {units.ratio(found.total_ratio)}: the edit adds"
        f" stalls that a median hides (largest step {units.seconds(found.treatment_max_seconds)}, control"
        f" {units.seconds(found.control_max_seconds)})",
        "look for what the edit does now and then (allocation, compilation, collection); the block times are in raw/",
        published=stage,
    )
