"""Names of an Nsight Systems export: numbers of its StringIds, or texts in the row."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from campaign.traces._nsys_file import Export, TooLong
from campaign.traces.timeline import LONGEST_NAME, Notice

MOST_NAMES = 1 << 17
ASKED = 500  # ids in one query
REST = "(names beyond the first 131,072)"
_VERSION = re.compile(r"(_ptsz|_ptds)?_v\d+(_ptsz|_ptds)?$")


def plain_call(name: str) -> str:
    """A runtime function without the version that CUPTI adds: cudaGraphLaunch for cudaGraphLaunch_v10000."""
    return _VERSION.sub("", name)


class Names:
    """Every name once; `texts` is the list for Timeline.names. Names that are too long are cut, and those beyond
    `most` share one."""

    def __init__(self, export: Export, most: int = MOST_NAMES) -> None:
        self.export, self.most = export, most
        self.texts: list[str] = []
        self._places: dict[str, int] = {}
        self._known: dict[tuple[str, int], int] = {}
        self.cut = self.unnamed = self.beyond = 0
        columns = export.columns("StringIds")
        self._readable = "id" in columns and "value" in columns

    def place(self, text: str) -> int:
        """The number of a name."""
        found = self._places.get(text)
        if found is None:
            if len(text) > LONGEST_NAME:
                self.cut += 1
                return self.place(text[:LONGEST_NAME])
            if len(self._places) >= self.most and text != REST:
                self.beyond += 1
                return self.place(REST)
            found = self._places[text] = len(self._places)
            self.texts.append(text)
        return found

    def places(self, ids: np.ndarray, unnamed: str, form: Callable[[str], str] | None = None) -> np.ndarray:
        """The numbers of the names of StringIds with these ids. One without a name is called `unnamed` and its id."""
        unique, inverse = np.unique(ids, return_inverse=True)
        wanted = [int(one) for one in unique]
        fresh = [one for one in wanted if (unnamed, one) not in self._known]
        found = self.lookup(fresh)
        for one in fresh:
            text = found.get(one)
            if text is None:
                self.unnamed += 1
                text = f"{unnamed} {one}" if one >= 0 else unnamed
            self._known[unnamed, one] = self.place(form(text) if form else text)
        return np.array([self._known[unnamed, one] for one in wanted], np.int32)[inverse]

    def lookup(self, ids: list[int]) -> dict[int, str]:
        """The texts of those ids that have one."""
        found: dict[int, str] = {}
        for first in range(0, len(ids) if self._readable else 0, ASKED):
            some = ids[first : first + ASKED]
            try:
                found |= self._asked(some)
            except TooLong:  # one of them is longer than SQLite may load
                for one in some:
                    try:
                        found |= self._asked([one])
                    except TooLong:
                        found[one] = f"(a name too long to read, {one})"
                        self.cut += 1
        return found

    def notices(self) -> list[Notice]:
        found = []
        if self.cut:
            found.append(Notice("long_names", f"names longer than {LONGEST_NAME:,} characters, cut: {self.cut:,}"))
        if self.unnamed:
            where = "StringIds has no text for them" if self._readable else "the file has no readable table StringIds"
            found.append(Notice("unnamed", f"names shown by their number: {self.unnamed:,} ({where})"))
        if self.beyond:
            text = f"more than {self.most:,} different names: the rest is shown as {REST!r}"
            found.append(Notice("many_names", text))
        return found

    def _asked(self, ids: list[int]) -> dict[int, str]:
        export = self.export
        listed = ", ".join(str(one) for one in ids)
        select = f"{export.whole('StringIds', 'id')}, {export.text('StringIds', 'value', LONGEST_NAME + 1)}"
        column = export.columns("StringIds")["id"].replace('"', '""')
        rows = export.some("StringIds", select, f'WHERE "{column}" IN ({listed})', most=2 * ASKED)
        return {number: text for number, text in reversed(rows) if text is not None}
