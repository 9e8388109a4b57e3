"""Which metric of Nsight Compute says what: names of the raw page and labels of the details page, best first.

Names and their meaning are those of the tool's documentation and of its section files (MetricName in *.section);
`trace-formats.md`, 2.3, lists them with the versions that have them. A metric is taken by its whole name: a prefix
(`pmsampling:`, `breakdown:`, `FBPA.TriageA.`) makes it another metric.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from campaign.traces._ncu_numbers import BYTES, COUNT, PERCENT, SECONDS


@dataclass(frozen=True)
class Way:
    """One way to a figure: the sum of `names`, which measure `kind`. `turn` says what is made of it: "" itself,
    "100 -" what is left of 100 %, "1 -" what is left of 1, in percent."""

    names: tuple[str, ...]
    kind: str
    turn: str = ""


def _ways(kind: str, *names: str | tuple[str, ...]) -> tuple[Way, ...]:
    return tuple(Way((name,) if isinstance(name, str) else name, kind) for name in names)


MOST_NAMES = 1 << 14  # that are remembered: a raw page has up to 2,124, and every row the same
SIZE = "size"  # bytes that somebody chose, and did not count
_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
_ACTIVE = ".avg.pct_of_peak_sustained_active"
_SPILLING = "sass__inst_executed_register_spilling"
FIELDS: dict[str, tuple[Way, ...]] = {
    # Not launch__registers_per_thread_allocated, which is per block or per warp on some architectures.
    "registers_per_thread": _ways(COUNT, "launch__registers_per_thread", "Registers Per Thread"),
    "static_shared_bytes": _ways(SIZE, "launch__shared_mem_per_block_static", "Static Shared Memory Per Block"),
    "dynamic_shared_bytes": _ways(SIZE, "launch__shared_mem_per_block_dynamic", "Dynamic Shared Memory Per Block"),
    "grid_blocks": _ways(COUNT, "launch__grid_size", "Grid Size"),
    "threads_per_block": _ways(COUNT, "launch__block_size", "Block Size"),
    "cluster_blocks": _ways(COUNT, "launch__cluster_size", "Cluster Size"),
    "multiprocessors": _ways(COUNT, "device__attribute_multiprocessor_count", "launch__sm_count", "# SMs"),
    "duration_seconds": _ways(SECONDS, "gpu__time_duration.sum", "Duration"),
    # Local spilling only: what newer compilers spill to shared memory does not wait for the memory system.
    "spill_requests": _ways(
        COUNT,
        "derived__local_spilling_requests",
        "Local Memory Spilling Requests",
        f"{_SPILLING}_mem_local",
        (f"{_SPILLING}_mem_local_op_read", f"{_SPILLING}_mem_local_op_write"),
        _SPILLING,
        (f"{_SPILLING}_op_read", f"{_SPILLING}_op_write"),
    ),
    # Local memory as a whole: spills, and arrays that were never in registers.
    "local_requests": _ways(
        COUNT,
        ("sass__inst_executed_local_loads", "sass__inst_executed_local_stores"),
        ("smsp__sass_inst_executed_op_local_ld.sum", "smsp__sass_inst_executed_op_local_st.sum"),
        "smsp__sass_inst_executed_op_local.sum",
        ("smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum"),
        ("l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum", "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum"),
        ("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"),
        "memory_l2_theoretical_sectors_local",
    ),
    "theoretical_occupancy_percent": _ways(PERCENT, "sm__maximum_warps_per_active_cycle_pct", "Theoretical Occupancy"),
    "achieved_occupancy_percent": _ways(PERCENT, f"sm__warps_active{_ACTIVE}", "Achieved Occupancy"),
    "active_warps": _ways(COUNT, "sm__warps_active.avg.per_cycle_active", "Achieved Active Warps Per SM"),
    "eligible_warps": _ways(COUNT, "smsp__warps_eligible.avg.per_cycle_active", "Eligible Warps Per Scheduler"),
    "no_eligible_percent": (
        Way((f"smsp__issue_inst0{_ACTIVE}",), PERCENT),
        Way(("No Eligible",), PERCENT),
        Way((f"smsp__issue_active{_ACTIVE}",), PERCENT, "100 -"),
        Way(("One or More Eligible",), PERCENT, "100 -"),
        Way(("smsp__issue_active.avg.per_cycle_active",), COUNT, "1 -"),
        Way(("Issued Warp Per Scheduler",), COUNT, "1 -"),
    ),
    "sm_percent": _ways(
        PERCENT, f"sm__throughput{_ELAPSED}", "Compute (SM) Throughput", "SM Throughput", "SOL SM",
        f"sm__throughput{_ACTIVE}",
    ),
    "memory_percent": _ways(
        PERCENT, f"gpu__compute_memory_throughput{_ELAPSED}", "Memory Throughput", "SOL Memory"
    ),
    "dram_percent": _ways(
        PERCENT, f"gpu__dram_throughput{_ELAPSED}", f"dram__throughput{_ELAPSED}", "DRAM Throughput", "SOL DRAM"
    ),
    "l2_percent": _ways(PERCENT, f"lts__throughput{_ELAPSED}", "L2 Cache Throughput", "SOL L2 Cache"),
    "l1_percent": _ways(
        PERCENT, f"l1tex__throughput{_ACTIVE}", f"l1tex__throughput{_ELAPSED}", "L1/TEX Cache Throughput",
        "SOL L1/TEX Cache",
    ),
    "dram_bytes": _ways(BYTES, "dram__bytes.sum", ("dram__bytes_read.sum", "dram__bytes_write.sum")),
    "waves": _ways(COUNT, "launch__waves_per_multiprocessor", "Waves Per SM"),
}  # fmt: skip
# Facts of the launch, which stand whether or not anything could be measured.
STATIC = frozenset(
    "registers_per_thread static_shared_bytes dynamic_shared_bytes grid_blocks threads_per_block cluster_blocks"
    " multiprocessors theoretical_occupancy_percent waves".split()
)
WHOLE = frozenset(
    "registers_per_thread static_shared_bytes dynamic_shared_bytes grid_blocks threads_per_block cluster_blocks"
    " multiprocessors".split()
)
LIMITS: dict[str, tuple[Way, ...]] = {
    "registers": _ways(COUNT, "launch__occupancy_limit_registers", "Block Limit Registers"),
    "shared memory": _ways(COUNT, "launch__occupancy_limit_shared_mem", "Block Limit Shared Mem"),
    "warps": _ways(COUNT, "launch__occupancy_limit_warps", "Block Limit Warps"),
    "blocks": _ways(COUNT, "launch__occupancy_limit_blocks", "Block Limit SM"),
    "barriers": _ways(COUNT, "launch__occupancy_limit_barriers", "Block Limit Barriers"),
}
CAPABILITY = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")
# Cycles between two instructions of a warp, which stall ratios are a part of. Shares that the tool gives, and samples,
# need no such division.
LATENCY = ("smsp__average_warp_latency_per_inst_issued.ratio", "Warp Cycles Per Issued Instruction")
SAMPLES = "smsp__pcsamp_sample_count"
STALL_RATIO = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
STALL_LABEL = re.compile(r"(?:Stall )?(Selected)|Stall ([A-Z][\w ]+)")
STALL_PERCENT = re.compile(r"smsp__warp_issue_stalled_(\w+)_per_warp_active\.pct")
STALL_SAMPLES = re.compile(r"smsp__pcsamp_warps_issue_stalled_((?!\w*not_issued)\w+)")
STALL_RULE = "CPIStall: "  # of a rule's description, on a details page that has no stall columns
# Pipes, by how they count: cycles in which the pipe was busy see asynchronous matrix instructions whole, counts of
# instructions do not.
PIPE = re.compile(
    r"sm__(?:pipe_(?P<busy>\w+?)_cycles_active(?:_v\d)?|inst_executed_pipe_(?P<issued>\w+?)|(?P<memory>mem_tensor)_cycles_active)"
    r"\.avg\.pct_of_peak_sustained_(?P<of>active|elapsed)"
)
PIPE_LABELS = {
    "Tensor (All)": "tensor", "Tensor (FP)": "tensor", "Tensor (INT)": "tensor", "Tensor (DP)": "tensor",
    "Tensor": "tensor", "TC": "tensor", "TMEM": "tensor", "FMA": "fma", "FMA (FP16)": "fma", "ALU": "alu", "LSU": "lsu",
    "FP64": "fp64", "XU": "xu",
}  # fmt: skip
PIPES = ("fma", "alu", "lsu", "fp64", "xu")
_MATRIX = re.compile(r"(mem_)?(tensor|tc|tmem|tensor_op_[a-z]+|tc_[a-z]+)")
# NVIDIA's CPIStall rule names a reason in words (WarpStateStats section, CPIStall.py).
_REASONS = {
    "scoreboard dependency on a L1TEX": "long_scoreboard",
    "scoreboard dependency on an MIO": "short_scoreboard",
    "math execution pipeline to be available": "math_pipe_throttle",
    "local/global instruction queue": "lg_throttle",
    "MIO instruction queue": "mio_throttle",
    "MIO (memory input/output) instruction queue": "mio_throttle",
    "L1TEX instruction queue": "tex_throttle",
    "sibling warps at a CTA barrier": "barrier",
    "out of the sleep state": "sleeping",
    "fixed latency execution dependency": "wait",
    "next instruction fetched yet": "no_instruction",
    "not being selected by the scheduler": "not_selected",
    "memory barrier": "membar",
    "immediate constant cache": "imc_miss",
}
_SHARE = re.compile(r"about (\d+(?:\.\d+)?)% of the total average")
_NAMES = frozenset(
    name
    for ways in (*FIELDS.values(), *LIMITS.values())
    for way in ways
    for name in way.names
) | {*CAPABILITY, *LATENCY, SAMPLES, *PIPE_LABELS}  # fmt: skip
_PATTERNS = (STALL_RATIO, STALL_LABEL, STALL_PERCENT, STALL_SAMPLES)


@lru_cache(maxsize=MOST_NAMES)
def is_wanted(name: str) -> bool:
    """Whether a metric says anything that a diagnosis asks for."""
    return name in _NAMES or pipe(name) is not None or any(one.fullmatch(name) for one in _PATTERNS)


@lru_cache(maxsize=MOST_NAMES)
def pipe(name: str) -> tuple[str, int] | None:
    """The pipe that a metric is about, and how good it is (lower is better); None for any other metric."""
    if name in PIPE_LABELS:
        return PIPE_LABELS[name], 0
    found = PIPE.fullmatch(name)
    if found is None:
        return None
    which = found["busy"] or found["issued"] or found["memory"]
    rank = 1 + 2 * (found["issued"] is not None) + (found["of"] == "elapsed")
    if _MATRIX.fullmatch(which):
        return "tensor", rank
    return (which, rank) if which in PIPES else None


@lru_cache(maxsize=MOST_NAMES)
def stall_label(name: str) -> str | None:
    """The tool's name of the reason behind a details label: `lg_throttle` for `Stall LG Throttle`."""
    found = STALL_LABEL.fullmatch(name)
    if found is None:
        return None
    reason = (found[1] or found[2]).lower().replace(" ", "_")
    return {"dispach_stall": "dispatch_stall", "imc": "imc_miss"}.get(reason, reason)


def stall_in(description: str) -> tuple[str, float] | None:
    """The reason and percentage that a CPIStall rule's text names."""
    share = _SHARE.search(description)
    reason = next((name for words, name in _REASONS.items() if words in description), None)
    return (reason, float(share[1])) if share and reason else None
