"""What a kernel profiler (Nsight Compute) says of kernels: one row a launch, numbers in plain units.

A counter that the file does not have is None; one that the tool could not collect (`n/a`, `nan`, `no data`) is None too
and stands in `failed`. Nothing is ever 0 because it is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from campaign.traces.timeline import Notice, Source


@dataclass(frozen=True)
class KernelCounters:
    """One profiled launch. Percentages are 0 to 100; `stalls_percent` is each stall reason's share of the warp's
    latency between issues (stall cycles per issue / latency cycles per issue, or the tool's own percentage), by the
    tool's name of the reason (`long_scoreboard`, `sleeping`, `math_pipe_throttle`).

    `spill_requests` comes from a counter of register spilling; `local_requests` from one of local memory as a whole,
    which also holds arrays that were never in registers. `pipes_percent` has the utilization of each pipe that was
    collected: `tensor`, `fma`, `alu`, `lsu`.
    """

    name: str
    source_row: int  # the line or record of the file
    architecture: str = ""  # "sm_90"; empty when unknown
    grid_blocks: int | None = None
    threads_per_block: int | None = None
    cluster_blocks: int | None = None
    multiprocessors: int | None = None
    registers_per_thread: int | None = None
    static_shared_bytes: int | None = None
    dynamic_shared_bytes: int | None = None
    duration_seconds: float | None = None
    spill_requests: float | None = None
    spill_counter: str = ""  # the metric that spill_requests came from
    local_requests: float | None = None
    theoretical_occupancy_percent: float | None = None
    achieved_occupancy_percent: float | None = None
    active_warps: float | None = None  # per multiprocessor, on average
    limits_blocks: dict[str, float] = field(default_factory=dict)  # blocks per multiprocessor, by what limits them
    eligible_warps: float | None = None  # per scheduler, on average
    no_eligible_percent: float | None = None
    stalls_percent: dict[str, float] = field(default_factory=dict)
    sm_percent: float | None = None  # compute throughput
    memory_percent: float | None = None  # the tool's memory throughput: the busiest of its memory units
    dram_percent: float | None = None
    l2_percent: float | None = None
    l1_percent: float | None = None
    pipes_percent: dict[str, float] = field(default_factory=dict)
    dram_bytes: float | None = None  # read and written
    waves: float | None = None  # per multiprocessor
    failed: tuple[str, ...] = ()  # counters that the tool could not collect, by its own names
    profiled: bool = True  # False for a launch that failed or of which nothing was measured


@dataclass(frozen=True)
class KernelReport:
    """A file of kernel counters. `source.format` is "ncu-raw", "ncu-details" or "ncu-rep"."""

    source: Source
    launches: tuple[KernelCounters, ...]
    notices: tuple[Notice, ...] = ()
