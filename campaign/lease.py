"""One campaign at a time on a device: a lock for the whole machine, one file a device in the temporary folder.

The kernel holds the lock, so a killed holder frees it. Two users see the same lease if they have the same TMPDIR.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from campaign.errors import CampaignError, LeaseHeld

POLL_SECONDS = 0.2


def device_key(device: str) -> str:
    """The device as this machine numbers it, for a file name: 'cpu', 'cuda-0', 'cuda-GPU-1a2b'.

    'cuda' is 'cuda:0', and CUDA_VISIBLE_DEVICES, where set, says which physical device that is.
    """
    kind, _, index = device.partition(":")
    if kind != "cuda":
        return "".join(c if c.isalnum() or c in "-_" else "-" for c in device)
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    number = int(index) if index.isdigit() else 0
    return "cuda-" + (visible[number] if number < len(visible) else str(number)).replace("/", "-")


@contextmanager
def hold(
    device: str,
    wait_seconds: float = 0.0,
    on_wait: Callable[[str], None] | None = None,
    *,
    holder: str = "",
    folder: Path | None = None,
) -> Iterator[Path]:
    """Hold `device` for the body of the `with`, waiting at most `wait_seconds` for another holder to end.

    `on_wait` is told once for each holder that is waited for. `holder` is the campaign's name, for others to read.
    `folder` is where the lock files are, the temporary folder when None. Yields the lock's path. Raises LeaseHeld
    naming the holder's process, campaign and start; CampaignError when the lock file cannot be used.
    """
    path = (folder or Path(tempfile.gettempdir())) / f"campaign-lease-{device_key(device)}.lock"
    deadline = time.monotonic() + wait_seconds
    told = ""
    file = _open(path)
    try:
        while not _taken(file, path):
            other = _holder(file)
            if time.monotonic() >= deadline:
                waited = f" (waited {wait_seconds:g} s)" if wait_seconds > 0 else ""
                raise LeaseHeld(
                    f"{device} is in use by {other}; two campaigns at once would time each other{waited}",
                    remedy="lease.wait_seconds=600",
                )
            if on_wait is not None and other != told:
                on_wait(f"{device} is in use by {other}")
                told = other
            time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps({"pid": os.getpid(), "campaign": holder, "since": since}).encode(), 0)
        try:
            yield path
        finally:
            os.ftruncate(file, 0)
    finally:
        os.close(file)


def _open(path: Path) -> int:
    """The lock file, made with mode 0666 whatever the umask, so that every user can lock it."""
    try:
        while True:
            try:
                # Without O_CREAT first: Linux refuses O_CREAT on another user's file in a sticky folder.
                return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            except FileNotFoundError:
                pass
            try:
                file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                continue
            os.fchmod(file, 0o666)
            return file
    except OSError as error:
        raise _refused(path, error) from error


def _taken(file: int, path: Path) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise _refused(path, error) from error
    return True


def _holder(file: int) -> str:
    try:
        who = json.loads(os.pread(file, 4096, 0))
        name = f" (campaign {who['campaign']!r})" if who["campaign"] else ""
        return f"process {who['pid']}{name} since {who['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def _refused(path: Path, error: OSError) -> CampaignError:
    return CampaignError(
        f"cannot lock the device with {path}: {error.strerror or error}",
        remedy=f"ls -l {path}; remove it if it is not a plain file, or set TMPDIR to a folder on a local disk",
    )
