"""The time of CPU operators as device events, for runs without a device: in each instant a thread's innermost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from campaign.traces.timeline import CALL, EVENT, Call, Device, Stream, Timeline, Work

BLOCK = 1 << 14
DEEPEST = 1 << 12  # operators open in one thread; the outermost of more are no longer charged


class _Thread:
    """The operators that are open: [end, name, launches still to count], innermost last, and up to where the time is
    charged."""

    def __init__(self) -> None:
        self.open: list[list[int]] = []
        self.charged = 0


def operator_events(timeline: Timeline) -> None:
    """Append to `timeline.events` the stretches in which an operator was its thread's innermost, on a device of their
    own, `cpu`, whose streams are the threads. The first stretch of an operator counts as one launch, later ones as
    none. Memory holds the open operators of each thread and a block."""
    device, first_stream = len(timeline.devices), len(timeline.streams)
    timeline.devices.append(Device(ordinal=0, name="cpu", is_cpu=True))
    timeline.streams.extend(Stream(device, label) for label in timeline.threads)
    threads: dict[int, _Thread] = {}
    pending: list[tuple[int, int, int, int, int]] = []  # start, end, name, stream, count

    def flush() -> None:
        rows = np.zeros(len(pending), EVENT)
        if pending:
            rows["start"], rows["end"], rows["name"], rows["stream"], rows["count"] = np.array(pending, np.int64).T
        rows["correlation"], rows["kind"], rows["device"] = -1, Work.OPERATOR, device
        timeline.events.append(rows)
        pending.clear()

    def charge(one: _Thread, stream: int, until: int) -> None:
        """Give the thread's time up to `until` to what is open."""
        while one.open:
            end, name, count = one.open[-1]
            stop = max(min(end, until), one.charged)
            if stop > one.charged or count:
                pending.append((one.charged, stop, name, stream, count))
                one.open[-1][2] = 0
                one.charged = stop
            if end > until:
                return
            one.open.pop()

    for rows in _operators(timeline):
        columns = (rows[name].tolist() for name in ("start", "end", "name", "thread"))
        for start, end, name, thread in zip(*columns, strict=True):
            one = threads.setdefault(thread, _Thread())
            charge(one, first_stream + thread, start)
            one.charged = start
            one.open.append([end, name, 1])
            if len(one.open) > DEEPEST:
                del one.open[0]
            if len(pending) >= BLOCK:
                flush()
    for thread, one in threads.items():
        charge(one, first_stream + thread, np.iinfo(np.int64).max)
    flush()


def _operators(timeline: Timeline) -> Iterator[np.ndarray]:
    """The operators in order of start, those that start together the longest first: a parent before its children."""
    held = np.empty(0, CALL)
    for batch in timeline.calls.batches():
        rows = np.concatenate([held, batch[batch["kind"] == Call.OPERATOR]])
        if not len(rows):
            continue
        together = int(np.searchsorted(rows["start"], rows["start"][-1]))  # more of these may follow
        ready, held = rows[:together], rows[together:]
        yield ready[np.lexsort((-ready["end"], ready["start"]))]
    yield held[np.lexsort((-held["end"], held["start"]))]
