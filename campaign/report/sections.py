"""What a report on a profile is made of, before it is text or a page: sections of sentences, facts, lists and tables.

Everything in them is plain text. `section_text` draws them for a terminal, `section_page` as Markdown and HTML; the
words and numbers are the same in each, and hostile names are made safe there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Said:
    """A paragraph. `strong` for a verdict."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Items:
    """A list of sentences, empty ones left out."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Labels with their values, one a line; those with an empty value are left out."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Named:
    """A smaller heading within a section: a kernel's name, and what stands beside it."""

    name: str
    beside: str = ""


@dataclass(frozen=True)
class Grid:
    """A table. `names` is the column of kernel names, which give way where there is little room; `least` the columns
    that may be left out in a narrow terminal, the least telling first; `right` those aligned to the right, `folding`
    those whose text may break over lines. Lines in `struck` (by their place) are struck out,
    but not their `folding` text. `folded` is what a page
    folds it away under."""

    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    names: str = ""
    right: frozenset[str] = frozenset()
    folding: frozenset[str] = frozenset()
    least: tuple[str, ...] = ()
    struck: frozenset[int] = frozenset()
    title: str = ""
    folded: str = ""


Part = Said | Items | Facts | Named | Grid


@dataclass(frozen=True)
class Section:
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Paper:
    """A whole report: its title, what it is about, the sections in order, and the last word."""

    title: str
    head: tuple[Part, ...]
    sections: tuple[Section, ...]
    last: str


def grid(
    header: Sequence[str],
    lines: Sequence[Sequence[str]],
    *,
    left: Sequence[str] = (),
    keep: Sequence[str] = (),
    names: str = "",
    folding: Sequence[str] = (),
    least: Sequence[str] = (),
    struck: frozenset[int] = frozenset(),
    title: str = "",
    folded: str = "",
) -> Grid | None:
    """A table without the columns that are empty ("" or "-") in every line, but for those of `keep`; None without
    lines. Columns are right-aligned but for `left`, `names` and `folding`."""
    if not lines:
        return None
    places = [
        place
        for place, name in enumerate(header)
        if name in keep or name == names or any(line[place] not in ("", "-") for line in lines)
    ]
    kept = tuple(header[place] for place in places)
    aside = {*left, names, *folding}
    return Grid(
        header=kept,
        lines=tuple(tuple(line[place] for place in places) for line in lines),
        names=names,
        right=frozenset(name for name in kept if name not in aside),
        folding=frozenset(folding),
        least=tuple(least),
        struck=struck,
        title=title,
        folded=folded,
    )


def parts(*found: Part | None) -> tuple[Part, ...]:
    """The parts that have something in them."""
    return tuple(one for one in found if one is not None and _full(one))


def _full(one: Part) -> bool:
    if isinstance(one, Said):
        return bool(one.text)
    if isinstance(one, Items):
        return any(one.lines)
    if isinstance(one, Facts):
        return any(value for _, value in one.pairs)
    return True
