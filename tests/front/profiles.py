"""Small profiler files with known sums, written by hand."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

GEMM = "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN"
NORM = "void vectorized_layer_norm_kernel<float, float>(int)"
COPY = "Memcpy DtoD (Device -> Device)"
# Name, category, start and duration in microseconds: two steps of 100 us. Busy 60 + 20 and 60 + 10 = 150 us of the 200
# from the first start to the last end; so 50 us idle, 25 us a step, 25 %.
STEPS = (
    (GEMM, "kernel", 0.0, 60.0),
    (NORM, "kernel", 60.0, 20.0),
    (GEMM, "kernel", 110.0, 60.0),
    (COPY, "gpu_memcpy", 190.0, 10.0),
)


def kineto(path: Path, work: Sequence[tuple[str, str, float, float]] = STEPS, steps: int = 2) -> Path:
    """A torch.profiler trace: each piece of work launched 5 us before it starts, `steps` ProfilerSteps of 100 us."""
    events: list[dict] = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1,
         "ts": 1000.0 + 100 * step - 8, "dur": 99.0}
        for step in range(steps)
    ]  # fmt: skip
    for number, (name, category, start, duration) in enumerate(work):
        call = "cudaMemcpyAsync" if category == "gpu_memcpy" else "cudaLaunchKernel"
        events += [
            {"ph": "X", "cat": "cuda_runtime", "name": call, "pid": 1, "tid": 1, "ts": 1000 + start - 5, "dur": 2.0,
             "args": {"correlation": number + 1}},
            {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": 1000 + start, "dur": duration,
             "args": {"device": 0, "stream": 7, "correlation": number + 1, "bytes": 1024}},
        ]  # fmt: skip
    return written(path, json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": events}))


def ncu(path: Path, name: str = NORM) -> Path:
    """A raw page of one launch: 255 registers, 9.65M spill requests."""
    header = ("ID", "Kernel Name", "Block Size", "Grid Size", "Device", "CC", "launch__registers_per_thread",
              "launch__block_size", "launch__grid_size", "derived__local_spilling_requests",
              "sm__throughput.avg.pct_of_peak_sustained_elapsed",
              "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed")  # fmt: skip
    units = ("", "", "", "", "", "", "register/thread", "", "", "", "%", "%")
    row = ("0", name, "(128, 1, 1)", "(1320, 1, 1)", "0", "9.0", "255", "128", "1,320", "9,650,000", "13.8", "26.1")
    lines = [",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in line) for line in (header, units, row)]
    return written(path, "\n".join(["==PROF== Connected to process 1", *lines, ""]))


def written(path: Path, text: str) -> Path:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
