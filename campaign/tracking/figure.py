"""The picture of a decision: per-round ratios with the interval and the thresholds above, step times by turn below.

Drawn with matplotlib's Figure API (no pyplot, no display), at 150 dots an inch: 1,350 pixels wide, readable at 900.
Colours are Okabe and Ito's blue and vermilion, told apart by shape as well (circle and triangle).
"""

from __future__ import annotations

import io
import math
import statistics
from typing import TYPE_CHECKING, Any

from campaign import units
from campaign.records import Block, Decision, Effect, Evidence, Round
from campaign.tracking.words import run_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, VERMILION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
_STYLES = ((BLUE, "o"), (VERMILION, "^"), (GREEN, "s"), ("#CC79A7", "D"))
LEGEND: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False, "borderaxespad": 0.0}


def decision_png(decision: Decision, evidence: Evidence) -> bytes | None:
    """The figure as PNG bytes, or None when no ratio was measured."""
    if decision.verdict.effect is None or not math.isfinite(decision.verdict.effect.ratio):
        return None
    figure = draw(decision, evidence)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def draw(decision: Decision, evidence: Evidence) -> Figure:
    """The figure of a decision that has an effect. Ratios are control/treatment seconds: above 1 is faster."""
    from matplotlib.figure import Figure

    effect = decision.verdict.effect
    if effect is None:
        raise ValueError(f"{decision.id} has no effect to draw")
    rounds = [round_ for round_ in evidence.rounds if round_.blocks]
    figure = Figure(figsize=(9, 6.4 if rounds else 3.6), dpi=150, layout="constrained")
    figure.suptitle(
        f"{run_name(decision)}\n{units.ratio(effect.ratio)} {units.interval(effect.low, effect.high)} "
        f"over {effect.rounds} rounds, {effect.clock} clock, {decision.workload} on {decision.device}",
        fontsize=12,
    )
    axes = figure.subplots(2 if rounds else 1, 1, squeeze=False, height_ratios=[1.1, 1] if rounds else [1])[:, 0]
    _draw_ratios(axes[0], effect, 1 + evidence.plan.threshold)
    if rounds:
        _draw_blocks(axes[1], rounds, effect.clock)
    return figure


def _draw_ratios(axes: Axes, effect: Effect, worthy: float) -> None:
    numbers = range(1, len(effect.round_ratios) + 1)
    if math.isfinite(effect.low) and math.isfinite(effect.high):
        axes.axhspan(effect.low, effect.high, color=BLUE, alpha=0.15, lw=0, label="95 % interval")
    axes.axhline(effect.ratio, color=BLUE, lw=2, label=f"effect {units.ratio(effect.ratio)}")
    axes.axhline(1.0, color=GREY, lw=1.2, label="no change")
    axes.axhline(worthy, color=VERMILION, lw=1.5, ls="--", label=f"worth it: {worthy:.3f}")
    axes.plot(numbers, effect.round_ratios, "o", color=BLUE, mec="white", ms=8, label="one round", zorder=3)
    axes.set_xlim(0.5, max(len(effect.round_ratios), 1) + 0.5)
    axes.set_xticks(list(numbers))
    axes.set_xlabel("round that counts")
    axes.set_ylabel("control / treatment\n(above 1 is faster)")
    axes.legend(**LEGEND)


def _draw_blocks(axes: Axes, rounds: list[Round], clock: str) -> None:
    arms = sorted({block.arm for round_ in rounds for block in round_.blocks})
    top = _top([_step_ms(block, clock) for round_ in rounds for block in round_.blocks])
    start, above = 0, 0
    centres = []
    for round_ in rounds:
        turns = max(block.position for block in round_.blocks) + 1
        for arm, (colour, marker) in zip(arms, _STYLES, strict=False):
            own = [block for block in round_.blocks if block.arm == arm]
            if not own:
                continue
            times = [_step_ms(block, clock) for block in own]
            above += sum(time > top for time in times)
            places = [start + block.position for block in own]
            axes.plot(places, [min(time, top) for time in times], marker, ms=3, color=colour, alpha=0.7, mew=0)
            axes.hlines(statistics.median(times), start, start + turns - 1, color=colour, lw=1.5)
        centres.append(start + (turns - 1) / 2)
        start += turns
        axes.axvline(start - 0.5, color="#bbbbbb", lw=0.8)
    for arm, (colour, marker) in zip(arms, _STYLES, strict=False):
        axes.plot([], [], marker + "-", ms=6, color=colour, label=f"{arm}\n(line: median)")
    axes.set_xlim(-0.5, start - 0.5)
    axes.set_xticks(centres, [_label(round_) for round_ in rounds])
    axes.set_xlabel("round (c: to confirm), and the blocks inside it in the order they ran")
    axes.set_ylabel(f"step time, ms\n({clock} clock)")
    if above:
        axes.axhline(top, color=GREY, lw=0.8, ls=":", label=f"{above} blocks lie\nabove, drawn here")
    axes.legend(**LEGEND)


def _top(times: list[float]) -> float:
    """Where the axis ends: far outliers are counted and drawn at the edge, so that they don't flatten the rest."""
    middle, upper = statistics.median(times), max(times)
    limit = middle + 6 * statistics.median([abs(time - middle) for time in times]) + 0.25 * middle
    return upper if upper <= 1.2 * limit else limit


def _label(round_: Round) -> str:
    return f"{round_.index + 1}" if round_.stage == "screen" else f"{round_.stage[0]}{round_.index + 1}"


def _step_ms(block: Block, clock: str) -> float:
    seconds = block.wall_seconds
    if clock == "cpu":
        seconds = block.cpu_seconds
    elif clock == "device" and block.device_seconds is not None:
        seconds = block.device_seconds
    return 1e3 * seconds / max(block.steps, 1)
