"""What a watched command writes: lines with the time at which they came, and a log that has an end."""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

CHUNK = 1 << 16
LONGEST_LINE = 1 << 16  # what is longer is cut there; nobody's pattern reaches so far
ENDS = re.compile(rb"[\r\n]+")  # a progress bar writes its lines over each other
ORPHANED_SECONDS = 0.2  # how long a silent pipe is waited for whose command has ended
LARGEST_LOG = 32 << 20
LAST_KEPT = 1 << 20


class Log:
    """Bytes on their way to the trial's log: the first `largest` at once, and of the rest the last `kept`, at the end.
    A command may write more than the disk holds."""

    def __init__(self, file: BinaryIO, largest: int = LARGEST_LOG, kept: int = LAST_KEPT) -> None:
        self._file, self._left, self._kept = file, largest, kept
        self._tail, self._dropped = b"", 0

    def write(self, data: bytes) -> None:
        now, later = data[: self._left], data[self._left :]
        if now:
            self._left -= len(now)
            self._file.write(now)
            self._file.flush()
        if later:
            self._tail += later
            if len(self._tail) > 2 * self._kept:
                self._dropped += len(self._tail) - self._kept
                self._tail = self._tail[-self._kept :]

    def end(self) -> None:
        said = f"\n[campaign: {self._dropped} bytes left out]\n".encode() if self._dropped else b""
        self._file.write(said + self._tail)
        self._file.flush()
        self._tail = b""


def lines(pipe: int, running: Callable[[], bool], log: Log) -> Iterator[tuple[float, bytes]]:
    """(seconds of `time.perf_counter`, line) for each line that comes through `pipe`, whose end a line may be told by a
    carriage return too. The time is when the last of the line came: one that begins with its carriage return is seen
    only when the next begins. Ends with the pipe, or with the command, whose children may keep the pipe open."""
    held, held_at = b"", 0.0
    try:
        while True:
            if not select.select([pipe], [], [], ORPHANED_SECONDS)[0]:
                if running() or select.select([pipe], [], [], ORPHANED_SECONDS)[0]:
                    continue
                break
            data = os.read(pipe, CHUNK)
            at = time.perf_counter()
            if not data:
                break
            log.write(data)
            first, *rest = ENDS.split(data)
            if first:
                held, held_at = held + first, at
            if rest or len(held) > LONGEST_LINE:
                if held:
                    yield held_at, held
                *whole, held = rest or [b""]
                held_at = at
                yield from ((at, line) for line in whole)
        if held:
            yield held_at, held
    finally:
        log.end()
