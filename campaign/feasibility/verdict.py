"""One verdict over budget, rates, peaks and ceilings.

- `reachable now`: the judged rate is at least what is required.
- `reachable if these ideas win`: the open ideas of the diagnosis count for the gap together, each for what it predicts
  but no more than its ceiling, all for no more than removing what they act on would give. Or the gap is within what
  better kernels could give at best, which is declared as every family halved and every idle instant gone (2x where no
  diagnosis is recorded): then what is still missing is named.
- `not on this device`: more than that, or more model FLOPs than the device's peak.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from campaign import units
from campaign.feasibility import budget, recorded
from campaign.feasibility.found import (
    IF_IDEAS_WIN,
    NOT_HERE,
    NOW,
    OTHER,
    PERIODIC,
    Ceilings,
    Feasibility,
    Goal,
    OpenIdea,
    Pace,
    Rate,
    Roof,
)
from campaign.feasibility.utilisation import flops_per_token, utilisation

HALVED = 2.0  # what better kernels give at best: the same work, each kernel in half its time
NOT_REACHABLE = (
    "not reachable by kernel work on this device: more or faster devices, a smaller budget, or a precision/algorithm "
    "redesign"
)
RECORD = "campaign diagnose TRACE --record"


def judge(
    goal: Goal,
    rates: Sequence[Rate],
    roofs: Sequence[Roof] = (),
    diagnosis: Mapping[str, Any] | None = None,
    decisions: Sequence[Mapping[str, Any]] = (),
    stack: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[str] = (),
) -> Feasibility:
    """The whole answer. The last of `rates` is judged. `diagnosis` is a recorded one as the ledger's rows have it."""
    required = budget.required_tokens_per_second(goal)
    flops = flops_per_token(goal.parameters, goal.attention) if goal.parameters else None
    paces = tuple(_pace(goal, one, roofs, flops, required) for one in rates)
    judged = paces[-1]
    found = recorded.ceilings(diagnosis, decisions, stack, judged.gap) if diagnosis is not None else None
    notes = [*notes, *_stale(found, stack)]
    verdict, sentence, why, ideas = _verdict(judged, required, found)
    return Feasibility(
        goal=goal,
        flops_per_token=flops,
        required_tokens_per_second=required,
        paces=paces,
        ceilings=found,
        verdict=verdict,
        sentence=sentence,
        why=why,
        ideas=ideas,
        ideas_product=math.prod(one.counted for one in ideas) if ideas else None,
        ideas_allowed=recorded.allowed(ideas, found.charged) if ideas and found else None,
        would_do=budget.would_do(goal, judged.rate.tokens_per_second),
        excluded=_excluded(goal),
        notes=tuple(notes),
    )


def _pace(goal: Goal, rate: Rate, roofs: Sequence[Roof], flops: float | None, required: float) -> Pace:
    total = budget.on_all_devices(rate.tokens_per_second, goal.devices, goal.scaling_efficiency)
    used = [utilisation(one, flops, total, required, goal.devices) for one in roofs] if flops else []
    return Pace(rate, total, required / total, budget.lower_bound_days(goal, total), tuple(used))


def _verdict(pace: Pace, required: float, found: Ceilings | None) -> tuple[str, str, str, tuple[OpenIdea, ...]]:
    """Verdict, sentence, why, and the ideas that it names."""
    gap = pace.gap
    if gap <= 1:
        said = f"{units.rate(pace.all_devices_tokens_per_second)} is at least the {units.rate(required)} required"
        return NOW, f"reachable now: {said}", "", ()
    over = [one for one in pace.utilisations if one.required > 1 and one.roof.kind != "measured"]
    if over:
        roof = over[0]
        why = f"it would take {units.share(roof.required)} of the {roof.roof.precision} peak of {roof.roof.name}"
        return NOT_HERE, NOT_REACHABLE, why, ()
    if found is None:
        if gap > HALVED:
            why = (
                f"{_x(gap)} is more than the {_x(HALVED)} of every kernel in half its time. No recorded diagnosis is "
                f"at hand ({RECORD}), so no idea is known that claims more"
            )
            return NOT_HERE, NOT_REACHABLE, why, ()
        said = f"reachable if ideas win {_x(gap)} together; no recorded diagnosis is at hand to name them"
        return IF_IDEAS_WIN, said, f"within the {_x(HALVED)} of every kernel in half its time; next: {RECORD}", ()
    return _by_ceilings(gap, found)


