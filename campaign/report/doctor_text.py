"""What the doctor found, for a person and for a program, and the line that `campaign show` says of it."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from campaign.machine.checks import DOUBTFUL, GROUPS, LEVELS, UNFIT, Finding
from campaign.report.json_text import as_text
from campaign.report.plain import plain

if TYPE_CHECKING:
    from campaign.ledger.replay import Replay
    from campaign.run.doctor import Examined

SCHEMA = 1
VALID = timedelta(days=7)  # as long as a floor: what a machine was like says little of it later
COLOURS = {"fit": "32", "doubtful": "33", "unfit": "31", "unknown": "2"}
WIDEST, PIPE_WIDTH = 120, 120
MEANS = {
    "fit": "fit to measure",
    "doubtful": "measurements go on, and are blurred, raised or harder to repeat by what is named",
    "unfit": "do not measure like this: rounds would be invalid, or their result worth nothing",
}


def doctor_json(found: Examined, exit_code: int) -> str:
    """`{"schema": 1, "fitness": "fit" | "doubtful" | "unfit", "exit_code", "at", "device", "workload", "machine",
    "fingerprint", "findings": [{"check", "group", "level", "seen", "cost", "mend"}], "floor": {...} or null,
    "campaign", "ledger", "id"}`; the last three are empty outside a project."""
    return as_text(
        {
            "schema": SCHEMA,
            "fitness": found.fitness,
            "exit_code": exit_code,
            "at": found.at,
            "device": found.device,
            "workload": found.workload,
            "machine": found.machine,
            "fingerprint": found.fingerprint,
            "findings": [one._asdict() for one in found.findings],
            "floor": found.floor,
            "campaign": found.campaign,
            "ledger": found.ledger,
            "id": found.id,
        }
    )


def doctor_text(found: Examined, *, terminal: bool, width: int | None = None) -> str:
    """The verdict, then each group with its findings, the worst first. `width` is the terminal's, at most 120."""
    width = max(40, min(width or shutil.get_terminal_size((PIPE_WIDTH, 24)).columns, WIDEST))
    named = because(found.fitness, [one._asdict() for one in found.findings])
    about = f"{found.workload} on {found.device}" if found.workload else found.device
    head = f"this machine is {found.fitness.upper()}{named} for {about}"
    lines = [*_wrapped(head, "", width, found.fitness, terminal), *_wrapped(MEANS[found.fitness], "  ", width)]
    lines += _wrapped(found.machine, "  ", width)
    room = max(len(one.check) for one in found.findings)
    for group in GROUPS:
        some = sorted((one for one in found.findings if one.group == group), key=lambda one: LEVELS.index(one.level))
        if some:
            lines += ["", f"{group}:"]
            lines += [line for one in some for line in _finding(one, room, width, terminal)]
    if found.id:
        lines += ["", *_wrapped(f"recorded: {found.ledger} ({found.id})", "", width)]
    return "\n".join(lines)


def because(fitness: str, findings: Sequence[Mapping[str, Any]]) -> str:
    """' (governor, swap)', the checks that make it doubtful or unfit, the worst first; empty for a fit machine."""
    names = [one["check"] for level in (UNFIT, DOUBTFUL) for one in findings if one["level"] == level]
    return f" ({', '.join(dict.fromkeys(names))})" if names and fitness != "fit" else ""


def doctor_before(ledger: Replay, decision: Mapping[str, Any], fingerprint: str) -> dict[str, Any] | None:
    """The newest doctor's line that precedes a decision (its row) by seven days at most and is of the same machine;
    None without one."""
    decided = datetime.fromisoformat(decision["decided_at"])
    for row in reversed(ledger.doctor_rows()):
        if row["line"] < decision["line"] and row["fingerprint"] == fingerprint:
            return row if decided - datetime.fromisoformat(row["time"]) <= VALID else None
    return None


def doctor_line(row: Mapping[str, Any] | None) -> str:
    """'machine: doubtful (governor, swap), doctor of 2026-12-01T09:30:00.123Z'; empty without a line."""
    if row is None:
        return ""
    return f"machine: {row['fitness']}{because(row['fitness'], row['findings'])}, doctor of {row['time']}"


def _finding(one: Finding, room: int, width: int, terminal: bool) -> list[str]:
    level = one.level.ljust(9)
    lead = f"  {level} {one.check.ljust(room)}  "
    lines = _filled(one.seen, lead, width)
    if terminal:
        lines[0] = lines[0].replace(level, f"\x1b[{COLOURS[one.level]}m{level}\x1b[0m", 1)
    indent = " " * len(lead)
    for name, text in (("cost", one.cost), ("mend", one.mend)):
        if text:
            lines += _filled(text, f"{indent}{name}  ", width)
    return lines


def _filled(text: str, lead: str, width: int) -> list[str]:
    """The text beside its lead, or below it where there is little room."""
    rest = " " * min(len(lead), width // 2)
    flat = " ".join(plain(text).split())
    if len(lead) > width // 2:
        return [lead.rstrip(), *textwrap.wrap(flat, width, initial_indent=rest, subsequent_indent=rest)]
    return textwrap.wrap(flat, width, initial_indent=lead, subsequent_indent=rest, break_on_hyphens=False) or [lead]


def _wrapped(text: str, indent: str, width: int, level: str = "", terminal: bool = False) -> list[str]:
    lines = textwrap.wrap(plain(text), width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return [f"\x1b[1;{COLOURS[level]}m{line}\x1b[0m" if terminal and level else line for line in lines]
