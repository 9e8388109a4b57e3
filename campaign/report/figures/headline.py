"""Root against head: two bars of throughput, the ratio and its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from campaign import units
from campaign.interactions.words import size_pair
from campaign.records import Effect, MemoryChange
from campaign.report.figures._climb import RELATIVE, climb, headline, measured, number, row_name, tick, unit_of
from campaign.report.figures._figure import Figure
from campaign.report.figures._palette import BLUE, INK, LIGHT, QUIET
from campaign.report.figures._sheet import LEFT, RIGHT, SMALL, TEXT, Sheet, grid, scale, spans
from campaign.report.figures._words import fitted, listed, sentences
from campaign.report.reported import Reports

ORDER = 10
TITLE = "Root against head"
HEIGHT = 218.0
BAR_LEFT, BAR_RIGHT = 66.0, RIGHT - 84
ROOT_Y, HEAD_Y, AXIS_Y = 86.0, 132.0, 164.0


@dataclass(frozen=True)
class Told:
    """What is drawn: the rates of root and head, `unit` of both, the ratio with its interval, and where it is from."""

    root: float
    head: float
    unit: str
    ratio: float
    low: float
    high: float
    memory: MemoryChange | None
    stack: tuple[str, ...]
    rounds: int
    row: str
    fresh: bool
    present: bool = True


def figure(reports: Reports) -> Figure | None:
    told = _told(reports)
    if told is None:
        return None
    said = f"{units.ratio(told.ratio)}"
    if math.isfinite(told.low):
        said += f", 95 % interval {units.interval(told.low, told.high)}"
    rates = f"{number(told.root)} to {number(told.head)} {told.unit}"
    memory = ""
    if told.memory is not None:
        memory = f"Peak memory {size_pair(told.memory.control_bytes, told.memory.treatment_bytes)}."
    stack = f"root with {listed(told.stack)}" if told.stack else "root"
    moved = "" if told.present else "The stack has moved since this was measured."
    what = "fresh rounds of root against head" if told.fresh else "the rounds of the last accepted decision"
    return Figure(
        name="headline",
        title=TITLE if told.present else f"{TITLE}, before the stack moved",
        alt=sentences(f"Head runs at {said} of root's speed: from {rates}.", memory, moved),
        caption=sentences(
            f"Head is {stack}.",
            "The dot is root's rate times the paired ratio, the line its 95 % interval.",
            memory,
            moved,
            "" if told.fresh else "Root against head has not been measured by itself: campaign revalidate does.",
        ),
        evidence=f"Matched, unprofiled, interleaved rounds: {units.counted(told.rounds, 'round')}, {what}.",
        rows=(told.row,),
        height=HEIGHT,
        draw=lambda sheet: _draw(sheet, told),
    )


def absent(reports: Reports) -> str:
    if reports.stack:
        return "Root against head has not been measured: campaign revalidate does."
    return "No edit has been accepted yet, so head is root."


def _told(reports: Reports) -> Told | None:
    one = headline(reports)
    if one is not None and one.found.finding.effect is not None:
        finding = one.found.finding
        return _of(finding.effect, one.found.finding.memory, one.found.stack, row_name(one), True, one.present)
    if not reports.stack:
        return None
    *below, last = reports.stack
    names = tuple(row.decision.hypothesis for row in below)
    effect, memory = last.decision.verdict.effect, last.decision.verdict.memory
    if effect is None or not measured(effect) or tuple(last.decision.stack) != names:
        return None
    head = (*names, last.decision.hypothesis)
    if not names:
        return _of(effect, memory, head, row_name(last), False, True)
    combined = last.combined
    if combined is None or not measured(combined.cumulative):
        return None
    whole, climbed = combined.cumulative, climb(reports)
    return Told(
        root=climbed.rate,
        head=climbed.rate * whole.ratio,
        unit=climbed.unit,
        ratio=whole.ratio,
        low=whole.low,
        high=whole.high,
        memory=None,
        stack=head,
        rounds=whole.rounds,
        row=row_name(last),
        fresh=False,
    )


def _of(
    effect: Effect | None, memory: MemoryChange | None, stack: tuple[str, ...], row: str, fresh: bool, present: bool
) -> Told:
    assert effect is not None, "only what has a ratio is drawn"
    root, head, unit = effect.control_tokens_per_second, effect.treatment_tokens_per_second, unit_of(effect)
    if not (root > 0 and head > 0 and math.isfinite(root) and math.isfinite(head)):
        root, head, unit = 1.0, effect.ratio, RELATIVE
    return Told(
        root, head, unit, effect.ratio, effect.low, effect.high, memory, stack, effect.rounds, row, fresh, present
    )


def _draw(sheet: Sheet, told: Told) -> None:
    sheet.text(LEFT, 28, units.ratio(told.ratio), size=30, weight="bold")
    if math.isfinite(told.low):
        sheet.text(LEFT + 132, 32, f"95 % interval {units.interval(told.low, told.high)}", size=TEXT, colour=QUIET)
    axes = sheet.lanes(56, AXIS_Y - 56, left=BAR_LEFT, right=BAR_RIGHT)
    edges = [value for value in (told.root, told.head, told.root * told.high) if math.isfinite(value)]
    scale(axes, "x", 0.0, 1.02 * max(edges), tick, most=3)
    grid(axes, [(56, AXIS_Y)])
    axes.barh([ROOT_Y, HEAD_Y], [told.root, told.head], height=26, color=[LIGHT[QUIET], LIGHT[BLUE]])
    if math.isfinite(told.low):
        spans(axes, [(told.root * told.low, told.root * told.high, HEAD_Y)], INK, ends=7)
    axes.plot([told.root * told.ratio], [HEAD_Y], "o", color=LIGHT[INK], ms=6, zorder=4)
    for name, rate, y in (("root", told.root, ROOT_Y), ("head", told.head, HEAD_Y)):
        sheet.text(BAR_LEFT - 8, y, name, align="right")
        sheet.text(RIGHT, y, number(rate), align="right", weight="bold")
    sheet.text((BAR_LEFT + BAR_RIGHT) / 2, AXIS_Y + 34, fitted(told.unit, 330, SMALL), size=SMALL, align="center")
