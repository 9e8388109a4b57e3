"""What `benchmarks/kernels.py` compares: for each kernel family, its sizes and the sides of each contest.

A side is one forward pass and, where the kernel has one, its backward pass, on inputs that were made before. The first
size of a family is that of the `reference_cpu` workload, the second has ten times the rows or tokens. On CUDA both are
those of `reference_1b`, one and a quarter of a microbatch.

Shapes: R rows, C columns, T tokens, H heads, K key width, V value width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels import gated, prenorm, quantize, recurrence_forms

Run = Callable[[], object]
Makers = Mapping[str, Callable[[], Run]]
OURS = {"cpu": "cpu", "cuda": "triton"}


@dataclass(frozen=True)
class Contest:
    """One family at one size. `sides` makes each side when it is called: ours, `eager`, `torch.compile`.

    `aims` are the ratios to ours that are wanted, by side; `bytes_moved` is what a call must read and write at least.
    """

    family: str
    size: str
    sides: Makers
    aims: Mapping[str, float]
    bytes_moved: int = 0


_BETTER = {"eager": 1.0, "torch.compile": 1.0}


def _normal(*shape: int, seed: int, device: str, scale: float = 1.0) -> Tensor:
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale).to(device)


def _both_ways(function: Callable[..., Tensor | tuple[Tensor, ...]], *inputs: Tensor) -> Run:
    """Forward and backward through every output, into every input."""
    leaves = [one.detach().clone().requires_grad_() for one in inputs]

    def outputs() -> list[Tensor]:
        returned = function(*leaves)
        return [returned] if isinstance(returned, Tensor) else list(returned)

    cotangents = [_normal(*one.shape, seed=9, device=one.device.type) for one in outputs()]
    return lambda: torch.autograd.grad(outputs(), leaves, cotangents)


def _forward(function: Callable[..., object], *inputs: Tensor) -> Run:
    def run() -> object:
        with torch.no_grad():
            return function(*inputs)

    return run


def prenorm_contest(rows: int, width: int, device: str) -> Contest:
    """Residual add and RMSNorm, forward and backward."""
    inputs = [_normal(*shape, seed=seed, device=device) for seed, shape in enumerate([(rows, width)] * 2 + [(width,)])]

    def side(function: Callable[..., tuple[Tensor, ...]]) -> Run:
        return _both_ways(lambda x, residual, weight: function(x, residual, weight, 1e-6), *inputs)

    sides: Makers = {
        "ours": lambda: side(prenorm.IMPLEMENTATIONS[OURS[device]]),
        "eager": lambda: side(prenorm.reference),
        "torch.compile": lambda: side(torch.compile(prenorm.reference, dynamic=False)),
    }
    # 16 bytes an element forward and 16 backward: the table in kernels/prenorm.py
    aims = {"eager": 2.0, "torch.compile": 1.0}
    return Contest("prenorm", f"{rows} x {width}", sides, aims, 32 * rows * width)


def quantize_contest(rows: int, columns: int, scaling: str, device: str) -> Contest:
    """fp8 e4m3, emulated on a CPU."""
    x_RC = _normal(rows, columns, seed=4, device=device)

    def of(name: str) -> Callable[[Tensor], object]:
        function = quantize.IMPLEMENTATIONS[name]
        return lambda x: function(x, "fp8_e4m3", scaling, device == "cpu")

    sides: Makers = {
        "ours": lambda: _forward(of(OURS[device]), x_RC),
        "eager": lambda: _forward(of("reference"), x_RC),
        "torch.compile": lambda: _forward(torch.compile(of("reference"), dynamic=False), x_RC),
    }
    # x is read for the largest value, read again and written rounded; a row stays in cache in between.
    read, written = (8 if scaling == "tensor" else 4), (4 if device == "cpu" else 1)
    moved = (read + written) * rows * columns
    return Contest(f"quantize per {scaling}", f"{rows} x {columns}", sides, _BETTER, moved)


def gated_contest(rows: int, columns: int, device: str) -> Contest:
    """silu(gate) * up quantized per row, and its backward pass."""
    gate, up, dy = (_normal(rows, columns, seed=seed, device=device) for seed in (5, 6, 7))

    def of(name: str) -> Callable[[Tensor, Tensor], object]:
        function = gated.IMPLEMENTATIONS[name]
        return lambda gate, up: function(gate, up, "fp8_e4m3", "row", device == "cpu")

    def side(forward: Callable[..., object], backward: Callable[..., object]) -> Run:
        def run() -> object:
            with torch.no_grad():
                return forward(gate, up), backward(dy, gate, up)

        return run

    def compiled() -> Run:
        backward = torch.compile(gated.BACKWARDS["reference"], dynamic=False)
        return side(torch.compile(of("reference"), dynamic=False), backward)

    sides: Makers = {
        "ours": lambda: side(of(OURS[device]), gated.BACKWARDS[OURS[device]]),
        "eager": lambda: side(of("reference"), gated.BACKWARDS["reference"]),
        "torch.compile": compiled,
    }
    # gate and up read and the payload written; backward three read and two written
    moved = (8 + (4 if device == "cpu" else 1) + 20) * rows * columns
    return Contest("gated quantize per row", f"{rows} x {columns}", sides, _BETTER, moved)


def recurrence_inputs(tokens: int, device: str) -> tuple[Tensor, ...]:
    """(q_BTHK, k_BTHK, v_BTHV, log_decay_BTH): one sequence at the widths of the device's preset."""
    heads, keys, values = (3, 16, 32) if device == "cpu" else (12, 64, 128)
    q, k = (_normal(1, tokens, heads, keys, seed=seed, scale=keys**-0.5, device=device) for seed in (1, 2))
    v = _normal(1, tokens, heads, values, seed=3, device=device)
    return q, k, v, -torch.nn.functional.softplus(_normal(1, tokens, heads, seed=4, device=device) - 3)


