"""The time of CPU operators as device events, for runs without a device: in each instant a thread's innermost."""

from __future__ import annotations

import numpy as np

from campaign.traces.timeline import EVENT, Call, Stream, Timeline, Work

BLOCK = 1 << 16


def operator_events(timeline: Timeline) -> None:
    """Append to `timeline.events` the stretches in which an operator was its thread's innermost. The first stretch of
    an operator counts as one launch, later ones as none. The timeline's only device is the CPU; its streams become the
    threads."""
    timeline.streams.extend(Stream(0, label) for label in timeline.threads)
    open_: dict[int, list[tuple[int, int, int]]] = {}  # by thread: (end, name, launches still to count), innermost last
    cursor: dict[int, int] = {}
    pending: list[tuple[int, int, int, int, int]] = []

    def charge(thread: int, until: int) -> None:
        """Give the thread's time up to `until` to what is open."""
        stack = open_[thread]
        while stack:
            end, name, count = stack[-1]
            at = cursor[thread]
            stop = min(end, until)
            if stop > at or (count and end <= until):
                pending.append((at, max(stop, at), name, thread, count))
                stack[-1] = (end, name, 0)
                cursor[thread] = max(stop, at)
            if end > until:
                return
            stack.pop()

    for batch in timeline.calls.batches():
        rows = batch[batch["kind"] == Call.OPERATOR]
        rows = rows[np.lexsort((-rows["end"], rows["start"]))]
        for start, end, name, thread in zip(
            rows["start"].tolist(), rows["end"].tolist(), rows["name"].tolist(), rows["thread"].tolist(), strict=True
        ):
            if thread in open_:
                charge(thread, start)
            stack = open_.setdefault(thread, [])
            if stack and stack[-1][2]:  # its first stretch is empty: the operator within begins with it
                pending.append((start, start, stack[-1][1], thread, stack[-1][2]))
                stack[-1] = (stack[-1][0], stack[-1][1], 0)
            cursor[thread] = start
            stack.append((end, name, 1))
            if len(pending) >= BLOCK:
                _append(timeline, pending)
    for thread in open_:
        charge(thread, np.iinfo(np.int64).max)
    _append(timeline, pending)


def _append(timeline: Timeline, pending: list[tuple[int, int, int, int, int]]) -> None:
    rows = np.zeros(len(pending), EVENT)
    if pending:
        rows["start"], rows["end"], rows["name"], rows["stream"], rows["count"] = np.array(pending, np.int64).T
    rows["correlation"], rows["kind"] = -1, Work.OPERATOR
    timeline.events.append(rows)
    pending.clear()
