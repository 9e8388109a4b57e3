"""Events into columns. Python touches an event a few times, in list comprehensions; the rest is numpy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from campaign.traces import _kineto_events as kineto
from campaign.traces._kineto_events import EXACT_BELOW_US, Arguments, Categories, Event
from campaign.traces.spool import Spool
from campaign.traces.timeline import CALL, EVENT, LONGEST_NAME, Call, Notice, Shape, Stream, Work

LARGEST_NS = 1 << 62
NO_ARGUMENTS = Arguments()
LONG_NS = 1_000_000_000
WORKS = {kineto.KERNEL: Work.KERNEL, kineto.MEMCPY: Work.MEMCPY, kineto.MEMSET: Work.MEMSET}


class Interned(dict[Any, int]):
    """Things by the number in which they were first seen."""

    def __missing__(self, key: Any) -> int:
        self[key] = found = len(self)
        return found


class Names(Interned):
    """Names; one that is too long is cut, and counted."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = 0

    def __missing__(self, key: str) -> int:
        if len(key) <= LONGEST_NAME:
            return super().__missing__(key)
        self.cut += 1
        return self[key[:LONGEST_NAME]]


class Columns:
    """What was read so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events, self.calls, self.marks = Spool(EVENT), Spool(CALL), Spool(CALL)
        self.names, self.threads = Names(), Interned()
        self.devices, self.streams = Interned(), Interned()
        self.categories = Categories()
        self.shapes: dict[int, Shape] = {}
        self.kinds: dict[int, Call] = {}
        self.graphs: list[np.ndarray] = []
        self.bad: Counter[str] = Counter()
        self.seen = self.operators = self.long = 0
        self.gcd = 0

    def take(self, events: Sequence[Event]) -> None:
        """Sort events by what they are and keep the columns of those that count."""
        groups: list[list[Event]] = [[] for _ in range(kineto.NOTHING + 1)]
        append = [group.append for group in groups]
        kind_of = self.categories
        for event in events:
            append[kind_of[event.cat]](event)
        self.seen += len(events)
        for kind, group in enumerate(groups[: kineto.NOTHING]):
            whole = [event for event in group if event.ph == "X"]
            self.bad["begin/end"] += sum(event.ph in ("B", "E") for event in group) if len(whole) < len(group) else 0
            if not whole:
                continue
            if kind in WORKS:
                self._work(whole, WORKS[kind])
            else:
                self._called(whole, kind)

    @property
    def resolution_ns(self) -> int:
        """The step of the file's clock: what all its times are multiples of, 1 us at most."""
        return self.gcd or 1

    def device_keys(self) -> list[int | str]:
        return list(self.devices)

    def stream_list(self) -> list[Stream]:
        return [Stream(device, str(label)) for device, label in self.streams]

    def graph_launches(self) -> np.ndarray:
        """The correlations of graph launches, sorted."""
        return np.unique(np.concatenate(self.graphs)) if self.graphs else np.empty(0, np.int64)

    def notices(self) -> list[Notice]:
        found = []
        says = {
            "ts": ("bad_times", "{} events have no usable `ts` and are left out", True),
            "dur": ("bad_durations", "{} events have no usable `dur` (missing, negative or too large): they count as "
                    "launches without time", True),
            "begin/end": ("unpaired", "{} begin and end events (ph B, E) are not read", False),
        }  # fmt: skip
        for key, (code, text, lowers) in says.items():
            if self.bad[key]:
                found.append(Notice(code, text.format(f"{self.bad[key]:,}"), lowers))
        if self.names.cut:
            found.append(
                Notice("long_names", f"{self.names.cut:,} names are longer than {LONGEST_NAME:,} characters: cut")
            )
        if self.long:
            text = f"{self.long:,} device events are longer than 1 s: counted as they are; see whether they are real"
            found.append(Notice("long_events", text, lowers_confidence=True))
        if self.resolution_ns > 1 and len(self.events):
            text = (
                f"the file's clock steps by {self.resolution_ns:,} ns: each gap and each event may be off by that much"
            )
            found.append(Notice("coarse_clock", text))
        return found

    def _work(self, group: list[Event], work: Work) -> None:
        group, start, end = self._times(group)
        if not group:
            return
        given = [event.args or NO_ARGUMENTS for event in group]
        rows = np.zeros(len(group), EVENT)
        rows["start"], rows["end"], rows["kind"], rows["count"] = start, end, work, 1
        names = self.names
        rows["name"] = [names[event.name] for event in group]
        rows["device"], rows["stream"] = self._located(group, given)
        rows["correlation"] = _correlations([args.correlation for args in given])
        if work != Work.KERNEL:
            rows["bytes"] = [max(_whole(args.bytes, 0), 0) for args in given]
        rows["in_graph"] = [args.node is not None and _whole(args.node, 0) > 0 for args in given]
        self.long += int((end - start > LONG_NS).sum())
        if work == Work.KERNEL:
            for name, place in zip(*np.unique(rows["name"], return_index=True), strict=True):
                if int(name) not in self.shapes:
                    self.shapes[int(name)] = _shape(given[place])
        self.events.append(rows)

    def _called(self, group: list[Event], kind: int) -> None:
        group, start, end = self._times(group)
        if not group:
            return
        rows = np.zeros(len(group), CALL)
        names = self.names
        rows["start"], rows["end"] = start, end
        rows["name"] = [names[event.name] for event in group]
        rows["correlation"] = -1
        if kind == kineto.MARK:
            given = [event.args or NO_ARGUMENTS for event in group]
            rows["thread"] = self._located(group, given)[1]
            rows["kind"] = Call.ANNOTATION
            self.marks.append(rows)
            return
        threads = self.threads
        rows["thread"] = [threads[event.pid, event.tid] for event in group]
        if kind == kineto.RUNTIME:
            rows["correlation"] = _correlations([(event.args or NO_ARGUMENTS).correlation for event in group])
            ids, inverse = np.unique(rows["name"], return_inverse=True)
            table = [self._kind(int(name), group, rows) for name in ids]
            rows["kind"] = np.array(table, np.uint8)[inverse]
            launched = rows["correlation"][rows["kind"] == Call.GRAPH_LAUNCH]
            if len(launched):
                self.graphs.append(launched[launched >= 0])
        else:
            rows["kind"] = Call.ANNOTATION
            if kind == kineto.OPERATOR:
                # Traces of 2021 have the marks of steps among the operators.
                ids, inverse = np.unique(rows["name"], return_inverse=True)
                marks = [group[int(place)].name.startswith(kineto.STEP) for place in _firsts(inverse, len(ids))]
                rows["kind"][~np.array(marks)[inverse]] = Call.OPERATOR
                self.operators += int((rows["kind"] == Call.OPERATOR).sum())
        self.calls.append(rows)

    def _kind(self, name: int, group: list[Event], rows: np.ndarray) -> Call:
        if name not in self.kinds:
            self.kinds[name] = kineto.call_kind(group[int(np.argmax(rows["name"] == name))].name)
        return self.kinds[name]

    def _located(self, group: list[Event], given: list[Arguments]) -> tuple[np.ndarray, np.ndarray]:
        """The device and the stream of each event, as indices."""
        keys = [(args.device, args.stream) for args in given]
        if any(None in key for key in set(keys)):
            keys = [
                (event.pid if device is None else device, event.tid if stream is None else stream)
                for event, (device, stream) in zip(group, keys, strict=True)
            ]
        code = Interned()
        places = np.array([code[key] for key in keys])
        table = np.array([self._placed(*key) for key in code], np.int64)
        return table[places, 0], table[places, 1]

    def _placed(self, device: Any, stream: Any) -> tuple[int, int]:
        """Index of the device and of the stream. A device may be written as text, a stream as 'stream 7'."""
        device = _whole(device, None) if _whole(device, None) is not None else str(device)
        if isinstance(stream, str):
            stream = stream.removeprefix("stream ").strip()
        place = self.devices[device]
        return place, self.streams[place, str(stream)]

    def _times(self, group: list[Event]) -> tuple[list[Event], np.ndarray, np.ndarray]:
        """Start and end in ns, of the events that have a start."""
        start, bad = _nanoseconds([event.ts for event in group])
        if bad.any():
            self.bad["ts"] += int(bad.sum())
            kept = np.flatnonzero(~bad)
            group, start = [group[place] for place in kept], start[kept]
        length, bad = _nanoseconds([event.dur for event in group])
        bad |= (length < 0) | (length > LARGEST_NS - np.abs(start))
        if bad.any():
            self.bad["dur"] += int(bad.sum())
            length = np.where(bad, 0, length)
        if self.gcd != 1 and len(start):
            self.gcd = math.gcd(self.gcd or 1000, int(np.gcd.reduce(np.abs(start))), int(np.gcd.reduce(length)))
        return group, start, start + length


