"""Events into columns. Python touches an event a few times, in comprehensions and maps; the rest is numpy."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from campaign.traces import _kineto_events as kineto
from campaign.traces import _kineto_numbers as numbers
from campaign.traces._interned import ByName, Interned, Names, Streams
from campaign.traces._kineto_events import EXACT_BELOW_US, Arguments, Categories, Event
from campaign.traces.spool import Spool
from campaign.traces.timeline import CALL, EVENT, Call, Shape, Stream, Work

NO_ARGUMENTS = Arguments()
LONG_NS = 1_000_000_000
WORKS = {kineto.KERNEL: Work.KERNEL, kineto.MEMCPY: Work.MEMCPY, kineto.MEMSET: Work.MEMSET}


class Columns:
    """What was read so far. `bad` counts what events lack, `long` device events of more than a second, `coarse_us` is
    the largest time that was written as a fraction of what a double can hold only in part."""

    def __init__(self) -> None:
        self.events, self.calls, self.marks = Spool(EVENT), Spool(CALL), Spool(CALL)
        self.names = Names()
        self.threads, self.streams = Interned(), Streams()
        self.categories = Categories()
        self.shapes: dict[int, Shape] = {}
        self.graphs: list[np.ndarray] = []
        self.bad: Counter[str] = Counter()
        self.seen = self.operators = self.long = 0
        self.gcd = 0
        self.coarse_us = 0.0
        self._runtime = ByName(lambda _, event: kineto.call_kind(event.name))
        # Traces of 2021 have the marks of steps among the operators.
        self._operator = ByName(
            lambda _, event: Call.ANNOTATION if event.name.startswith(kineto.STEP) else Call.OPERATOR
        )
        self._shape = ByName(self._shaped)
        self._events: list[Event] = []
        self._piece: memoryview | bytes = b""

    def take(self, events: list[Event], piece: memoryview | bytes) -> None:
        """Sort events by what they are and keep the columns of those that count. `piece` is the text that they were
        decoded from, empty where their times are exact whatever they are."""
        self._events, self._piece = events, piece
        groups: defaultdict[str, list[Event]] = defaultdict(list)
        for event in events:
            groups[event.cat].append(event)
        self.seen += len(events)
        for category, group in groups.items():
            kind = self.categories[category]
            if kind == kineto.NOTHING:
                continue
            phases = [event.ph for event in group]
            if phases.count("X") < len(phases):
                self.bad["begin/end"] += phases.count("B") + phases.count("E")
                group = [event for event in group if event.ph == "X"]
            group, start, end = self._times(group)
            if group:
                rows = self._work(group, WORKS[kind]) if kind in WORKS else self._called(group, kind)
                rows["start"], rows["end"] = start, end
                (self.events if kind in WORKS else self.marks if kind == kineto.MARK else self.calls).append(rows)
                self.long += int((end - start > LONG_NS).sum()) if kind in WORKS else 0
        self._events, self._piece = [], b""

    @property
    def resolution_ns(self) -> int:
        """The step of the file's clock: what all its times are multiples of, at most 1 us; and where they were doubles
        that count from the epoch, a double's own step."""
        step = self.gcd or 1
        return max(step, round(1000 * math.ulp(self.coarse_us))) if step > 1 and self.coarse_us else step

    def device_keys(self) -> list[int | str]:
        return list(self.streams.devices)

    def stream_list(self) -> list[Stream]:
        return [Stream(device, str(label)) for device, label in self.streams.labels]

    def graph_launches(self) -> np.ndarray:
        """The correlations of graph launches, sorted."""
        return np.unique(np.concatenate(self.graphs)) if self.graphs else np.empty(0, np.int64)

    def _work(self, group: list[Event], work: Work) -> np.ndarray:
        given = [event.args or NO_ARGUMENTS for event in group]
        rows = np.zeros(len(group), EVENT)
        rows["kind"], rows["count"] = work, 1
        rows["name"] = ids = self.names.ids([event.name for event in group])
        rows["device"], rows["stream"] = self._located(group, given)
        rows["correlation"] = numbers.wholes([args.correlation for args in given], -1)
        nodes = [args.node for args in given]
        if nodes.count(None) < len(nodes):
            rows["in_graph"] = numbers.wholes(nodes, 0) > 0
        if work == Work.KERNEL:
            self._shape(ids, given)
        else:
            rows["bytes"] = np.maximum(numbers.wholes([args.bytes for args in given], 0), 0)
        return rows

    def _called(self, group: list[Event], kind: int) -> np.ndarray:
        rows = np.zeros(len(group), CALL)
        rows["name"] = ids = self.names.ids([event.name for event in group])
        rows["correlation"], rows["kind"] = -1, Call.ANNOTATION
        if kind == kineto.MARK:
            rows["thread"] = self._located(group, [event.args or NO_ARGUMENTS for event in group])[1]
            return rows
        rows["thread"] = _coded([(event.pid, event.tid) for event in group], self.threads)
        if kind == kineto.RUNTIME:
            given = [(event.args or NO_ARGUMENTS).correlation for event in group]
            rows["correlation"] = correlations = numbers.wholes(given, -1)
            rows["kind"] = kinds = self._runtime(ids, group)
            launched = correlations[(kinds == Call.GRAPH_LAUNCH) & (correlations >= 0)]
            if len(launched):
                self.graphs.append(launched)
        elif kind == kineto.OPERATOR:
            rows["kind"] = kinds = self._operator(ids, group)
            self.operators += int((kinds == Call.OPERATOR).sum())
        return rows

    def _shaped(self, name: int, args: Arguments) -> int:
        self.shapes[name] = numbers.shape(args)
        return 0

    def _located(self, group: list[Event], given: list[Arguments]) -> tuple[Any, Any]:
        """The device and the stream of each event, as indices: arrays, or one number for all."""
        keys = list(zip([args.device for args in given], [args.stream for args in given], strict=True))
        if any(None in key for key in set(keys)):
            keys = [
                (event.pid if device is None else device, event.tid if stream is None else stream)
                for event, (device, stream) in zip(group, keys, strict=True)
            ]
        streams = _coded(keys, self.streams)
        return np.array(self.streams.device_of, np.int16)[streams], streams

    def _times(self, group: list[Event]) -> tuple[list[Event], np.ndarray, np.ndarray]:
        """Start and end in ns, of the events that have a start."""
        start = numbers.nanoseconds([event.ts for event in group])
        if start is None:
            self._exactly([event.ts for event in group])
            start, bad = numbers.any_nanoseconds([event.ts for event in group])
            if bad.any():
                self.bad["ts"] += int(bad.sum())
                kept = np.flatnonzero(~bad)
                group, start = [group[place] for place in kept], start[kept]
        length = numbers.nanoseconds([event.dur for event in group])
        if length is None or int(length.min()) < 0:
            length, bad = numbers.any_nanoseconds([event.dur for event in group])
            bad |= (length < 0) | (length > numbers.LARGEST_NS - np.abs(start))
            self.bad["dur"] += int(bad.sum())
            length = np.where(bad, 0, length)
        if self.gcd != 1 and len(start):
            self.gcd = math.gcd(self.gcd or 1000, int(np.gcd.reduce(np.abs(start))))
        return group, start, start + length

    def _exactly(self, values: Sequence[Any]) -> None:
        """Where some times are floats too large for their decimals, have all times of the piece as they are written."""
        largest = max((abs(value) for value in values if value.__class__ is float), default=0.0)
        if self._piece and EXACT_BELOW_US <= largest < math.inf:
            if largest < numbers.LARGEST_NS / 1000:
                self.coarse_us = max(self.coarse_us, largest)
            if not kineto.exactly(self._events, self._piece):
                self.bad["inexact"] += len(self._events)
            self._piece = b""


def _coded(keys: list[Any], code: Any) -> np.ndarray:
    """The number of each key in `code`, which is asked once for each different one."""
    table = {key: code[key] for key in set(keys)}
    if len(table) == 1:
        return np.full(len(keys), next(iter(table.values())), np.int32)
    return np.fromiter(map(table.__getitem__, keys), np.int32, len(keys))
