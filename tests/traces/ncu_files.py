"""Nsight Compute CSV files with given figures, in both pages, as the tool prints them.

Names, labels, sections and units are those of real exports and of trace-formats.md 2.3, written down here once more so
that the reader's own table is not what it is tested with.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from campaign.traces import KernelReport, open_profile
from campaign.traces.counters import KernelCounters

FIXED = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
         "Device", "CC")  # fmt: skip
DETAILS = (*FIXED, "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type",
           "Rule Description", "Estimated Speedup Type", "Estimated Speedup")  # fmt: skip
LAUNCH, LIGHT, OCCUPANCY = "Launch Statistics", "GPU Speed Of Light Throughput", "Occupancy"
SCHEDULER, WARPS, MEMORY = "Scheduler Statistics", "Warp State Statistics", "Memory Workload Analysis"
COMPUTE = "Compute Workload Analysis"
ELAPSED, ACTIVE = "avg.pct_of_peak_sustained_elapsed", "avg.pct_of_peak_sustained_active"


def stalled(reason: str, label: str) -> tuple[str, str, str, str]:
    return f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio", "inst", WARPS, label


# What a figure is called: the raw page's metric and unit, the details page's section and label.
NAMES = {
    "registers": ("launch__registers_per_thread", "register/thread", LAUNCH, "Registers Per Thread"),
    "dynamic_shared_kbyte": (
        "launch__shared_mem_per_block_dynamic", "Kbyte/block", LAUNCH, "Dynamic Shared Memory Per Block",
    ),
    "waves": ("launch__waves_per_multiprocessor", "", LAUNCH, "Waves Per SM"),
    "sms": ("launch__sm_count", "SM", LAUNCH, "# SMs"),
    "microseconds": ("gpu__time_duration.sum", "usecond", LIGHT, "Duration"),
    "sm": (f"sm__throughput.{ELAPSED}", "%", LIGHT, "Compute (SM) Throughput"),
    "memory": (f"gpu__compute_memory_throughput.{ELAPSED}", "%", LIGHT, "Memory Throughput"),
    "dram": (f"gpu__dram_throughput.{ELAPSED}", "%", LIGHT, "DRAM Throughput"),
    "l2": (f"lts__throughput.{ELAPSED}", "%", LIGHT, "L2 Cache Throughput"),
    "l1": (f"l1tex__throughput.{ACTIVE}", "%", LIGHT, "L1/TEX Cache Throughput"),
    "tensor": (f"sm__pipe_tensor_cycles_active.{ACTIVE}", "%", COMPUTE, "Tensor (All)"),
    "theoretical": ("sm__maximum_warps_per_active_cycle_pct", "%", OCCUPANCY, "Theoretical Occupancy"),
    "achieved": (f"sm__warps_active.{ACTIVE}", "%", OCCUPANCY, "Achieved Occupancy"),
    "limit_registers": ("launch__occupancy_limit_registers", "block", OCCUPANCY, "Block Limit Registers"),
    "limit_shared": ("launch__occupancy_limit_shared_mem", "block", OCCUPANCY, "Block Limit Shared Mem"),
    "no_eligible": (f"smsp__issue_inst0.{ACTIVE}", "%", SCHEDULER, "No Eligible"),
    "eligible": ("smsp__warps_eligible.avg.per_cycle_active", "warp", SCHEDULER, "Eligible Warps Per Scheduler"),
    "spills": ("derived__local_spilling_requests", "", MEMORY, "Local Memory Spilling Requests"),
    "latency": (
        "smsp__average_warp_latency_per_inst_issued.ratio", "cycle", WARPS, "Warp Cycles Per Issued Instruction",
    ),
    "long_scoreboard": stalled("long_scoreboard", "Stall Long Scoreboard"),
    "lg_throttle": stalled("lg_throttle", "Stall LG Throttle"),
    "math_pipe_throttle": stalled("math_pipe_throttle", "Stall Math Pipe Throttle"),
    "sleeping": stalled("sleeping", "Stall Sleeping"),
    "barrier": stalled("barrier", "Stall Barrier"),
    "wait": stalled("wait", "Stall Wait"),
    "selected": stalled("selected", "Selected"),
}  # fmt: skip
BANNER = (
    '==PROF== Connected to process 4242 (/usr/bin/python3.12)\nstep 0: loss 10.8246\n'
    '==PROF== Profiling "kernel" - 0: 0%....50%....100% - 12 passes\nstep 1, loss 10.7\n'
    "==PROF== Disconnected from process 4242\n"
)  # fmt: skip


@dataclass
class Launch:
    """`figures` by the names of NAMES; `metrics` are more raw ones with their units."""

    name: str
    figures: Mapping[str, float | str] = field(default_factory=dict)
    metrics: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    block: str = "(128, 1, 1)"
    grid: str = "(4096, 1, 1)"
    capability: str = "12.0"


def raw(launches: Sequence[Launch]) -> str:
    """The raw page: a row of names, one of units, a row a launch; metric sets may differ."""
    columns: dict[str, str] = {}
    for one in launches:
        for key in one.figures:
            columns.setdefault(NAMES[key][0], NAMES[key][1])
        for name, (_, unit) in one.metrics.items():
            columns.setdefault(name, unit)
    rows = [[*FIXED, *columns], [*[""] * len(FIXED), *columns.values()]]
    for number, one in enumerate(launches):
        values = {NAMES[key][0]: _printed(value, 6) for key, value in one.figures.items()}
        values.update({name: value for name, (value, _) in one.metrics.items()})
        rows.append([*_fixed(number, one), *(values.get(name, "") for name in columns)])
    return _written(rows)


def details(launches: Sequence[Launch]) -> str:
    """The details page with --print-details all: a row a metric, thousands separated, rules with section ids."""
    rows: list[list[str]] = [list(DETAILS)]
    for number, one in enumerate(launches):
        for key, value in one.figures.items():
            _, unit, section, label = NAMES[key]
            rows.append([*_fixed(number, one), section, label, unit, _printed(value, 2, grouped=True), ""])
        rows.append([*_fixed(number, one), "SpeedOfLight", "", "", "", "SOLBottleneck", "INF",
                     "A sentence.\nAnd, on a line of its own, another \"one\".", "", ""])  # fmt: skip
    return _written(rows)


FIGURES = {"registers": 40, "microseconds": 12.5, "dram": 55.25, "spills": 9_650_000, "latency": 65.74,
           "long_scoreboard": 54.69, "dynamic_shared_kbyte": 8.192}  # fmt: skip


def only(path: Path) -> KernelCounters:
    """The one launch of a file."""
    (found,) = opened(path).launches
    return found


def opened(path: Path) -> KernelReport:
    found = open_profile(path)
    assert isinstance(found, KernelReport)
    return found


def codes(report: KernelReport) -> list[str]:
    return [notice.code for notice in report.notices]


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def _printed(value: float | str, digits: int, *, grouped: bool = False) -> str:
    if isinstance(value, str):
        return value
    if value == int(value):
        return f"{int(value):,}" if grouped else f"{int(value)}"
    return f"{value:,.{digits}f}" if grouped else f"{value:.{digits}f}"


def _fixed(number: int, one: Launch) -> list[str]:
    return [
        str(number),
        "4242",
        "python3.12",
        "127.0.0.1",
        one.name,
        "1",
        "7",
        one.block,
        one.grid,
        "0",
        one.capability,
    ]


def _written(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue()
