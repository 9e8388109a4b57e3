"""Kineto traces for tests, laid down as files: events as the profiler writes them, and what stands around them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from campaign.diagnosis.busy import Busy, sweep
from campaign.traces import kineto
from campaign.traces.spool import Spool
from campaign.traces.timeline import Timeline

Event = dict[str, Any]


def kernel(name: str, ts: Any, dur: Any, stream: Any = 7, device: Any = 0, correlation: Any = 1, **more: Any) -> Event:
    args = {"device": device, "stream": stream, "correlation": correlation, **more}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": args}


def host(cat: str, name: str, ts: Any, dur: Any, tid: int = 5, **args: Any) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "pid": 5, "tid": tid, "ts": ts, "dur": dur, "args": args}


def laid(folder: Path, events: Sequence[Event], **top: Any) -> Path:
    """A trace of these events, written as Kineto does."""
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, **top, "traceEvents": list(events), "traceName": "trace.json"}))
    return path


def written(folder: Path, text: str | bytes) -> Path:
    """A file with exactly this content."""
    path = folder / "trace.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read_events(folder: Path, *events: Event, **top: Any) -> Timeline:
    return kineto.read(laid(folder, events, **top))


def swept(timeline: Timeline) -> Busy:
    return sweep(timeline, lambda name, kind: kind.name)


def rows(spool: Spool) -> np.ndarray:
    batches = list(spool.batches())
    return np.concatenate(batches) if batches else np.empty(0, spool.dtype)


def intervals(timeline: Timeline) -> list[tuple[str, int, int]]:
    """Name, start and end of each device event, in order of start."""
    found = rows(timeline.events)
    return [(timeline.names[row["name"]], int(row["start"]), int(row["end"])) for row in found]


def codes(timeline: Timeline) -> list[str]:
    return [notice.code for notice in timeline.notices]


def said(timeline: Timeline, code: str) -> str:
    """The text of the notice with this code."""
    return next(notice.text for notice in timeline.notices if notice.code == code)
