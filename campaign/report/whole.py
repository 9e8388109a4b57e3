"""The stack as a whole: root against head as it was measured, and the parts beside it, which are arithmetic.

Works on plain JSON values, rows of `listing` and findings of the ledger, because `campaign stack` must answer at once.
"""

from __future__ import annotations

import math
from collections import namedtuple

from campaign import units
from campaign.interactions.departure import Interval, product_of
from campaign.interactions.words import EXPLAINED, UNRESOLVED, headline_of, stack_word
from campaign.report.listing import stacks_of_studies

TYPE_CHECKING = False  # the name that type checkers know, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from campaign.ledger import Ledger

    Row = Mapping[str, Any]

FORM = 1  # of the kept findings
HOW = {
    "marginal": "each on the stack of its day",
    "isolated": "each alone on root",
    "leave_one_out": "each on all the others",
}


class Part(namedtuple("Part", ("kind", "sum", "product", "word", "names", "lacking", "finding"))):
    """What the parts come to when they were measured in one way (a key of `HOW`): `sum` is 1 + the sum of the gains,
    `product` that of the ratios, both None where `lacking` names edits without such a ratio; `word` is what product and
    measured whole earn, empty where there is no whole; `finding` the number of the finding that holds the parts, None
    where they are `names`' own decisions."""

    __slots__ = ()

    @property
    def how(self) -> str:
        return HOW[self.kind]

    @property
    def text(self) -> str:
        """'sum 1.314x, product 1.345x: optimistic (the recorded gains ...)'."""
        if self.product is None:
            return f"not known, {', '.join(self.lacking)} was not measured so"
        said = f"sum {units.ratio(self.sum)}, product {units.ratio(self.product)}"
        return f"{said}: {self.word}" if self.word else said

    @property
    def meaning(self) -> str:
        return EXPLAINED.get(self.word, "")


def findings(ledger: Ledger) -> list[dict[str, Any]]:
    """Every finding's JSON with `present`, whether the stack is still the one that its study was declared on (the same
    decisions in the same order), and `threshold`, the study's d as a fraction. Raises LedgerDamaged."""
    from campaign.ledger.view import View

    view = View(ledger.file, "findings")
    kept = view.get()
    if isinstance(kept, dict) and kept.get("form") == FORM:
        return kept["findings"]
    found = ledger.finding_rows()
    if found:
        on, stack = stacks_of_studies(ledger), ledger.standing().stack
        studies = {entry.id: entry.body for entry in ledger.store.entries({"study"}, verify=False)}
        for row in found:
            row["present"] = on.get(row["study_id"]) == stack
            row["threshold"] = studies[row["study_id"]]["threshold"]
    if not ledger.notices:
        view.keep({"form": FORM, "findings": found})
    return found


def newest(found: Sequence[Row], kind: str) -> Row | None:
    """The newest finding of a kind that came to a number; one about the present stack before any other."""
    told = [row for row in found if row["finding"]["kind"] == kind and _tells(row["finding"])]
    return next((row for row in reversed(told) if row["present"]), told[-1] if told else None)


def _tells(finding: Row) -> bool:
    return bool(finding["terms"] or finding["total"])


def measured(found: Sequence[Row]) -> Row | None:
    """The newest root-against-head finding about the present stack, None where it was not measured since it moved."""
    row = newest(found, "headline")
    return row if row is not None and row["present"] else None


def parts(stack: Sequence[Row], found: Sequence[Row]) -> list[Part]:
    """The parts of a stack of two edits or more, in every way in which any was measured."""
    if len(stack) < 2:
        return []
    whole = measured(found)
    marginal = {row["hypothesis"]: _interval(row, "ratio") for row in stack}
    isolated = {row["hypothesis"]: _interval(row, "isolated" if row["stack"] else "ratio") for row in stack}
    listed = [_part("marginal", marginal, whole)]
    if any(row["isolated_ratio"] is not None for row in stack):
        listed.append(_part("isolated", isolated, whole))
    left_out = newest(found, "leave_one_out")
    if left_out is not None and left_out["present"]:
        listed.append(_of_finding(left_out))
    return listed


