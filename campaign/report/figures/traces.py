"""Raw block times in the order in which they ran: each arm's blocks, its level in every round, and how it drifted."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from campaign import units
from campaign.errors import CampaignError
from campaign.records import Block, Round
from campaign.report.figures._climb import headline, measured, row_name, tick
from campaign.report.figures._figure import Figure
from campaign.report.figures._palette import BLUE, LIGHT, LINE, QUIET
from campaign.report.figures._sheet import LEFT, RIGHT, SMALL, Key, Sheet, key_height, place, scale
from campaign.report.figures._words import fitted, plain, sentences
from campaign.report.reported import Reported, Reports, Studied

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ORDER = 70
TITLE = "Block times as they ran"
MOST = 3  # panels
MOST_TRIED = 12  # of the newest; the rounds of some may be gone
MOST_POINTS = 240  # of an arm in a panel
PANEL, GAP, AXES_LEFT = 150.0, 78.0, 74.0


@dataclass(frozen=True)
class Trace:
    """The rounds of one decision or finding: `base` and `other` are the arms drawn, `clock` the one that decided.
    `within` and `between` are the largest changes of the base arm's level inside a round and from round to round, as
    shares."""

    name: str
    row: str
    rounds: tuple[Round, ...]
    base: str
    other: str
    clock: str

    @property
    def within(self) -> float:
        return max(_drift([_milliseconds(one, self.clock) for one in _of(each, self.base)]) for each in self.rounds)

    @property
    def between(self) -> float:
        levels = [
            statistics.median(_milliseconds(one, self.clock) for one in _of(each, self.base)) for each in self.rounds
        ]
        return max(levels) / min(levels) - 1 if min(levels) > 0 else 0.0


def figure(reports: Reports) -> Figure | None:
    traces, missing = _traces(reports)
    if not traces:
        return None
    thinned = max(_every(trace) for trace in traces)
    blocks = sum(len(_of(each, arm)) for trace in traces for each in trace.rounds for arm in (trace.base, trace.other))
    rounds = sum(len(trace.rounds) for trace in traces)
    entries: list[Key] = [("o", QUIET, True, "control or root"), ("o", BLUE, True, "treatment or head")]
    top = key_height(entries)
    drifts = "; ".join(
        f"{trace.name}: the level of {trace.base} moved by at most {units.share(trace.within)} within a round and "
        f"{units.share(trace.between)} between rounds"
        for trace in traces
    )
    return Figure(
        name="traces",
        title=TITLE,
        alt=f"Step times of {blocks:,} blocks in {units.counted(rounds, 'round')}. {drifts}.",
        caption=sentences(
            "Root against head and the newest decisions. A dot is a block, a line the median of an arm in a round, a "
            "grey rule the end of a round; arms take turns, so drift moves both and the paired ratio stays.",
            "A block far above the others is drawn at the upper edge.",
            f"One block in {thinned} is drawn at most." if thinned > 1 else "",
            missing,
        ),
        evidence=f"Raw times of {blocks:,} blocks from {units.counted(rounds, 'round')}, on the clock that decided; "
        "none is left out of an effect.",
        rows=tuple(trace.row for trace in traces),
        height=top + len(traces) * (PANEL + GAP) + 4,
        draw=lambda sheet: _draw(sheet, traces, entries, top),
    )


def absent(reports: Reports) -> str:
    _, missing = _traces(reports)
    if not missing and reports.every and not any(_candidates(reports)):
        return "No decision has a ratio yet, so there are no block times behind one."
    return missing or "No raw block times of the newest decisions are in the ledger."


def _traces(reports: Reports) -> tuple[list[Trace], str]:
    """The newest traces that can be read, and a sentence about those that cannot."""
    found: list[Trace] = []
    lost: list[str] = []
    for one in islice(_candidates(reports), MOST_TRIED):
        if len(found) == MOST or len(lost) == MOST:
            break
        try:
            trace = _trace(reports, one)
        except CampaignError:
            lost.append(row_name(one))
            continue
        if trace is not None:
            found.append(trace)
    said = f"The raw block times of {', '.join(lost)} are missing or altered: campaign ledger --check says more."
    return found, said if lost else ""


def _candidates(reports: Reports) -> Iterator[Reported | Studied]:
    head = headline(reports)
    if head is not None:
        yield head
    yield from (row for row in reversed(reports.rows) if measured(row.decision.verdict.effect))


def _trace(reports: Reports, one: Reported | Studied) -> Trace | None:
    ledger = reports.ledger
    if ledger is None:
        return None
    if isinstance(one, Studied):
        clock, base, other = one.study.protocol.clock, one.study.base, "head"
        name, every = "root against head", ledger.study_evidence(one.study.id).rounds
    else:
        clock, base, other = one.clock, "control", "treatment"
        name, every = f"#{one.sequence} {plain(one.label)}", ledger.evidence(one.plan.id).rounds
    rounds = tuple(each for each in every if _of(each, base) and _of(each, other))
    return Trace(name, row_name(one), rounds, base, other, clock) if rounds else None


def _of(each: Round, arm: str) -> list[Block]:
    return sorted((block for block in each.blocks if block.arm == arm), key=lambda block: block.position)


def _milliseconds(block: Block, clock: str) -> float:
    """Of one step."""
    seconds: float | None = getattr(block, f"{clock}_seconds")
    return 1e3 * (block.wall_seconds if seconds is None else seconds) / max(block.steps, 1)


def _drift(times: Sequence[float]) -> float:
    """The median of the later half against that of the earlier, as a share above 0 (as `effects.level_drift`)."""
    half = len(times) // 2
    if not half:
        return 0.0
    early, late = statistics.median(times[:half]), statistics.median(times[-half:])
    return math.expm1(abs(math.log(late / early))) if early > 0 and late > 0 else 0.0


def _every(trace: Trace) -> int:
    """One block in so many is drawn."""
    most = max(sum(len(_of(each, arm)) for each in trace.rounds) for arm in (trace.base, trace.other))
    return math.ceil(most / MOST_POINTS)


def _draw(sheet: Sheet, traces: Sequence[Trace], entries: Sequence[Key], top: float) -> None:
    sheet.key(entries, 0.0)
    for number_of, trace in enumerate(traces):
        y = top + 4 + number_of * (PANEL + GAP)
        drift = f"drift {units.share(trace.within)}"
        sheet.text(LEFT, y + 12, fitted(trace.name, 290, SMALL), size=SMALL, weight="bold")
        sheet.text(RIGHT, y + 12, drift, size=SMALL, align="right")
        _panel(sheet, trace, y + 26)


def _panel(sheet: Sheet, trace: Trace, top: float) -> None:
    axes = sheet.axes(AXES_LEFT, top, RIGHT - AXES_LEFT, PANEL, grid="y")
    every = _every(trace)
    times = [_milliseconds(block, trace.clock) for each in trace.rounds for block in each.blocks if block.arm in
             (trace.base, trace.other)]  # fmt: skip
    ceiling = _ceiling(times)
    room = 0.06 * (ceiling - min(times)) or 0.05 * ceiling
    scale(axes, "y", min(times) - room, ceiling + room, tick, most=3)
    start, centres = 0, []
    dots: dict[str, tuple[list[float], list[float]]] = {trace.base: ([], []), trace.other: ([], [])}
    for each in trace.rounds:
        turns = max(block.position for block in each.blocks) + 1
        for arm, colour in ((trace.base, QUIET), (trace.other, BLUE)):
            own = [(start + block.position, _milliseconds(block, trace.clock)) for block in _of(each, arm)]
            level = statistics.median(time for _, time in own)
            axes.plot([start, start + turns - 1], [level, level], color=LIGHT[colour], lw=2, zorder=3)
            for turn, time in own[::every]:
                dots[arm][0].append(turn)
                dots[arm][1].append(min(time, ceiling))
        centres.append(start + (turns - 1) / 2)
        start += turns
        axes.axvline(start - 0.5, color=LIGHT[LINE], lw=1, zorder=0)
    for arm, colour in ((trace.base, QUIET), (trace.other, BLUE)):
        _dots(axes, *dots[arm], LIGHT[colour], start)
    labels = [_label(each) for each in trace.rounds]
    step = math.ceil(len(labels) / 12)
    place(axes, "x", -0.5, start - 0.5, list(zip(centres, labels, strict=True))[::step])
    sheet.text(LEFT + 2, top + PANEL / 2, "ms a step", size=SMALL, align="center", turned=True)
    confirmed = " (c: to confirm)" if any(label.startswith("c") for label in labels) else ""
    words = f"round{confirmed}, {trace.clock} clock"
    sheet.text((AXES_LEFT + RIGHT) / 2, top + PANEL + 34, words, size=SMALL, align="center")


def _dots(axes: Axes, xs: Sequence[float], ys: Sequence[float], colour: str, wide: float) -> None:
    """All dots as one path of strokes that are as long as they are thick: a tenth of the size of markers."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    tiny = wide / 8_000
    points = [point for x, y in zip(xs, ys, strict=True) for point in ((x - tiny, y), (x + tiny, y))]
    path = Path(points, [Path.MOVETO, Path.LINETO] * len(xs))
    path.should_simplify = False
    axes.add_patch(
        PathPatch(path, facecolor="none", edgecolor=colour, lw=3.4, capstyle="round", alpha=0.55, zorder=2, snap=False)
    )


def _ceiling(times: Sequence[float]) -> float:
    """Where the axis ends: a few blocks that were held up must not press the others flat."""
    middle, upper = statistics.median(times), max(times)
    limit = middle + 6 * statistics.median([abs(time - middle) for time in times]) + 0.25 * middle
    return upper if upper <= 1.2 * limit else limit


def _label(each: Round) -> str:
    return f"c{each.index + 1}" if each.stage in ("confirm", "reconfirm") else f"{each.index + 1}"
