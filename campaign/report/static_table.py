"""Static evidence as a table: control against treatment, kernel by kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from campaign.report.json_text import as_line
from campaign.report.listing import columns

Row = Mapping[str, Any]

SCHEMA = 1
HEADER = (
    "kernel",
    "target",
    "arm",
    "variant",
    "registers",
    "stack",
    "spilled",
    "reloaded",
    "spill instr",
    "shared",
    "threads",
    "warps/SM",
)
NUMBERS = (
    "registers",
    "stack_bytes",
    "spill_store_bytes",
    "spill_load_bytes",
    "spill_instructions",
    "shared_bytes",
    "threads",
)
RIGHT = frozenset(HEADER) - {"kernel", "target", "arm", "variant", "warps/SM"}
LEGEND = (
    "Registers a thread (cpu: distinct vector registers used). Stack, spilled, reloaded: bytes a thread, each "
    "instruction counted once. Shared: bytes a block. Warps/SM: theoretical, with what limits them."
)
TAG = "This is static evidence: compiled, not run. It explains and shows that an edit engaged; no effect comes from it."


def static_json(entry: Mapping[str, Any], place: str) -> str:
    """`{"schema": 1, "ledger": path, ...the ledger entry's body}` in one line."""
    return as_line({"schema": SCHEMA, "ledger": place, **entry})


def static_text(entry: Mapping[str, Any], place: str) -> str:
    """The table of a `static` entry's body, what was unavailable and why, and where it is written."""
    control, treatment = entry["control"]["rows"], entry["treatment"]["rows"]
    lines = [line for pair in paired(control, treatment) for line in _lines(*pair)]
    text = [f"{entry['hypothesis']}: {entry['control']['name']} against {entry['treatment']['name']}", ""]
    text += columns(HEADER, lines, RIGHT) if lines else ["neither arm selects a compiled kernel"]
    missing = _missing(control, treatment)
    return "\n".join([*text, "", *missing, *([""] if missing else []), LEGEND, TAG, f"written: {place}"])


def paired(control: Sequence[Row], treatment: Sequence[Row]) -> list[tuple[Row | None, Row | None]]:
    """Rows of the same kernel and target side by side, in control's order, then what only treatment has."""
    keys = dict.fromkeys((row["kernel"], row["target"]) for row in (*control, *treatment))
    found: list[tuple[Row | None, Row | None]] = []
    for key in keys:
        mine, theirs = ([row for row in rows if (row["kernel"], row["target"]) == key] for rows in (control, treatment))
        found += list(zip_longest(mine, theirs))
    return found


def _lines(control: Row | None, treatment: Row | None) -> list[tuple[str, ...]]:
    """One line where the arms agree, else one each; the name is written once."""
    if control is not None and control == treatment:
        return [_cells(control, "both", first=True)]
    sides = [(row, arm) for row, arm in ((control, "control"), (treatment, "treatment")) if row is not None]
    return [_cells(row, arm, first=place == 0) for place, (row, arm) in enumerate(sides)]


def _cells(row: Row, arm: str, *, first: bool) -> tuple[str, ...]:
    named = (row["kernel"], row["target"]) if first else ("", "")
    if row["status"] != "ok":
        return (*named, arm, row["variant"], "unavailable", *[""] * (len(HEADER) - 5))
    numbers = ["-" if row.get(name) is None else str(row[name]) for name in NUMBERS]
    return (*named, arm, row["variant"], *numbers, _warps(row.get("occupancy")))


def _warps(occupancy: Row | None) -> str:
    """'8 (12.5 %, registers)'."""
    if occupancy is None:
        return "-"
    return f"{occupancy['warps']} ({100 * occupancy['share']:.1f} %, {' and '.join(occupancy['limited_by'])})"


def _missing(control: Sequence[Row], treatment: Sequence[Row]) -> list[str]:
    """Each reason once, with the kernels and targets that it took."""
    places: dict[tuple[str, str], list[str]] = {}
    for row in (*control, *treatment):
        if row["status"] != "ok":
            names = places.setdefault((row["reason"], row["remedy"]), [])
            name = f"{row['kernel']} on {row['target']}"
            if name not in names:
                names.append(name)
    return [
        f"unavailable: {', '.join(names)}: {reason}" + (f"\n  try: {remedy}" if remedy else "")
        for (reason, remedy), names in places.items()
    ]
