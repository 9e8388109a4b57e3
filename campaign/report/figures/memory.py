"""Throughput against peak memory: every decision that measured both, and the way that the accepted edits took."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from campaign import units
from campaign.records import ACCEPT
from campaign.report.figures._climb import Climb, climb, measured, number, row_name, tick
from campaign.report.figures._figure import WIDTH, Figure, unique
from campaign.report.figures._palette import BLUE, GREEN, INK, LIGHT, QUIET
from campaign.report.figures._sheet import (
    LEFT,
    RIGHT,
    SMALL,
    Key,
    Sheet,
    key_height,
    scale,
    style,
)
from campaign.report.figures._words import latest, sentences, width
from campaign.report.reported import Reported, Reports

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ORDER = 40
TITLE = "Throughput against peak memory"
MOST = 40  # decisions off the path
MOST_NAMED = 12
HIGH = 300.0
AXES_LEFT = 78.0
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Point:
    """A configuration: peak memory in MiB, speed as a ratio against root, its row and its name in the drawing."""

    mebibytes: float
    ratio: float
    row: str
    name: str


def figure(reports: Reports) -> Figure | None:
    told = climb(reports)
    path = _path(reports, told)
    on_path = {point.row for point in path}
    others = [point for row in reports.rows if (point := _point(row, told)) and point.row not in on_path]
    if not path and not others:
        return None
    shown = others[-MOST:]
    entries = _entries(path, shown)
    top = key_height(entries) + 14
    missing = sum(measured(row.decision.verdict.effect) and not row.null for row in reports.rows) - len(
        {point.row for point in (*path, *others) if point.row.startswith("#")}
    )
    return Figure(
        name="memory",
        title=TITLE,
        alt=_alt(told, path, others),
        caption=sentences(
            f"Up is faster, left is less memory. Rates are root's {number(told.rate)} {told.unit} times the ratio "
            "against root; peaks are those of the treatment.",
            f"{units.counted(missing, 'decision')} not drawn: no peak was compared, or the ratio is to a stack that is "
            "gone."
            if missing > 0
            else "",
            latest(len(shown), len(others), "decisions off the path"),
        ),
        evidence="Published rounds for the ratio; peaks of untimed steps of the same trials for the memory "
        f"({units.counted(len(path) + len(shown), 'configuration')}).",
        rows=unique(point.row for point in (*path, *shown)),
        height=top + HIGH + 62,
        draw=lambda sheet: _draw(sheet, told, path, shown, entries, top),
    )


def absent(reports: Reports) -> str:
    return "No decision or headline compared the peak memory of its arms beside their speed."


def _path(reports: Reports, told: Climb) -> list[Point]:
    """Root, each accepted edit whose peak is known, and the measured head."""
    found: list[Point] = []
    whole, memory = told.whole, told.head.found.finding.memory if told.head else None
    for level in told.levels:
        change = level.row.decision.verdict.memory
        if change is None or not level.timed:
            continue
        row = row_name(level.row)
        if not found and not level.row.decision.stack:
            found.append(Point(change.control_bytes / units.MIB, 1.0, row, "root"))
        found.append(Point(change.treatment_bytes / units.MIB, level.ratio, row, row))
    if whole is not None and memory is not None and told.head is not None:
        row = row_name(told.head)
        if not found:
            found.append(Point(memory.control_bytes / units.MIB, 1.0, row, "root"))
        found.append(Point(memory.treatment_bytes / units.MIB, whole.ratio, row, "head"))
    return found


def _point(row: Reported, told: Climb) -> Point | None:
    """A decision's treatment against root; None where its ratio does not reach root or no peak was compared."""
    effect, change = row.decision.verdict.effect, row.decision.verdict.memory
    if effect is None or not measured(effect) or change is None or row.null:
        return None
    ratio = effect.ratio
    if row.combined is not None and measured(row.combined.cumulative):
        ratio = row.combined.cumulative.ratio
    elif row.decision.stack:
        names = [level.row.decision.hypothesis for level in told.levels]
        below = list(row.decision.stack)
        if names[: len(below)] != below:
            return None
        ratio *= told.levels[len(below) - 1].ratio
    return Point(change.treatment_bytes / units.MIB, ratio, row_name(row), row_name(row))


def _alt(told: Climb, path: Sequence[Point], others: Sequence[Point]) -> str:
    parts = []
    if path:
        first, last = path[0], path[-1]
        parts.append(
            f"The accepted path goes from {first.name} at {number(told.rate * first.ratio)} {told.unit} and "
            f"{_mebibytes(first.mebibytes)} to {last.name} at {number(told.rate * last.ratio)} and "
            f"{_mebibytes(last.mebibytes)}."
        )
    if others:
        least, fastest = min(others, key=lambda one: one.mebibytes), max(others, key=lambda one: one.ratio)
        parts.append(
            f"{units.counted(len(others), 'other decision')}: fastest {fastest.name} at "
            f"{number(told.rate * fastest.ratio)} and {_mebibytes(fastest.mebibytes)}, smallest {least.name} at "
            f"{_mebibytes(least.mebibytes)}."
        )
    return " ".join(parts)


