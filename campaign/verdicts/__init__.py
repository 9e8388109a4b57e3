"""Verdicts: a pure function from recorded evidence to a verdict, or to what must still be measured.

A rule is a module here with `ORDER` (its place; lower goes first) and `rule(case) -> Verdict | Need | None`. Its
docstring is the rule. Adding one is adding a file. `campaign.records.Verdict.reason` is the rule's reason code.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from functools import cache
from types import ModuleType

from campaign import discovery, effects
from campaign.records import Evidence, Floor, Need, Verdict
from campaign.records.plan import SLOWER
from campaign.verdicts._case import Case, Sorted
from campaign.verdicts._stale import STALE, stale

__all__ = ["STALE", "floor", "judge", "rules", "stale"]

DECIDING = ("control", "treatment")
LAST_BEFORE_LOOKING = 70  # the `rounds` rule; the rules up to it say whether there is anything to look at
LAST_OF_A_TRY = 75  # the `tried` rule


@cache
def rules() -> tuple[ModuleType, ...]:
    """The rule modules in the order in which they are asked."""
    return tuple(sorted(discovery.modules(sys.modules[__name__]), key=lambda module: module.ORDER))


def judge(evidence: Evidence) -> Verdict | Need:
    """What the evidence says. Ask again after every round: a Need is met, or a rule may end the looks at once.

    The looks are replayed from the first, each on its own first rounds, and at each the rules are asked in order; the
    first that answers ends it. The same evidence gives the same verdict, whenever and however often it is asked, and
    rounds beyond a look that decided cannot change what it decided. A look with too many invalid rounds before it is
    passed over, which spends no alpha (see `disturbed`). A null and a protocol that is not decisive are looked at once,
    at the end.
    """
    whole = {one.id: one for one in evidence.rounds}
    # Root and solo say what the edit is worth elsewhere; whether it is accepted is between control and treatment.
    deciding = tuple(one.only(DECIDING) for one in evidence.rounds)
    evidence = replace(evidence, rounds=deciding)
    rounds = Sorted.of(evidence)
    for look in Case.looks(evidence.plan):
        case = Case(evidence, look, rounds, whole)
        for module in rules():
            if module.ORDER > last_order(case):
                break
            found: Verdict | Need | None = module.rule(case)
            if found is not None:
                return found
    raise ValueError(f"plan {evidence.plan.id}: no rule decided after the last look; is a rule missing?")


def last_order(case: Case) -> float:
    """The last rule that is asked at this look: a try has one of its own, and none after it."""
    if case.postponed:
        return LAST_BEFORE_LOOKING
    return LAST_OF_A_TRY if case.plan.hypothesis.asks == SLOWER else math.inf


def floor(evidence: Evidence) -> Floor:
    """What the machine resolves, from the valid A/A rounds of a null hypothesis' evidence.

    Raises ValueError for fewer than two valid rounds.
    """
    return effects.floor(Sorted.of(evidence).valid(), evidence.plan.protocol)