def _part(kind: str, ratios: Mapping[str, Interval | None], whole: Row | None) -> Part:
    lacking = tuple(name for name, value in ratios.items() if value is None)
    names = tuple(ratios)
    known = [value for value in ratios.values() if value is not None]
    if lacking:
        return Part(kind, None, None, "", names, lacking, None)
    word = _word(kind, known, whole) if whole is not None else ""
    product = math.prod(value.ratio for value in known)
    return Part(kind, 1 + sum(value.ratio - 1 for value in known), product, word, names, (), None)


def _word(kind: str, parts: Sequence[Interval], whole: Row) -> str:
    """From the intervals of all of them: parts of a few rounds each are far from exact."""
    if any(None in (part.low, part.high, part.rounds) for part in parts):
        return UNRESOLVED
    total = whole["finding"]["total"]
    measured = Interval(total["ratio"], total["low"], total["high"], total["rounds"])
    return stack_word(measured, product_of(parts), kind, whole["threshold"])


def _of_finding(row: Row) -> Part:
    finding = row["finding"]
    names = tuple(finding["subjects"])
    lacking = tuple(name for name in names if name not in {term["name"] for term in finding["terms"]})
    return Part("leave_one_out", finding["sum"], finding["product"], finding["word"], names, lacking, row["sequence"])


def _interval(row: Row, which: str) -> Interval | None:
    """A row's own ratio (`which` is `ratio`) or the one alone on root (`isolated`); None where it was not measured."""
    ratio = row["ratio" if which == "ratio" else f"{which}_ratio"]
    return None if ratio is None else Interval(ratio, *(row[f"{which}_{name}"] for name in ("low", "high", "rounds")))


def lines(stack: Sequence[Row], found: Sequence[Row]) -> list[str]:
    """The whole in a sentence, measured or said not to be, then the parts, one line each."""
    if not stack:
        return []
    return [_whole(stack, found), *_parts(stack, found), *_caveats(stack)]


def _whole(stack: Sequence[Row], found: Sequence[Row]) -> str:
    whole = measured(found)
    if whole is not None:
        return f"Root against head: {headline_of(whole['finding'])} (finding {whole['sequence']})."
    old = newest(found, "headline")
    if old is not None:
        on = "+".join(("root", *old["stack"]))
        return (
            f"Root against head was not measured since the stack moved (finding {old['sequence']} was on {on}: "
            f"{units.ratio(old['finding']['total']['ratio'])}). Measure it: campaign revalidate"
        )
    if len(stack) == 1 and not stack[0]["stack"] and stack[0]["ratio"] is not None:
        return "One edit, measured against root on its own rounds. A root-against-head run: campaign revalidate"
    return "The whole stack against root has not been measured yet: campaign revalidate"


def _parts(stack: Sequence[Row], found: Sequence[Row]) -> list[str]:
    listed = parts(stack, found)
    if not listed:
        return []
    said = ["The parts beside it, which are arithmetic and not a measurement (gains neither add nor multiply):"]
    for part in listed:
        meaning = f" ({part.meaning})" if part.meaning else ""
        where = f", finding {part.finding}" if part.finding else ""
        said.append(f"  {part.kind.replace('_', '-')}, {part.how}{where}: {part.text}{meaning}")
    return said


def _caveats(stack: Sequence[Row]) -> list[str]:
    said = []
    if len({row["clock"] for row in stack if row["clock"]}) > 1:  # none where a person ruled in what was not timed
        said.append("The ratios come from different clocks, so even the product mixes two things.")
    places = {f"{row['workload']} on {row['device']}" for row in stack}
    if len(places) > 1:
        said.append(
            f"The edits were accepted on {', '.join(sorted(places))}: ratios of different places do not combine."
        )
    moved = moved_edits(stack)
    if moved:
        said.append(f"Measured on another stack than the one now below it: {', '.join(moved)}.")
    return said


def moved_edits(stack: Sequence[Row]) -> list[str]:
    """The edits whose control held other edits than those now below them in the stack."""
    names = [row["hypothesis"] for row in stack]
    return [row["hypothesis"] for place, row in enumerate(stack) if list(row["stack"]) != names[:place]]
