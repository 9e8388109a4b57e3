"""The rows of an Nsight Compute CSV, one at a time, out of whatever else was written to the same file.

`ncu --csv` prints its table between its own banners (`==PROF== ...`) and whatever the program prints, and descriptions
of rules hold line breaks. A row begins with a launch's number (or, for the row of units, with an empty cell) and ends
where its quotes close.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from campaign.errors import BadInput

LONGEST_ROW = 8 << 20  # characters; a raw page of 2,000 columns has about 100,000
SHOWN = 200  # characters of a line that a message repeats
_HEADER = re.compile(r'\ufeff?\s*"?(ID|Process ID|Process Name|Kernel Name)"?\s*[,;].*"?(Kernel|Metric) Name"?')
_START = re.compile(r'\s*("\d*"|\d*)\s*[,;]')
_FRESH = re.compile(r'"\d+"[,;]"')
_BANNER = re.compile(r"==[A-Z]+==")
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
REMEDY = "ncu --import FILE.ncu-rep --csv --page raw > FILE.csv"


@dataclass(frozen=True)
class Row:
    """`header` for a line of column names; `line` is where it begins, from 1."""

    line: int
    cells: list[str]
    header: bool = False


@dataclass
class Rows:
    """Iterate for the rows of a file. What was passed over is known afterwards."""

    path: Path
    strays: list[int] = field(default_factory=list)  # lines after the header that are no rows: the program's output
    broken: list[int] = field(default_factory=list)  # rows whose quotes do not close
    cut: int = 0  # the row with which the file ends before it is whole
    unended: int = 0  # the last line, where no line break ends it
    said: list[str] = field(default_factory=list)  # warnings and errors of the tool

    def __iter__(self) -> Iterator[Row]:
        """Raises BadInput, with the line, for a line without end and for a file that cannot be read."""
        delimiter, began, size = "", 0, 0
        pending: list[str] = []
        for line, text in _lines(self.path):
            self.unended = 0 if text.endswith("\n") else line
            if pending and not _FRESH.match(text):
                size += len(text)
                if size > LONGEST_ROW:
                    raise BadInput(
                        f"{self.path}, line {began}: a row without end (a quote that does not close in"
                        f" {LONGEST_ROW:,} characters)",
                        remedy=REMEDY,
                    )
                pending.append(text)
                if text.count('"') % 2:
                    yield from self._row(began, "".join(pending), delimiter)
                    pending.clear()
                continue
            if pending:
                self.broken.append(began)
                pending.clear()
            if _HEADER.match(text):
                delimiter = ";" if text.count(";") > text.count(",") else ","
                yield Row(line, _cells(text.lstrip("\ufeff"), delimiter), header=True)
            elif not delimiter or not _START.match(text):
                self._passed_over(line, text, after=bool(delimiter))
            elif text.count('"') % 2:
                began, size = line, len(text)
                pending.append(text)
            else:
                yield from self._row(line, text, delimiter)
        if pending:
            self.cut = began

    def _row(self, line: int, text: str, delimiter: str) -> Iterator[Row]:
        try:
            yield Row(line, _cells(text, delimiter))
        except csv.Error:  # a line break outside quotes: the quotes of this row are not what they seem
            self.broken.append(line)

    def _passed_over(self, line: int, text: str, *, after: bool) -> None:
        if _BANNER.match(text):
            if text.startswith(("==ERROR==", "==WARNING==")) and len(self.said) < 5:
                self.said.append(text.strip()[:SHOWN])
        elif after and text.strip():
            self.strays.append(line)


def header_in(head: bytes) -> str:
    """The line of column names in the first bytes of a file; empty where there is none."""
    for text in _decoded(head).splitlines():
        if _HEADER.match(text):
            return text
    return ""


def has_banner(head: bytes) -> bool:
    """Whether one of the first lines is the tool's own."""
    return re.search(r"^==(PROF|ERROR|WARNING)== ", _decoded(head), re.MULTILINE) is not None


def _decoded(head: bytes) -> str:
    return head.decode(_encoding(head), errors="replace")


def _encoding(head: bytes) -> str:
    return next((name for mark, name in _MARKS if head.startswith(mark)), "utf-8")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    line = 0
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = gzip.GzipFile(fileobj=raw) if zipped else raw
            head = stream.read(4)
            stream.seek(0)
            with io.TextIOWrapper(stream, encoding=_encoding(head), errors="replace") as file:  # type: ignore[type-var]
                while text := file.readline(LONGEST_ROW + 1):
                    line += 1
                    if len(text) > LONGEST_ROW:
                        raise BadInput(
                            f"{path}, line {line}: longer than {LONGEST_ROW:,} characters, which no row of a kernel"
                            " report is",
                            remedy=REMEDY,
                        )
                    yield line, text
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{path}, after line {line}: {error}", remedy=REMEDY) from error


def _cells(text: str, delimiter: str) -> list[str]:
    before = csv.field_size_limit(LONGEST_ROW)  # one limit for the whole process: give it back
    try:
        return next(csv.reader([text.rstrip("\r\n")], delimiter=delimiter), [])
    finally:
        csv.field_size_limit(before)
