"""The events of a Chrome trace, piece by piece: plain or gzip, in bounded memory, however long the file is.

A piece is cut between two events and decoded as an array of its own. A cut may be wrong, since names and arguments can
hold anything; but a piece that begins at an event and decodes as an array *is* a sequence of whole events, so a wrong
cut always shows, and another one or a longer piece is tried. The text stays in one buffer, whose byte before a piece
and byte after it are overwritten with the brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from campaign.errors import BadInput
from campaign.traces._inflate import Inflated, Plain

PIECE_BYTES = 1 << 20  # fits the caches with what it decodes into
LARGEST_PIECE = 32 << 20  # one event, and what stands before or after the events, fit in this or are refused
AFTER_BYTES = 4 << 20  # of what stands after the events
TAIL_BYTES = 1 << 14  # where the last cut of a piece is looked for
CUTS_TRIED = 4
EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
BARE = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")
BETWEEN = re.compile(rb"\}\s*,\s*(?=\{)")
# What msgspec calls truncated too.
LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])(?=.{4})", re.DOTALL
)  # msgspec calls it truncated
BYTE = re.compile(r"\(byte (\d+)\)")
TRUNCATED, TRAILING = "truncated", "trailing characters"  # words of msgspec's errors, held by a test
AGAIN = "make the trace again, or cut the file to a valid part"

Decode = Callable[[Any], list[Any]]


class Mender(Protocol):
    after: bytes

    def __call__(self, piece: bytes, offset: int, *, last: bool) -> list[Any]: ...

    def cut(self, offset: int) -> None: ...


class Pieces:
    """Iterate to get lists of decoded events. While one is handled `piece` is the JSON array that it was decoded from,
    empty where that was mended. `before` and `after` are what stands around the events, as bytes; `unread` says whether
    more stands after them than was looked at."""

    def __init__(self, source: Plain | Inflated, path: Path, decode: Decode, mend: Mender) -> None:
        self.source, self.path, self.decode, self.mend = source, path, decode, mend
        self.before = self.after = b""
        self.piece: memoryview | bytes = b""
        self.unread = self.closed = self.in_object = False
        self._text = bytearray(PIECE_BYTES + 2)
        self._end = 1  # of the text; it begins at 1
        self._offset = 0  # of the text's beginning in the content
        self._ended = False  # the source has

    def __iter__(self) -> Iterator[list[Any]]:
        self._to_the_events()
        wanted = PIECE_BYTES
        while not self.closed:
            self._fill(wanted)
            found = self._cut(TAIL_BYTES) or self._whole() or self._cut(self._end) or self._last()
            if found is None:
                if self._end > LARGEST_PIECE:
                    raise BadInput(
                        f"{self.path}: no end of an event within {self._end - 1:,} bytes from offset {self._offset:,}",
                        remedy=AGAIN,
                    )
                wanted = 2 * self._end
                continue
            events, used = found
            yield events
            self.piece, events, found = b"", [], None
            self._drop(used)
            wanted = PIECE_BYTES
        self._fill(AFTER_BYTES)
        self.after = self.mend.after + bytes(self._text[1 : self._end])
        self.unread = not self._ended and self._end > AFTER_BYTES

    def _to_the_events(self) -> None:
        """Read on until the text begins where the first event does."""
        seen = 1
        while True:
            self._fill(max(TAIL_BYTES, 2 * self._end))
            bare = BARE.match(self._text, 1, self._end)
            if bare:
                return self._drop(bare.end())
            found = EVENTS_KEY.search(self._text, max(1, seen - 64), self._end)
            if found:
                self.before, self.in_object = bytes(self._text[1 : found.start()]).removeprefix(b"\xef\xbb\xbf"), True
                return self._drop(found.end())
            if self._ended or self._end > LARGEST_PIECE:
                where = "in it" if self._ended else f"in its first {self._end - 1:,} bytes"
                lost = f" ({self.source.lost})" if self.source.lost else ""
                raise BadInput(
                    f"{self.path}: no array traceEvents {where}{lost}",
                    remedy="export the trace again: prof.export_chrome_trace(FILE)",
                )
            seen = self._end

    def _fill(self, size: int) -> None:
        """Have `size` bytes of text, or all that is left."""
        if size + 2 > len(self._text):
            longer = bytearray(size + 2)
            longer[: self._end] = self._text[: self._end]
            self._text = longer
        with memoryview(self._text) as view:
            while self._end <= size and not self._ended:
                count = self.source.into(view[self._end : size + 1])
                self._end += count
                self._ended = not count

    def _drop(self, used: int) -> None:
        """Let the text begin at `used`."""
        rest = self._end - used
        if len(self._text) > PIECE_BYTES + 2 and rest < PIECE_BYTES:
            self._text = bytearray(memoryview(self._text)[used - 1 : self._end]).ljust(PIECE_BYTES + 2, b"\0")
        else:
            self._text[1 : 1 + rest] = self._text[used : self._end]
        self._offset += used - 1
        self._end = 1 + rest

    def _array(self, end: int) -> list[Any]:
        """The text up to `end` as an array. Raises ValueError where it is none."""
        kept = self._text[end]
        self._text[0], self._text[end] = ord("["), ord("]")
        view = memoryview(self._text)[: end + 1]
        try:
            events = self.decode(view)
        except ValueError:
            self._text[end] = kept
            raise
        self.piece = view
        return events

    def _cut(self, within: int) -> tuple[list[Any], int] | None:
        """The events up to one of the last cuts, and where the rest begins; None where no cut is right. Of the cuts
        further away every second, fourth, eighth one is tried."""
        cuts = [
            (cut.start() + 1, cut.end()) for cut in BETWEEN.finditer(self._text, max(1, self._end - within), self._end)
        ]
        chosen = list(range(1, min(CUTS_TRIED, len(cuts)) + 1))
        while within > TAIL_BYTES and chosen and 2 * chosen[-1] <= len(cuts):
            chosen.append(2 * chosen[-1])
        for back in chosen:
            try:
                return self._array(cuts[-back][0]), cuts[-back][1]
            except ValueError:
                continue
        return None

    def _whole(self) -> tuple[list[Any], int] | None:
        """The events up to the array's end, where that is in the text; those that can be read where it is damaged;
        None where the text merely stops too early."""
        self._text[0] = ord("[")
        try:
            view = memoryview(self._text)[: self._end]
            events = self.decode(view)
            self.closed, self.piece = True, view
            return events, self._end
        except ValueError as error:
            why = str(error)
        byte = int(found[1]) if (found := BYTE.search(why)) else 0  # counts from one
        if TRAILING in why:
            end = self._text.rfind(b"]", 1, byte - 1)
            events = self._array(end)
            self.closed = True
            return events, end + 1
        if byte >= self._end and not self._ended:  # a number that is cut after its sign or point is called malformed
            return None
        if TRUNCATED in why and not LONE_SURROGATE.search(self._text, 1, self._end):
            return None
        return self._damaged()

    def _damaged(self) -> tuple[list[Any], int] | None:
        if self._ended:
            self.closed = True
            return self.mend(bytes(self._text[1 : self._end]), self._offset, last=True), self._end
        cuts = list(BETWEEN.finditer(self._text, max(1, self._end - TAIL_BYTES), self._end))
        if not cuts:
            return None
        return self.mend(bytes(self._text[1 : cuts[-1].start() + 1]), self._offset, last=False), cuts[-1].end()

    def _last(self) -> tuple[list[Any], int] | None:
        """What is left where the file ends without the array's end: a whole event, or part of one."""
        if not self._ended:
            return None
        self.closed = True
        rest = bytes(self._text[1 : self._end]).rstrip().rstrip(b",")
        self.mend.cut(self._offset)
        try:
            return self.decode(b"[" + rest + b"]"), self._end
        except ValueError:
            return [], self._end