def _firsts(inverse: np.ndarray, count: int) -> np.ndarray:
    """Where each of `count` values is met first."""
    found = np.empty(count, np.int64)
    found[inverse[::-1]] = np.arange(len(inverse))[::-1]
    return found


def _nanoseconds(values: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds as whole nanoseconds, and which of them are no such number."""
    try:
        found = np.array(values)
    except (ValueError, OverflowError):
        found = np.empty(0, object)
    if found.dtype.kind == "i" and len(found):
        bad = np.abs(found) > LARGEST_NS // 1000
        return np.where(bad, 0, found) * 1000, bad
    if found.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            if len(found) and np.nanmax(np.abs(found)) < EXACT_BELOW_US and np.isfinite(found).all():
                return np.rint(found * 1000).astype(np.int64), np.zeros(len(found), bool)
    bad = np.zeros(len(values), bool)
    exact = np.zeros(len(values), np.int64)
    for place, value in enumerate(values):
        one = _exact(value)
        bad[place] = one is None
        exact[place] = one or 0
    return exact, bad


def _exact(value: Any) -> int | None:
    """One number of microseconds, however it is written, as nanoseconds."""
    try:
        number = Decimal(value if isinstance(value, (int, str, Decimal)) else repr(value))
    except (InvalidOperation, TypeError, ValueError):
        return None
    if not number.is_finite() or abs(number) > LARGEST_NS // 1000:
        return None
    return int((number * 1000).to_integral_value())


def _correlations(values: list[Any]) -> np.ndarray:
    """Whole numbers, -1 where there is none."""
    try:
        found = np.array(values)
    except (ValueError, OverflowError):
        found = np.empty(0, object)
    if found.dtype.kind == "i":
        return found
    return np.array([_whole(value, -1) for value in values], np.int64)


def _whole(value: Any, otherwise: Any) -> Any:
    if value.__class__ is int:
        return value if -LARGEST_NS < value < LARGEST_NS else otherwise
    if isinstance(value, str) and value.lstrip("-").isdigit() and len(value) < 19:
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else otherwise


def _shape(args: Arguments) -> Shape:
    registers, shared = _whole(args.registers, None), _whole(args.shared, None)
    return Shape(registers, _product(args.block), _product(args.grid), shared)


def _product(raw: Any) -> int | None:
    try:
        numbers = msgspec.json.decode(raw, type=list[int]) if raw else []
    except (ValueError, TypeError):
        return None
    return math.prod(numbers) if numbers else None
