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
from campaign.traces._json_chunks import AGAIN, Pieces
from campaign.traces._kineto_columns import Columns
from campaign.traces._kineto_events import Top, decode, decode_exactly
from campaign.traces._kineto_notices import notices_of
from campaign.traces._operators import operator_events
from campaign.traces._repair import Repair
from campaign.traces.timeline import Device, Notice, Source, Timeline

FORMAT = "Kineto trace (.json, .json.gz)"
KEYS = (
    rb"traceEvents|schemaVersion|deviceProperties|displayTimeUnit|traceName|baseTimeNanoseconds|distributedInfo|"
    rb"record_shapes|with_stack|profile_memory|with_flops|with_modules|hip_\w+|cuda_\w+|cupti_\w+|cudnn_\w+|"
    rb"roctracer_\w+|trace_id|otherData|metadata|host_name"
)
_OBJECT = re.compile(rb'\{\s*"(?:' + KEYS + rb')"\s*:')
_ARRAY = re.compile(rb'\[\s*\{.{0,4096}?"(?:ph|ts)"\s*:', re.DOTALL)


def recognises(head: bytes, path: Path) -> bool:
    """A JSON object with Kineto's keys, or a bare array of trace events."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return bool(_OBJECT.match(text) or _ARRAY.match(text) or (text[:1] == b"{" and b'"traceEvents"' in text))


def read(path: Path) -> Timeline:
    """Read a trace. Raises BadInput for one without an array of events, and for one that cannot be mended."""
    columns = Columns()
    repair = Repair(path, decode_exactly)
    try:
        with opened(path) as content:
            pieces = Pieces(content, path, decode, repair)
            for events in pieces:
                columns.take(events, pieces.piece)
    except BaseException:
        for spool in (columns.events, columns.calls, columns.marks):
            spool.close()
        raise
    if not columns.seen and repair.lost:
        text = f"not valid JSON near offset {repair.first_lost:,}, and no event of it can be read"
        raise BadInput(f"{path}: {text}", remedy=AGAIN)
    if not columns.seen and (content.lost or repair.cut_at is not None):
        why = f" ({content.lost})" if content.lost else ""
        raise BadInput(f"{path}: ends before its first whole event{why}", remedy=AGAIN)
    top, notices = _top(pieces, not content.lost and repair.cut_at is None)
    notices = [*repair.notices(content.lost), *notices, *notices_of(columns)]
    base = top.baseTimeNanoseconds
    timeline = Timeline(
        source=Source(
            file=str(path),
            format="kineto",
            tool=_tool(top),
            size_bytes=path.stat().st_size,
            resolution_ns=columns.resolution_ns,
            base_ns=base if isinstance(base, int) and not isinstance(base, bool) else 0,
        ),
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


def _without_device(timeline: Timeline, columns: Columns) -> list[Notice]:
    """A run without a device is read as its operators."""
    if not columns.operators:
        return [Notice("no_device_work", "the trace has neither device events nor CPU operators")]
    operator_events(timeline)
    text = (
        "the trace has no device events: the time of CPU operators is shown in their place, each instant of a thread "
        "charged to its innermost operator"
    )
    if "cuda_profiler_range" in columns.categories:
        text += "; it does have counters of kernels (cuda_profiler_range), whose times are not those of the kernels"
    return [Notice("cpu_only", text)]


def _top(pieces: Pieces, whole: bool) -> tuple[Top, list[Notice]]:
    """What stands before and after the events, and what of it cannot be read: nothing that is counted depends on it.
    `whole` says that the events themselves ended as they should."""
    before, after = pieces.before.strip().rstrip(b",").rstrip(), pieces.after.strip()
    found, notices = Top(), []
    if pieces.unread:
        notices.append(Notice("unread", "more stands after the events than is looked at", lowers_confidence=True))
        after = b""
    elif pieces.in_object and not after and whole:
        notices.append(Notice("unread", "the file ends right after its events: what may have followed is lost"))
    for text, place in ((before + b"}", "before"), (b"{" + after.lstrip(b","), "after")):
        if text == b"{" or (not pieces.in_object and not after):
            continue
        try:
            part = msgspec.json.decode(text, type=Top)
        except (ValueError, RecursionError) as error:
            said = f"what stands {place} the events cannot be read and is left out ({error})"
            notices.append(Notice("unread", said, lowers_confidence=b'"ph"' in text))
            continue
        for name in Top.__struct_fields__:
            if (value := getattr(part, name)) is not None:
                setattr(found, name, value)
    return found, notices


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
