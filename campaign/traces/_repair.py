"""Reading a damaged piece of a trace all the same, and saying what was done to it. Never silently.

First the faults that profilers really write are mended in place (control characters and lone backslashes in names, text
that is not UTF-8, `nan`, `N/A` and `Infinity` as numbers, numbers beyond any float, a comma before a bracket). If the
piece still does not decode, its events are taken one by one, and those that cannot be read are counted and left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from campaign.errors import BadInput
from campaign.traces._json_chunks import AGAIN, BETWEEN
from campaign.traces.timeline import Notice

LARGEST_EVENT = 16 << 20
MOST_LOST = 1000  # events that may be left out before the file is refused
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BAD_ESCAPE = re.compile(rb'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_NOT_A_NUMBER = re.compile(rb"([:\[,]\s*)(?:[-+]?(?:nan|inf(?:inity)?)|n/a)(?=\s*[,}\]])", re.IGNORECASE)
_HUGE = re.compile(rb"([:\[,]\s*)-?\d[\d.]*[eE]\+?\d{3,}(?=\s*[,}\]])")
_TRAILING = re.compile(rb",(\s*[\]}])")
_START = re.compile(rb"\{")


class Repair:
    """Called with a piece that does not decode. `notices()` says what was mended or lost in the whole file."""

    def __init__(self, path: Path, decode: Callable[[bytes], list[Any]]) -> None:
        self.path, self.decode = path, decode
        self.mended: Counter[str] = Counter()
        self.lost = 0
        self.first_lost: int | None = None
        self.cut_at: int | None = None

    def __call__(self, piece: bytes, offset: int, *, last: bool) -> tuple[list[Any], int]:
        """The events of `piece`, which begins at `offset` of the text, and how much of it was used; where it is the
        `last` one it may end in the middle of an event. Raises BadInput where too little can be read."""
        mended = self._mend(piece)
        if not last:
            try:
                return self.decode(b"[" + mended + b"]"), len(piece)
            except ValueError:
                return self._one_by_one(mended, offset), len(piece)
        for close in _ends(mended):
            try:
                return self.decode(b"[" + mended[:close] + b"]"), len(piece)
            except ValueError:
                continue
        cuts = [found.start() + 1 for found in BETWEEN.finditer(mended)]
        for cut in reversed(cuts[-4:]):
            try:
                events = self.decode(b"[" + mended[:cut] + b"]")
            except ValueError:
                continue
            self.cut_at = offset + cut
            return events, len(piece)
        return self._one_by_one(mended, offset), len(piece)

    def notices(self) -> tuple[Notice, ...]:
        found = []
        if self.mended:
            what = ", ".join(f"{count:,} {name}" for name, count in self.mended.most_common())
            found.append(Notice("repaired", f"the file is not valid JSON; mended while reading: {what}"))
        if self.cut_at is not None:
            text = f"the file ends in the middle of an event, near offset {self.cut_at:,}: events after it are lost"
            found.append(Notice("truncated", text, lowers_confidence=True))
        if self.lost:
            text = f"{self.lost:,} events could not be read and are left out, the first near offset {self.first_lost:,}"
            found.append(Notice("events_lost", text, lowers_confidence=True))
        return tuple(found)

    def _mend(self, piece: bytes) -> bytes:
        try:
            piece.decode()
        except UnicodeDecodeError:
            text = piece.decode("utf-8", "replace")
            self.mended["stretches that are not UTF-8"] += text.count("\ufffd")
            piece = text.encode()

        def string(found: re.Match[bytes]) -> bytes:
            text = found.group()
            if b"\\" not in text and not _CONTROL.search(text):
                return text
            text, escapes = _BAD_ESCAPE.subn(rb"\\\\", text)
            text, controls = _CONTROL.subn(lambda one: b"\\u%04x" % one.group()[0], text)
            self.mended["bad escapes"] += escapes
            self.mended["control characters"] += controls
            return text

        piece = _STRING.sub(string, piece)
        for pattern, by, what in (
            (_NOT_A_NUMBER, rb"\1null", "values that are not numbers"),
            (_HUGE, rb"\1null", "numbers beyond any float"),
            (_TRAILING, rb"\1", "commas before a bracket"),
        ):
            piece, count = pattern.subn(by, piece)
            self.mended[what] += count
        self.mended = +self.mended
        return piece

    def _one_by_one(self, piece: bytes, offset: int) -> list[Any]:
        """Every event of the piece that can be read on its own."""
        events: list[Any] = []
        edges = [0, *(found.end() for found in BETWEEN.finditer(piece)), len(piece)]
        for first, end in pairwise(edges):
            text = piece[first:end].strip().rstrip(b",").strip().removesuffix(b"]").strip()
            if not text or len(text) > LARGEST_EVENT:
                continue
            try:
                events += self.decode(b"[" + text + b"]")
            except ValueError as error:
                self.lost += 1
                if self.first_lost is None:
                    self.first_lost = offset + first
                if self.lost > MOST_LOST:
                    raise BadInput(
                        f"{self.path}: more than {MOST_LOST:,} events cannot be read, the first near offset "
                        f"{self.first_lost:,} ({error})",
                        remedy=AGAIN,
                    ) from error
        if not events and self.first_lost is not None:
            raise BadInput(
                f"{self.path}: not valid JSON near offset {self.first_lost:,}, and no event there can be read",
                remedy=AGAIN,
            )
        return events


def _ends(piece: bytes) -> list[int]:
    found: list[int] = []
    place = len(piece)
    while len(found) < 64 and (place := piece.rfind(b"]", 0, place)) >= 0:
        found.append(place)
    return found
