"""Markdown as GitHub renders it: tables with escaped pipes, no '#7' that links to an issue, no '@name' that calls
somebody, nothing in a person's text that is taken for markup. And what a page is made of."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\`*|~$"} | {"<": "&lt;"})
UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")  # inside a word GitHub leaves it alone
LINK = re.compile(r"\](?=[(\[])")
ENTITY = re.compile(r"&(?=#?\w+;)")
CALL = re.compile(r"([#@])(?=\w)")
NOTHING = "<!-- -->"  # parts a mark from its word, so that GitHub sees neither an issue nor a person


@dataclass(frozen=True)
class Fold:
    """Markdown that is folded away under `summary`, which is plain text."""

    summary: str
    text: str


@dataclass(frozen=True)
class Forest:
    """Ratios with their 95 % intervals, to be drawn where drawing is possible: (name, ratio, low, high), plain text."""

    title: str
    bars: tuple[tuple[str, float, float, float], ...]


Block = str | Fold | Forest  # str is Markdown


def prose(text: str) -> str:
    """`text` on one line, with nothing in it that Markdown or GitHub would take for markup."""
    flat = ENTITY.sub("&amp;", " ".join(text.split())).translate(SPECIAL)
    return CALL.sub(rf"\1{NOTHING}", LINK.sub(r"\\]", UNDERSCORE.sub(r"\\_", flat)))


def code(text: str) -> str:
    """`text` as a code span on one line, also inside a table cell and with backticks in it."""
    flat = " ".join(text.split()).replace("|", "\\|")
    if "`" not in flat:
        return f"`{flat}`" if flat else ""
    fence = "`" * (1 + max(len(run) for run in _backticks(flat)))
    return f"{fence} {flat} {fence}"


def _backticks(text: str) -> list[str]:
    return [run for run in "".join(mark if mark == "`" else " " for mark in text).split() if run]


def table(header: Sequence[str], lines: Sequence[Sequence[str]], right: Collection[str] = ()) -> str:
    """A GitHub table; the columns named in `right` are aligned to the right. Cells are taken as they are: escape them
    first."""
    rule = ["---:" if name in right else "---" for name in header]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *lines))


def bullets(lines: Sequence[str]) -> str:
    """A list of Markdown lines, empty ones left out."""
    return "\n".join(f"- {line}" for line in lines if line)


def chain(names: Sequence[str], first: str = "root") -> str:
    """'root + `a` + `b`'."""
    return " + ".join([first, *map(code, names)])
