"""Memory that a new process can have (/proc/meminfo MemAvailable; less under a control group's limit).

Both arms hold the workload at once. The limit of a tenth, or 2 GiB, is judgement: what a workload needs, its first
round shows."""

from __future__ import annotations

from campaign import units
from campaign.machine.checks._look import DOUBTFUL, FIT, UNKNOWN, Answer, Look
from campaign.machine.host import Host

NAME, GROUP = "memory", "machine"
SHARE, LEAST_BYTES = 0.1, 2 * units.GIB


def check(look: Look) -> Answer:
    total, available = kilobytes(look.host, "MemTotal"), kilobytes(look.host, "MemAvailable")
    if total is None or available is None:
        return Answer(UNKNOWN, "/proc/meminfo says nothing")
    limit, used = _limited(look.host)
    if limit is not None and limit < total:
        total, available = limit, min(available, max(0, limit - used))
    seen = f"{units.size(available)} of {units.size(total)} are free" + (" (by its group's limit)" if limit else "")
    if available < max(SHARE * total, LEAST_BYTES):
        return Answer(
            DOUBTFUL,
            seen,
            "both arms hold the workload at once: the kernel takes pages back while blocks are timed, or ends a trial",
            "ps aux --sort=-rss | head shows who holds it; end that, or raise the container's limit",
        )
    return Answer(FIT, seen)


def kilobytes(host: Host, key: str) -> int | None:
    """A line of /proc/meminfo in bytes."""
    for line in (host.text("proc", "meminfo") or "").splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if name == key and words and words[0].isdigit():
            return int(words[0]) * 1024
    return None


def _limited(host: Host) -> tuple[int | None, int]:
    """(limit, used) bytes of this process's control group; (None, 0) without a limit."""
    groups = [line.split(":", 2) for line in (host.text("proc", "self", "cgroup") or "").splitlines()]
    for number, controllers, path in (words for words in groups if len(words) == 3):
        parts = [part for part in path.split("/") if part]
        if number == "0":
            files = ("memory.max", "memory.current")
        elif controllers == "memory":
            parts, files = ["memory", *parts], ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        limit, used = (host.text("sys", "fs", "cgroup", *parts, name) or "" for name in files)
        if limit.isdigit() and used.isdigit() and int(limit) < 1 << 60:  # v1 writes no limit as a huge number
            return int(limit), int(used)
    return None, 0
