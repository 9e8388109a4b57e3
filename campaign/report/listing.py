"""The decisions of a campaign as rows, and the rows as a table. Reads decision lines as plain dicts: a listing must
answer at once, and a thousand dataclasses are not needed to print a thousand lines."""

from __future__ import annotations

import math

from campaign import reading, units
from campaign.report.json_text import as_text
from campaign.report.plain import plain

TYPE_CHECKING = False  # the name that type checkers know, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from campaign.ledger import Ledger

SCHEMA = 1
CLOCKS = {"cpu": "CPU time", "wall": "wall", "device": "device"}
COLUMNS = ("#", "hypothesis", "verdict", "ratio", "95 % interval", "interaction", "clock", "predicted", "counts",
           "rounds", "memory", "low precision", "when")  # fmt: skip
RIGHT = frozenset({"#", "ratio", "counts", "rounds", "memory"})
FOLDING, FOLDED = ("hypothesis", "verdict"), 14  # columns that may break over lines, and how narrow they may get
LEAST_FIRST = ("when", "rounds", "counts", "low precision", "predicted", "memory", "clock", "interaction")
NAMED = 12  # decisions that a note under the table names one by one
FORM = 4  # of the kept rows; another number where a row has other keys
COLOURS = {"accept": "green", "reject": "red", "inconclusive": "yellow", "invalid": "magenta", "unavailable": "dim"}


def rows(ledger: Ledger) -> list[dict[str, Any]]:
    """One dict a decision, in order. Ratios are control/treatment seconds, memory is treatment minus control bytes;
    what was not measured is None. Raises LedgerDamaged."""
    return _kept(ledger)[0]


def accepted(ledger: Ledger) -> list[dict[str, Any]]:
    """The rows of the decisions that make up the stack, in the order in which each last joined."""
    found, stack = _kept(ledger)
    by_id = {one["id"]: one for one in found}
    return [by_id[id] for id in stack]


def _kept(ledger: Ledger) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows, and the ids of the stack: from the last time, unless the file changed since."""
    from campaign.ledger.view import View

    view = View(ledger.file, "listing")
    kept = view.get()
    if isinstance(kept, dict) and kept.get("form") == FORM:
        return kept["rows"], kept["stack"]
    standing = ledger.standing()
    found = [row(body, body["revoked"]) for body in standing.rows.values()]
    if not ledger.notices:  # a torn tail must be reported every time
        view.keep({"form": FORM, "rows": found, "stack": standing.stack})
    return found, standing.stack


def stacks_of_studies(ledger: Ledger) -> dict[str, list[str]]:
    """The decisions that made up the stack, by id and in order, when each study was declared. Raises LedgerDamaged."""
    from campaign.ledger.standing import KINDS, Standing

    standing, found = Standing(), {}
    for entry in ledger.store.entries({*KINDS, "study"}, verify=False):
        if entry.kind == "study":
            found[entry.id] = standing.stack
        else:
            standing.take(entry)
    return found


def row(body: Mapping[str, Any], revoked: bool) -> dict[str, Any]:
    """The row of one decision's JSON. `parameters` are the hypothesis's own in the command, `prediction` is one of
    `held`, `optimistic`, `pessimistic` or empty, `counts` says how many predicted counts were counted so.
    `interaction` is the word for what the edit and the stack do together, empty where root was not timed beside them;
    `ruling` what a person ruled last."""
    verdict = body["verdict"]
    effect = verdict.get("effect") or {}
    low, high = _number(effect.get("low")), _number(effect.get("high"))
    predicted = _number(body["predicted_ratio"])
    null = verdict["reason"] in reading.NULL_REASONS
    memory = verdict.get("memory") or {}
    change = memory["treatment_bytes"] - memory["control_bytes"] if memory else None
    combined = verdict.get("combined") or {}
    isolated, interaction = combined.get("isolated") or {}, combined.get("interaction") or {}
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
        "ruling": body.get("ruling", ""),
        "ruled_why": body.get("ruled_why", ""),
        "clock": effect.get("clock"),
        "ratio": _number(effect.get("ratio")),
        "ratio_low": low,
        "ratio_high": high,
        "ratio_rounds": effect.get("rounds"),
        "isolated_ratio": _number(isolated.get("ratio")),
        "isolated_low": _number(isolated.get("low")),
        "isolated_high": _number(isolated.get("high")),
        "isolated_rounds": isolated.get("rounds"),
        "cumulative_ratio": _number((combined.get("cumulative") or {}).get("ratio")),
        "interaction_ratio": _number(interaction.get("ratio")),
        "interaction_low": _number(interaction.get("low")),
        "interaction_high": _number(interaction.get("high")),
        "interaction": combined.get("word", ""),
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


def table(rows: Sequence[Mapping[str, Any]], terminal: bool, of: int | None = None) -> str:
    """The rows as text without a last newline: a rich table for a terminal, else plain aligned columns. `of` is how
    many decisions there are with those that were filtered out."""
    if not rows and of:
        return f"none of {units.counted(of, 'decision')} is asked for\n  try: campaign ledger"
    if not rows:
        return "no decisions yet\n  try: campaign hypothesis=NAME"
    shown = COLUMNS if any(row["interaction"] for row in rows) else tuple(c for c in COLUMNS if c != "interaction")
    lines = [tuple(cell for name, cell in zip(COLUMNS, cells(row), strict=True) if name in shown) for row in rows]
    places = sorted({(str(row["workload"]), str(row["device"])) for row in rows})
    under = [f"ratio: control/treatment seconds of a whole step, above 1 is faster. {_places(places)}"]
    under += notes(rows)
    if of is not None and of > len(rows):
        under.append(f"{len(rows)} of {units.counted(of, 'decision')} are shown.")
    if not terminal:
        return "\n".join((*columns(shown, lines, RIGHT), "", *under))
    import shutil  # with its compressors 4 ms

    width = shutil.get_terminal_size().columns
    kept = fitting(lines, width, shown)
    if len(kept) < len(shown):
        left_out = ", ".join(name for name in shown if name not in kept)
        under.append(f"Left out on {width} columns: {left_out}. All: campaign ledger | less -S, or --json.")
    return "\n".join((_rich(lines, rows, shown, kept, width), "", *under))


def notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader of these rows must know besides: the clock, emulated precision, how predictions turned out."""
    found = []
    if any(row["clock"] == "cpu" for row in rows):
        found.append("CPU time: decided on processor time, declared beforehand; it is not tokens/s on the wall.")
    emulated = [row for row in rows if row["low_precision"] == reading.EMULATED]
    if emulated:
        which = "every decision" if len(emulated) == len(rows) else _numbers(emulated)
        found.append(f"Low precision is emulated in {which}: its numerics are real, its speed is not a device's.")
    if ruled := [row for row in rows if row["ruling"]]:
        found.append(
            f"Ruled: a person decided otherwise or again in {_numbers(ruled)} (campaign show NUMBER says why)."
        )
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
        verdict_cell(row["verdict"], row["reason"], row["revoked"], row["ruling"])
        + (" SUSPECT" if row["suspect"] else ""),
        "-" if ratio is None else units.ratio(ratio),
        "-" if low is None or high is None else units.interval(low, high),
        row["interaction"] or "-",
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


