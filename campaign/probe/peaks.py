"""What this device does at most, as a matrix product and a copy show it. Imports torch; runs in a process of its own.

The peak of a maker's datasheet is a number that nothing reaches; this is what something reached. Both are only ever
compared with a model's FLOPs a second, never with an arm.
"""

from __future__ import annotations

from typing import Any

import torch

from campaign.feasibility.quantities import example

SIZES = {"cpu": (1024, 2048), "cuda": (4096, 8192, 16384)}  # of a square product; the best one counts
COPY_BYTES = {"cpu": 256 << 20, "cuda": 1 << 30}  # beyond every cache
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
FP8 = "fp8"
BLOCKS = 5
BLOCK_SECONDS = 0.2
TOO_SLOW_SECONDS = 1.0  # a product that takes longer is not tried larger


class NotHere(Exception):
    """This machine cannot run it; `remedy` is what to type instead."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class Work:
    """Something that is timed like a workload: `work` is one step of it. It has no loss and no tokens."""

    tokens_per_step = 0

    def __init__(self, device: str, work: Any) -> None:
        self.device = device
        self.step = work

    def synchronize(self) -> None:
        """The timed block synchronises the device itself."""

    def last_step(self) -> dict[str, float]:
        return {"loss": 0.0, "gradient_norm": 0.0}


def measured_peaks(device: str, precision: str, timing: Any) -> dict[str, Any]:
    """`{flops_per_second, size, dram_bytes_per_second, device_name, torch}` of `device`, "cpu" or "cuda" or "cuda:N".

    `timing` is the module that reads the clocks. Of several sizes and blocks the best counts: a ceiling is asked for,
    not what is usual. A product of n x n matrices is 2 n^3 operations; a copy reads and writes each byte once. Raises
    NotHere for a device or a format that this machine lacks.
    """
    kind = device.partition(":")[0]
    _check(kind, precision)
    if kind == "cuda" and ":" in device:
        torch.cuda.set_device(device)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    best, size = 0.0, 0
    for one in SIZES[kind]:
        seconds = _least_seconds(Work(device, _product(device, precision, one)), timing)
        if 2.0 * one**3 / seconds > best:
            best, size = 2.0 * one**3 / seconds, one
        if seconds > TOO_SLOW_SECONDS:
            break
    source = torch.ones(COPY_BYTES[kind], dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    seconds = _least_seconds(Work(device, lambda: target.copy_(source)), timing)
    return {
        "flops_per_second": best,
        "size": size,
        "dram_bytes_per_second": 2.0 * COPY_BYTES[kind] / seconds,
        "device_name": torch.cuda.get_device_name(device)
        if kind == "cuda"
        else f"cpu, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
    }


def _check(kind: str, precision: str) -> None:
    if kind == "cuda" and not torch.cuda.is_available():
        raise NotHere("torch sees no CUDA device on this machine", example("--measure cpu"))
    if precision == FP8 and (kind != "cuda" or torch.cuda.get_device_capability() < (8, 9)):
        raise NotHere("fp8 products need a CUDA device from sm_89 on", example("--measure cpu --precision bf16"))
    if precision not in (*DTYPES, FP8) or (precision == "tf32" and kind != "cuda"):
        raise NotHere(f"no product in {precision} is measured on {kind}", example("--measure cpu --precision bf16"))


def _product(device: str, precision: str, size: int) -> Any:
    """One product of two size x size matrices with values of a training step's scale."""
    if precision == FP8:
        left, right = (torch.randn(size, size, device=device).to(torch.float8_e4m3fn) for _ in range(2))
        one, across = torch.ones((), device=device), right.t()  # the second operand is read by columns
        return lambda: torch._scaled_mm(left, across, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    left, right = (torch.randn(size, size, device=device, dtype=DTYPES[precision]) for _ in range(2))
    out = torch.empty_like(left)
    return lambda: torch.mm(left, right, out=out)


def _least_seconds(work: Work, timing: Any) -> float:
    """Seconds of one step in the best of `BLOCKS` blocks, after a warm-up of one block. The device's own clock counts
    where there is one: what the host adds is not the device's."""
    first = _seconds(timing.timed_block(work, 1))  # holds what is loaded, tuned or allocated once
    steps = timing.steps_per_block(min(first, _seconds(timing.timed_block(work, 1))), 1, BLOCK_SECONDS)
    return min(_seconds(timing.timed_block(work, steps)) for _ in range(BLOCKS))


def _seconds(block: dict[str, Any]) -> float:
    whole = block["device_seconds"] if block["device_seconds"] is not None else block["wall_seconds"]
    return float(whole) / int(block["steps"])
