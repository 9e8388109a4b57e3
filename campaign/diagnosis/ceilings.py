"""The most that an edit can give: Amdahl's law on the captured range (case B).

    ceiling of removing S = range / (range - time in which only S ran)

(G. Amdahl, Validity of the single processor approach to achieving large scale computing capabilities, AFIPS 1967.) The
time in which only S ran is exact however streams overlap: where something else ran too, removing S saves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

from campaign import units
from campaign.diagnosis.busy import Busy
from campaign.diagnosis.families import groups
from campaign.diagnosis.found import Ceiling, Ceilings, TargetSet

SEARCHED = 12  # the largest families; smaller ones cannot make a target cheaper
SETS_SHOWN = 5


def ratio(range_ns: float, saved_ns: float) -> float | None:
    """range / (range - saved); None where nothing of the range would be left."""
    return range_ns / (range_ns - saved_ns) if range_ns > saved_ns else None


def find_ceilings(busy: Busy, titles: dict[str, str], target: float | None = None) -> Ceilings | None:
    """Every family's ceilings, and the smallest sets that reach the target. None for a range without time."""
    whole = busy.range_ns
    if not whole:
        return None
    each = [_ceiling(busy, family, titles.get(family, family), {family}) for family in busy.families]
    each.sort(key=lambda one: -one.share_of_range)
    together = [
        _ceiling(busy, name, title, present)
        for name, (title, families) in groups().items()
        if len(present := set(families) & set(busy.families)) > 1
    ]
    removing = _sets(busy, target, 1.0) if target else ()
    halving = _sets(busy, target, 0.5) if target else ()
    all_halved = whole / (whole - busy.busy_ns / 2)
    found = Ceilings(
        each=tuple(each),
        idle_removed=ratio(whole, busy.idle_ns),
        target=target,
        removing=removing,
        halving=halving,
        all_halved=all_halved,
        sentence="",
        groups=tuple(together),
    )
    return replace(found, sentence=_sentence(found, titles))


def _ceiling(busy: Busy, key: str, title: str, families: set[str]) -> Ceiling:
    whole, alone = busy.range_ns, busy.removed_ns(families)
    return Ceiling(key, alone / whole, ratio(whole, alone), whole / (whole - alone / 2), title)


def _sets(busy: Busy, target: float, part: float) -> tuple[TargetSet, ...]:
    """The sets of fewest families that reach the target when `part` of their time is saved, the least time first."""
    whole = busy.range_ns
    ordered = sorted(busy.families, key=lambda one: -busy.removed_ns({one}))[:SEARCHED]
    for size in range(1, len(ordered) + 1):
        reaching = []
        for families in combinations(ordered, size):
            saved = part * busy.removed_ns(set(families))
            reached = ratio(whole, saved)
            if reached is None or reached >= target:
                reaching.append((saved, TargetSet(families, reached)))
        if reaching:
            return tuple(one for _, one in sorted(reaching, key=lambda one: one[0])[:SETS_SHOWN])
    return ()


def _sentence(found: Ceilings, titles: dict[str, str]) -> str:
    if not found.each:
        return "no family ran"
    first = found.each[0]
    largest = f"{titles.get(first.family, first.family)}, removed whole, gives {units.bound(first.removed)}"
    if found.target is None:
        return f"the largest ceiling of one family: {largest}"
    wanted = f"{units.ratio(found.target)} needs {units.share(1 - 1 / found.target)} of the range gone"
    halves = f"halving every family gives {units.ratio(found.all_halved)}"
    if not found.removing:
        return f"{wanted}: no set of families gives that; {halves}. It takes other hardware, or less work"
    size = len(found.removing[0].families)
    if size == 1:
        names = _named((one.families[0] for one in found.removing), titles)
        one_way = f"one family, removed whole, could give it: {names}"
    else:
        one_way = (
            f"no single family reaches it ({largest}); removed whole, it takes {size} families, such as "
            f"{_named(found.removing[0].families, titles, ' + ')}"
        )
    if found.halving:
        return f"{wanted}: {one_way}; by halving, {_named(found.halving[0].families, titles, ' + ')}"
    return f"{wanted}: {one_way}, or other hardware; {halves}, so halving alone never does"


def _named(families: Iterable[str], titles: dict[str, str], between: str = ", ") -> str:
    return between.join(titles.get(one, one) for one in families)
