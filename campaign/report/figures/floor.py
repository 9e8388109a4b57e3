"""The floor: what equal arms measured as, and the smallest effect that this machine can tell from nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from campaign import units
from campaign.report.figures._climb import row_name
from campaign.report.figures._figure import Figure, unique
from campaign.report.figures._palette import BLUE, INK, LIGHT, QUIET, VERMILION
from campaign.report.figures._scatter import Scatter, nulls_of, scatter
from campaign.report.figures._sheet import LEFT, RIGHT, SMALL, Key, Sheet, grid, key_height, place, scale, spans, style
from campaign.report.figures._words import latest, sentences
from campaign.report.reported import Reported, Reports

ORDER = 80
TITLE = "The floor"
FEWEST, POWER = 3, 0.95
MOST_NULLS = 8
HIGH, AXES_LEFT, NULL_PITCH = 190.0, 74.0, 34.0


def figure(reports: Reports) -> Figure | None:
    told = scatter(reports)
    if told is None:
        return None
    nulls = nulls_of(reports)
    shown = nulls[-MOST_NULLS:]
    counts = rounds_of(told)
    resolved = [100 * smallest(told, count) for count in counts]
    entries: list[Key] = [("o", BLUE, True, "smallest effect found"), ("_", VERMILION, True, "d, worth having")]
    if shown:
        entries.append(("s", QUIET, True, "A/A, 95 %"))
    top = key_height(entries) + 10
    last = told.last
    return Figure(
        name="floor",
        title=TITLE,
        alt=sentences(
            f"Rounds scatter by {units.share(told.sd)}: {last} of them find {100 * smallest(told, last):.2g} % with "
            f"{100 * POWER:.0f} % power at alpha {told.alpha:g}, {counts[0]} find {resolved[0]:.2g} %; d is "
            f"{100 * told.threshold:.3g} %.",
            _of_nulls(nulls),
        ),
        caption=sentences(
            f"The curve is the smallest speedup that so many rounds find with {100 * POWER:.0f} % power at one-sided "
            f"alpha {told.alpha:g}, as declared in {told.plan_row}.",
            "Below, equal arms against each other: their intervals should hold 1." if shown else "",
            latest(len(shown), len(nulls), "A/A nulls"),
        ),
        evidence=_evidence(told, nulls),
        rows=unique([*told.rows, told.plan_row, *(row_name(row) for row in shown)]),
        height=top + HIGH + 56 + (NULL_PITCH * len(shown) + 62 if shown else 0),
        draw=lambda sheet: _draw(sheet, told, counts, resolved, shown, entries, top),
    )


def absent(reports: Reports) -> str:
    return (
        "No rounds have been compared, so their scatter is not known: campaign hypothesis=aa_null measures the floor."
    )


def rounds_of(told: Scatter) -> list[int]:
    """The numbers of rounds on the axis: up to the last declared look, and a third more."""
    last = max(told.last, 6)
    return list(range(min(FEWEST, last), math.ceil(last * 4 / 3) + 1))


def smallest(told: Scatter, rounds: int) -> float:
    """The smallest speedup, as a fraction, that `rounds` rounds find."""
    from campaign.effects import resolves

    return resolves(told.sd, rounds, told.alpha, POWER)


def _of_nulls(nulls: Sequence[Reported]) -> str:
    effects = [row.decision.verdict.effect for row in nulls]
    kept = [one for one in effects if one is not None and math.isfinite(one.low)]
    if not kept:
        return "No A/A null was measured."
    holding = sum(one.low <= 1 <= one.high for one in kept)
    furthest = max(kept, key=lambda one: abs(math.log(one.ratio)))
    return f"{holding} of {len(kept)} A/A intervals hold 1; the furthest ratio is {units.ratio(furthest.ratio)}."


def _evidence(told: Scatter, nulls: Sequence[Reported]) -> str:
    if told.floor is not None:
        return (
            f"{units.counted(told.floor.rounds, 'A/A round')} of {told.rows[0]} on the {told.floor.clock} clock; "
            f"{units.counted(len(nulls), 'null')} in all."
        )
    return (
        f"No A/A floor here: the scatter is the middle one of {units.counted(len(told.rows), 'decision')}' own rounds."
        if len(told.rows) > 1
        else "No A/A floor here: the scatter is that of one decision's own rounds."
    )


def _draw(
    sheet: Sheet,
    told: Scatter,
    counts: Sequence[int],
    resolved: Sequence[float],
    nulls: Sequence[Reported],
    entries: Sequence[Key],
    top: float,
) -> None:
    sheet.key(entries, 0.0)
    axes = sheet.axes(AXES_LEFT, top, RIGHT - AXES_LEFT - 6, HIGH, grid="y")
    d = 100 * told.threshold
    scale(axes, "y", 0.0, 1.08 * max([d * 1.2, *resolved]), lambda value: f"{value:g} %")
    step = math.ceil(len(counts) / 8)
    place(axes, "x", counts[0] - 0.4, counts[-1] + 0.4, [(float(one), str(one)) for one in counts[::step]])
    axes.axhline(d, color=LIGHT[VERMILION], lw=1.6, ls="--", zorder=1)
    axes.plot(counts, resolved, color=LIGHT[BLUE], lw=2, zorder=2)
    axes.plot(counts, resolved, **style("o", BLUE), ms=7, zorder=3)
    sheet.text(LEFT + 2, top + HIGH / 2, "speedup, %", size=SMALL, align="center", turned=True)
    sheet.text((AXES_LEFT + RIGHT) / 2, top + HIGH + 38, "rounds", size=SMALL, align="center")
    if nulls:
        _draw_nulls(sheet, nulls, top + HIGH + 60, told.threshold)


def _draw_nulls(sheet: Sheet, nulls: Sequence[Reported], top: float, threshold: float) -> None:
    axes = sheet.lanes(top, NULL_PITCH * len(nulls), left=AXES_LEFT, right=RIGHT - 6)
    edges = [value for row in nulls if (one := row.decision.verdict.effect) for value in (one.low, one.high, one.ratio)]
    known = [abs(math.log(value)) for value in edges if math.isfinite(value) and value > 0]
    reach = 1.15 * max([math.log1p(threshold), *known])
    scale(axes, "x", math.exp(-reach), math.exp(reach), lambda value: f"{value:.4g}x")
    grid(axes, [(top, top + NULL_PITCH * len(nulls))])
    axes.axvline(1.0, color=LIGHT[INK], lw=1.1, zorder=1)
    for edge in (1 + threshold, 1 / (1 + threshold)):
        axes.axvline(edge, color=LIGHT[VERMILION], lw=1.2, ls="--", zorder=1)
    for number, row in enumerate(nulls):
        effect, y = row.decision.verdict.effect, top + NULL_PITCH * (number + 0.5)
        if effect is None:
            continue
        sheet.text(LEFT, y, f"#{row.sequence}", size=SMALL)
        spans(axes, [(effect.low, effect.high, y)], QUIET, ends=5)
        axes.plot([effect.ratio], [y], **style("s", QUIET), ms=8, zorder=4)
    words = "equal arms (ratio; dashed: 1 + d and its inverse)"
    sheet.text((AXES_LEFT + RIGHT) / 2, top + NULL_PITCH * len(nulls) + 40, words, size=SMALL, align="center")
