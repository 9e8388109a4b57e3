"""Which families of kernels the busy time goes to, before the stack and with it. Profile evidence: no effect, verdict
or ratio is made of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign import units
from campaign.errors import CampaignError
from campaign.report.figures._figure import Figure, unique
from campaign.report.figures._palette import BLUE, LIGHT, LINE, QUIET
from campaign.report.figures._sheet import LEFT, RIGHT, SMALL, Key, Sheet, grid, key_height, scale
from campaign.report.figures._words import fitted, listed, plain, sentences, width
from campaign.report.reported import Reports

ORDER = 60
TITLE = "Where the time goes, before and after"
MOST = 9  # families, the rest as one
PITCH, BAR = 50.0, 10.0
REST = "all others"


@dataclass(frozen=True)
class Side:
    """One profiled configuration: root with `stack`, its families' shares of the busy time (fractions, by title)."""

    stack: tuple[str, ...]
    shares: Mapping[str, float]
    row: str
    workload: str

    @property
    def name(self) -> str:
        return f"root + {listed(self.stack, 3)}" if self.stack else "root"


def figure(reports: Reports) -> Figure | None:
    told = before_and_after(reports)
    if told is None:
        return None
    before, after = told
    lines = _lines(before, after)
    entries: list[Key] = [("s", QUIET, True, "before" if after else "measured")]
    entries += [("s", BLUE, True, "after")] if after else []
    top = key_height(entries) + 8
    return Figure(
        name="families",
        title=TITLE if after else "Where the time goes",
        alt=_alt(before, after, lines),
        caption=sentences(
            f"Shares of the busy time. Before: {before.name}.",
            f"After: {after.name}." if after else "No profile of another stack is recorded, so there is no after.",
            "A share says where time goes, not how much there is of it: one that falls can be one whose others grew.",
        ),
        evidence="Profiles of other processes than the timed ones; no ratio comes from them.",
        rows=unique(side.row for side in told if side is not None),
        height=top + PITCH * len(lines) + 54,
        draw=lambda sheet: _draw(sheet, lines, entries, top, after is not None),
    )


def absent(reports: Reports) -> str:
    return "No profile or diagnosis is recorded: campaign profile makes one."


def before_and_after(reports: Reports) -> tuple[Side, Side | None] | None:
    """The profiled configuration with the fewest edits, the newest of them, and the one of the present head, or else
    that with the most edits. None where nothing was profiled; no second where there is only one configuration."""
    sides = list(_sides(reports))
    if sides:
        workload = sides[-1].workload
        sides = [side for side in sides if side.workload == workload]
    if not sides:
        return None
    fewest, most = min(len(side.stack) for side in sides), max(len(side.stack) for side in sides)
    before = next(side for side in reversed(sides) if len(side.stack) == fewest)
    of_head = [side for side in sides if side.stack == reports.head != before.stack]
    after = next(reversed(of_head), None) or next(side for side in reversed(sides) if len(side.stack) == most)
    return before, after if after.stack != before.stack else None


def _sides(reports: Reports) -> Iterator[Side]:
    """Every profiled configuration of the ledger, oldest first."""
    if reports.ledger is None:
        return
    for row in reports.ledger.profile_rows():
        if row["kind"] == "diagnosis":
            shares = _of_diagnosis(row)
            if shares:
                yield Side(tuple(row.get("stack", ())), shares, f"diagnosis {row['sequence']}", row.get("workload", ""))
        else:
            stack = tuple(row.get("stack", ()))
            name, workload = f"profile {row['sequence']}", row.get("workload", "")
            before, after = _of_profile(reports, row)
            if before and after:
                yield Side(stack, before, name, workload)
                yield Side((*stack, row["hypothesis"]), after, name, workload)


def _of_diagnosis(row: Mapping[str, Any]) -> dict[str, float]:
    families = (row.get("diagnosis") or {}).get("families") or {}
    return _summed((one.get("title") or one.get("family"), one.get("share")) for one in families.get("shares", ()))


