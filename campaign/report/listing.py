"""The decisions of a campaign as rows, and the rows as a table. Reads decision lines as plain dicts: a listing must
answer at once, and a thousand dataclasses are not needed to print a thousand lines."""

from __future__ import annotations

import math

from campaign import reading, units
from campaign.report.json_text import as_text

TYPE_CHECKING = False  # the name that type checkers know, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from campaign.ledger import Ledger

SCHEMA = 1
CLOCKS = {"cpu": "CPU time", "wall": "wall", "device": "device"}
COLUMNS = ("#", "hypothesis", "verdict", "ratio", "95 % interval", "clock", "predicted", "counts", "rounds", "memory",
           "low precision", "when")  # fmt: skip
RIGHT = frozenset({"#", "ratio", "counts", "rounds", "memory"})
FOLDING, FOLDED = ("hypothesis", "verdict"), 14  # columns that may break over lines, and how narrow they may get
LEAST_FIRST = ("when", "rounds", "counts", "low precision", "predicted", "memory", "clock")
NAMED = 12  # decisions that a note under the table names one by one
FORM = 2  # of the kept rows; another number where a row has other keys
COLOURS = {"accept": "green", "reject": "red", "inconclusive": "yellow", "invalid": "magenta", "unavailable": "dim"}


def rows(ledger: Ledger) -> list[dict[str, Any]]:
    """One dict a decision, in order. Ratios are control/treatment seconds, memory is treatment minus control bytes;
    what was not measured is None. Raises LedgerDamaged."""
    from campaign.ledger.view import View

    view = View(ledger.file, "listing")
    kept = view.get()
    if isinstance(kept, dict) and kept.get("form") == FORM:
        return kept["rows"]
    found = [row(body, body["revoked"]) for body in ledger.decision_rows()]
    if not ledger.notices:  # a torn tail must be reported every time
        view.keep({"form": FORM, "rows": found})
    return found


def row(body: Mapping[str, Any], revoked: bool) -> dict[str, Any]:
    """The row of one decision's JSON. `parameters` are the hypothesis's own in the command, `prediction` is one of
    `held`, `optimistic`, `pessimistic` or empty, `counts` says how many predicted counts were counted so."""
    verdict = body["verdict"]
    effect = verdict.get("effect") or {}
    low, high = _number(effect.get("low")), _number(effect.get("high"))
    predicted = _number(body["predicted_ratio"])
    null = verdict["reason"] in reading.NULL_REASONS
    memory = verdict.get("memory") or {}
    change = memory["treatment_bytes"] - memory["control_bytes"] if memory else None
    return {
        "sequence": body["sequence"],
        "id": body["id"],
        "plan_id": body["plan_id"],
        "hypothesis": body["hypothesis"],
        "parameters": reading.parameters(body["hypothesis"], body["command"]),
        "workload": body["workload"],
        "device": body["device"],
        "verdict": verdict["verdict"],
        "reason": verdict["reason"],
        "sentence": verdict["sentence"],
        "suspect": verdict.get("suspect", ""),
        "revoked": revoked,
        "clock": effect.get("clock"),
        "ratio": _number(effect.get("ratio")),
        "ratio_low": low,
        "ratio_high": high,
        "predicted_ratio": predicted,
        "prediction": "" if predicted is None or null else reading.prediction(predicted, low, high),
        "counts": reading.counts_text(body["engagement"], body["stack"]),
        "low_precision": body["low_precision"],
        "rounds_valid": verdict.get("valid_rounds", 0),
        "rounds_invalid": verdict.get("invalid_rounds", 0),
        "memory_change_bytes": change,
        "memory_ratio": _number(memory.get("ratio")),
        "attempt": body["attempt"],
        "stack": list(body["stack"]),
        "decided_at": body["decided_at"],
    }


def _number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None


def as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    """`{"schema": 1, "decisions": [row, ...]}`."""
    return as_text({"schema": SCHEMA, "decisions": [dict(row) for row in rows]})


def table(rows: Sequence[Mapping[str, Any]], terminal: bool) -> str:
    """The rows as text without a last newline: a rich table for a terminal, else plain aligned columns."""
    if not rows:
        return "no decisions yet\n  try: campaign hypothesis=NAME"
    lines = [cells(row) for row in rows]
    places = sorted({(str(row["workload"]), str(row["device"])) for row in rows})
    under = [f"ratio: control/treatment seconds of a whole step, above 1 is faster. {_places(places)}"]
    under += notes(rows)
    if not terminal:
        return "\n".join((*columns(COLUMNS, lines, RIGHT), "", *under))
    import shutil  # with its compressors 4 ms

    width = shutil.get_terminal_size().columns
    kept = fitting(lines, width)
    if len(kept) < len(COLUMNS):
        left_out = ", ".join(name for name in COLUMNS if name not in kept)
        under.append(f"Left out on {width} columns: {left_out}. All: campaign ledger | less -S, or --json.")
    return "\n".join((_rich(lines, rows, kept, width), "", *under))


def notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader of these rows must know besides: the clock, emulated precision, how predictions turned out."""
    found = []
    if any(row["clock"] == "cpu" for row in rows):
        found.append("CPU time: decided on processor time, declared beforehand; it is not tokens/s on the wall.")
    emulated = [row for row in rows if row["low_precision"] == reading.EMULATED]
    if emulated:
        which = "every decision" if len(emulated) == len(rows) else _numbers(emulated)
        found.append(f"Low precision is emulated in {which}: its numerics are real, its speed is not a device's.")
    if said := reading.outcomes_text(row["prediction"] for row in rows):
        found.append(f"{said} counts: predicted counts a step that the probe counted.")
    return found


def _numbers(rows: Sequence[Mapping[str, Any]]) -> str:
    more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
    return ", ".join(f"#{row['sequence']}" for row in rows[:NAMED]) + more


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """One row as text, in the order of `COLUMNS`."""
    ratio, low, high = row["ratio"], row["ratio_low"], row["ratio_high"]
    rounds = str(row["rounds_valid"]) + (f" (+{row['rounds_invalid']} invalid)" if row["rounds_invalid"] else "")
    change = row["memory_change_bytes"]
    predicted = row["predicted_ratio"]
    return (
        str(row["sequence"]),
        name(row) + (f" (attempt {row['attempt']})" if row["attempt"] > 1 else ""),
        verdict_cell(row["verdict"], row["reason"], row["revoked"]) + (" SUSPECT" if row["suspect"] else ""),
        "-" if ratio is None else units.ratio(ratio),
        "-" if low is None or high is None else units.interval(low, high),
        CLOCKS.get(row["clock"], str(row["clock"])) if row["clock"] else "-",
        "-" if predicted is None else f"{units.ratio(predicted)} {row['prediction']}".rstrip(),
        row["counts"] or "-",
        rounds,
        "-" if change is None else units.signed_size(change),
        row["low_precision"] or "-",
        short_time(row["decided_at"]),
    )


def name(row: Mapping[str, Any]) -> str:
    """'prenorm_fusion', 'register_cap registers=8'."""
    return f"{row['hypothesis']} {row['parameters']}".rstrip()


def verdict_cell(verdict: str, reason: str, revoked: bool) -> str:
    """'reject (slower)', 'revoked (accept: faster)'."""
    said = verdict if not reason or reason == verdict else f"{verdict} ({reason})"
    return f"revoked ({said.replace(' (', ': ').rstrip(')')})" if revoked else said


def short_time(moment: str) -> str:
    """'2026-01-02T03:04:05.678+00:00' as '2026-01-02 03:04Z' (the ledger writes UTC)."""
    return f"{moment[:10]} {moment[11:16]}Z" if len(moment) >= 16 else moment


def columns(header: Sequence[str], lines: Sequence[Sequence[str]], right: Iterable[str] = ()) -> list[str]:
    """Aligned columns two spaces apart, header first; the columns named in `right` are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    sides = ["rjust" if one in right else "ljust" for one in header]
    return [
        "  ".join(getattr(cell, side)(width) for cell, side, width in zip(line, sides, widths, strict=True)).rstrip()
        for line in (header, *lines)
    ]


def _places(places: Sequence[tuple[str, str]]) -> str:
    return "Workload: " + "; ".join(f"{workload} on {device}" for workload, device in places) + "."


def fitting(lines: Sequence[Sequence[str]], width: int) -> tuple[str, ...]:
    """The columns that fit in `width` characters, the least telling left out first; names and verdicts may fold."""
    needed = {
        name: max(map(len, column)) for name, column in zip(COLUMNS, zip(COLUMNS, *lines, strict=True), strict=True)
    }
    needed |= {name: min(needed[name], FOLDED) for name in FOLDING}
    kept = list(COLUMNS)
    for name in LEAST_FIRST:
        if sum(needed[one] for one in kept) + 3 * (len(kept) - 1) <= width:
            break
        kept.remove(name)
    return tuple(kept)


def _rich(lines: Sequence[Sequence[str]], rows: Sequence[Mapping[str, Any]], kept: Sequence[str], width: int) -> str:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in kept:
        side = "right" if name in RIGHT else "left"
        drawn.add_column(name, justify=side, no_wrap=name not in FOLDING, overflow="fold")  # type: ignore[arg-type]
    for line, row in zip(lines, rows, strict=True):
        texts = {name: Text(cell) for name, cell in zip(COLUMNS, line, strict=True)}
        texts["verdict"].stylize("dim" if row["revoked"] else COLOURS.get(row["verdict"], ""))
        drawn.add_row(*(texts[name] for name in kept))
    console = Console(width=width, force_terminal=True)
    with console.capture() as captured:
        console.print(drawn)
    return captured.get().rstrip("\n")
