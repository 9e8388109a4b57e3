"""Rows of one numpy dtype that iterate in order of `start`, in memory while they are few, else sorted runs on disk.

An external merge sort (Knuth, The Art of Computer Programming 3, section 5.4): what is in memory stays the same however
long the trace is. The file is unlinked as soon as it is open, so that nothing is left behind however the process ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO

import numpy as np

from campaign.errors import BadInput

ROWS_IN_MEMORY = 1 << 19
SMALLEST_BLOCK = 1 << 10


class Spool:
    """Append blocks of rows in any order, then read them back sorted, so often as one likes."""

    def __init__(self, dtype: np.dtype, rows_in_memory: int = ROWS_IN_MEMORY) -> None:
        self.dtype = dtype
        self.limit = rows_in_memory
        self._blocks: list[np.ndarray] = []
        self._held = 0
        self._runs: list[tuple[int, int]] = []  # first row in the file, and how many
        self._file: IO[bytes] | None = None
        self._on_disk = 0

    def __len__(self) -> int:
        return self._on_disk + self._held

    def append(self, rows: np.ndarray) -> None:
        """Take rows, at most about `rows_in_memory` at once. Raises BadInput where the temporary disk is full."""
        if not len(rows):
            return
        self._blocks.append(rows)
        self._held += len(rows)
        if self._held >= self.limit:
            self._spill()

    def batches(self) -> Iterator[np.ndarray]:
        """All rows in order of `start` (stable within a run), in arrays of bounded length, none empty."""
        tail = self._sorted()
        if not self._runs:
            for first in range(0, len(tail), self.limit // 4 or 1):
                yield tail[first : first + (self.limit // 4 or 1)]
            return
        yield from self._merged(tail)

    def close(self) -> None:
        """Drop everything."""
        self._blocks, self._runs, self._held, self._on_disk = [], [], 0, 0
        if self._file is not None:
            self._file.close()
            self._file = None

    def _sorted(self) -> np.ndarray:
        """What is in memory, as one sorted block."""
        if not self._blocks:
            return np.empty(0, self.dtype)
        rows = self._blocks[0] if len(self._blocks) == 1 else np.concatenate(self._blocks)
        rows = _in_order(rows)
        self._blocks = [rows]
        return rows

    def _spill(self) -> None:
        rows = self._sorted()
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="campaign-trace-", buffering=0)
            self._file.seek(0, 2)
            left = rows.view(np.uint8).data
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise BadInput(
                f"{tempfile.gettempdir()}: no room for the trace's rows beyond {self._on_disk:,} "
                f"({error.strerror or error})",
                remedy="TMPDIR=DIRECTORY campaign diagnose FILE, with a directory that has room",
            ) from error
        self._runs.append((self._on_disk, len(rows)))
        self._on_disk += len(rows)
        self._blocks, self._held = [], 0

    def _read(self, first: int, count: int) -> np.ndarray:
        assert self._file is not None
        self._file.seek(first * self.dtype.itemsize)
        return np.frombuffer(self._file.read(count * self.dtype.itemsize), self.dtype)

    def _merged(self, tail: np.ndarray) -> Iterator[np.ndarray]:
        """All runs at once, a block of each in memory. What is emitted starts no later than what any run still holds
        back, which is known from the last start of its block."""
        block = max(SMALLEST_BLOCK, self.limit // (2 * len(self._runs)))
        ends = [first + count for first, count in self._runs]
        places = [first for first, _ in self._runs]
        held = [np.empty(0, self.dtype) for _ in self._runs] + [tail]
        while True:
            for run, end in enumerate(ends):
                if not len(held[run]) and places[run] < end:
                    held[run] = self._read(places[run], min(block, end - places[run]))
                    places[run] += len(held[run])
            unfinished = [run for run, end in enumerate(ends) if places[run] < end]
            if not unfinished:
                last = np.concatenate([rows for rows in held if len(rows)] or held[:1])
                if len(last):
                    yield _in_order(last)
                return
            cutoff = min(held[run]["start"][-1] for run in unfinished)
            taken = []
            for run, rows in enumerate(held):
                count = int(np.searchsorted(rows["start"], cutoff, side="right"))
                if count:
                    taken.append(rows[:count])
                held[run] = rows[count:]
            yield _in_order(np.concatenate(taken))


def _in_order(rows: np.ndarray) -> np.ndarray:
    """The rows by start, as they are where they stand so already."""
    starts = rows["start"]
    return rows[np.argsort(starts, kind="stable")] if (starts[1:] < starts[:-1]).any() else rows
