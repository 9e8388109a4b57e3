"""What a trace reader hands on: device events, host calls and annotations, as columns on disk or in memory.

Times are whole nanoseconds on the trace's own clock, measured from `Source.base_ns`. An interval is closed-open: an
event that ends where the next begins neither overlaps it nor leaves a gap. Nothing here is in floating point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from campaign.traces.spool import Spool

LONGEST_NAME = 4096  # characters of a name that are kept; a longer one is cut, with a notice


class Work(IntEnum):
    """What a device event is. GRAPH is a whole graph launch whose kernels were not traced; OPERATOR is a stretch of
    time in which one CPU operator was the innermost, in traces of runs without a device."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    GRAPH = 3
    OPERATOR = 4


class Call(IntEnum):
    """What the host did. COPY is a memory copy or set called through the runtime, ALLOCATION a (de)allocation,
    OTHER any other runtime call, OPERATOR a CPU operator, ANNOTATION a range that the user named (NVTX,
    record_function, ProfilerStep#)."""

    LAUNCH = 0
    GRAPH_LAUNCH = 1
    SYNC = 2
    COPY = 3
    ALLOCATION = 4
    OTHER = 5
    OPERATOR = 6
    ANNOTATION = 7


# `name` indexes Timeline.names, `stream` Timeline.streams, `device` Timeline.devices. `correlation` is the profiler's
# id of the host call that caused the event, -1 where there is none. `bytes` is what a memcpy or memset moved, else 0.
# `count` is how many launches the row stands for: 0 for the second and later stretches of one CPU operator, more than
# 1 for a batched copy. `in_graph` is 1 for what a replayed graph launched.
EVENT = np.dtype(
    [
        ("start", "<i8"),
        ("end", "<i8"),
        ("correlation", "<i8"),
        ("bytes", "<i8"),
        ("name", "<i4"),
        ("stream", "<i4"),
        ("count", "<i4"),
        ("device", "<i2"),
        ("kind", "u1"),
        ("in_graph", "u1"),
    ]
)
# `thread` indexes Timeline.threads; in Timeline.marks it indexes Timeline.streams.
CALL = np.dtype(
    [("start", "<i8"), ("end", "<i8"), ("correlation", "<i8"), ("name", "<i4"), ("thread", "<i4"), ("kind", "u1")]
)


@dataclass(frozen=True)
class Notice:
    """Something about the file that the reader of a diagnosis must know. `code` is stable, `text` a sentence with the
    numbers. `lowers_confidence` where events were lost, cut or repaired, so that idle may be too large."""

    code: str
    text: str
    lowers_confidence: bool = False


@dataclass(frozen=True)
class Source:
    """Where a trace came from. `resolution_ns` is the step of the file's clock: 1000 for whole microseconds."""

    file: str
    format: str  # "kineto", "nsys"
    tool: str = ""  # the profiler with its version or the schema number, as the file says it
    size_bytes: int = 0
    resolution_ns: int = 1
    base_ns: int = 0


@dataclass(frozen=True)
class Device:
    """A device of the trace: a GPU, or `cpu` where the events are operators. Unknown facts are None."""

    ordinal: int
    name: str = ""
    architecture: str = ""  # "sm_90", "gfx942"; empty when unknown
    multiprocessors: int | None = None
    dram_bytes_per_second: float | None = None
    is_cpu: bool = False


@dataclass(frozen=True)
class Stream:
    """A stream of a device (by its index in Timeline.devices), as the profiler numbers it."""

    device: int
    label: str


@dataclass(frozen=True)
class Shape:
    """How a kernel was launched, the first time that its name was seen. What the file does not have is None."""

    registers: int | None = None
    threads: int | None = None
    blocks: int | None = None
    shared_bytes: int | None = None
    local_bytes_per_thread: int | None = None  # a static reservation, a hint of spills and not traffic


@dataclass(frozen=True)
class Metric:
    """Samples of one GPU metric over the capture, summed up: percent unless the name says otherwise."""

    device: int
    name: str
    samples: int
    mean: float
    largest: float


@dataclass
class Timeline:
    """One capture. `events` (dtype EVENT), `calls` (CALL: what the host did) and `marks` (CALL: named ranges as the
    profiler projected them on a stream) are spools that iterate in order of start."""

    source: Source
    names: list[str]
    devices: list[Device]
    streams: list[Stream]
    threads: list[str]
    events: Spool
    calls: Spool
    marks: Spool
    shapes: dict[int, Shape] = field(default_factory=dict)  # by name id, kernels only
    metrics: tuple[Metric, ...] = ()
    notices: tuple[Notice, ...] = ()
    # The correlations of graph launches, sorted: events that carry one were launched by a graph.
    graph_launches: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def close(self) -> None:
        """Give back the disk space of what did not fit in memory."""
        for spool in (self.events, self.calls, self.marks):
            spool.close()


def named(calls: Spool, wanted: set[int]) -> Iterator[np.ndarray]:
    """The rows of `calls` whose name id is in `wanted`, in order of start, batch by batch."""
    ids = np.fromiter(wanted, dtype=np.int32, count=len(wanted))
    for batch in calls.batches():
        kept = batch[np.isin(batch["name"], ids)]
        if len(kept):
            yield kept
