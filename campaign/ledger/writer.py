"""The lock that lets one process at a time write a campaign."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path

from campaign.errors import BadInput, LedgerUnwritable
from campaign.ledger.entry import now


class WriterLock:
    """An exclusive lock on `runs/<campaign>/.lock`, held until `release`; the kernel frees it when the process dies."""

    def __init__(self, folder: Path) -> None:
        path = folder / ".lock"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise LedgerUnwritable(
                f"cannot open {path}: {error.strerror or error}", remedy=f"ls -ld {folder}; df -h {folder.parent}"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 4096, 0)
            os.close(self._file)
            raise BadInput(
                f"campaign {folder.name!r} is being written by {_named(holder)}; one process writes at a time",
                remedy="wait for it to end, or give this run another campaign name",
            ) from None
        except OSError as error:
            os.close(self._file)
            raise LedgerUnwritable(
                f"cannot lock {path}: {error.strerror or error}",
                remedy="keep runs/ on a file system with flock (a local disk)",
            ) from error
        with suppress(OSError):  # only the name that others are told; a full disk may still be mended while we run
            os.ftruncate(self._file, 0)
            os.pwrite(
                self._file, json.dumps({"pid": os.getpid(), "host": os.uname().nodename, "since": now()}).encode(), 0
            )

    def release(self) -> None:
        """Free the lock. The file stays: removing it would let two processes lock two files of one name."""
        if self._file >= 0:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = -1


def _named(holder: bytes) -> str:
    try:
        who = json.loads(holder)
        return f"process {who['pid']} on {who['host']} since {who['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
