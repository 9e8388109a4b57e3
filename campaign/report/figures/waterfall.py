"""The accepted edits in the order of the stack, each from the rate before it to the rate after it, then the head as it
was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from campaign import units
from campaign.report.figures._climb import Climb, Level, climb, number, row_name, tick
from campaign.report.figures._figure import Figure, unique
from campaign.report.figures._palette import BLUE, GREEN, INK, LIGHT, LINE, QUIET, VERMILION
from campaign.report.figures._sheet import (
    LEFT,
    RIGHT,
    SMALL,
    Key,
    Sheet,
    grid,
    key_height,
    rules,
    scale,
    spans,
    style,
)
from campaign.report.figures._words import fitted, latest, sentences, width
from campaign.report.reported import Reports

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ORDER = 20
TITLE = "What each accepted edit added"
MOST = 14  # edits
PITCH, BAR, LANE = 46.0, 13.0, 30.0  # a row, its bar, and where in the row the bar is


def figure(reports: Reports) -> Figure | None:
    if not reports.stack:
        return None
    told = climb(reports)
    shown = told.levels[-MOST:]
    head = told.whole
    entries = _entries(told, shown)
    count = len(shown) + 2
    top = key_height(entries) + 8
    multiplied = [level for level in shown if level.timed and not level.measured]
    untimed = [level for level in shown if not level.timed]
    rows = [row_name(level.row) for level in shown]
    rows += [told.source] if told.source else []
    rows += [row_name(told.head)] if told.head is not None else []
    return Figure(
        name="waterfall",
        title=TITLE,
        alt=_alt(told, shown),
        caption=sentences(
            latest(len(shown), len(told.levels), "accepted edits"),
            f"Rates are root's {number(told.rate)} {told.unit} times the ratios against root; the axis does not start "
            "at 0.",
            "A bar goes from the level before an edit to the level after it, the line is the level's 95 % interval."
            if any(level.measured for level in shown)
            else "",
            f"{_named(multiplied)}: root was not timed beside it on this stack, so the level is the one before times "
            "the edit's own ratio, which is arithmetic."
            if multiplied
            else "",
            f"{_named(untimed)}: in the stack by a person's ruling, without a ratio." if untimed else "",
            _of_head(told),
        ),
        evidence="Published rounds of each decision"
        + (f" and {units.counted(head.rounds, 'fresh round')} of root against head." if head else "; head unmeasured."),
        rows=unique(rows),
        height=top + PITCH * count + 58,
        draw=lambda sheet: _draw(sheet, told, shown, entries, top),
    )


def absent(reports: Reports) -> str:
    return "No edit is in the stack yet."


def _named(levels: Sequence[Level]) -> str:
    names = [row_name(level.row) for level in levels]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} others" if len(names) > 8 else "")


def _of_head(told: Climb) -> str:
    if told.head is None:
        return "Head has not been measured against root: campaign revalidate does."
    return "" if told.head.present else "Head was measured before the stack moved."


def _alt(told: Climb, shown: Sequence[Level]) -> str:
    steps = [
        f"{level.name} to {number(told.rate * level.ratio)} ({units.ratio(level.ratio / level.before)})"
        for level in shown
    ]
    first = shown[0].before
    whole = told.whole
    end = "Head is not measured."
    if whole is not None:
        end = f"Head measured {number(told.rate * whole.ratio)}, {units.ratio(whole.ratio)} "
        end += f"{units.interval(whole.low, whole.high)} of root."
    return f"From {number(told.rate * first)} {told.unit}: {'; '.join(steps)}. {end}"


def _entries(told: Climb, shown: Sequence[Level]) -> list[Key]:
    found: list[Key] = []
    if any(level.ratio >= level.before and level.measured for level in shown):
        found.append(("s", BLUE, True, "gain"))
    if any(level.timed and not level.measured for level in shown):
        found.append(("s", BLUE, False, "multiplied, not measured"))
    if any(level.ratio < level.before for level in shown):
        found.append(("s", VERMILION, True, "loss"))
    found.append(("d", QUIET, True, "root"))
    if told.whole is not None:
        found.append(("D", GREEN, True, "head, measured"))
    return found


def _draw(sheet: Sheet, told: Climb, shown: Sequence[Level], entries: Sequence[Key], top: float) -> None:
    sheet.key(entries, 0.0)
    rate, whole = told.rate, told.whole
    count = len(shown) + 2
    axes = sheet.lanes(top, PITCH * count)
    edges = [shown[0].before, *(value for level in shown for value in (level.ratio, level.low, level.high))]
    if whole is not None:
        edges += [whole.ratio, whole.low, whole.high]
    known = [rate * value for value in edges if math.isfinite(value)]
    room = 0.06 * (max(known) - min(known) or 0.1 * max(known))
    scale(axes, "x", min(known) - room, max(known) + room, tick)
    grid(axes, [(top + PITCH * place + 21, top + PITCH * (place + 1) - 2) for place in range(count)])
    skipped = len(told.levels) - len(shown)
    start = f"root and {units.counted(skipped, 'earlier edit')}" if skipped else "root"
    _line(sheet, top, start, number(rate * shown[0].before))
    axes.plot([rate * shown[0].before], [top + LANE], **style("d", QUIET), ms=10, zorder=4)
    intervals = []
    for place, level in enumerate(shown, 1):
        y = top + PITCH * place
        _line(sheet, y, level.name, _words(rate, level))
        before, after = rate * level.before, rate * level.ratio
        _join(axes, before, y)
        colour = LIGHT[BLUE if after >= before else VERMILION]
        filled = {"facecolor": colour} if level.measured else {"facecolor": "none", "edgecolor": colour, "lw": 1.8}
        axes.barh([y + LANE], [after - before], left=before, height=BAR, zorder=2, **filled)
        intervals.append((rate * level.low, rate * level.high, y + LANE))
    y = top + PITCH * (count - 1)
    after = rate * shown[-1].ratio
    _join(axes, after, y)
    if whole is None:
        _line(sheet, y, "head", "not measured")
    else:
        said = f"{number(rate * whole.ratio)} ({units.ratio(whole.ratio)})"
        _line(sheet, y, "head against root" if told.head and told.head.present else "head of before against root", said)
        intervals.append((rate * whole.low, rate * whole.high, y + LANE))
        axes.plot([rate * whole.ratio], [y + LANE], **style("D", GREEN), ms=10, zorder=4)
    spans(axes, intervals, INK, ends=5, thick=1.8)
    for place in range(1, count):
        axes.axhline(top + PITCH * place - 1, color=LIGHT[LINE], lw=0.6, zorder=0)
    sheet.text((LEFT + RIGHT) / 2, top + PITCH * count + 40, told.unit, size=SMALL, align="center")


def _join(axes: Axes, x: float, y: float) -> None:
    """From the bar of the row before to that of the row at `y`, beside its words."""
    rules(axes, [x], [(y - PITCH + LANE, y - 1), (y + 21, y + LANE)], INK, lw=1.1, ls=":", zorder=1)


def _words(rate: float, level: Level) -> str:
    if not level.timed:
        return "not timed"
    return f"{number(rate * level.ratio)} ({units.ratio(level.ratio / level.before)})"


def _line(sheet: Sheet, y: float, name: str, said: str) -> None:
    """A row's name on the left and its number on the right, above its bar."""
    room = RIGHT - LEFT - width(said, SMALL) - 16
    sheet.text(LEFT, y + 12, fitted(name, room, SMALL), size=SMALL)
    sheet.text(RIGHT, y + 12, said, size=SMALL, align="right", weight="bold")
