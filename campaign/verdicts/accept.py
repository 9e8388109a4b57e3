"""Accept a speedup in two steps (DESIGN 5).

Screen: at a look, the one-sided lower bound above 1 and the estimate at least 1 + d. Then confirm: fresh rounds, whose
effect alone is published (the screening estimate suffers the winner's curse), with their lower bound at
`confirm_alpha` above 1; otherwise inconclusive, `unconfirmed`. In both steps the tail guard: a median that accepts
while total time shows no gain is inconclusive, `tail`.

A confirmed speedup above `suspect_ratio`, or above the hypothesis's `ceiling_ratio` where a profile gave one, is
`suspect`: edits that win so much on a whole step have mostly left something out. It needs a second confirmation on
fresh rounds, which is then what is published; both must hold, and the row stays marked.
"""

from __future__ import annotations

from campaign import units
from campaign.records import ACCEPT, INCONCLUSIVE, Effect, Need, Verdict
from campaign.verdicts._case import ACCEPTS, Case, Judged

ORDER = 130


def rule(case: Case) -> Verdict | Need | None:
    if not case.can_decide or case.standing(case.screen.effect) != ACCEPTS:
        return None
    if case.screen.effect.total_ratio <= 1:
        return _tail(case, case.screen)
    if not case.confirmed:
        return Need("confirm", case.confirm_rounds)
    failed = _unconfirmed(case, case.confirm)
    if failed:
        return failed
    suspect = suspicion(case, case.confirm.effect)
    if not suspect:
        return _accept(case, case.confirm)
    if not case.reconfirmed:
        return Need("reconfirm", case.confirm_rounds)
    return _unconfirmed(case, case.reconfirm, suspect) or _accept(case, case.reconfirm, suspect)


def suspicion(case: Case, found: Effect) -> str:
    """Why a speedup is too good to be taken on one confirmation, in words; empty when it is not."""
    if case.plan.rules < 2:
        return ""
    ceiling, limit = case.plan.hypothesis.ceiling_ratio, case.protocol.suspect_ratio
    if ceiling is not None and found.ratio > ceiling:
        return f"{units.ratio(found.ratio)} is above {units.ratio(ceiling)}, the most that its profile allows this edit"
    if found.ratio > limit:
        return f"{units.ratio(found.ratio)} is above {units.ratio(limit)} on the whole step"
    return ""


def _shown(case: Case, found: Effect) -> tuple[str, str]:
    shown = f"{units.ratio(found.ratio)} {units.interval(found.low, found.high)} over {found.rounds} fresh rounds"
    earlier = f"screened at {units.ratio(case.screen.effect.ratio)} over {case.screen.effect.rounds}"
    if found is not case.confirm.effect:
        earlier += f", confirmed at {units.ratio(case.confirm.effect.ratio)} over {case.confirm.effect.rounds}"
    return shown, earlier


def _unconfirmed(case: Case, stage: Judged, suspect: str = "") -> Verdict | None:
    found = stage.effect
    shown, earlier = _shown(case, found)
    if not found.decision_low > 1:
        return case.verdict(
            INCONCLUSIVE,
            "unconfirmed",
            f"{shown} ({earlier}): the lower bound {found.decision_low:.3f} at alpha"
            f" {case.protocol.confirm_alpha:g} is not above 1",
            f"a repeat is attempt {case.plan.attempt + 1}, with half the alpha: {case.plan.command}",
            published=stage,
            suspect=suspect,
        )
    return _tail(case, stage, suspect) if found.total_ratio <= 1 else None


def _accept(case: Case, stage: Judged, suspect: str = "") -> Verdict:
    found = stage.effect
    shown, earlier = _shown(case, found)
    return case.verdict(
        ACCEPT,
        "faster",
        f"{shown} ({earlier}): the lower bound {found.decision_low:.3f} is above 1, and the screening estimate was at"
        f" least 1 + d = {1 + case.d:.3f}" + (f"; suspect, and confirmed twice: {suspect}" if suspect else ""),
        f"see what is accepted so far: campaign stack --campaign {case.plan.campaign}"
        if not suspect
        else "read what the edit skips before believing it; to take it back:"
        f" campaign stack --campaign {case.plan.campaign} --revert {case.plan.hypothesis.name} --why TEXT",
        published=stage,
        suspect=suspect,
    )


def _tail(case: Case, stage: Judged, suspect: str = "") -> Verdict:
    found = stage.effect
    return case.verdict(
        INCONCLUSIVE,
        "tail",
        f"the median pair says {units.ratio(found.ratio)}, total time {units.ratio(found.total_ratio)}: the edit adds"
        f" stalls that a median hides (largest step {units.seconds(found.treatment_max_seconds)}, control"
        f" {units.seconds(found.control_max_seconds)})",
        "look for what the edit does now and then (allocation, compilation, collection); the block times are in raw/",
        published=stage,
        suspect=suspect,
    )
