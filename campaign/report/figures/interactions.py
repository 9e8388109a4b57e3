"""How edits get on with each other: each pair that was measured together, and each edit with the stack that it was
measured on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from campaign import units
from campaign.interactions.words import ADDITIVE, ENABLED, EXPLAINED, MASKED, REDUNDANCY, SYNERGY, UNRESOLVED
from campaign.records import Contrast
from campaign.records.study import FACTORIAL
from campaign.report.figures._climb import measured, row_name
from campaign.report.figures._figure import Figure, unique
from campaign.report.figures._palette import GREEN, INK, LIGHT, QUIET, SOFT, VERMILION
from campaign.report.figures._sheet import LEFT, RIGHT, SMALL, Key, Sheet, key_height
from campaign.report.figures._words import fitted, latest, plain, sentences
from campaign.report.reported import Reports

ORDER = 50
TITLE = "Interactions"
MOST_LINES, MOST_COLUMNS = 12, 3
STACK = "stack"  # the column of the edit with everything that it was measured on
CELL, HEAD, NAME = 48.0, 28.0, 126.0
MORE, LESS = (SYNERGY, ENABLED), (REDUNDANCY, MASKED)


@dataclass(frozen=True)
class Cell:
    """One interaction: its ratio with the interval, its word, and the row that it is from."""

    effect: Contrast
    word: str
    row: str
    aliased: bool = False


@dataclass(frozen=True)
class Matrix:
    """`cells` by (column, line), both names of edits; the column `STACK` stands for all that the edit of the line was
    measured on, where that is two edits or more. `every` counts the interactions that there are."""

    columns: tuple[str, ...]
    lines: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]
    every: int


def figure(reports: Reports) -> Figure | None:
    told = matrix(reports)
    if not told.cells:
        return None
    cells = {
        f"{plain(line)} with {'the stack' if column == STACK else plain(column)}": cell
        for (column, line), cell in told.cells.items()
    }
    entries = _entries([cell.word for cell in cells.values()])
    top = key_height(entries) + 8
    aliased = any(cell.aliased for cell in cells.values())
    rounds = sum(cell.effect.rounds for cell in {cell.row: cell for cell in cells.values()}.values())
    return Figure(
        name="interactions",
        title=TITLE,
        alt=_alt(cells),
        caption=sentences(
            "Each cell is the ratio of two edits together over the product of each alone: above 1 they win more "
            "together, below 1 less. Under it half the width of the 95 % interval; an empty cell was not measured.",
            "The column 'stack' is an edit with all the edits that stood when it was measured."
            if STACK in told.columns
            else "",
            "A star marks a number that a fraction cannot tell from another." if aliased else "",
            latest(len(cells), told.every, "interactions"),
        ),
        evidence=f"Arms timed in the same rounds: {units.counted(len(cells), 'interaction')} from "
        f"{units.counted(rounds, 'round')}.",
        rows=unique(cell.row for cell in cells.values()),
        height=top + HEAD + CELL * len(told.lines) + 12,
        draw=lambda sheet: _draw(sheet, told, entries, top),
    )


def absent(reports: Reports) -> str:
    return (
        "No two edits have been timed in the same rounds as root: campaign interactions does, and a hypothesis does "
        "once an edit is in the stack."
    )


def matrix(reports: Reports) -> Matrix:
    """The newest number of every pair and of every edit with its stack, of the lines and columns that are newest."""
    found: dict[tuple[str, str], Cell] = {}  # by (column, line), the newest last

    def take(column: str, line: str, cell: Cell) -> None:
        for key in ((column, line), (line, column)):
            found.pop(key, None)
        found[column, line] = cell

    for row in reports.rows:
        combined, below = row.combined, row.decision.stack
        if combined is not None and measured(combined.interaction):
            cell = Cell(combined.interaction, combined.word, row_name(row))
            take(below[0] if len(below) == 1 else STACK, row.decision.hypothesis, cell)
    for one in reports.of_kind(FACTORIAL):
        for term in one.found.finding.terms:
            names = term.name.split(":")
            if len(names) == 2 and measured(term.effect):
                take(names[0], names[1], Cell(term.effect, term.word, row_name(one), bool(term.aliases)))
    newest = list(reversed(found))
    lines = list(dict.fromkeys(line for _, line in newest))[:MOST_LINES]
    columns = list(dict.fromkeys(column for column, line in newest if line in lines and column != STACK))[:MOST_COLUMNS]
    columns = [*reversed(columns), *([STACK] if any(column == STACK for column, _ in newest) else [])]
    kept = {key: cell for key, cell in found.items() if key[0] in columns and key[1] in lines}
    return Matrix(
        tuple(column for column in columns if any(key[0] == column for key in kept)),
        tuple(line for line in reversed(lines) if any(key[1] == line for key in kept)),
        kept,
        len(found),
    )


def _alt(cells: Mapping[str, Cell]) -> str:
    strongest = sorted(cells.items(), key=lambda item: -abs(math.log(item[1].effect.ratio)))
    said = "; ".join(
        f"{name} {units.ratio(cell.effect.ratio)} {units.interval(cell.effect.low, cell.effect.high)}, {cell.word}"
        for name, cell in strongest[:5]
    )
    more = f" All others ({len(cells) - 5}) are nearer to 1." if len(cells) > 5 else ""
    return f"{units.counted(len(cells), 'interaction')}, the strongest first: {said}.{more}"


def _sign(word: str) -> tuple[str, str]:
    """The sign and the colour that a word has in a cell."""
    if word in MORE:
        return "▲", GREEN
    if word in LESS:
        return "▼", VERMILION
    return ("=", QUIET) if word == ADDITIVE else ("?", QUIET)


def _entries(words: Sequence[str]) -> list[Key]:
    found: list[Key] = []
    if set(words) & set(MORE):
        found.append(("", INK, True, "▲ more than the product"))
    if set(words) & set(LESS):
        found.append(("", INK, True, "▼ less"))
    if ADDITIVE in words:
        found.append(("", INK, True, "= the product"))
    if UNRESOLVED in words or not set(words) <= {*EXPLAINED}:
        found.append(("", INK, True, "? open"))
    return found


def _draw(sheet: Sheet, told: Matrix, entries: Sequence[Key], top: float) -> None:
    from matplotlib.patches import Rectangle

    sheet.key(entries, 0.0)
    columns, lines = told.columns, told.lines
    wide = min((RIGHT - NAME) / len(columns), 150.0)
    axes = sheet.lanes(top, HEAD + CELL * len(lines))
    axes.set_xlim(LEFT, RIGHT)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    for place, name in enumerate(columns):
        said = fitted(name, wide - 6, SMALL)
        sheet.text(NAME + wide * (place + 0.5), top + HEAD / 2, said, size=SMALL, align="center", colour=QUIET)
    most = max(math.log(1.02), *(abs(math.log(cell.effect.ratio)) for cell in told.cells.values()))
    for down, line in enumerate(lines):
        y = top + HEAD + CELL * down
        sheet.text(LEFT, y + CELL / 2, fitted(line, NAME - LEFT - 8, SMALL), size=SMALL)
        for across, column in enumerate(columns):
            cell = told.cells.get((column, line))
            x = NAME + wide * across
            box = (x + 1.5, y + 1.5), wide - 3, CELL - 3
            if cell is None:
                axes.add_patch(Rectangle(*box, facecolor="none", edgecolor=LIGHT[SOFT], lw=1))
                continue
            sign, colour = _sign(cell.word)
            deep = 0.16 + 0.34 * abs(math.log(cell.effect.ratio)) / most if sign in "▲▼" else 0.14
            axes.add_patch(Rectangle(*box, facecolor=LIGHT[colour], alpha=deep, lw=0))
            star = "*" if cell.aliased else ""
            sheet.text(x + wide / 2, y + 16, f"{sign} {cell.effect.ratio:.3f}{star}", size=SMALL, align="center",
                       weight="bold" if sign in "▲▼" else "normal", colour=INK)  # fmt: skip
            half = (cell.effect.high - cell.effect.low) / 2
            sheet.text(x + wide / 2, y + 33, f"± {half:.3f}", size=SMALL, align="center", colour=INK)
