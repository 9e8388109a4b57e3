"""A try asks whether code is slower, and nothing joins a stack by it (`Hypothesis.asks` is 'slower').

With d the smallest effect worth having and resolvable here, at each declared look until one is known:
- `slower`: the upper bound of the ratio is below 1 and the estimate below 1 / (1 + d);
- `not_slower`: the lower bound is above 1 / (1 + d), and total time does not say otherwise (`tail`);
- where another clock than wall decides and wall answers otherwise, or its interval lies apart: `clocks`;
- after the last look, neither: `cant_tell`.
The two cannot both hold. The levels are the plan's: `beta` is the chance that code which is not slower is called so,
`alpha` that code which is slower by d passes, each in all looks together.
"""

from __future__ import annotations

from campaign import units
from campaign.records import INCONCLUSIVE, REJECT, Effect, Verdict
from campaign.records.plan import SLOWER
from campaign.verdicts import clocks
from campaign.verdicts._case import Case

ORDER = 75
FIRST_RULES = 3  # a try of an earlier version asked wall time by an experiment's limits
IS_SLOWER, IS_NOT_SLOWER, CANT_TELL = "slower", "not_slower", "cant_tell"


def rule(case: Case) -> Verdict | None:
    if case.plan.hypothesis.asks != SLOWER:
        return None
    found, least = case.screen.effect, 1 / (1 + case.d)
    shown = f"{units.ratio(found.ratio)} {units.interval(found.low, found.high)} over {found.rounds} rounds"
    slower, not_slower = _answers(found, least)
    if not (slower or not_slower):
        return _cant_tell(case, shown, least) if case.is_last_look else None
    if contradicted := _contradicted(case, (slower, not_slower), least):
        return contradicted
    if slower:
        return case.verdict(
            REJECT,
            IS_SLOWER,
            f"slower: {shown}; the upper bound {found.decision_high:.3f} is below 1 and the estimate below"
            f" 1/(1 + d) = {least:.3f}",
            published=case.screen,
        )
    if found.total_ratio <= least:
        return case.verdict(
            INCONCLUSIVE,
            "tail",
            f"the median pair says {units.ratio(found.ratio)}, total time {units.ratio(found.total_ratio)}: stalls that"
            f" a median hides (largest step {units.seconds(found.treatment_max_seconds)}, before"
            f" {units.seconds(found.control_max_seconds)})",
            "look for what the change does now and then (allocation, compilation, collection)",
            published=case.screen,
        )
    return case.verdict(
        INCONCLUSIVE,
        IS_NOT_SLOWER,
        f"{'faster' if found.low > 1 else 'not slower'}: {shown}; the lower bound {found.decision_low:.3f} is above"
        f" 1/(1 + d) = {least:.3f}",
        published=case.screen,
    )


def _contradicted(case: Case, answers: tuple[bool, bool], least: float) -> Verdict | None:
    """By this question's own limits: those of an experiment, which `clocks.rule` asks, are others."""
    if case.plan.rules < FIRST_RULES:
        return clocks.rule(case)
    wall = case.screen.beside if case.protocol.clock != "wall" else None
    if wall is None:
        return None
    opposed = _answers(wall, least) == answers[::-1]  # one of the two holds
    return clocks.contradicted(case, case.screen) if opposed or clocks.apart(case.screen.effect, wall) else None


def _answers(found: Effect, least: float) -> tuple[bool, bool]:
    """(slower, not slower): one of them, or neither."""
    return found.decision_high < 1 and found.ratio < least, found.decision_low > least


def _cant_tell(case: Case, shown: str, least: float) -> Verdict:
    found = case.screen.effect
    more = ",".join(str(look) for look in (*case.protocol.looks[:-1], 2 * case.wanted))
    return case.verdict(
        INCONCLUSIVE,
        CANT_TELL,
        f"can't tell: {shown}; the bounds {found.decision_low:.3f} and {found.decision_high:.3f} leave"
        f" 1/(1 + d) = {least:.3f} and 1 open",
        f"a quieter machine (campaign doctor), or twice the rounds: {case.plan.command} 'protocol.looks=[{more}]'",
        published=case.screen,
    )
