"""The files of rounds that are being measured, and the claims on plans that are being worked on.

Each is locked by the process that it belongs to, so that another one can tell what a dead process left from what a
live one is writing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from campaign.errors import BadInput
from campaign.ledger.disk import TRY, is_at, lock, made, owned, unusable

INFLIGHT = "inflight"
CLAIMS = "claims"
PASSING_SECONDS = 3600.0  # what was being written so long ago under a passing name was left by a process that died


class Streams:
    """The `inflight/` and `claims/` folders of one campaign, as one process sees them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._streaming: dict[str, int] = {}
        self._claimed: dict[str, int] = {}
        self._kept: set[str] = set()

    def path(self, round_id: str) -> Path:
        """The file that a round streams its blocks to, `inflight/<round_id>.jsonl`."""
        return self._folder / INFLIGHT / f"{round_id}.jsonl"

    def is_open(self, round_id: str) -> bool:
        """Whether this process streams that round."""
        return round_id in self._streaming

    def open(self, round_id: str) -> Path:
        """A new, empty inflight file that this process owns. Raises BadInput where there is one already, and
        LedgerUnwritable."""
        path = self.path(round_id)
        if path.exists():
            raise BadInput(f"round {round_id} is being measured by another process, which streams to {path}")
        passing = made(path.parent) / f".{round_id}.{os.getpid()}"
        file = owned(passing)
        try:
            os.replace(passing, path)  # locked before it has the name, so that nobody takes it for a dead one's
        except OSError as error:
            os.close(file)
            raise unusable(path, error) from error
        self._streaming[round_id] = file
        return path

    def end(self, round_id: str, *, remove: bool) -> None:
        """The round is in the ledger; its file goes where the ledger names its content."""
        if self.is_open(round_id):
            if remove:
                self.path(round_id).unlink(missing_ok=True)
            os.close(self._streaming.pop(round_id))

    def left(self) -> list[Path]:
        """The inflight files that this process does not stream, by name; some may be of other live processes."""
        return [path for path in sorted((self._folder / INFLIGHT).glob("*.jsonl")) if not self.is_open(path.stem)]

    @contextmanager
    def adopted(self, path: Path) -> Iterator[bytes | None]:
        """The bytes of an inflight file whose process died, which is removed after the body of the `with`; None where
        it has a live owner or is gone."""
        try:
            file = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            yield None
            return
        try:
            if not lock(file, path, TRY) or not is_at(file, path):
                yield None
                return
            yield path.read_bytes()
            path.unlink()
        finally:
            os.close(file)

    def claim(self, id: str) -> bool:
        """Take the plan or study with this id for this process until `close`; False where a live process has it."""
        if id not in self._claimed:
            made(self._folder / CLAIMS)
            file = owned(self._claim(id))
            if file < 0:
                return False
            self._claimed[id] = file
        return True

    def take_over(self, id: str) -> bool:
        """Claim what a process claimed that died before it closed; False where none did, or a live one has it."""
        return id not in self._claimed and self._claim(id).exists() and self.claim(id)

    def keep_claim(self, id: str) -> None:
        """From here on a claim of this process outlasts `close`, as that of a process that died, until `let_go`."""
        self._kept.add(id)

    def let_go(self, id: str) -> None:
        """End a claim of this process, kept or not; none is no error."""
        self._kept.discard(id)
        if id in self._claimed:
            self._claim(id).unlink(missing_ok=True)
            os.close(self._claimed.pop(id))

    def close(self) -> None:
        """Let go of everything but kept claims; inflight files stay for the next run to keep."""
        for id, file in self._claimed.items():
            if id not in self._kept:
                self._claim(id).unlink(missing_ok=True)
            os.close(file)
        for file in self._streaming.values():
            os.close(file)
        self._claimed.clear()
        self._streaming.clear()

    def tidy(self, *folders: Path) -> None:
        """Remove what dead processes left under passing names in `inflight/` and in `folders`."""
        for folder in (self._folder / INFLIGHT, *folders):
            for path in folder.glob(".*"):
                try:
                    if time.time() - path.stat().st_mtime > PASSING_SECONDS:
                        path.unlink()
                except OSError:
                    continue  # its process took it away, or the folder is read-only; it is in nobody's way

    def _claim(self, id: str) -> Path:
        return self._folder / CLAIMS / id.replace("/", "%")
