"""The events of a Chrome trace, piece by piece: plain or gzip, in bounded memory, however long the file is.

A piece is cut between two events and decoded as an array of its own. A cut may be wrong, since names and arguments can
hold anything; but a piece that begins at an event and decodes as an array *is* a sequence of whole events, so a wrong
cut always shows, and an earlier one or a longer piece is tried.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from campaign.errors import BadInput

PIECE_BYTES = 1 << 20
LARGEST_PIECE = 64 << 20  # one event, and what stands before or after the events, fit in this or are refused
TAIL_BYTES = 1 << 16  # where the last cut of a piece is looked for
CUTS_TRIED = 4
GZIP = b"\x1f\x8b"
EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
BETWEEN = re.compile(rb"\}\s*,\s*(?=\{)")
AGAIN = "make the trace again, or cut the file to a valid part"

Decoded = list[Any]


class Truncated(Exception):
    """The compressed stream ends early or is damaged; `where` is the offset in the decompressed text."""


class Pieces:
    """Iterate to get lists of decoded events. `before` and `after` are what stands around the array, as bytes; `offset`
    is where the piece that was handed out last begins in the (decompressed) text."""

    def __init__(self, file: IO[bytes], path: Path, decode: Callable[[bytes], Decoded], repair: Any) -> None:
        self.file, self.path, self.decode, self.repair = file, path, decode, repair
        self.before = self.after = b""
        self.offset = 0
        self.ended = False
        self.lost = ""  # why the stream ended early, if it did

    def __iter__(self) -> Iterator[Decoded]:
        # The first byte of the buffer stands for the bracket or comma before the next event, and is a bracket, so that
        # a piece decodes as it lies.
        buffer = self._open()
        wanted = PIECE_BYTES
        while True:
            self._more(buffer, wanted - len(buffer))
            if self.ended:
                yield from self._rest(bytes(memoryview(buffer)[1:]))
                return
            found = self._piece(buffer)
            if found is None:
                if len(buffer) < LARGEST_PIECE:
                    wanted = min(2 * len(buffer), LARGEST_PIECE)
                    continue
                found = self._damaged(buffer)
            events, end = found
            yield events
            self.offset += end
            del buffer[:end]
            buffer[:1] = b"["
            wanted = PIECE_BYTES

    def _open(self) -> bytearray:
        """Read up to the first event; the bracket before it, and what was read beyond."""
        buffer = bytearray()
        while True:
            self._more(buffer, PIECE_BYTES if buffer else TAIL_BYTES)
            stripped = buffer.lstrip(b"\xef\xbb\xbf \t\r\n")
            if stripped.startswith(b"["):
                self.offset = len(buffer) - len(stripped)
                return stripped
            if found := EVENTS_KEY.search(buffer):
                self.before, self.offset = bytes(buffer[: found.start()]), found.end() - 1
                return buffer[found.end() - 1 :]
            if self.ended or len(buffer) > LARGEST_PIECE:
                seen = f"in its first {len(buffer):,} bytes" if not self.ended else "in it"
                raise BadInput(
                    f"{self.path}: no array traceEvents {seen}{self._lost_text()}",
                    remedy="export the trace again: prof.export_chrome_trace(FILE)",
                )

    def _more(self, buffer: bytearray, count: int) -> None:
        while count > 0 and not self.ended:
            try:
                part = self.file.read(min(count, PIECE_BYTES))
            except (EOFError, zlib.error, OSError) as error:  # isal and gzip raise each of these on damaged streams
                part, self.lost = b"", str(error) or type(error).__name__
            if not part:
                self.ended = True
            buffer += part
            count -= len(part)

    def _piece(self, buffer: bytearray) -> tuple[Decoded, int] | None:
        """The events up to one of the last cuts, and where its comma is; None where no cut is right."""
        for comma in reversed(_commas(buffer)[-CUTS_TRIED:]):
            buffer[comma] = ord("]")
            try:
                return self.decode(bytes(memoryview(buffer)[: comma + 1])), comma
            except ValueError:
                buffer[comma] = ord(",")
        return None

    def _damaged(self, buffer: bytearray) -> tuple[Decoded, int]:
        commas = _commas(buffer)
        if not commas:
            raise BadInput(
                f"{self.path}: no end of an event within {len(buffer):,} bytes from offset {self.offset:,}",
                remedy=AGAIN,
            )
        return self.repair(bytes(memoryview(buffer)[1 : commas[-1]]), self.offset + 1, last=False)[0], commas[-1]

    def _rest(self, buffer: bytes) -> Iterator[Decoded]:
        """The last events and what stands after them."""
        for close in _closings(buffer):
            try:
                events = self.decode(b"[" + buffer[:close] + b"]")
            except ValueError:
                continue
            self.after = buffer[close + 1 :]
            yield events
            return
        events, end = self.repair(buffer, self.offset + 1, last=True)
        self.after = buffer[end:]
        yield events

    def _lost_text(self) -> str:
        return f" (the compressed stream ends early: {self.lost})" if self.lost else ""


def _commas(buffer: bytearray) -> list[int]:
    """Where commas between events may be, near the end of the buffer."""
    for tail in (TAIL_BYTES, 16 * TAIL_BYTES):
        first = max(0, len(buffer) - tail)
        found = [buffer.index(b",", between.start()) for between in BETWEEN.finditer(buffer, first)]
        if found:
            return found
    return []


def _closings(buffer: bytes) -> Iterator[int]:
    """Where the array may end, the likeliest first: most files have little after it."""
    tried = 0
    place = len(buffer)
    while tried < 64 and (place := buffer.rfind(b"]", 0, place)) >= 0:
        tried += 1
        yield place


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The decompressed bytes of a file. Raises BadInput where it cannot be opened."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == GZIP
        if packed:
            from isal import igzip

            with igzip.open(path, "rb") as stream:
                yield stream
        else:
            with path.open("rb") as stream:
                yield stream
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}", remedy="campaign diagnose --help") from error
