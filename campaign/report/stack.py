"""The accepted stack as text for `campaign stack`. Works on the rows of `listing`: it too must answer at once."""

from __future__ import annotations

from campaign import units
from campaign.interactions.words import headline_of
from campaign.report import whole
from campaign.report.json_text import as_text
from campaign.report.listing import CLOCKS, accepted, columns, name, notes, short_time
from campaign.report.plain import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from campaign.ledger import Ledger

    Row = Mapping[str, Any]

SCHEMA = 1
HEADER = (
    *("", "edit", "ratio", "95 % interval", "interaction", "leave-one-out", "clock", "memory", "measured on"),
    *("state", "decision", "when"),
)
OPTIONAL = ("interaction", "leave-one-out")  # left out where no edit has one
RIGHT = frozenset({"", "ratio", "memory"})
RULED_IN, MOVED, STANDS = "ruled in", "stack moved", "accepted"


def stack_text(ledger: Ledger) -> str:
    """The accepted edits in order, each with its state; then the whole, measured or said not to be, and the parts
    beside it. Raises LedgerDamaged."""
    stack = accepted(ledger)
    if not stack:
        return "the stack is empty: head is root\n  try: campaign hypothesis=NAME"
    found = whole.findings(ledger)
    lines = [_line(place, row) for place, row in enumerate(_edits(stack, found), 1)]
    shown = [place for place, title in enumerate(HEADER) if title not in OPTIONAL or any(line[place] for line in lines)]
    text = columns(
        [HEADER[place] for place in shown], [[line[place] or "-" for place in shown] for line in lines], RIGHT
    )
    return plain("\n".join([*text, "", *whole.lines(stack, found), *_ruled(stack), *notes(stack)]))


def stack_json(ledger: Ledger) -> str:
    """`{"schema": 1, "head": [names], "product_of_ratios": float or null, "whole_stack_ratio": float or null,
    "whole_stack": {"finding", "ratio", "low", "high", "sentence"} or null, "parts": [{"kind", "sum", "product", "word",
    "lacking", "finding"}], "notes": [...], "edits": [row with "state" and "leave_one_out" {"ratio", "low", "high",
    "word", "finding", "present"} or null]}`. The product is arithmetic; `whole_stack_ratio` is null where root against
    head was not measured since the stack moved."""
    stack = accepted(ledger)
    found = whole.findings(ledger)
    measured = whole.measured(found) if stack else None
    total = measured["finding"]["total"] if measured else {}
    parts = whole.parts(stack, found)
    return as_text(
        {
            "schema": SCHEMA,
            "head": [row["hypothesis"] for row in stack],
            "product_of_ratios": _product(stack),
            "whole_stack_ratio": total.get("ratio"),
            "whole_stack": {
                "finding": measured["sequence"],
                **{key: total[key] for key in ("ratio", "low", "high")},
                "sentence": headline_of(measured["finding"]),
            }
            if measured
            else None,
            "parts": [
                {key: getattr(part, key) for key in ("kind", "sum", "product", "word", "lacking", "finding")}
                for part in parts
            ],
            "notes": [*whole.lines(stack, found), *notes(stack)],
            "edits": _edits(stack, found),
        }
    )


def _product(stack: Sequence[Row]) -> float | None:
    import math

    ratios = [row["ratio"] for row in stack]
    return math.prod(ratios) if ratios and None not in ratios else None


def _edits(stack: Sequence[Row], found: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows with what is known of each edit since its decision."""
    moved = whole.moved_edits(stack)
    study = whole.newest(found, "leave_one_out")
    terms = {term["name"]: term for term in study["finding"]["terms"]} if study else {}
    edits = []
    for row in stack:
        term = terms.get(row["hypothesis"])
        left_out = None
        if study is not None and term is not None:
            left_out = {key: term["effect"][key] for key in ("ratio", "low", "high")}
            left_out |= {"word": term["word"], "finding": study["sequence"], "present": study["present"]}
        state = RULED_IN if row["ruling"] == "accept" else MOVED if row["hypothesis"] in moved else STANDS
        edits.append({**row, "state": state, "leave_one_out": left_out})
    return edits


def _ruled(stack: Sequence[Row]) -> list[str]:
    """Why a person put an edit in, one line each."""
    said = []
    for row in stack:
        if row["ruling"] == "accept":
            why, verdict = " ".join(row["ruled_why"].split()), f"{row['verdict']}: {row['reason']}"
            said.append(f"Ruled in by a person: {row['hypothesis']} (the verdict: {verdict}): {why}")
    return said


def _line(place: int, row: Row) -> tuple[str, ...]:
    ratio, change, left_out = row["ratio"], row["memory_change_bytes"], row["leave_one_out"]
    clock = row["clock"]
    return (
        str(place),
        name(row),
        "-" if ratio is None else units.ratio(ratio),
        "-" if row["ratio_low"] is None else units.interval(row["ratio_low"], row["ratio_high"]),
        row["interaction"],
        _left_out(left_out) if left_out else "",
        CLOCKS.get(clock, str(clock)) if clock else "-",
        "-" if change is None else units.signed_size(change),
        "+".join(("root", *row["stack"])),
        row["state"],
        f"#{row['sequence']}",
        short_time(row["decided_at"]),
    )


def _left_out(term: Row) -> str:
    """'1.042x pays', '1.001x no longer pays (older stack)'."""
    return f"{units.ratio(term['ratio'])} {term['word']}" + ("" if term["present"] else " (older stack)")