def recurrence_side(name: str, inputs: tuple[Tensor, ...], backward: str = "fused", registers: int = 0) -> Run:
    """Forward and backward of one form; `torch.compile` is that of the chunked one."""
    function = recurrence_forms.IMPLEMENTATIONS["chunked" if name == "torch.compile" else name]
    chunk = 32 if inputs[0].device.type == "cpu" else 64

    def call(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor) -> Tensor:
        return function(q, k, v, log_decay, chunk, backward, registers)

    return _both_ways(torch.compile(call, dynamic=False) if name == "torch.compile" else call, *inputs)


def recurrence_contest(tokens: int, device: str) -> Contest:
    """The compiled form against the chunked one in plain torch."""
    inputs = recurrence_inputs(tokens, device)
    sides: Makers = {
        "ours": lambda: recurrence_side(OURS[device], inputs),
        "eager": lambda: recurrence_side("chunked", inputs),
        "torch.compile": lambda: recurrence_side("torch.compile", inputs),
    }
    return Contest("recurrence", f"{tokens} tokens", sides, _BETTER)


def contests(family: str, device: str) -> list[Contest]:
    """The family at the sizes that the module says."""
    cpu = device == "cpu"
    if family == "prenorm":
        return [prenorm_contest(rows, 96 if cpu else 1536, device) for rows in ((192, 1920) if cpu else (4096, 16384))]
    if family == "quantize":
        sizes = ((272, 96), (2720, 96)) if cpu else ((4096, 1536), (16384, 1536))
        return [quantize_contest(*size, scaling, device) for scaling in ("tensor", "row") for size in sizes]
    if family == "gated":
        sizes = ((192, 272), (1920, 272)) if cpu else ((4096, 5632), (16384, 5632))
        return [gated_contest(*size, device) for size in sizes]
    if family == "recurrence":
        return [recurrence_contest(tokens, device) for tokens in ((192, 1920) if cpu else (4096, 16384))]
    return []


def streaming(family: str, device: str) -> list[Contest]:
    """The family at a size at which nothing stays in cache between two calls: 24 MiB a tensor on a CPU."""
    rows, width = (6144, 1024) if device == "cpu" else (65536, 2048)
    if family == "prenorm":
        return [prenorm_contest(rows, width, device)]
    if family == "quantize":
        return [quantize_contest(rows, width, scaling, device) for scaling in ("tensor", "row")]
    return [gated_contest(rows, width, device)] if family == "gated" else []
