"""The plain loops that readers are held against: one event after another, in exact integers."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

Interval = tuple[int, int]
KINETO_WORK = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")
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


def kineto_events(path: Path) -> list[dict[str, Any]]:
    """Every complete event of a trace, its times as they are written."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    whole = json.loads(raw.decode("utf-8", "replace"), parse_float=Decimal, strict=False)
    events = whole["traceEvents"] if isinstance(whole, dict) else whole
    return [event for event in events if event.get("ph") == "X"]


def kineto_interval(event: dict[str, Any]) -> Interval:
    start = int(Decimal(str(event["ts"])) * 1000)
    return start, start + int(Decimal(str(event["dur"])) * 1000)


def kineto(events: list[dict[str, Any]]) -> dict[int, Counted]:
    """What events say of each device: kernels, copies and sets, by their category alone."""
    found: dict[int, list[Interval]] = defaultdict(list)
    kernels: dict[int, int] = defaultdict(int)
    for event in events:
        if (category := event.get("cat", "").lower()) in KINETO_WORK:
            device = event["args"].get("device", event["pid"])
            found[device].append(kineto_interval(event))
            kernels[device] += category == "kernel"
    return {device: counted(intervals, kernels[device]) for device, intervals in found.items()}


def innermost(events: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """How often each CPU operator ran, and for how long it was its thread's innermost: between any two moments at which
    something begins or ends, the one that began last of those that cover them; where two began together the shorter
    one, and of two alike the one that the file has last."""
    threads: dict[tuple[Any, Any], list[tuple[int, int, int, str]]] = defaultdict(list)
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for place, event in enumerate(events):
        step = event["name"].startswith("ProfilerStep#")
        if event.get("cat", "").lower() in ("cpu_op", "operator") and not step:
            threads[event["pid"], event["tid"]].append((*kineto_interval(event), place, event["name"]))
            count, total = found[event["name"]]
            found[event["name"]] = (count + 1, total)
    for operators in threads.values():
        moments = sorted({moment for start, end, _, _ in operators for moment in (start, end)})
        for first, last in pairwise(moments):
            covering = [one for one in operators if one[0] <= first and one[1] >= last]
            if covering:
                *_, name = max(covering, key=lambda one: (one[0], -one[1], one[2]))
                count, total = found[name]
                found[name] = (count, total + last - first)
    return dict(found)
