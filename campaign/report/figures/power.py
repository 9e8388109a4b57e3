"""Power: how likely so many rounds are to find an effect of a given size, at the declared alpha."""

from __future__ import annotations

import math
from collections.abc import Sequence

from campaign import units
from campaign.report.figures._figure import Figure, unique
from campaign.report.figures._palette import BLUE, GREEN, LIGHT, LINE, PURPLE, QUIET
from campaign.report.figures._scatter import Scatter, scatter
from campaign.report.figures._sheet import LEFT, RIGHT, SMALL, Key, Sheet, key_height, place, style
from campaign.report.figures._words import sentences
from campaign.report.figures.floor import rounds_of
from campaign.report.reported import Reports

ORDER = 90
TITLE = "Power by the number of rounds"
HIGH, AXES_LEFT = 220.0, 66.0
SHARES = (0.5, 1.0, 2.0)  # of d
STYLES = (("s", GREEN), ("o", BLUE), ("^", PURPLE))
MOST_POWER = 0.9995
HALVINGS = 16


def figure(reports: Reports) -> Figure | None:
    told = scatter(reports)
    if told is None:
        return None
    counts = rounds_of(told)
    effects = [share * told.threshold for share in SHARES]
    curves = [[power(told, count, effect) for count in counts] for effect in effects]
    entries: list[Key] = [
        (marker, colour, True, f"{100 * effect:.3g} % faster")
        for (marker, colour), effect in zip(STYLES, effects, strict=True)
    ]
    top = key_height(entries) + 10
    last = told.last
    at_last = "; ".join(f"{100 * effect:.3g} % with {_percent(power(told, last, effect))}" for effect in effects)
    looks = ", ".join(map(str, told.protocol.looks))
    split = "/".join(f"{share:g}" for share in told.protocol.alpha_split)
    source = "the A/A floor" if told.floor is not None else "the decisions' own rounds"
    return Figure(
        name="power",
        title=TITLE,
        alt=f"With rounds that scatter by {units.share(told.sd)} and alpha {told.alpha:g}, {last} rounds find a "
        f"speedup of {at_last} power; d is {100 * told.threshold:.3g} %.",
        caption=sentences(
            f"One test of so many rounds at one-sided alpha {told.alpha:g}, as declared in {told.plan_row}; the "
            f"declared looks (after {looks} rounds, dashed) split it {split}, so each has a little less power.",
            f"The middle curve is d = {100 * told.threshold:.3g} %.",
        ),
        evidence=f"Computed with the noncentral t from a scatter of {units.share(told.sd)} between rounds, {source}.",
        rows=unique([*told.rows, told.plan_row]),
        height=top + HIGH + 56,
        draw=lambda sheet: _draw(sheet, told, counts, curves, entries, top),
    )


def absent(reports: Reports) -> str:
    return (
        "No rounds have been compared, so their scatter is not known: campaign hypothesis=aa_null measures the floor."
    )


def power(told: Scatter, rounds: int, effect: float) -> float:
    """The probability that a one-sided t test over `rounds` rounds at the declared alpha finds a speedup of `effect` (a
    fraction), at most `MOST_POWER`: the power whose detectable effect it is."""
    from campaign.effects import detectable_sds

    wanted = math.log1p(effect) / told.sd
    low, high = told.alpha, MOST_POWER
    if detectable_sds(rounds, told.alpha, high) <= wanted:
        return high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if detectable_sds(rounds, told.alpha, middle) <= wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %" if value < 0.995 else "over 99 %"


def _draw(
    sheet: Sheet,
    told: Scatter,
    counts: Sequence[int],
    curves: Sequence[Sequence[float]],
    entries: Sequence[Key],
    top: float,
) -> None:
    sheet.key(entries, 0.0)
    axes = sheet.axes(AXES_LEFT, top, RIGHT - AXES_LEFT - 6, HIGH, grid="y")
    place(axes, "y", 0.0, 104.0, [(float(value), f"{value} %") for value in (0, 25, 50, 75, 100)])
    step = math.ceil(len(counts) / 8)
    place(axes, "x", counts[0] - 0.4, counts[-1] + 0.4, [(float(one), str(one)) for one in counts[::step]])
    for look in told.protocol.looks:
        axes.axvline(look, color=LIGHT[LINE], lw=1.4, ls="--", zorder=1)
    for (marker, colour), curve in zip(STYLES, curves, strict=True):
        axes.plot(counts, [100 * value for value in curve], color=LIGHT[colour], lw=2, zorder=2)
        axes.plot(counts, [100 * value for value in curve], **style(marker, colour), ms=7, zorder=3)
    sheet.text(LEFT + 2, top + HIGH / 2, "power, %", size=SMALL, align="center", turned=True)
    words = "rounds (dashed: the declared looks)"
    sheet.text((AXES_LEFT + RIGHT) / 2, top + HIGH + 38, words, size=SMALL, align="center", colour=QUIET)