def verdict_cell(verdict: str, reason: str, revoked: bool, ruling: str = "") -> str:
    """'reject (slower)', 'revoked (accept: faster)', 'reject (too_small), ruled accept'."""
    said = verdict if not reason or reason == verdict else f"{verdict} ({reason})"
    said = f"revoked ({said.replace(' (', ': ').rstrip(')')})" if revoked else said
    return f"{said}, ruled {ruling}" if ruling else said


def short_time(moment: str) -> str:
    """'2026-01-02T03:04:05.678+00:00' as '2026-01-02 03:04Z' (the ledger writes UTC)."""
    return f"{moment[:10]} {moment[11:16]}Z" if len(moment) >= 16 else moment


def columns(header: Sequence[str], lines: Sequence[Sequence[str]], right: Iterable[str] = ()) -> list[str]:
    """Aligned columns two spaces apart, header first; the columns named in `right` are aligned to the right."""
    lines = [[plain(cell) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    sides = ["rjust" if one in right else "ljust" for one in header]
    return [
        "  ".join(getattr(cell, side)(width) for cell, side, width in zip(line, sides, widths, strict=True)).rstrip()
        for line in (header, *lines)
    ]


def _places(places: Sequence[tuple[str, str]]) -> str:
    return "Workload: " + "; ".join(f"{workload} on {device}" for workload, device in places) + "."


def fitting(lines: Sequence[Sequence[str]], width: int, shown: Sequence[str] = COLUMNS) -> tuple[str, ...]:
    """Of the columns `shown`, those that fit in `width` characters, the least telling left out first; names and
    verdicts may fold."""
    needed = {name: max(map(len, column)) for name, column in zip(shown, zip(shown, *lines, strict=True), strict=True)}
    needed |= {name: min(needed[name], FOLDED) for name in FOLDING}
    kept = list(shown)
    for name in LEAST_FIRST:
        if name not in kept:
            continue
        if sum(needed[one] for one in kept) + 3 * (len(kept) - 1) <= width:
            break
        kept.remove(name)
    return tuple(kept)


def _rich(
    lines: Sequence[Sequence[str]],
    rows: Sequence[Mapping[str, Any]],
    shown: Sequence[str],
    kept: Sequence[str],
    width: int,
) -> str:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in kept:
        side = "right" if name in RIGHT else "left"
        drawn.add_column(name, justify=side, no_wrap=name not in FOLDING, overflow="fold")  # type: ignore[arg-type]
    for line, row in zip(lines, rows, strict=True):
        texts = {name: Text(plain(cell)) for name, cell in zip(shown, line, strict=True)}
        texts["verdict"].stylize("dim" if row["revoked"] else COLOURS.get(row["verdict"], ""))
        drawn.add_row(*(texts[name] for name in kept))
    console = Console(width=width, force_terminal=True)
    with console.capture() as captured:
        console.print(drawn)
    return captured.get().rstrip("\n")
