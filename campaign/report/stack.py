"""The accepted stack as text for `campaign stack`. Works on the rows of `listing`: it too must answer at once."""

from __future__ import annotations

import math

from campaign import units
from campaign.report.json_text import as_text
from campaign.report.listing import CLOCKS, columns, name, notes, rows, short_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from campaign.ledger import Ledger

    Row = Mapping[str, Any]

SCHEMA = 1
HEADER = ("", "edit", "ratio", "95 % interval", "clock", "memory", "measured on", "decision", "when")
NOT_MEASURED = "The whole stack against root has not been measured yet."


def stack_text(ledger: Ledger) -> str:
    """The accepted edits in order, with the product of their ratios named as what it is. Raises LedgerDamaged."""
    stack = accepted(rows(ledger))
    if not stack:
        return "the stack is empty: head is root\n  try: campaign hypothesis=NAME"
    text = columns(HEADER, [_line(place, row) for place, row in enumerate(stack, 1)], {"", "ratio", "memory"})
    return "\n".join([*text, "", *product_lines(stack), *notes(stack)])


def stack_json(ledger: Ledger) -> str:
    """`{"schema": 1, "head": [names], "product_of_ratios": float or null, "whole_stack_ratio": null, "notes": [...],
    "edits": [row, ...]}`. The product is arithmetic; `whole_stack_ratio` is null while nothing measures it."""
    stack = accepted(rows(ledger))
    return as_text(
        {
            "schema": SCHEMA,
            "head": [row["hypothesis"] for row in stack],
            "product_of_ratios": product(stack),
            "whole_stack_ratio": None,
            "notes": [*product_lines(stack), *notes(stack)],
            "edits": stack,
        }
    )


def accepted(rows: Sequence[Row]) -> list[Row]:
    """The rows of the edits that are in the stack, in order."""
    return [row for row in rows if row["verdict"] == "accept" and not row["revoked"]]


def product(stack: Sequence[Row]) -> float | None:
    """The product of the edits' ratios; None for an empty stack or an edit without a ratio."""
    ratios = [row["ratio"] for row in stack]
    return math.prod(ratios) if ratios and None not in ratios else None


def product_lines(stack: Sequence[Row]) -> list[str]:
    """What the ratios multiply to, why that is no measurement, and what else a reader must know of the stack."""
    if not stack:
        return []
    multiplied = product(stack)
    lines = []
    if len(stack) == 1:
        if not stack[0]["stack"]:
            return ["One edit, measured against root on its own rounds.", NOT_MEASURED]
    elif multiplied is not None:
        lines.append(
            f"Product of the {len(stack)} ratios, each measured alone against control: {units.ratio(multiplied)}. "
            "This is arithmetic, not a measurement: gains neither add nor multiply."
        )
    lines.append(NOT_MEASURED)
    if len({row["clock"] for row in stack}) > 1:
        lines.append("The ratios come from different clocks, so even the product mixes two things.")
    places = {f"{row['workload']} on {row['device']}" for row in stack}
    if len(places) > 1:
        lines.append(
            f"The edits were accepted on {', '.join(sorted(places))}: ratios of different places do not combine."
        )
    moved = moved_edits(stack)
    if moved:
        lines.append(
            f"Measured on another stack than the one now below it: {', '.join(moved)} (an edit was taken out since)."
        )
    return lines


def moved_edits(stack: Sequence[Row]) -> list[str]:
    """The edits whose control held other edits than those now below them in the stack."""
    names = [row["hypothesis"] for row in stack]
    return [row["hypothesis"] for place, row in enumerate(stack) if list(row["stack"]) != names[:place]]


def _line(place: int, row: Row) -> tuple[str, ...]:
    ratio, change = row["ratio"], row["memory_change_bytes"]
    clock = row["clock"]
    return (
        str(place),
        name(row),
        "-" if ratio is None else units.ratio(ratio),
        "-" if row["ratio_low"] is None else units.interval(row["ratio_low"], row["ratio_high"]),
        CLOCKS.get(clock, str(clock)) if clock else "-",
        "-" if change is None else units.signed_size(change),
        "+".join(("root", *row["stack"])),
        f"#{row['sequence']}",
        short_time(row["decided_at"]),
    )
