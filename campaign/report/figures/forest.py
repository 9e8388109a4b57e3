"""Every decision: the ratio that was predicted beside the one that was measured, and the edit alone on root where that
was timed in the same rounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from campaign import units
from campaign.reading import HELD
from campaign.records import ACCEPT, REJECT, VERDICTS
from campaign.report.figures._climb import measured, row_name
from campaign.report.figures._figure import Figure
from campaign.report.figures._palette import BLUE, GREEN, INK, LIGHT, LINE, PURPLE, QUIET, VERMILION
from campaign.report.figures._sheet import (
    LEFT,
    RIGHT,
    SMALL,
    Key,
    Sheet,
    grid,
    key_height,
    ratio_limits,
    ratio_scale,
    rules,
    spans,
    style,
)
from campaign.report.figures._words import fitted, latest, plain, sentences, width
from campaign.report.reported import Reported, Reports

ORDER = 30
TITLE = "Every decision, predicted and measured"
MOST = 30  # rows
PITCH, LANE, ALONE = 44.0, 27.0, 37.0  # a row; where in it the marginal and the isolated ratio are
VERDICT_KEYS: dict[str, Key] = {
    ACCEPT: ("o", BLUE, True, "accepted"),
    REJECT: ("v", VERMILION, True, "rejected"),
}
UNDECIDED: Key = ("s", QUIET, True, "undecided")
PREDICTED: Key = ("D", PURPLE, False, "predicted")
ISOLATED: Key = ("s", GREEN, True, "alone on root")


def figure(reports: Reports) -> Figure | None:
    if not reports.rows:
        return None
    shown = reports.rows[-MOST:]
    entries = _entries(shown)
    top = key_height(entries) + 8
    with_ratio = [row for row in reports.rows if measured(row.decision.verdict.effect)]
    rounds = sum(row.decision.verdict.effect.rounds for row in with_ratio if row.decision.verdict.effect)
    return Figure(
        name="forest",
        title=TITLE,
        alt=_alt(reports),
        caption=sentences(
            latest(len(shown), len(reports.rows), "decisions"),
            reports.filtered,
            "Lines are 95 % intervals of the edit on the stack of its day; above 1 is faster.",
            "The green square is the edit alone on root, timed in the same rounds."
            if any(_isolated(row) for row in shown)
            else "",
            "The axis is logarithmic; a ratio beyond its end is drawn at the end, its number stands beside it.",
        ),
        evidence=f"Matched, unprofiled, interleaved rounds: {units.counted(len(with_ratio), 'decision')} with a ratio "
        f"from {units.counted(rounds, 'published round')}.",
        rows=tuple(row_name(row) for row in shown),
        height=top + PITCH * len(shown) + 58,
        draw=lambda sheet: _draw(sheet, shown, entries, top),
    )


def absent(reports: Reports) -> str:
    if reports.every:
        return "The filter leaves no decision."
    return "No decision has been made yet."


def _alt(reports: Reports) -> str:
    counts = Counter(row.decision.verdict.verdict for row in reports.rows)
    said = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])
    with_ratio = [row for row in reports.rows if measured(row.decision.verdict.effect) and not row.null]
    held = [row.prediction for row in reports.rows if row.prediction]
    parts = [f"{units.counted(len(reports.rows), 'decision')}: {said}."]
    if held:
        parts.append(f"{held.count(HELD)} of {len(held)} predicted ratios lie in the measured 95 % interval.")
    if with_ratio:
        best = max(with_ratio, key=_ratio)
        worst = min(with_ratio, key=_ratio)
        parts += [f"{word} is {_told(row)}." for word, row in (("Highest", best), ("Lowest", worst))]
    return " ".join(parts if len(with_ratio) != 1 else [*parts[:-2], f"{_told(with_ratio[0])}."])


def _ratio(row: Reported) -> float:
    effect = row.decision.verdict.effect
    return effect.ratio if effect else math.nan


def _told(row: Reported) -> str:
    effect = row.decision.verdict.effect
    assert effect is not None
    predicted = "" if row.null else f", predicted {units.ratio(row.decision.predicted_ratio)}"
    interval = f" {units.interval(effect.low, effect.high)}" if math.isfinite(effect.low) else ""
    return f"#{row.sequence} {plain(row.label)} at {units.ratio(effect.ratio)}{interval}{predicted}"


def _isolated(row: Reported) -> bool:
    return row.combined is not None and measured(row.combined.isolated)


def _key(verdict: str) -> Key:
    return VERDICT_KEYS.get(verdict, UNDECIDED)


def _entries(rows: Sequence[Reported]) -> list[Key]:
    timed = [row for row in rows if measured(row.decision.verdict.effect)]
    used = {_key(row.decision.verdict.verdict) for row in timed}
    used |= {PREDICTED for row in timed if not row.null} | {ISOLATED for row in rows if _isolated(row)}
    return [key for key in (*VERDICT_KEYS.values(), UNDECIDED, PREDICTED, ISOLATED) if key in used]


def _draw(sheet: Sheet, rows: Sequence[Reported], entries: Sequence[Key], top: float) -> None:
    sheet.key(entries, 0.0)
    axes = sheet.lanes(top, PITCH * len(rows))
    values = []
    for row in rows:
        effect = row.decision.verdict.effect
        if effect is not None and measured(effect):
            values += [effect.low, effect.ratio, effect.high]
            values += [] if row.null else [row.decision.predicted_ratio]
        if row.combined is not None and _isolated(row):
            values += [row.combined.isolated.low, row.combined.isolated.high]
    low, high = ratio_limits(values)
    ratio_scale(axes, low, high)
    lanes = [(top + PITCH * place + 19, top + PITCH * (place + 1) - 1) for place in range(len(rows))]
    grid(axes, lanes)
    rules(axes, [1.0], lanes, INK, lw=1.1, zorder=1)

    def inside(value: float) -> float:
        return min(max(value, low), high) if math.isfinite(value) else value

    lines: dict[str, list[tuple[float, float, float]]] = {}
    marks: dict[Key, tuple[list[float], list[float]]] = {}

    def mark(key: Key, value: float, y: float) -> None:
        xs, ys = marks.setdefault(key, ([], []))
        xs.append(inside(value))
        ys.append(y)

    for place, row in enumerate(rows):
        y = top + PITCH * place
        effect, verdict, combined = row.decision.verdict.effect, row.decision.verdict, row.combined
        if place:
            axes.axhline(y, color=LIGHT[LINE], lw=0.6, zorder=0)
        if effect is None or not measured(effect):
            _line(sheet, y, row, f"{verdict.verdict}, no ratio")
            continue
        _line(sheet, y, row, f"{units.ratio(effect.ratio)} {units.interval(effect.low, effect.high)}")
        if combined is not None and _isolated(row):
            alone = combined.isolated
            lines.setdefault(GREEN, []).append((inside(alone.low), inside(alone.high), y + ALONE))
            mark(ISOLATED, alone.ratio, y + ALONE)
        key = _key(verdict.verdict)
        lines.setdefault(key[1], []).append((inside(effect.low), inside(effect.high), y + LANE))
        mark(key, effect.ratio, y + LANE)
        if not row.null:
            mark(PREDICTED, row.decision.predicted_ratio, y + LANE)
    for colour, intervals in lines.items():
        spans(axes, intervals, colour, ends=0 if colour == GREEN else 4)
    for key, places in marks.items():
        marker, colour, filled, _ = key
        look = style(marker, colour, filled=filled) | ({} if filled else {"markerfacecolor": "none"})
        size = 6.5 if key == ISOLATED else 9
        axes.plot(*places, **look, ms=size, zorder=4 if filled else 5, clip_on=False)
    said = "control / treatment seconds (ratio; above 1 is faster)"
    sheet.text((LEFT + RIGHT) / 2, top + PITCH * len(rows) + 40, said, size=SMALL, align="center")


def _line(sheet: Sheet, y: float, row: Reported, said: str) -> None:
    out = " (out)" if row.taken_out else " (A/A)" if row.null else ""
    room = RIGHT - LEFT - width(said, SMALL) - 16 - width(out, SMALL)
    sheet.text(LEFT, y + 11, fitted(f"#{row.sequence} {row.label}", room, SMALL) + out, size=SMALL)
    sheet.text(RIGHT, y + 11, said, size=SMALL, align="right")
