"""The timed block: the only place where a clock is read around a workload's steps. Runs in the trial's process.

Nothing but the workload's own steps runs between the two clock readings: no logging, no garbage collection, no
allocation by us, no synchronisation except at the two ends.
"""

from __future__ import annotations

import gc
import math
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any


def timed_block(workload: Any, steps: int) -> dict[str, Any]:
    """Run `steps` whole steps and return their cost: wall, process CPU and device seconds, involuntary switches,
    compilations. `device_seconds` is None on CPU. What the workload raises goes through."""
    events = _events(workload.device)
    workload.synchronize()
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    compiled = compilations()
    collecting = gc.isenabled()
    gc.disable()
    try:
        if events:
            events[0].record()
        cpu = time.process_time_ns()
        wall = time.perf_counter_ns()
        for _ in range(steps):
            workload.step()
        if events:
            events[1].record()
        workload.synchronize()
        wall = time.perf_counter_ns() - wall
        cpu = time.process_time_ns() - cpu
    finally:
        if collecting:
            gc.enable()
    gc.collect()
    return {
        "steps": steps,
        "tokens": steps * int(workload.tokens_per_step),
        "wall_seconds": wall / 1e9,
        "cpu_seconds": cpu / 1e9,
        "device_seconds": events[0].elapsed_time(events[1]) / 1e3 if events else None,
        "involuntary_switches": resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - switches,
        "recompiled": compilations() - compiled,
    }


def compilations() -> int:
    """Graphs that torch.compile has built so far in this process; 0 while it was never used."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return int(dynamo.counters["stats"]["unique_graphs"]) if dynamo else 0


def is_steady(seconds: Sequence[float], minimum: int, window: int, tolerance: float) -> bool:
    """Whether the last `window` steps' median is within `tolerance` (a share) of the `window` before them."""
    if len(seconds) < max(minimum, 2 * window):
        return False
    last = statistics.median(seconds[-window:])
    before = statistics.median(seconds[-2 * window : -window])
    return abs(last - before) <= tolerance * before


def steps_per_block(step_seconds: float, block_steps: int, block_minimum_seconds: float) -> int:
    """The fewest whole steps, at least `block_steps`, that last `block_minimum_seconds`."""
    if step_seconds <= 0:
        return block_steps
    return max(block_steps, math.ceil(block_minimum_seconds / step_seconds))


def _events(device: str) -> tuple[Any, Any] | None:
    if not device.startswith("cuda"):
        return None
    import torch

    return torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