def _by_ceilings(gap: float, found: Ceilings) -> tuple[str, str, str, tuple[OpenIdea, ...]]:
    winning = _fewest(gap, found)
    if winning:
        said = f"reachable if these ideas win: {_named(winning)}: {_x(_product(winning))} together, {_x(gap)} is needed"
        most = recorded.allowed(winning, found.charged)
        bound = f"Removing all that they act on gives {_x(most)} at most. " if most is not None else ""
        return IF_IDEAS_WIN, said, f"{bound}{_families(gap, found)}. {_claims(found)}", winning
    best = found.best_kernels or HALVED
    if gap > best:
        why = (
            f"{_families(gap, found)}. {_claims(found)}. Every family halved and no idle time give {_x(best)} at most, "
            f"and {_x(gap)} is needed"
        )
        return NOT_HERE, NOT_REACHABLE, why, ()
    if found.ideas:
        said = (
            f"reachable if these ideas win more than they predict: {_named(found.ideas)}: {_x(found.claimed)} "
            f"together, {_x(gap)} is needed"
        )
    else:
        said = f"reachable if ideas win {_x(gap)} together, and none is open: the ceilings of the families leave room"
    why = f"{_families(gap, found)}. {_claims(found)}. Every family halved and no idle time give {_x(best)} at most"
    return IF_IDEAS_WIN, said, why, found.ideas


def _fewest(gap: float, found: Ceilings) -> tuple[OpenIdea, ...]:
    """The fewest open ideas, the greatest first, that count for the gap together; empty where all of them do not."""
    for count in range(1, len(found.ideas) + 1):
        first = found.ideas[:count]
        most = recorded.allowed(first, found.charged)
        if _product(first) >= gap and (most is None or most >= gap):
            return first
    return ()


def _product(ideas: Sequence[OpenIdea]) -> float:
    return math.prod(one.counted for one in ideas)


def _families(gap: float, found: Ceilings) -> str:
    """'No single family reaches 2.35x: GEMM bf16, removed whole, gives at most 1.330x; it takes 3 families gone'."""
    if not found.families:
        return "The diagnosis has no families"
    first = found.families[0]
    one = f"{first.title}, removed whole, gives at most {units.ratio(first.removed)}"
    if first.removed >= gap:
        return f"One family could reach {_x(gap)}: {one}"
    if found.families_needed is None:
        return f"No set of families reaches {_x(gap)}, removed whole ({one})"
    return f"No single family reaches {_x(gap)}: {one}; it takes {found.families_needed} families gone"


def _claims(found: Ceilings) -> str:
    if not found.ideas:
        return "No idea of the diagnosis is open"
    bound = f"{_x(found.allowed)} at most" if found.allowed is not None else "more than can be bounded"
    return (
        f"All {units.counted(len(found.ideas), 'open idea')} claim {_x(found.claimed)} together, and removing all that "
        f"they act on gives {bound}"
    )


def _named(ideas: Sequence[OpenIdea]) -> str:
    return ", ".join(f"{one.hypothesis} {_x(one.counted)}" for one in ideas)


def _x(ratio: float) -> str:
    return f"{ratio:.2f}x"


def _stale(found: Ceilings | None, stack: Sequence[Mapping[str, Any]]) -> list[str]:
    names = tuple(one["hypothesis"] for one in stack)
    if found is None or found.stack == names:
        return []
    return [
        f"the diagnosis is of the stack {', '.join(found.stack) or 'of no edit'}, which has moved: profile head again"
    ]


def _excluded(goal: Goal) -> tuple[str, ...]:
    """The periodic costs for which nothing was added."""
    given = {one.item for one in goal.overheads}
    return () if OTHER in given else tuple(one for one in PERIODIC if one not in given)
