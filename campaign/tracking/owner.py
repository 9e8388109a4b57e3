"""Who is writing a run: enough to tell, later, that the process is gone and not only that its number was reused."""

from __future__ import annotations

import os
import socket
from pathlib import Path

TAG = "campaign.owner"
_PROC = Path("/proc")


def current() -> str:
    """`host|boot id|pid|start time in clock ticks` of this process."""
    return _describe(os.getpid())


def is_gone(described: str) -> bool:
    """True when the process that `current` described is certainly over: same host, and rebooted, ended or replaced.

    False for another host's process, and for a text that `current` did not write: not ours to judge.
    """
    parts = described.split("|")
    if len(parts) != 4 or parts[0] != socket.gethostname() or not parts[2].isdigit():
        return False
    return _describe(int(parts[2])) != described


def _describe(pid: int) -> str:
    return "|".join((socket.gethostname(), _boot_id(), str(pid), _start_ticks(pid)))


def _boot_id() -> str:
    path = _PROC / "sys" / "kernel" / "random" / "boot_id"
    return path.read_text().strip() if path.exists() else "unknown"


def _start_ticks(pid: int) -> str:
    """Field 22 of /proc/PID/stat (proc(5)); the name in field 2 may hold spaces and brackets. '' when there is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return "" if _PROC.exists() else "unknown"
    return text.rpartition(")")[2].split()[19]
