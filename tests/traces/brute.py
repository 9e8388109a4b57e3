"""The plain loops that readers are held against: one event after another, in exact integers."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

Interval = tuple[int, int]
WORK_TABLES = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")


@dataclass(frozen=True)
class Counted:
    events: int
    kernels: int
    busy: int
    span: int

    @property
    def idle(self) -> int:
        return self.span - self.busy


def union(intervals: Iterable[Interval]) -> int:
    busy, reached = 0, None
    for start, end in sorted(intervals):
        if reached is None or start > reached:
            busy += end - start
            reached = end
        elif end > reached:
            busy += end - reached
            reached = end
    return busy


def counted(intervals: list[Interval], kernels: int) -> Counted:
    span = max(end for _, end in intervals) - min(start for start, _ in intervals)
    return Counted(len(intervals), kernels, union(intervals), span)


def nsys(path: Path) -> dict[int, Counted]:
    """What an export says of each device, read with one SELECT a table."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    found: dict[int, list[Interval]] = defaultdict(list)
    kernels: dict[int, int] = defaultdict(int)
    for kind in WORK_TABLES:
        table = f"CUPTI_ACTIVITY_KIND_{kind}"
        if table in tables:
            for start, end, device in connection.execute(f"SELECT start, end, deviceId FROM {table}"):
                found[device].append((start, end))
                kernels[device] += kind == "KERNEL"
    connection.close()
    return {device: counted(intervals, kernels[device]) for device, intervals in found.items()}


def nsys_marks(path: Path, names: set[str]) -> dict[tuple[str, int, int], Interval]:
    """Pushed and popped ranges of these names on the streams: (name, range start, stream) -> extent. Each range looks
    at each call of its thread and each event of the call."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    events: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    for kind in WORK_TABLES[:3]:
        if f"CUPTI_ACTIVITY_KIND_{kind}" in tables:
            columns = "start, end, streamId, globalPid, correlationId"
            for start, end, stream, pid, ident in connection.execute(
                f"SELECT {columns} FROM CUPTI_ACTIVITY_KIND_{kind}"
            ):
                events[pid, ident].append((start, end, stream))
    calls = connection.execute(
        "SELECT start, globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE eventClass <> 67"
    ).fetchall()
    ranges = connection.execute(
        "SELECT n.start, n.end, n.globalTid, coalesce(n.text, s.value) FROM NVTX_EVENTS n "
        "LEFT JOIN StringIds s ON s.id = n.textId WHERE eventType = 59"
    ).fetchall()
    connection.close()
    found: dict[tuple[str, int, int], Interval] = {}
    for first, last, thread, text in ranges:
        for at, caller, ident in calls if text in names else ():
            if caller == thread and first <= at < last:
                for start, end, stream in events[thread >> 24 << 24, ident]:
                    low, high = found.get((text, first, stream), (start, end))
                    found[text, first, stream] = (min(low, start), max(high, end))
    return found
