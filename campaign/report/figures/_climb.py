"""The way from root to head in rates: where each accepted edit brought the stack, and by which measurement."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from campaign.records import Contrast, Effect
from campaign.records.study import HEADLINE
from campaign.report.figures._words import plain
from campaign.report.reported import Reported, Reports, Studied

TOKENS, CPU_TOKENS, RELATIVE = "tokens/s", "tokens/s of CPU time", "speed, root = 1 (ratio)"


@dataclass(frozen=True)
class Level:
    """Where an accepted edit brought the stack, as ratios against root; `before` is where it stood.

    `measured`: root and the edit on the stack ran in the same rounds. Otherwise `ratio` is `before` times the edit's
    own ratio, and `low` and `high` carry the interval of that one alone; an edit that was never timed changes nothing.
    """

    row: Reported
    before: float
    ratio: float
    low: float
    high: float
    measured: bool
    timed: bool = True

    @property
    def name(self) -> str:
        return f"#{self.row.sequence} {plain(self.row.label)}"


@dataclass(frozen=True)
class Climb:
    """`rate` is root's, in `unit`, taken from the row `source`; `head` the newest measurement of root against head with
    an effect, None without one."""

    rate: float
    unit: str
    source: str
    levels: tuple[Level, ...]
    head: Studied | None

    @property
    def whole(self) -> Effect | None:
        """Root against head as it was measured."""
        return self.head.found.finding.effect if self.head else None


def row_name(one: Reported | Studied) -> str:
    """'#3' of a decision, 'finding 2' of a finding."""
    return f"#{one.sequence}" if isinstance(one, Reported) else f"finding {one.sequence}"


def headline(reports: Reports) -> Studied | None:
    """The newest root-against-head finding with a ratio, one about the present stack before any other."""
    one = reports.newest(HEADLINE)
    return one if one is not None and measured(one.found.finding.effect) else None


def measured(effect: Effect | Contrast | None) -> bool:
    """Whether there is a ratio to draw."""
    return effect is not None and math.isfinite(effect.ratio) and effect.ratio > 0


def unit_of(effect: Effect) -> str:
    return CPU_TOKENS if effect.clock == "cpu" else TOKENS


def climb(reports: Reports) -> Climb:
    """The levels of the present stack, in order. Root's rate is the headline's, else that of a decision of the stack;
    where steps have no tokens it is 1 and everything is a ratio."""
    head = headline(reports)
    rate, unit, source = next(_roots(reports, head), (1.0, RELATIVE, ""))
    levels: list[Level] = []
    names: list[str] = []
    for row in reports.stack:
        before = levels[-1].ratio if levels else 1.0
        levels.append(_level(row, before, tuple(names)))
        names.append(row.decision.hypothesis)
    return Climb(rate, unit, source, tuple(levels), head)


def _roots(reports: Reports, head: Studied | None) -> Iterator[tuple[float, str, str]]:
    """Root's rate, its unit and its row, the best source first."""
    found: list[tuple[float, Effect, Reported | Studied]] = []
    if head is not None and head.found.finding.effect is not None:
        found.append((head.found.finding.effect.control_tokens_per_second, head.found.finding.effect, head))
    for row in (*reports.stack, *reversed(reports.rows)):
        effect, combined = row.decision.verdict.effect, row.combined
        if effect is None or not measured(effect) or row.null:
            continue
        if not row.decision.stack:
            found.append((effect.control_tokens_per_second, effect, row))
        elif combined is not None and measured(combined.cumulative):
            found.append((effect.treatment_tokens_per_second / combined.cumulative.ratio, effect, row))
    for rate, effect, one in found:
        if math.isfinite(rate) and rate > 0:
            yield rate, unit_of(effect), row_name(one)


def _level(row: Reported, before: float, below: tuple[str, ...]) -> Level:
    effect, combined = row.decision.verdict.effect, row.combined
    if effect is None or not measured(effect):
        return Level(row, before, before, math.nan, math.nan, measured=False, timed=False)
    own = tuple(row.decision.stack)
    if own == below and not own:
        return Level(row, before, effect.ratio, effect.low, effect.high, measured=True)
    if own == below and combined is not None and measured(combined.cumulative):
        whole = combined.cumulative
        return Level(row, before, whole.ratio, whole.low, whole.high, measured=True)
    return Level(row, before, before * effect.ratio, before * effect.low, before * effect.high, measured=False)


def number(value: float) -> str:
    """A rate to four digits or to one token: '13,650', '842.1', '41.30', '1.107'."""
    digits = next((digits for least, digits in ((1000, 0), (100, 1), (10, 2)) if abs(value) >= least), 3)
    return f"{value:,.{digits}f}"


def tick(value: float) -> str:
    """A number at an axis: '13,650', '850', '0.5'."""
    return f"{value:,.10g}"
