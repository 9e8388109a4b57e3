"""One event of a Kineto trace as it stands in the file, and how its category and name say what it is."""

from __future__ import annotations

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


STEP = "ProfilerStep#"
NO_RAW = msgspec.Raw(b"")


class Arguments(msgspec.Struct, gc=False):
    device: Value = None
    stream: Value = None
    correlation: Value = None
    bytes: Value = None
    node: Value = msgspec.field(default=None, name="graph node id")
    registers: Value = msgspec.field(default=None, name="registers per thread")
    shared: Value = msgspec.field(default=None, name="shared memory")
    grid: msgspec.Raw = NO_RAW
    block: msgspec.Raw = NO_RAW


PLAIN_ARGUMENTS = {
    field.name: field.encode_name for field in msgspec.structs.fields(Arguments) if field.name not in ("grid", "block")
}


class Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: Any = None  # a number, or text that is one; microseconds
    dur: Any = None
    pid: Value = None
    tid: Value = None
    args: Arguments | None = None


class ExactEvent(msgspec.Struct, gc=False):
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
        self[category] = found = CATEGORIES.get(category.lower(), NOTHING)
        return found


EXACT = msgspec.json.Decoder(list[ExactEvent])
TYPED = msgspec.json.Decoder(list[Event])
LOOSE = msgspec.json.Decoder(list[Any])


def decode(piece: bytes) -> list[Event]:
    """The events of a JSON array. One whose fields have other types than an event's is read field by field.

    Raises ValueError where the text is not a JSON array.
    """
    try:
        events = TYPED.decode(piece)
        first = next((event.ts for event in events if event.ph == "X" and isinstance(event.ts, float)), 0.0)
        # A file counts all its times from one beginning, so the first says whether doubles can hold them.
        return _exactly(events, piece) if abs(first) >= EXACT_BELOW_US else events
    except msgspec.ValidationError:
        return [_lenient(one) for one in LOOSE.decode(piece) if isinstance(one, dict)]
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _exactly(events: list[Event], piece: bytes) -> list[Event]:
    """The same events with their times as they are written."""
    try:
        times = EXACT.decode(piece)
    except msgspec.ValidationError:  # some are text: those are exact already
        return events
    for event, exact in zip(events, times, strict=True):
        event.ts, event.dur = exact.ts, exact.dur
    return events


def _lenient(one: dict[str, Any]) -> Event:
    def plain(value: Any) -> Any:
        return value if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None

    given = one.get("args")
    arguments = None
    if isinstance(given, dict):
        arguments = Arguments(**{name: plain(given.get(key)) for name, key in PLAIN_ARGUMENTS.items()})
    text = {key: value if isinstance(value := one.get(key), str) else "" for key in ("ph", "cat")}
    name = one.get("name")
    rest = {key: plain(one.get(key)) for key in ("ts", "dur", "pid", "tid")}
    return Event(**text, name=name if isinstance(name, str) else str(name), **rest, args=arguments)


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
