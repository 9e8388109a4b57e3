"""PyTorch's traces: Kineto's Chrome trace format, plain or gzip, of CUDA, ROCm, XPU and CPU-only runs since 2021.

What is device work is decided by an event's category alone: `kernel`, `gpu_memcpy`, `gpu_memset` (and their spellings
of 2021). Synchronisation events, annotations projected on a stream, and CPU operators that carry a stream are not.
Times are written in microseconds, whole or with decimals, from an epoch or from `baseTimeNanoseconds`; they are read to
the nanosecond exactly, and `Source.resolution_ns` says what the file's own clock could tell.

Source of the format: Kineto's `output_json.cpp` and the files of several years and makers that the tests read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from campaign.errors import BadInput
from campaign.traces._inflate import opened
from campaign.traces._json_chunks import Pieces
from campaign.traces._kineto_columns import Columns
from campaign.traces._kineto_events import Top, decode
from campaign.traces._operators import operator_events
from campaign.traces._repair import Repair
from campaign.traces.timeline import LONGEST_NAME, Device, Notice, Source, Timeline

FORMAT = "Kineto trace (.json, .json.gz)"
_OBJECT = re.compile(
    rb'^\s*\{\s*"(traceEvents|schemaVersion|deviceProperties|displayTimeUnit|traceName|'
    rb"baseTimeNanoseconds|distributedInfo|record_shapes|with_stack|profile_memory|with_flops|"
    rb'with_modules|hip_\w+|cuda_\w+|cupti_\w+|cudnn_\w+|roctracer_\w+|trace_id|otherData|metadata)"'
)
_ARRAY = re.compile(rb'^\s*\[\s*\{[^{}]*"(ph|ts)"\s*:')


def recognises(head: bytes, path: Path) -> bool:
    """A JSON object with Kineto's keys, or a bare array of trace events."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return bool(_OBJECT.match(text) or _ARRAY.match(text) or (text[:1] == b"{" and b'"traceEvents"' in text))


def read(path: Path) -> Timeline:
    """Read a trace. Raises BadInput for one without an array of events, and for one that cannot be mended."""
    columns = Columns()
    repair = Repair(path, decode)
    with opened(path) as content:
        pieces = Pieces(content, path, decode, repair)
        for events in pieces:
            columns.take(events, pieces.piece)
    top = _top(pieces)
    notices = [*repair.notices(), *_notices(columns)]
    if content.lost:
        text = f"{content.lost}: events after it are lost"
        notices.append(Notice("truncated", text, lowers_confidence=True))
    if repair.lost and not columns.seen:
        raise BadInput(f"{path}: no event of it can be read", remedy="make the trace again")
    source = Source(
        file=str(path),
        format="kineto",
        tool=_tool(top),
        size_bytes=path.stat().st_size,
        resolution_ns=columns.resolution_ns,
        base_ns=top.baseTimeNanoseconds if isinstance(top.baseTimeNanoseconds, int) else 0,
    )
    timeline = Timeline(
        source=source,
        names=list(columns.names),
        devices=_devices(columns.device_keys(), top),
        streams=columns.stream_list(),
        threads=[" ".join(str(part) for part in thread) for thread in columns.threads],
        events=columns.events,
        calls=columns.calls,
        marks=columns.marks,
        shapes=columns.shapes,
        graph_launches=columns.graph_launches(),
    )
    if not len(timeline.events):
        notices += _without_device(timeline, columns)
    timeline.notices = tuple(notices)
    return timeline


def _notices(columns: Columns) -> list[Notice]:
    found = []
    says = {
        "ts": ("bad_times", "{} events have no usable `ts` and are left out", True),
        "dur": (
            "bad_durations",
            "{} events have no usable `dur` (missing, negative or too large): they count as launches without time",
            True,
        ),
        "begin/end": ("unpaired", "{} begin and end events (ph B, E) are not read", False),
    }
    for key, (code, text, lowers) in says.items():
        if columns.bad[key]:
            found.append(Notice(code, text.format(f"{columns.bad[key]:,}"), lowers))
    if columns.names.cut:
        text = f"{columns.names.cut:,} names are longer than {LONGEST_NAME:,} characters: cut"
        found.append(Notice("long_names", text))
    if columns.long:
        text = f"{columns.long:,} device events are longer than 1 s: counted as they are; see whether they are real"
        found.append(Notice("long_events", text, lowers_confidence=True))
    if columns.resolution_ns > 1 and len(columns.events):
        text = f"the file's clock steps by {columns.resolution_ns:,} ns: each gap and event may be off by that much"
        found.append(Notice("coarse_clock", text))
    return found


def _without_device(timeline: Timeline, columns: Columns) -> list[Notice]:
    """A run without a device is read as its operators."""
    if not columns.operators:
        return [Notice("no_device_work", "the trace has neither device events nor CPU operators")]
    timeline.devices.append(Device(ordinal=0, name="cpu", is_cpu=True))
    operator_events(timeline)
    text = (
        "the trace has no device events: the time of CPU operators is shown in their place, each instant of a thread "
        "charged to its innermost operator"
    )
    return [Notice("cpu_only", text)]


def _top(pieces: Pieces) -> Top:
    """What stands before and after the events, as far as it can be read."""
    before, after = pieces.before.strip().rstrip(b",").rstrip(), pieces.after.strip()
    found = Top()
    for text in (before + b"}", b"{" + after.lstrip(b",").strip()):
        try:
            part = msgspec.json.decode(text, type=Top)
        except (ValueError, RecursionError):
            continue  # nothing that is counted depends on it
        for name in Top.__struct_fields__:
            if (value := getattr(part, name)) is not None:
                setattr(found, name, value)
    return found


def _tool(top: Top) -> str:
    version = f" schema {top.schemaVersion}" if isinstance(top.schemaVersion, (int, str)) else ""
    return f"torch.profiler{version}"


def _devices(keys: list[int | str], top: Top) -> list[Device]:
    """The devices that have events, with what the file says of them."""
    listed = top.deviceProperties if isinstance(top.deviceProperties, list) else []
    known = {one.get("id"): one for one in listed if isinstance(one, dict) and isinstance(one.get("id"), int)}
    return [_device(key, place, known.get(key, {})) for place, key in enumerate(keys)]


def _device(key: int | str, place: int, facts: dict[str, Any]) -> Device:
    ordinal = key if isinstance(key, int) else place
    major, minor, count = (facts.get(name) for name in ("computeMajor", "computeMinor", "numSms"))
    name = facts.get("name") if isinstance(facts.get("name"), str) else ""
    whole = isinstance(major, int) and isinstance(minor, int)
    nvidia = whole and facts.get("warpSize") == 32
    architecture = f"sm_{major}{minor}" if nvidia else ""
    return Device(ordinal, name or "", architecture, count if isinstance(count, int) else None)
