"""Reading a damaged piece of a trace all the same, and saying what was done to it. Never silently.

First the faults that profilers really write are mended (control characters, lone backslashes and half surrogates in
names, text that is not UTF-8, `nan`, `N/A` and `Infinity` as numbers, a comma before a bracket). If the piece still
does not decode, its events are taken one by one, and those that cannot be read are counted and left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from campaign.errors import BadInput
from campaign.traces._json_chunks import AGAIN, BETWEEN, BYTE, TRAILING, TRUNCATED
from campaign.traces.timeline import Notice

MOST_LOST = 10_000  # events that may be left out before the file is refused
LONGEST_MENDED = 4 << 20
PARTS_JOINED = 16  # what looks like so many events may be one, with a list of objects in its arguments
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_ESCAPE = re.compile(
    rb'\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}'
    rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|(?P<bad>))"
)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_NOT_A_NUMBER = re.compile(rb"([:\[,]\s*)(?:[-+]?(?:nan|inf(?:inity)?)|n/a)(?=\s*[,}\]])", re.IGNORECASE)
_TRAILING_COMMA = re.compile(rb",(\s*[\]}])")


class Repair:
    """Called with a piece that does not decode. `notices()` says what was mended or lost in the whole file, `after` is
    what stands after the events in the last piece."""

    def __init__(self, path: Path, decode: Callable[[Any], list[Any]]) -> None:
        self.path, self.decode = path, decode
        self.mended: Counter[str] = Counter()
        self.lost = 0
        self.first_lost = 0
        self.cut_at: int | None = None
        self.after = b""

    def __call__(self, piece: bytes, offset: int, *, last: bool) -> list[Any]:
        """The events of `piece`, which begins at `offset` of the content; where it is the `last` one, what stands after
        the events may follow, or it may end in the middle of an event. Raises BadInput
        where too many events cannot be read."""
        before = self.mended.copy()
        try:
            return self._array(self._mend(piece), offset, last)
        except ValueError:
            self.mended = before  # each event is mended on its own: a missing quote turns all after it inside out
            return self._one_by_one(piece, offset, last)

    def cut(self, offset: int) -> None:
        """Remember that the file ends within the events, near `offset`."""
        self.cut_at = offset

    def notices(self, stream_lost: str) -> tuple[Notice, ...]:
        """What was done to the file. `stream_lost` is why its compressed stream ended early, empty where it did not."""
        found = []
        if self.mended:
            what = ", ".join(f"{count:,} {name}" for name, count in self.mended.most_common())
            found.append(Notice("repaired", f"the file is not valid JSON; mended while reading: {what}"))
        if self.cut_at is not None or stream_lost:
            place = "" if self.cut_at is None else f", near offset {self.cut_at:,}"
            text = f"{stream_lost or 'the file ends within its events'}{place}: events after that are lost"
            found.append(Notice("truncated", text, lowers_confidence=True))
        if self.lost:
            text = f"{self.lost:,} events could not be read and are left out, the first near offset {self.first_lost:,}"
            found.append(Notice("events_lost", text, lowers_confidence=True))
        return tuple(found)

    def _array(self, text: bytes, offset: int, last: bool) -> list[Any]:
        """A mended piece. Raises ValueError where it is still no array of events."""
        if not last:
            return self.decode(b"[" + text + b"]")
        try:
            return self.decode(b"[" + text)
        except ValueError as error:
            why = str(error)
        if TRAILING in why:
            byte = int(found[1]) if (found := BYTE.search(why)) else 0
            end = text.rfind(b"]", 0, byte - 2) + 1  # the bracket before it is not in the text
            events = self.decode(b"[" + text[:end])
            self.after = text[end:]
            return events
        cuts = [found.start() + 1 for found in BETWEEN.finditer(text)] if TRUNCATED in why else []
        for end in [len(text.rstrip().rstrip(b",")), *reversed(cuts[-4:])]:
            try:
                events = self.decode(b"[" + text[:end] + b"]")
            except ValueError:
                continue
            self.cut(offset + end)
            return events
        raise ValueError(why)

    def _mend(self, piece: bytes) -> bytes:
        """The text without the faults that are known. Raises ValueError where it is too long to be mended in little
        memory: a substitution holds each match."""
        if len(piece) > LONGEST_MENDED:
            raise ValueError(f"a fault within {len(piece):,} bytes that cannot be taken apart")
        try:
            piece.decode()
        except UnicodeDecodeError:
            text = piece.decode("utf-8", "replace")
            self.mended["stretches that are not UTF-8"] += text.count("\ufffd")
            piece = text.encode()

        def escape(found: re.Match[bytes]) -> bytes:
            if found.lastgroup is None:
                return found.group()
            self.mended["bad escapes"] += 1
            return rb"\ufffd" if found.lastgroup == "half" else rb"\\"

        def control(found: re.Match[bytes]) -> bytes:
            self.mended["control characters"] += 1
            return b"\\u%04x" % found.group()[0]

        def string(found: re.Match[bytes]) -> bytes:
            text = found.group()
            if b"\\" in text:
                text = _ESCAPE.sub(escape, text)
            return _CONTROL.sub(control, text)

        piece = _STRING.sub(string, piece)
        for pattern, by, what in (
            (_NOT_A_NUMBER, rb"\1null", "values that are not numbers"),
            (_TRAILING_COMMA, rb"\1", "commas before a bracket"),
        ):
            piece, count = pattern.subn(by, piece)
            if count:
                self.mended[what] += count
        return piece

    def _one_by_one(self, piece: bytes, offset: int, last: bool) -> list[Any]:
        """Every event of the piece that can be read on its own."""
        events: list[Any] = []
        edges = [0, *(found.end() for found in BETWEEN.finditer(piece)), len(piece)]
        place = 0
        while place + 1 < len(edges):
            first, why = edges[place], ""
            for after in range(place + 1, min(place + 1 + PARTS_JOINED, len(edges))):
                whole = last and after + 1 == len(edges)
                found, problem = self._event(piece[first : edges[after]], offset + first, whole)
                why = why or problem
                if found is not None or TRUNCATED not in problem:
                    break
            if found is not None:
                events += found
                place = after
                continue
            place += 1
            if last and TRUNCATED in why and place + 1 == len(edges):
                self.cut(offset + first)
            else:
                self._lose(offset + first, why)
        return events

    def _event(self, text: bytes, offset: int, last: bool) -> tuple[list[Any] | None, str]:
        """One event, or why it cannot be read."""
        text = text.strip().rstrip(b",").rstrip()
        if not text:
            return [], ""
        why = ""
        for mended in (False, True):
            before = self.mended.copy()
            try:
                return self._array(self._mend(text) if mended else text, offset, last), ""
            except ValueError as error:
                self.mended = before
                why = why or str(error)
        return None, why

    def _lose(self, offset: int, why: str) -> None:
        self.first_lost = self.first_lost if self.lost else offset
        self.lost += 1
        if self.lost > MOST_LOST:
            raise BadInput(
                f"{self.path}: more than {MOST_LOST:,} events cannot be read, the first near offset "
                f"{self.first_lost:,} ({why})",
                remedy=AGAIN,
            )
