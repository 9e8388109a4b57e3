"""What a figure is before it is drawn: its words, its sources and how to draw it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from campaign.report.figures._sheet import Sheet

WIDTH = 420.0  # of every figure, in units that are CSS pixels of a page that gives it so much room


@dataclass(frozen=True)
class Figure:
    """One figure. All words are plain text: whoever puts them into HTML escapes them.

    `name` is a file name and an id, `alt` says the finding with its numbers, `caption` how to read the drawing and what
    it leaves out, `evidence` which kind of evidence it shows and how much. `rows` are the ledger's rows that it is made
    of: '#3' a decision, 'finding 2', 'diagnosis 1' or 'profile 1' by their sequence. `height` is in the units of
    `WIDTH`.
    """

    name: str
    title: str
    caption: str
    alt: str
    evidence: str
    rows: tuple[str, ...]
    height: float
    draw: Callable[[Sheet], None] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Absent:
    """A figure that these reports have nothing for; `why` is one sentence of plain text."""

    name: str
    title: str
    why: str


def unique(rows: Iterable[str]) -> tuple[str, ...]:
    """The row names, each once, in the order in which they first stand."""
    return tuple(dict.fromkeys(rows))
