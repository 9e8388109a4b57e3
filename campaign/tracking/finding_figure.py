"""The picture of a finding, by its kind: what each edit adds (a forest of intervals), main effects above the matrix of
pairwise interactions, or two arms as bars beside the ratio of each round.

Drawn as `figure` draws: matplotlib's Figure API, 150 dots an inch, Okabe and Ito's colours with shapes beside them.
Ratios lie on a logarithmic axis, where the same gain and loss are as far from 1.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from campaign import units
from campaign.interactions.words import ADDITIVE, NO_LONGER_PAYS, REDUNDANCY, SLOWER, UNRESOLVED, WITHIN
from campaign.records import FACTORIAL, HEADLINE, Contrast, Decision, Found, Study, Term
from campaign.tracking.figure import BLUE, GREEN, GREY, LEGEND, VERMILION
from campaign.tracking.words import finding_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_INCHES, CELL_INCHES = 0.4, 0.62
LONGEST_NAME = 34
_POOR = (NO_LONGER_PAYS, SLOWER, REDUNDANCY)


def finding_png(found: Found, study: Study, recorded: Decision | None = None) -> bytes | None:
    """The figure as PNG bytes, or None when nothing was measured."""
    figure = draw(found, study, recorded)
    if figure is None:
        return None
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def draw(found: Found, study: Study, recorded: Decision | None = None) -> Figure | None:
    """The figure of a finding; None for one without numbers. `recorded` is the decision that a replay is of."""
    from matplotlib.figure import Figure

    finding = found.finding
    if finding.effect is None and not finding.terms:
        return None
    if finding.kind == FACTORIAL:
        rows = _factorial_rows(found)
        heights = [0.7 + ROW_INCHES * len(rows), 0.9 + CELL_INCHES * (len(finding.subjects) - 1)]
        figure = Figure(figsize=(10.5, 0.9 + sum(heights)), dpi=150, layout="constrained")
        upper, lower = figure.subplots(2, 1, height_ratios=heights)
        _forest(
            upper,
            rows,
            study.threshold,
            "without / with the edit, over the others (above 1 is faster; dashed: worth it)",
        )
        _matrix(lower, finding.subjects, finding.terms)
    elif finding.effect is None:
        figure = Figure(figsize=(9, 2.2 + ROW_INCHES * (len(finding.terms) + 2)), dpi=150, layout="constrained")
        rows = [(term.name, term.effect, term.word) for term in finding.terms]
        if finding.total is not None:
            rows.append(("all of them", finding.total, ""))
        axes = figure.subplots()
        _forest(
            axes,
            rows,
            study.threshold,
            "without the edit / with everything\n(above 1: it still adds; dashed: worth it)",
        )
        if finding.product is not None:
            axes.axvline(finding.product, color=GREEN, ls=":", lw=1.5, label=f"product {units.ratio(finding.product)}")
            axes.legend(**LEGEND)
    else:
        figure = Figure(figsize=(10.5, 4.2), dpi=150, layout="constrained")
        bars, memory, ratios = figure.subplots(1, 3, width_ratios=[1, 1, 1.9])
        _bars(bars, memory, found)
        _rounds(ratios, found, study, recorded)
    clock = f"{study.protocol.clock} clock"
    facts = f"{units.counted(finding.valid_rounds, 'round')}, {clock}, {found.workload} on {found.device}"
    figure.suptitle(f"{finding_name(found)}\n{facts}", fontsize=12)
    return figure


def _factorial_rows(found: Found) -> list[tuple[str, Contrast, str]]:
    finding = found.finding
    rows = [(term.name, term.effect, term.word) for term in finding.terms if ":" not in term.name]
    rows += [(f"share of {share.name}", share.effect, "share") for share in finding.shares]
    return rows + ([("all of them", finding.total, "")] if finding.total is not None else [])


def _forest(axes: Axes, rows: Sequence[tuple[str, Contrast, str]], threshold: float, label: str) -> None:
    """One interval a row, from top to bottom, with its numbers at the right edge. The whole is a diamond."""
    _mark_thresholds(axes, threshold)
    for place, (_, effect, word) in enumerate(rows):
        colour, marker = _style(word)
        low, high = (effect.low, effect.high) if math.isfinite(effect.low) else (effect.ratio, effect.ratio)
        axes.plot([low, high], [place, place], color=colour, lw=2.2, solid_capstyle="butt")
        axes.plot([effect.ratio], [place], marker, color=colour, mec="white", ms=9 if marker == "D" else 8, zorder=3)
        said = f"{units.ratio(effect.ratio)} {units.interval(effect.low, effect.high)}"
        said += f"\n{word}" if word not in ("", "share") else ""
        axes.annotate(
            said, (1.015, place), xycoords=("axes fraction", "data"), va="center", fontsize=8, annotation_clip=False
        )
    _log_axis(axes, [edge for _, effect, _ in rows for edge in (effect.low, effect.ratio, effect.high)], threshold)
    axes.set_yticks(range(len(rows)), [_short(name) for name, _, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel(label)


def _style(word: str) -> tuple[str, str]:
    """Colour and shape: what counts is blue, what does not vermilion, what is nothing or open grey, the whole black."""
    if word == "":
        return "black", "D"
    if word == "share":
        return GREEN, "s"
    if word in _POOR:
        return VERMILION, "v"
    return (GREY, "o") if word in (UNRESOLVED, WITHIN) else (BLUE, "o")


def _mark_thresholds(axes: Axes, threshold: float) -> None:
    axes.axvline(1.0, color=GREY, lw=1.2)
    axes.axvline(1 + threshold, color=VERMILION, lw=1.2, ls="--")


def _log_axis(axes: Axes, values: Sequence[float], threshold: float) -> None:
    """A logarithmic axis around 1 and `values`, with plain numbers on it."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    finite = [value for value in values if math.isfinite(value) and value > 0]
    low, high = min([1.0, *finite]), max([1 + threshold, *finite])
    room = (high / low) ** 0.06
    axes.set_xscale("log")
    axes.set_xlim(low / room, high * room)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _matrix(axes: Axes, subjects: Sequence[str], terms: Sequence[Term]) -> None:
    """Pairwise interactions as a triangle of cells: the ratio, its interval and its word; green is more than the
    product, vermilion less, grey neither or open."""
    from matplotlib.patches import Rectangle

    pairs = {name: term for term in terms if ":" in term.name for name in _named(term)}
    widest = max([math.log(1.02), *(abs(math.log(term.effect.ratio)) for term in pairs.values())])
    for (column, first), (row, second) in combinations(enumerate(subjects), 2):
        term = pairs.get(f"{first}:{second}") or pairs.get(f"{second}:{first}")
        if term is None:
            continue
        depth = math.log(term.effect.ratio) / widest
        colour, shade = (GREEN if depth > 0 else VERMILION), 0.2 + 0.6 * abs(depth)
        if term.word in (UNRESOLVED, ADDITIVE):
            colour, shade = GREY, 0.12
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=colour, alpha=shade, lw=0))
        word = "additive" if term.word == ADDITIVE else term.word
        said = f"{units.ratio(term.effect.ratio)}{' *' if term.aliases else ''}"
        said += f"\n{units.interval(term.effect.low, term.effect.high)}\n{word}"
        axes.text(column, row, said, ha="center", va="center", fontsize=8 if len(subjects) <= 6 else 7)
    axes.set_xlim(-0.5, len(subjects) - 1.5)
    axes.set_ylim(len(subjects) - 0.5, 0.5)
    axes.set_xticks(range(len(subjects) - 1), [_short(name) for name in subjects[:-1]], rotation=20, ha="right")
    axes.set_yticks(range(1, len(subjects)), [_short(name) for name in subjects[1:]])
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    aliased = "; *: cannot be told from others, see terms.csv" if any(term.aliases for term in pairs.values()) else ""
    axes.set_title("pairwise interactions (above 1 is more than the product" + aliased + ")", fontsize=10)


