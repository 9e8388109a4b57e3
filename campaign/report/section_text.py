"""A report on a profile as text: rich tables and colours in a terminal, plain lines in a pipe."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from campaign.report.kernel_names import shown
from campaign.report.plain import plain
from campaign.report.sections import Facts, Grid, Items, Named, Paper, Part, Said, Section

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 120
NARROW_NAME = 28  # characters that a column of names gets at least
NARROWEST = 12  # in a terminal that is too narrow for anything
NARROW_TEXT = 30  # and one of text that may break over lines
GAP = 2  # between columns
HELD = "\x00"  # a space at which no line breaks; in no text, since `plain` escapes it
INDENT = "  "


def paper_text(paper: Paper, *, terminal: bool, width: int | None = None) -> str:
    """The whole report without a last newline. `width` is the terminal's, or COLUMNS, or 120 in a pipe."""
    width = max(width or shutil.get_terminal_size((PIPE_WIDTH, 24)).columns, 40)
    writer = _Writer(width, terminal)
    lines = [*writer.heading(paper.title), *writer.parts(paper.head)]
    for place, section in enumerate(paper.sections, 1):
        lines += ["", *writer.section(place, section)]
    return "\n".join([*lines, "", *writer.wrapped(paper.last)])


class _Writer:
    """Draws parts in `width` characters, with colours where `terminal`."""

    def __init__(self, width: int, terminal: bool) -> None:
        self.width = width
        self.terminal = terminal

    def section(self, place: int, section: Section) -> list[str]:
        return [*self.heading(f"{place}. {section.title}"), *self.parts(section.parts)]

    def heading(self, text: str) -> list[str]:
        return [self._styled(line, "bold") for line in self.wrapped(text)]

    def parts(self, found: Sequence[Part]) -> list[str]:
        lines: list[str] = []
        for one in found:
            if lines and isinstance(one, Grid | Named):
                lines.append("")
            lines += self.part(one)
        return lines

    def part(self, one: Part) -> list[str]:
        if isinstance(one, Said):
            return [self._styled(line, "bold" if one.strong else "") for line in self.wrapped(one.text, INDENT)]
        if isinstance(one, Items):
            return [line for text in one.lines if text for line in self.wrapped(text, f"{INDENT}- ", f"{INDENT}  ")]
        if isinstance(one, Named):
            name = shown(one.name, self.width - 4)
            return [self._styled(f"{INDENT}{plain(name)}", "bold"), *self.wrapped(one.beside, INDENT * 2)]
        if isinstance(one, Facts):
            return list(self._facts(one))
        return self.grid(one)

    def wrapped(self, text: str, first: str = "", rest: str | None = None) -> list[str]:
        """Lines of at most the width; a word that is longer is broken."""
        flat = " ".join(plain(text).split()).replace(" %", f"{HELD}%")
        rest = first if rest is None else rest
        lines = textwrap.wrap(flat, self.width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
        return [line.replace(HELD, " ") for line in lines]

    def _facts(self, one: Facts) -> Iterator[str]:
        pairs = [(label, value) for label, value in one.pairs if value]
        room = max(len(label) for label, _ in pairs) + 2
        for label, value in pairs:
            lead = INDENT * 2 + label.ljust(room)
            if len(lead) > self.width // 2:
                yield from self.wrapped(f"{label}: {value}", INDENT * 2, INDENT * 3)
            else:
                yield from self.wrapped(value, lead, " " * len(lead))

    def grid(self, one: Grid) -> list[str]:
        widths = self._widths(one)
        places = [one.header.index(name) for name in widths]
        room = widths.get(one.names, 0)
        lines = [
            [shown(line[place], room) if one.header[place] == one.names else line[place] for place in places]
            for line in one.lines
        ]
        drawn = self._drawn(one, widths, lines)
        left_out = [name for name in one.header if name not in widths]
        if left_out:
            drawn += self.wrapped(f"(left out on {self.width} columns: {', '.join(left_out)})", INDENT)
        title = [self._styled(line, "bold") for line in self.wrapped(one.title, INDENT)] if one.title else []
        return [*title, *drawn]

    def _widths(self, one: Grid) -> dict[str, int]:
        """The columns that fit, each with its width. What is spare goes to names first, then to text that folds."""
        longest = {
            name: max(len(name), *(len(plain(line[place])) for line in one.lines))
            for place, name in enumerate(one.header)
        }
        widths = dict(longest)
        flexible = [name for name in (one.names, *one.header) if name == one.names or name in one.folding]
        for name in flexible:
            if name in widths:
                widths[name] = min(longest[name], NARROW_NAME if name == one.names else NARROW_TEXT)
        room = self.width - len(INDENT) + GAP
        for name in one.least:
            if sum(widths.values()) + GAP * len(widths) <= room:
                break
            widths.pop(name, None)
        for name in flexible:
            if name in widths:
                spare = room - sum(widths.values()) - GAP * len(widths)
                more = spare // 2 if name == one.names and len(flexible) > 1 else spare
                widths[name] = max(min(longest[name], widths[name] + more), NARROWEST)
        return widths

    def _drawn(self, one: Grid, widths: dict[str, int], lines: Sequence[Sequence[str]]) -> list[str]:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(
            box=SIMPLE_HEAD if self.terminal else None,
            show_edge=False, pad_edge=False, padding=(0, GAP if not self.terminal else 1, 0, 0), header_style="bold",
        )  # fmt: skip
        for place, (name, width) in enumerate(widths.items()):
            free = name == one.names or name in one.folding
            table.add_column(
                name,
                justify="right" if name in one.right else "left",
                no_wrap=not free,
                overflow="fold",
                width=min(width, max(len(name), *(len(plain(line[place])) for line in lines))) if free else None,
            )
        for place, line in enumerate(lines):
            struck = place in one.struck
            table.add_row(
                *(
                    Text(plain(cell), style="strike" if struck and name not in one.folding else "")
                    for name, cell in zip(widths, line, strict=True)
                ),
                style="dim" if struck else "",
            )
        console = self._console()
        with console.capture() as captured:
            console.print(table)
        return [f"{INDENT}{line}".rstrip() for line in captured.get().rstrip("\n").split("\n")]

    def _console(self) -> Console:
        from rich.console import Console

        return Console(
            width=self.width - len(INDENT),
            force_terminal=self.terminal,
            color_system="auto" if self.terminal else None,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def _styled(self, line: str, style: str) -> str:
        return f"\x1b[1m{line}\x1b[0m" if self.terminal and style else line
