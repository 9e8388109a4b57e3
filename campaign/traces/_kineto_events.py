"""One event of a Kineto trace as it stands in the file, and how its category and name say what it is."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import msgspec

from campaign.traces.timeline import Call

EXACT_BELOW_US = 2.0**42  # up to here three decimals of a double are exact: its step is under a nanosecond
Value = int | float | str | None

KERNEL, MEMCPY, MEMSET, RUNTIME, OPERATOR, ANNOTATION, MARK, NOTHING = range(8)
CATEGORIES = {
    "kernel": KERNEL,
    "gpu_memcpy": MEMCPY,
    "gpu_memset": MEMSET,
    "memcpy": MEMCPY,
    "memset": MEMSET,
    "cuda_runtime": RUNTIME,
    "cuda_driver": RUNTIME,
    "runtime": RUNTIME,
    "driver": RUNTIME,
    "hip_runtime": RUNTIME,
    "xpu_runtime": RUNTIME,
    "xpu_driver": RUNTIME,
    "mtia_runtime": RUNTIME,
    "privateuse1_runtime": RUNTIME,
    "privateuse1_driver": RUNTIME,
    "cpu_op": OPERATOR,
    "operator": OPERATOR,
    "user_annotation": ANNOTATION,
    "gpu_user_annotation": MARK,
}


HUGE = re.compile(
    rb"([:\[,]\s*)-?(?:\d[\d.]*[eE]\+?\d{3,}|\d{300,}(?:\.\d*)?)(?=\s*[,}\]])"
)  # numbers beyond any float
MOST_CATEGORIES = 1 << 10
STEP = "ProfilerStep#"
NO_RAW = msgspec.Raw(b"")


class Arguments(msgspec.Struct, gc=False, eq=False):
    device: Value = None
    stream: Value = None
    correlation: Value = None
    bytes: Value = None
    node: Value = msgspec.field(default=None, name="graph node id")
    registers: Value = msgspec.field(default=None, name="registers per thread")
    shared: Value = msgspec.field(default=None, name="shared memory")
    grid: msgspec.Raw = NO_RAW
    block: msgspec.Raw = NO_RAW


class Event(msgspec.Struct, gc=False, eq=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: Any = None  # a number, or text that is one; microseconds
    dur: Any = None
    pid: Value = None
    tid: Value = None
    args: Arguments | None = None


class ExactEvent(msgspec.Struct, gc=False, eq=False):
    """The times alone, as they are written: a double cannot hold nanoseconds of the epoch."""

    ts: Decimal | None = None
    dur: Decimal | None = None


class Top(msgspec.Struct, gc=False):
    """What stands beside the events."""

    schemaVersion: Any = None
    deviceProperties: Any = None
    baseTimeNanoseconds: Any = None
    displayTimeUnit: Any = None
    distributedInfo: Any = None
    traceName: Any = None


class Categories(dict[str, int]):
    """The kind of each category that was met, however it is spelled."""

    def __missing__(self, category: str) -> int:
        found = CATEGORIES.get(category.lower(), NOTHING)
        if len(self) < MOST_CATEGORIES:
            self[category] = found
        return found


EXACT = msgspec.json.Decoder(list[ExactEvent])
TYPED = msgspec.json.Decoder(list[Event])
APART = msgspec.json.Decoder(list[msgspec.Raw])
ONE = msgspec.json.Decoder(Event)
ONE_EXACT = msgspec.json.Decoder(ExactEvent)


def decode(piece: bytes | memoryview) -> list[Event]:
    """The events of a JSON array. Where some have fields of other types than an event's, those fields are left out.

    Times that need `exactly` are doubles. Raises ValueError where the text is not a JSON array.
    """
    try:
        try:
            return TYPED.decode(piece)
        except msgspec.ValidationError:
            return [_one(raw) for raw in APART.decode(piece)]
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def decode_exactly(piece: bytes | memoryview) -> list[Event]:
    """The same, and every time as it is written."""
    events = decode(piece)
    exactly(events, piece)
    return events


def exactly(events: list[Event], piece: bytes | memoryview) -> bool:
    """Give the events of a piece their times as they are written: a double cannot hold nanoseconds of the epoch. False
    where that cannot be done, since an event is nested too deeply."""
    try:
        try:
            times = EXACT.decode(piece)
        except msgspec.ValidationError:
            times = [_one_exact(raw) for raw in APART.decode(piece)]
    except RecursionError:
        return False
    for event, exact in zip(events, times, strict=True):
        event.ts = event.ts if exact.ts is None else exact.ts
        event.dur = event.dur if exact.dur is None else exact.dur
    return True


def _one(raw: msgspec.Raw) -> Event:
    try:
        return ONE.decode(raw)
    except msgspec.ValidationError:
        pass
    try:
        given = msgspec.json.decode(raw)
    except msgspec.ValidationError:
        given = msgspec.json.decode(HUGE.sub(rb"\1null", bytes(raw)))
    if not isinstance(given, dict):
        return Event()
    event = Event(args=_typed(given["args"])) if isinstance(given.get("args"), dict) else Event()
    return _filled(event, {key: value for key, value in given.items() if key != "args"})


def _typed(given: dict[str, Any]) -> Arguments:
    found = Arguments()
    for key in ("grid", "block"):
        if key in given:
            setattr(found, key, msgspec.Raw(msgspec.json.encode(given[key])))
    return _filled(found, given)


def _filled(struct: Any, given: dict[str, Any]) -> Any:
    """The struct with those of the given fields that have its types."""
    for field in msgspec.structs.fields(struct):
        if field.encode_name in given and field.type is not msgspec.Raw:
            try:
                setattr(struct, field.name, msgspec.convert(given[field.encode_name], field.type))
            except msgspec.ValidationError:
                continue
    return struct


def _one_exact(raw: msgspec.Raw) -> ExactEvent:
    try:
        return ONE_EXACT.decode(raw)
    except msgspec.ValidationError:  # some are text: those are exact already
        return ExactEvent()


def call_kind(name: str) -> Call:
    """What a runtime or driver call does, from its name: CUDA's, HIP's and Level Zero's."""
    plain = name.lower()
    if "graphlaunch" in plain:
        return Call.GRAPH_LAUNCH
    if ("launch" in plain and "host" not in plain) or "enqueuekernel" in plain:
        return Call.LAUNCH
    if "synchronize" in plain or plain.endswith("query"):
        return Call.SYNC if "synchronize" in plain else Call.OTHER
    if "memcpy" in plain or "memset" in plain:
        return Call.COPY
    if "malloc" in plain or "free" in plain or "memalloc" in plain:
        return Call.ALLOCATION
    return Call.OTHER