def _named(term: Term) -> list[str]:
    """The pairs that a term stands for: in a fraction, several."""
    return [term.name, *(alias.lstrip("-") for alias in term.aliases if alias.count(":") == 1)]


def _bars(rates: Axes, memory: Axes, found: Found) -> None:
    """Throughput and peak memory of the two arms."""
    effect, peaks = found.finding.effect, found.finding.memory
    assert effect is not None, "only a finding that compares two arms is drawn so"
    arms = ("root", "head") if found.finding.kind == HEADLINE else ("control", "treatment")
    pair = (effect.control_tokens_per_second, effect.treatment_tokens_per_second)
    _two_bars(rates, arms, pair, [units.rate(value).removesuffix(" tok/s") for value in pair])
    rates.set_title("tokens / s" + (" of CPU time" if effect.clock == "cpu" else ""), fontsize=10)
    if peaks is None:
        memory.axis("off")
        return
    sizes = (peaks.control_bytes, peaks.treatment_bytes)
    _two_bars(memory, arms, [float(size) for size in sizes], [units.size(size) for size in sizes])
    memory.set_title("peak memory", fontsize=10)


def _two_bars(axes: Axes, names: tuple[str, str], values: Sequence[float], said: Sequence[str]) -> None:
    drawn = axes.bar(names, values, color=[GREY, BLUE], width=0.62)
    axes.bar_label(drawn, labels=list(said), padding=3, fontsize=10)
    axes.set_ylim(0, 1.18 * max(*values, 1e-12))
    axes.set_yticks([])
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _rounds(axes: Axes, found: Found, study: Study, recorded: Decision | None) -> None:
    """Each round's ratio over the interval; of a replay, the recorded interval beside it."""
    effect = found.finding.effect
    assert effect is not None, "only a finding that compares two arms is drawn so"
    numbers = range(1, len(effect.round_ratios) + 1)
    if math.isfinite(effect.low):
        axes.axhspan(effect.low, effect.high, color=BLUE, alpha=0.15, lw=0, label="95 % interval")
    axes.axhline(effect.ratio, color=BLUE, lw=2, label=f"measured {units.ratio(effect.ratio)}")
    axes.axhline(1.0, color=GREY, lw=1.2, label="no change")
    axes.axhline(1 + study.threshold, color=VERMILION, lw=1.2, ls="--", label=f"worth it: {1 + study.threshold:.3f}")
    axes.plot(numbers, effect.round_ratios, "o", color=BLUE, mec="white", ms=8, label="one round", zorder=3)
    before = recorded.verdict.effect if recorded is not None else None
    if before is not None and math.isfinite(before.ratio):
        down, up = (before.ratio - before.low, before.high - before.ratio) if math.isfinite(before.low) else (0.0, 0.0)
        place = len(effect.round_ratios) + 1
        axes.errorbar([place], [before.ratio], [[down], [up]], fmt="D", color="black", capsize=4, label="recorded")
    axes.set_xticks(list(numbers))
    axes.set_xlim(0.5, len(effect.round_ratios) + (1.7 if before is not None else 0.5))
    axes.set_xlabel("round that counts")
    axes.set_ylabel(f"{study.base} / the other\n(above 1 is faster)")
    axes.legend(**LEGEND)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