def _of_profile(reports: Reports, row: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """Shares of a profile's two arms, from its comparison beside the ledger; empty where that is missing or not what
    its name says."""
    raw = next((one["raw"] for one in row.get("documents", ()) if one["name"] == "comparison.json"), "")
    try:
        path = reports.ledger.path(raw) if raw and reports.ledger is not None else Path()
        data = path.read_bytes() if raw else b""
        if hashlib.sha256(data).hexdigest() != path.name.partition(".")[0]:
            return {}, {}
        families = json.loads(data)["comparison"]["families"]
        sides = [{one["name"]: one[f"{side}_ns"] for one in families} for side in ("before", "after")]
    except (OSError, ValueError, KeyError, TypeError, CampaignError):
        return {}, {}
    before, after = (
        _summed((name, value / total) for name, value in side.items()) if (total := sum(side.values())) else {}
        for side in sides
    )
    return before, after


def _summed(shares: Iterator[tuple[Any, Any]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for title, share in shares:
        if isinstance(title, str) and isinstance(share, int | float) and share == share:
            found[title] = found.get(title, 0.0) + float(share)
    return found


def _lines(before: Side, after: Side | None) -> list[tuple[str, float, float]]:
    """(family, share before, share after), the largest first and the smallest ones as one."""
    other = after.shares if after else {}
    names = sorted(
        {*before.shares, *other}, key=lambda name: (-max(before.shares.get(name, 0), other.get(name, 0)), name)
    )
    lines = [(name, before.shares.get(name, 0.0), other.get(name, 0.0)) for name in names]
    if len(lines) <= MOST + 1:
        return lines
    rest = lines[MOST:]
    return [*lines[:MOST], (f"{REST} ({len(rest)})", sum(one[1] for one in rest), sum(one[2] for one in rest))]


def _alt(before: Side, after: Side | None, lines: Sequence[tuple[str, float, float]]) -> str:
    if after is None:
        said = "; ".join(f"{plain(name)} {units.share(share)}" for name, share, _ in lines[:5])
        return f"Shares of the busy time of {before.name}: {said}."
    moved = sorted(lines, key=lambda line: -abs(line[2] - line[1]))[:4]
    said = "; ".join(f"{plain(name)} {units.share(old)} to {units.share(new)}" for name, old, new in moved)
    return f"Shares of the busy time from {before.name} to {after.name}, the largest changes first: {said}."


def _draw(
    sheet: Sheet, lines: Sequence[tuple[str, float, float]], entries: Sequence[Key], top: float, two: bool
) -> None:
    sheet.key(entries, 0.0)
    axes = sheet.lanes(top, PITCH * len(lines), left=LEFT + 8, right=RIGHT - 8)
    longest = max(max(old, new) for _, old, new in lines)
    scale(axes, "x", 0.0, 100 * max(longest, 1e-4) * 1.02, lambda value: f"{value:g} %")
    grid(axes, [(top + PITCH * place + 21, top + PITCH * (place + 1)) for place in range(len(lines))])
    for place, (name, old, new) in enumerate(lines):
        y = top + PITCH * place
        said = f"{units.share(old)} → {units.share(new)}" if two else units.share(old)
        sheet.text(LEFT, y + 13, fitted(name, RIGHT - LEFT - width(said, SMALL) - 12, SMALL), size=SMALL)
        sheet.text(RIGHT, y + 13, said, size=SMALL, align="right", weight="bold")
        axes.barh([y + 28], [100 * old], height=BAR, color=LIGHT[QUIET])
        if two:
            axes.barh([y + 28 + BAR], [100 * new], height=BAR, color=LIGHT[BLUE])
        if place:
            axes.axhline(y - 0.5, color=LIGHT[LINE], lw=0.6, zorder=0)
    words = "share of the busy time, %"
    sheet.text((LEFT + RIGHT) / 2, top + PITCH * len(lines) + 40, words, size=SMALL, align="center")