def _mebibytes(value: float) -> str:
    return f"{value:,.1f} MiB"


def _entries(path: Sequence[Point], others: Sequence[Point]) -> list[Key]:
    found: list[Key] = []
    if path:
        found.append(("o", BLUE, True, f"{ACCEPT}ed, in order"))
        if path[-1].name == "head":
            found.append(("D", GREEN, True, "head, measured"))
    return found + ([("s", QUIET, False, "not in the stack")] if others else [])


def _draw(
    sheet: Sheet, told: Climb, path: Sequence[Point], others: Sequence[Point], entries: Sequence[Key], top: float
) -> None:
    sheet.key(entries, 0.0)
    every = [*path, *others]
    axes = sheet.axes(AXES_LEFT, top, RIGHT - AXES_LEFT - 8, HIGH, grid="xy")
    for name, values in (("x", [one.mebibytes for one in every]), ("y", [told.rate * one.ratio for one in every])):
        room = 0.12 * (max(values) - min(values)) or 0.04 * max(values)
        scale(axes, name, min(values) - room, max(values) + room, tick)
    if others:
        places = [one.mebibytes for one in others], [told.rate * one.ratio for one in others]
        axes.plot(*places, **style("s", QUIET, filled=False), ms=7, zorder=2)
    if path:
        places = [one.mebibytes for one in path], [told.rate * one.ratio for one in path]
        axes.plot(*places, color=LIGHT[BLUE], lw=1.8, zorder=3)
        axes.plot(*places, **style("o", BLUE), ms=10, zorder=4)
        if path[-1].name == "head":
            axes.plot([path[-1].mebibytes], [told.rate * path[-1].ratio], **style("D", GREEN), ms=11, zorder=5)
    _name(sheet, axes, told, path, others)
    sheet.text((AXES_LEFT + RIGHT) / 2, top + HIGH + 44, "peak memory, MiB", size=SMALL, align="center")
    sheet.text(LEFT + 2, top + HIGH / 2, told.unit, size=SMALL, align="center", turned=True)


def _name(sheet: Sheet, axes: Axes, told: Climb, path: Sequence[Point], others: Sequence[Point]) -> None:
    """A name beside each point where there is room for it: of the path first, ends before the middle."""
    (low_x, high_x), (low_y, high_y) = axes.get_xlim(), axes.get_ylim()
    box = axes.get_position()
    left, wide = box.x0 * WIDTH, box.width * WIDTH
    top, high = (1 - box.y1) * sheet.height, box.height * sheet.height

    def at(one: Point) -> tuple[float, float]:
        x = left + wide * (one.mebibytes - low_x) / (high_x - low_x)
        return x, top + high * (1 - (told.rate * one.ratio - low_y) / (high_y - low_y))

    every = [*path, *others]
    taken: list[Box] = [(x - 6, y - 6, x + 6, y + 6) for x, y in map(at, every)]
    for first, second in pairwise(map(at, path)):
        taken += _along(first, second)
    ends = [*path[:1], *path[:0:-1]] if path else []
    for one in (*ends, *reversed(others))[: MOST_NAMED + len(ends)]:
        x, y = at(one)
        long = width(one.name, SMALL)
        for place in _places(x, y, long):
            inside = place[0] >= left - 4 and place[2] <= RIGHT + 6 and place[1] >= top - 8 and place[3] <= top + high
            if inside and not any(_touch(place, other) for other in taken):
                taken.append(place)
                colour = INK if one in path else QUIET
                sheet.text(place[0], (place[1] + place[3]) / 2, one.name, size=SMALL, colour=colour)
                break


def _places(x: float, y: float, long: float) -> list[Box]:
    """Where the name of a point may stand, the best place first."""
    near = 9.0
    found = []
    for dx, dy in ((near, -10), (-near - long, -10), (near, 10), (-near - long, 10), (-long / 2, -17), (-long / 2, 17)):
        found.append((x + dx, y + dy - 7, x + dx + long, y + dy + 7))
    return found


def _along(first: tuple[float, float], second: tuple[float, float]) -> Iterator[Box]:
    """Small boxes along the line between two points, for names to keep off."""
    steps = int(math.dist(first, second) / 7) + 1
    for step in range(1, steps):
        x, y = (a + (b - a) * step / steps for a, b in zip(first, second, strict=True))
        yield x - 2, y - 2, x + 2, y + 2


def _touch(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
