"""The locks and syncs that let several processes write one campaign, and what a disk refuses, said to a person."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from campaign.errors import LedgerUnwritable

WAIT = fcntl.LOCK_EX
SHARE = fcntl.LOCK_SH
TRY = fcntl.LOCK_EX | fcntl.LOCK_NB


def refused(path: Path, verb: str, error: OSError) -> LedgerUnwritable:
    """The error for a ledger file that cannot be read or written."""
    return LedgerUnwritable(
        f"cannot {verb} the ledger {path}: {error.strerror or error}; nothing after its last line is recorded",
        remedy=f"df -h {path.parent}; ls -ld {path.parent}; then run the same command again",
    )


def unusable(path: Path, error: OSError) -> LedgerUnwritable:
    """The error for another file or folder of a campaign that cannot be made or written."""
    folder = next(folder for folder in path.absolute().parents if folder.exists())
    return LedgerUnwritable(
        f"cannot write {path}: {error.strerror or error}",
        remedy=f"df -h {folder}; ls -ld {folder}; then run the same command again",
    )


def made(folder: Path) -> Path:
    """The folder, made where there is none. Raises LedgerUnwritable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(folder, error) from error
    return folder


def sync_folder(folder: Path) -> None:
    """Make a new name in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock(file: int, path: Path, how: int) -> bool:
    """Take the flock `how` on the open file; False where another process holds it and `how` does not wait.

    The kernel frees it when the process dies. Raises LedgerUnwritable where the file system has no flock.
    """
    try:
        fcntl.flock(file, how)
    except BlockingIOError:
        return False
    except OSError as error:
        raise LedgerUnwritable(
            f"cannot lock {path}: {error.strerror or error}; without locks two processes would mix their lines",
            remedy=f"df -T {path.parent}; then keep runs/ on a file system with flock (a local disk)",
        ) from error
    return True


class Turn:
    """The turn to write in a campaign, which one process has at a time: for one append, or to look and then append.
    Within the same object it is taken again at once. Readers need none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._depth = 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Have the turn for the body of the `with`. Raises LedgerUnwritable."""
        if not self._depth:
            made(self._path.parent)
            self._file = owned(self._path, WAIT)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                os.close(self._file)


def owned(path: Path, how: int = TRY) -> int:
    """The file at `path`, made where there is none and locked, as a descriptor to keep open; -1 where another process
    owns it and `how` does not wait. Its owner removes it before letting go, so the name is looked at once more.
    Raises LedgerUnwritable."""
    while True:
        file = -1
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            if not lock(file, path, how):
                os.close(file)
                return -1
            if is_at(file, path):
                return file
            os.close(file)
        except OSError as error:
            raise unusable(path, error) from error
        except LedgerUnwritable:
            os.close(file)
            raise


def is_at(file: int, path: Path) -> bool:
    """Whether the open file is the one at `path`."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False
