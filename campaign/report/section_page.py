"""A report on a profile as Markdown or as one HTML file, whatever the names in it are made of."""

from __future__ import annotations

from collections.abc import Sequence

from campaign.report.html import whole_document
from campaign.report.kernel_names import shown
from campaign.report.markdown import markdown
from campaign.report.markup import Block, Fold, bullets, code, prose, table
from campaign.report.sections import Facts, Grid, Items, Named, Paper, Part, Said

FORMS = ("md", "html")
NAME_ROOM = 80  # characters of a kernel's name in a cell; JSON has all of it


def papers_page(papers: Sequence[Paper], form: str) -> str:
    """The reports one after another as text in `form`, one of `FORMS`. Raises Unavailable for HTML without
    markdown-it-py."""
    blocks = [block for place, paper in enumerate(papers) for block in _blocks(paper, place, len(papers))]
    if form == "md":
        return markdown(blocks)
    title = papers[0].title if len(papers) == 1 else f"{papers[0].title} and {len(papers) - 1} more"
    return whole_document(title, blocks, "Profile evidence: it says where to look, never how much was won.")


def _blocks(paper: Paper, place: int, of: int) -> list[Block]:
    """A report as blocks. Where there are several, the sections' names say which report they are of."""
    found: list[Block] = [f"# {prose(paper.title)}", *_parts(paper.head)]
    for section in paper.sections:
        title = section.title if of == 1 else f"{section.title} ({place + 1})"
        found += [f"## {title}", *_parts(section.parts)]
    return [*found, f"*{prose(paper.last)}*"]


def _parts(parts: Sequence[Part]) -> list[Block]:
    return [block for one in parts for block in _of(one)]


def _of(one: Part) -> list[Block]:
    if isinstance(one, Said):
        return [f"**{prose(one.text)}**" if one.strong else prose(one.text)]
    if isinstance(one, Items):
        return [bullets([prose(line) for line in one.lines if line])]
    if isinstance(one, Facts):
        return [bullets([f"**{prose(label)}**: {prose(value)}" for label, value in one.pairs if value])]
    if isinstance(one, Named):
        return [f"### {code(shown(one.name, NAME_ROOM))}", *([prose(one.beside)] if one.beside else [])]
    drawn = _table(one)
    if one.folded:
        return [Fold(one.folded, drawn)]
    return [*([f"**{prose(one.title)}**"] if one.title else []), drawn]


def _table(one: Grid) -> str:
    lines = []
    for place, line in enumerate(one.lines):
        cells = [
            code(shown(cell, NAME_ROOM)) if name == one.names else prose(cell)
            for name, cell in zip(one.header, line, strict=True)
        ]
        if place in one.struck:  # but not the reason
            cells = [
                f"~~{cell}~~" if cell and name not in one.folding else cell
                for name, cell in zip(one.header, cells, strict=True)
            ]
        lines.append(cells)
    return table([prose(name) for name in one.header], lines, {prose(name) for name in one.right})
