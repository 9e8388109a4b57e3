"""What the review page's tables are made of: a person's text made inert and cut, cells that know what they sort by, and
rows that a figure can link to."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from campaign.report.flat import FORMULA
from campaign.report.html import anchor
from campaign.report.plain import plain

WHOLE = 320  # characters of a text that stand in a cell; of a longer one
BEGINNING = 180  # stand there, with all of it folded behind them
FOLDED = 400_000  # characters that a page folds away in all; what is longer is named with the command that shows it
TAG = re.compile("<[^>]*>")


class Texts:
    """The long texts of one page. What is cut can be unfolded, until the page holds `FOLDED` characters so."""

    def __init__(self, room: int = FOLDED) -> None:
        self.room = room

    def cut(self, text: str, elsewhere: str) -> str:
        """`text` as HTML, which a spreadsheet takes for no formula; what is long as its beginning, with all of it
        folded, or with the command `elsewhere` that shows it."""
        safe = plain(f"'{text}" if text.startswith(FORMULA) else text)
        return self._cut(safe, html.escape(safe), elsewhere)

    def cut_html(self, rendered: str, elsewhere: str) -> str:
        """The same of HTML that is safe already."""
        return self._cut(html.unescape(TAG.sub("", rendered)), rendered, elsewhere)

    def _cut(self, text: str, whole: str, elsewhere: str) -> str:
        flat = " ".join(text.split())
        if len(flat) <= WHOLE:
            return whole
        short = html.escape(flat[:BEGINNING].rsplit(" ", 1)[0])
        if len(whole) > self.room:
            said = html.escape(elsewhere)
            return f'{short}… <span class="quiet">(all {len(flat):,} characters: <code>{said}</code>)</span>'
        self.room -= len(whole)
        return (
            f'<details class="long"><summary>{short}… <span class="quiet">(all {len(flat):,} characters)</span>'
            f"</summary><p>{whole}</p></details>"
        )


@dataclass(frozen=True)
class Cell:
    """HTML, and what the row sorts by: a number, a text, or None for what comes last either way."""

    html: str
    value: float | str | None = None

    @property
    def tag(self) -> str:
        if self.value is None or (isinstance(self.value, float) and not math.isfinite(self.value)):
            return f"<td>{self.html}</td>"
        value = self.value[:80] if isinstance(self.value, str) else f"{self.value:.12g}"
        return f'<td data-value="{html.escape(plain(value))}">{self.html}</td>'


EMPTY = Cell("")


def sortable(
    name: str, label: str, header: Sequence[tuple[str, str]], lines: Sequence[tuple[str, str, Sequence[Cell]]]
) -> str:
    """A table that scrolls in a region of its own and that the page's script can sort. `header` are (title, 'number' or
    'text'), the first of the rows' names; `lines` (row name such as '#3', what the name sorts by, cells)."""
    head = "".join(f'<th scope="col" data-kind="{kind}">{html.escape(title)}</th>' for title, kind in header)
    body = "\n".join(
        f'<tr id="{row_anchor(row)}"><th scope="row" data-value="{value}">{html.escape(row)}</th>'
        f"{''.join(cell.tag for cell in cells)}</tr>"
        for row, value, cells in lines
    )
    return (
        f'<div class="region" role="region" tabindex="0" aria-label="{html.escape(label)}">'
        f'<table class="sortable" id="{name}"><caption>{html.escape(label)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def row_anchor(row: str) -> str:
    """The id of a row by its name: '#3' is 'decision-3', 'finding 2' is 'finding-2'."""
    return anchor(row.replace("#", "decision "))
