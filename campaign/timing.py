"""The timed block: the only place where a clock is read around a workload's steps. Runs in the trial's process.

Nothing but the workload's own steps runs between the two clock readings: no logging, no garbage collection, no
allocation by us, no synchronisation except at the two ends. A device is synchronised by us there as well as by the
workload, whose word alone would let a step return before its work is done.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import resource
import signal
import statistics
import sys
from collections.abc import Callable, Sequence
from time import perf_counter_ns, process_time_ns, thread_time_ns  # bound before a workload that might replace them
from typing import Any, NoReturn

KILLED_TIMES = 3
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def timed_block(workload: Any, steps: int) -> dict[str, Any]:
    """Run `steps` whole steps and return their cost: wall, process CPU and device seconds, involuntary switches,
    compilations, and the loss and gradient norm of the last of them. `device_seconds` is None on CPU.
    `cpu_began_seconds` and `cpu_ended_seconds` are the CPU clock of this process and its descendants at the block's
    two ends, without what reading it takes our own thread: a thread of the workload's that computes meanwhile is seen.
    What the workload raises goes through."""
    events = _events(workload.device)
    synchronize = _device_synchronize(workload.device)
    seen = getattr(workload, "tokens_seen", None)  # of a workload whose steps differ in tokens
    workload.synchronize()
    synchronize()
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    compiled = compilations()
    children_began, looked_first = _looked_at_descendants()
    collecting = gc.isenabled()
    gc.disable()
    try:
        if events:
            events[0].record()
        began = process_time_ns()
        wall_began = perf_counter_ns()
        for _ in range(steps):
            workload.step()
        if events:
            events[1].record()
        workload.synchronize()
        synchronize()
        wall_ended = perf_counter_ns()
        ended = process_time_ns()
    finally:
        if collecting:
            gc.enable()
    children_ended, looked_last = _looked_at_descendants()
    last = told(workload)
    gc.collect()
    return {
        "steps": steps,
        "tokens": steps * int(workload.tokens_per_step) if seen is None else workload.tokens_seen - seen,
        "wall_seconds": (wall_ended - wall_began) / 1e9,
        "cpu_seconds": (ended - began) / 1e9,
        "device_seconds": events[0].elapsed_time(events[1]) / 1e3 if events else None,
        "involuntary_switches": resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - switches,
        "recompiled": compilations() - compiled,
        **last,
        "cpu_began_seconds": (began - looked_first) / 1e9 + children_began,
        "cpu_ended_seconds": (ended + looked_last) / 1e9 + children_ended,
    }


def _looked_at_descendants() -> tuple[float, int]:
    """Their CPU seconds so far, and the CPU nanoseconds that looking took this thread: our own work, and longer for an
    arm that has more of them."""
    began = thread_time_ns()
    return descendants_cpu_seconds(), thread_time_ns() - began


def told(workload: Any) -> dict[str, float | None]:
    """Loss and gradient norm of the latest step; None for what the workload does not tell."""
    last = workload.last_step()
    return {key: None if last.get(key) is None else float(last[key]) for key in ("loss", "gradient_norm")}


def compilations() -> int:
    """Graphs that torch.compile has built so far in this process; 0 while it was never used."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return int(dynamo.counters["stats"]["unique_graphs"]) if dynamo else 0


def cpu_seconds() -> float:
    """CPU time of this process and its descendants so far, in seconds."""
    return process_time_ns() / 1e9 + descendants_cpu_seconds()


def descendants_cpu_seconds() -> float:
    """CPU time of the processes that this one started, theirs included, dead or alive; in ticks of 10 ms as a rule.
    0 where the system does not list a process's children."""
    dead = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = dead.ru_utime + dead.ru_stime
    for child in descendants("self"):
        try:
            with open(f"/proc/{child}/stat", "rb") as file:
                # After the name, which may hold anything but ends at the last bracket: fields 14 to 17 of proc(5).
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15])) / TICKS_PER_SECOND
    return total


def descendants(pid: str) -> list[str]:
    """The pids of the processes below `pid`."""
    found, waiting = [], children(pid)
    while waiting:
        child = waiting.pop()
        found.append(child)
        waiting += children(child)
    return found


def kill_descendants() -> None:
    """End every process below this one, in its process group or not; looks again for what was started meanwhile."""
    for _ in range(KILLED_TIMES):
        for pid in descendants("self"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def leave_nothing(*_: object) -> NoReturn:
    """End every process below this one, and this one, at once; a paused one would stay so for ever. A signal's handler,
    too."""
    kill_descendants()
    os._exit(1)


def children(pid: str) -> list[str]:
    """The pids of the processes that `pid` started and that live; none where the system does not list them."""
    found: list[str] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += file.read().split()
    except OSError:
        return found
    return found


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


def _device_synchronize(device: str) -> Callable[[], None]:
    if not device.startswith("cuda"):
        return lambda: None
    import torch

    return torch.cuda.synchronize


def _events(device: str) -> tuple[Any, Any] | None:
    if not device.startswith("cuda"):
        return None
    import torch

    return torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
