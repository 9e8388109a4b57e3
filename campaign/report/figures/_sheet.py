"""The paper that a figure is drawn on: places in units from the top left, text that is inert, axes with few large
labels. A unit is a point of matplotlib's and a pixel of the SVG's own size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from campaign.errors import BadInput
from campaign.report.figures._figure import WIDTH, Figure
from campaign.report.figures._palette import INK, LIGHT, LINE, PAPER, QUIET
from campaign.report.figures._words import escaped, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

TEXT, SMALL = 14.0, 13.0
LEFT, RIGHT = 14.0, WIDTH - 14.0
KEY_LINE = 22.0
BARE = "_|"  # markers that are a stroke and have no face
_INCH = 72.0
Key = tuple[str, str, bool, str]  # marker, colour, filled, words


@contextmanager
def drawn(figure: Figure) -> Iterator[Drawing]:
    """The figure as matplotlib drew it, under settings that no file of the person's changes. Raises BadInput where
    MPLBACKEND names nothing that matplotlib has."""
    try:
        import matplotlib
    except ValueError as error:
        raise BadInput(f"matplotlib refuses to start: {error}", remedy="unset MPLBACKEND") from error

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        # Names that the ledger holds are text in the SVG; its ids come from the figure's name alone.
        matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": figure.name, "axes.unicode_minus": True})
        sheet = Sheet(figure.height)
        figure.draw(sheet)
        yield sheet.drawing


class Sheet:
    """A drawing of `WIDTH` by `height`."""

    def __init__(self, height: float) -> None:
        from matplotlib.figure import Figure as Drawing

        self.height = height
        self.drawing = Drawing(figsize=(WIDTH / _INCH, height / _INCH), dpi=_INCH, facecolor=LIGHT[PAPER])

    def text(
        self,
        x: float,
        y: float,
        said: str,
        *,
        size: float = TEXT,
        colour: str = INK,
        align: str = "left",
        weight: str = "normal",
        turned: bool = False,
    ) -> None:
        """`said` with its middle line at `y`."""
        self.drawing.text(
            x / WIDTH,
            1 - y / self.height,
            escaped(said),
            fontsize=size,
            color=LIGHT[colour],
            ha=align,
            va="center_baseline" if not turned else "center",
            weight=weight,
            rotation=90 if turned else 0,
        )

    def mark(self, x: float, y: float, marker: str, colour: str, *, filled: bool = True, size: float = 9.0) -> None:
        """One marker, as in a key."""
        from matplotlib.lines import Line2D

        made = Line2D([x / WIDTH], [1 - y / self.height], transform=self.drawing.transFigure, **style(marker, colour))
        if not filled:
            made.set_markerfacecolor(LIGHT[PAPER])
            made.set_markeredgecolor(LIGHT[colour])
            made.set_markeredgewidth(1.8)
        made.set_markersize(size)
        self.drawing.add_artist(made)

    def key(self, entries: Sequence[Key], top: float) -> None:
        """What the marks mean, from left to right and on as many lines as it takes; words alone where a mark is ''."""
        for (marker, colour, filled, words), (x, y) in zip(entries, _flow(entries, top), strict=True):
            if marker:
                self.mark(x + 6, y, marker, colour, filled=filled)
            self.text(x + (18 if marker else 0), y, words, size=SMALL, colour=QUIET)

    def axes(self, left: float, top: float, wide: float, high: float, *, grid: str = "x") -> Axes:
        """Axes with a quiet frame: a line under them, and a grid along `grid` ('x', 'y' or '')."""
        axes = self.drawing.add_axes(
            (left / WIDTH, 1 - (top + high) / self.height, wide / WIDTH, high / self.height), facecolor="none"
        )
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(LIGHT[LINE])
        axes.tick_params(length=0, labelsize=SMALL, colors=LIGHT[QUIET], pad=5)
        axes.set_axisbelow(True)
        for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            if name in grid:
                axis.grid(True, color=LIGHT[LINE], lw=0.8)
        return axes

    def lanes(self, top: float, high: float, *, left: float = LEFT, right: float = RIGHT) -> Axes:
        """Axes whose y is a place on the sheet, in units from its top: rows of text and rows of marks meet. Their grid
        is drawn by `grid`, beside the text and not through it."""
        axes = self.axes(left, top, right - left, high, grid="")
        axes.set_ylim(top + high, top)
        axes.set_yticks([])
        return axes


def key_height(entries: Sequence[Key]) -> float:
    """How much room a key takes."""
    return max(y for _, y in _flow(entries, 0.0)) + KEY_LINE / 2 if entries else 0.0


def _flow(entries: Sequence[Key], top: float) -> list[tuple[float, float]]:
    found, x, y = [], LEFT, top + KEY_LINE / 2
    for marker, *_, words in entries:
        wide = (18 if marker else 0) + width(words, SMALL)
        if x > LEFT and x + wide > RIGHT:
            x, y = LEFT, y + KEY_LINE
        found.append((x, y))
        x += wide + 14
    return found


def style(marker: str, colour: str, *, filled: bool = True) -> dict[str, Any]:
    """A marker without a line; its edge is paper, so that marks that touch stay apart."""
    face, edge = (colour, PAPER) if filled and marker not in BARE else (PAPER, colour)
    return {
        "marker": marker,
        "color": LIGHT[colour],
        "markerfacecolor": LIGHT[face],
        "markeredgecolor": LIGHT[edge],
        "markeredgewidth": 1.0 if filled and marker not in BARE else 1.8,
        "linestyle": "none",
    }


def spans(
    axes: Axes, intervals: Iterable[tuple[float, float, float]], colour: str, *, ends: float = 0.0, thick: float = 2.0
) -> None:
    """Intervals (low, high, y) as one line with gaps, with ends of that height; one whose bound is missing is left
    out."""
    xs: list[float] = []
    ys: list[float] = []
    for low, high, y in intervals:
        if math.isfinite(low) and math.isfinite(high):
            xs += [low, high, math.nan]
            ys += [y, y, math.nan]
            if ends:
                xs += [low, low, math.nan, high, high, math.nan]
                ys += 2 * [y - ends, y + ends, math.nan]
    if xs:
        axes.plot(xs, ys, color=LIGHT[colour], lw=thick, solid_capstyle="butt", zorder=3)


def scale(axes: Axes, name: str, low: float, high: float, said: Callable[[float], str], most: int = 4) -> None:
    """Limits and at most `most` + 1 round ticks of the axis `name`, labelled by `said`."""
    from matplotlib.ticker import MaxNLocator

    if not high > low:
        low, high = low - max(abs(low) * 0.05, 1e-9), high + max(abs(high) * 0.05, 1e-9)
    ticks = [tick for tick in MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high) if low <= tick <= high]
    place(axes, name, low, high, [(float(tick), said(float(tick))) for tick in ticks])


def rules(axes: Axes, xs: Sequence[float], spans: Sequence[tuple[float, float]], colour: str, **how: Any) -> None:
    """Upright lines at `xs` through these spans of y, as one path: the lines of a grid of lanes."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    points = [(x, y) for low, high in spans for x in xs for y in (low, high)]
    if points:
        path = Path(points, [Path.MOVETO, Path.LINETO] * (len(points) // 2))
        settings: dict[str, Any] = {"lw": 0.8, "zorder": 0.5, **how}
        axes.add_patch(PathPatch(path, facecolor="none", edgecolor=LIGHT[colour], **settings))


def grid(axes: Axes, spans: Sequence[tuple[float, float]]) -> None:
    """The grid of lanes at the ticks of x."""
    low, high = axes.get_xlim()
    rules(axes, [tick for tick in axes.get_xticks() if low <= tick <= high], spans, LINE)


def ratio_scale(axes: Axes, low: float, high: float) -> None:
    """A logarithmic x axis of ratios, on which a gain and the loss that undoes it are as far from 1."""
    axes.set_xscale("log")
    scale(axes, "x", low, high, lambda value: f"{value:.4g}x", most=6)


def place(axes: Axes, name: str, low: float, high: float, ticks: Sequence[tuple[float, str]]) -> None:
    """Limits and these ticks, no others."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    axis = axes.xaxis if name == "x" else axes.yaxis
    (axes.set_xlim if name == "x" else axes.set_ylim)(low, high)
    axis.set_major_locator(FixedLocator([tick for tick, _ in ticks]))
    axis.set_major_formatter(FixedFormatter([escaped(words) for _, words in ticks]))
    axis.set_minor_locator(NullLocator())


def ratio_limits(values: Sequence[float], *, reach: float = 4.0) -> tuple[float, float]:
    """Limits around 1 and these ratios, but not further than a factor `reach` beyond their middle: one that is far off
    must not press the others flat."""
    known = sorted(value for value in values if math.isfinite(value) and value > 0) or [1.0]
    middle = known[len(known) // 2]
    low = min(1.0, max(known[0], middle / reach))
    high = max(1.0, min(known[-1], middle * reach))
    room = max((high / low) ** 0.07, 1.004)
    return low / room, high * room
