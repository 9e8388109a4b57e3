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
from campaign.report.figures._words import fitted, plain, sentences
from campaign.report.reported import Reports

ORDER = 50
TITLE = "Interactions"
MOST = 6  # subjects
STACK = "stack"  # the column of the edit with everything that it was measured on
CELL, HEAD, NAME = 52.0, 30.0, 132.0
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
    """`subjects` in order; `pairs` by two of them in that order; `stacks` by one, on two edits or more."""

    subjects: tuple[str, ...]
    pairs: Mapping[tuple[str, str], Cell]
    stacks: Mapping[str, Cell]
    left_out: int


def figure(reports: Reports) -> Figure | None:
    told = matrix(reports)
    if not told.pairs and not told.stacks:
        return None
    cells = {**{f"{plain(a)} with {plain(b)}": cell for (a, b), cell in told.pairs.items()}}
    cells |= {f"{plain(name)} with the stack": cell for name, cell in told.stacks.items()}
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
            "The column 'stack' is an edit with all the edits that stood when it was measured." if told.stacks else "",
            "A star marks a number that a fraction cannot tell from another." if aliased else "",
            f"The {len(told.subjects)} most recent of {len(told.subjects) + told.left_out} edits; the tables have all."
            if told.left_out
            else "",
        ),
        evidence=f"Arms timed in the same rounds: {units.counted(len(cells), 'interaction')} from "
        f"{units.counted(rounds, 'round')}.",
        rows=unique(cell.row for cell in cells.values()),
        height=top + HEAD + CELL * len(_lines(told)) + 12,
        draw=lambda sheet: _draw(sheet, told, entries, top),
    )


def absent(reports: Reports) -> str:
    return (
        "No two edits have been timed in the same rounds as root: campaign interactions does, and a hypothesis does "
        "once an edit is in the stack."
    )


def matrix(reports: Reports) -> Matrix:
    """The newest number of every pair and of every edit with its stack, of the subjects that are newest."""
    pairs: dict[tuple[str, str], Cell] = {}
    stacks: dict[str, Cell] = {}
    order: dict[str, None] = {}

    def seen(*names: str) -> None:
        for name in names:
            order.pop(name, None)
            order[name] = None

    for row in reports.rows:
        found = row.combined
        if found is None or not measured(found.interaction):
            continue
        own, below = row.decision.hypothesis, row.decision.stack
        cell = Cell(found.interaction, found.word, row_name(row))
        if len(below) == 1:
            seen(below[0], own)
            pairs[below[0], own] = cell
        else:
            seen(own)
            stacks[own] = cell
    for one in reports.of_kind(FACTORIAL):
        for term in one.found.finding.terms:
            names = term.name.split(":")
            if len(names) == 2 and measured(term.effect):
                seen(*names)
                pairs.pop((names[1], names[0]), None)
                pairs[names[0], names[1]] = Cell(term.effect, term.word, row_name(one), bool(term.aliases))
    shown = list(order)[-MOST:]
    place = {name: index for index, name in enumerate(shown)}
    sorted_pairs = {
        (a, b) if place[a] < place[b] else (b, a): cell for (a, b), cell in pairs.items() if a in place and b in place
    }
    return Matrix(
        tuple(shown),
        sorted_pairs,
        {name: cell for name, cell in stacks.items() if name in place},
        len(order) - len(shown),
    )


def _alt(cells: Mapping[str, Cell]) -> str:
    strongest = sorted(cells.items(), key=lambda item: -abs(math.log(item[1].effect.ratio)))
    said = "; ".join(
        f"{name} {units.ratio(cell.effect.ratio)} {units.interval(cell.effect.low, cell.effect.high)}, {cell.word}"
        for name, cell in strongest[:5]
    )
    more = f" The {len(cells) - 5} others are nearer to 1." if len(cells) > 5 else ""
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


def _lines(told: Matrix) -> list[str]:
    """The subjects that have a row: those with a pair before them, or with a stack."""
    second = {b for _, b in told.pairs}
    return [name for name in told.subjects if name in second or name in told.stacks]


def _columns(told: Matrix) -> list[str]:
    first = {a for a, _ in told.pairs}
    return [name for name in told.subjects if name in first] + ([STACK] if told.stacks else [])


def _draw(sheet: Sheet, told: Matrix, entries: Sequence[Key], top: float) -> None:
    from matplotlib.patches import Rectangle

    sheet.key(entries, 0.0)
    columns, lines = _columns(told), _lines(told)
    wide = min((RIGHT - NAME) / len(columns), 150.0)
    axes = sheet.lanes(top, HEAD + CELL * len(lines))
    axes.set_xlim(LEFT, RIGHT)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    for place, name in enumerate(columns):
        said = fitted(name, wide - 6, SMALL)
        sheet.text(NAME + wide * (place + 0.5), top + HEAD / 2, said, size=SMALL, align="center", colour=QUIET)
    cells = [told.pairs.get((column, line)) for line in lines for column in columns] + list(told.stacks.values())
    most = max([math.log(1.02), *(abs(math.log(cell.effect.ratio)) for cell in cells if cell is not None)])
    for down, line in enumerate(lines):
        y = top + HEAD + CELL * down
        sheet.text(LEFT, y + CELL / 2, fitted(line, NAME - LEFT - 8, SMALL), size=SMALL)
        for across, column in enumerate(columns):
            cell = told.stacks.get(line) if column == STACK else told.pairs.get((column, line))
            x = NAME + wide * across
            box = (x + 1.5, y + 1.5), wide - 3, CELL - 3
            if cell is None:
                axes.add_patch(Rectangle(*box, facecolor="none", edgecolor=LIGHT[SOFT], lw=1))
                continue
            sign, colour = _sign(cell.word)
            deep = 0.16 + 0.34 * abs(math.log(cell.effect.ratio)) / most if sign in "▲▼" else 0.14
            axes.add_patch(Rectangle(*box, facecolor=LIGHT[colour], alpha=deep, lw=0))
            star = "*" if cell.aliased else ""
            sheet.text(x + wide / 2, y + 17, f"{sign} {cell.effect.ratio:.3f}{star}", size=SMALL, align="center",
                       weight="bold" if sign in "▲▼" else "normal", colour=INK)  # fmt: skip
            half = (cell.effect.high - cell.effect.low) / 2
            sheet.text(x + wide / 2, y + 36, f"± {half:.3f}", size=SMALL, align="center", colour=INK)
