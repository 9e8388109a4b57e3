"""A small export, and what is done to it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from campaign.diagnosis.busy import sweep
from campaign.traces.timeline import Timeline
from tests.traces.nsys_files import Kernel, Nvtx, Runtime, write_nsys


def edited(path: Path, *statements: str | tuple[str, tuple[object, ...]]) -> Path:
    connection = sqlite3.connect(path)
    for one in statements:
        connection.execute(one) if isinstance(one, str) else connection.execute(*one)
    connection.commit()
    connection.close()
    return path


def export(path: Path) -> Path:
    """Three kernels on one device: busy 30, range 50."""
    return write_nsys(
        path,
        kernels=[Kernel("first", 10, 20, 1), Kernel("second", 30, 40, 2), Kernel("third", 50, 60, 3)],
        runtime=[Runtime("cudaLaunchKernel", n, n + 1, n) for n in (1, 2, 3)],
        nvtx=[Nvtx("step", 0, 9)],
    )


def busy_and_span(timeline: Timeline) -> tuple[int, int]:
    (device,) = sweep(timeline, lambda name, kind: kind.name).devices
    return device.busy_ns, device.span_ns


def codes(timeline: Timeline) -> dict[str, str]:
    return {one.code: one.text for one in timeline.notices}
