"""What `benchmarks/kernels.py` compares: for each kernel family, its sizes and the callables of each side.

A side is one forward pass and, where the kernel has one, its backward pass, on inputs that were made before. The first
size of a family is that of the `reference_cpu` workload, the second has ten times the rows or tokens.

Shapes: N rows, D width, R rows and C columns of an operand, B sequences, T tokens, H heads, K key width, V value width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels import gated, prenorm, quantize, recurrence_forms

Run = Callable[[], object]


@dataclass(frozen=True)
class Contest:
    """One family at one size. `ours` is the name of our side; `bytes_moved` is what it must read and write at least, in
    bytes, 0 where memory is not what limits it."""

    family: str
    size: str
    ours: str
    sides: Mapping[str, Run]
    bytes_moved: int = 0


def _normal(*shape: int, seed: int, scale: float = 1.0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale


def _both_ways(function: Callable[..., Tensor | tuple[Tensor, ...]], *inputs: Tensor) -> Run:
    """Forward and backward through every output, into every input."""
    leaves = [one.detach().clone().requires_grad_() for one in inputs]

    def outputs() -> list[Tensor]:
        returned = function(*leaves)
        return [returned] if isinstance(returned, Tensor) else list(returned)

    cotangents = [_normal(*one.shape, seed=9) for one in outputs()]

    def run() -> object:
        return torch.autograd.grad(outputs(), leaves, cotangents)

    return run


def _forward(function: Callable[..., object], *inputs: Tensor) -> Run:
    def run() -> object:
        with torch.no_grad():
            return function(*inputs)

    return run


def prenorm_contest(rows: int, width: int) -> Contest:
    inputs = _normal(rows, width, seed=1), _normal(rows, width, seed=2), _normal(width, seed=3)

    def with_eps(function: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor, ...]]:
        return lambda x, residual, weight: function(x, residual, weight, 1e-6)

    compiled = torch.compile(prenorm.reference, dynamic=False)
    sides = {
        "cpu": _both_ways(with_eps(prenorm.cpu), *inputs),
        "eager": _both_ways(with_eps(prenorm.reference), *inputs),
        "torch.compile": _both_ways(with_eps(compiled), *inputs),
    }
    # 16 bytes an element forward and 16 backward: the table in kernels/prenorm.py
    return Contest("prenorm", f"{rows} x {width}", "cpu", sides, 32 * rows * width)


def quantize_contest(rows: int, columns: int, scaling: str) -> Contest:
    x_RC = _normal(rows, columns, seed=4)

    def of(function: Callable[..., object]) -> Callable[..., object]:
        return lambda x: function(x, "fp8_e4m3", scaling, True)

    eager = of(quantize.IMPLEMENTATIONS["reference"])
    sides = {
        "cpu": _forward(of(quantize.IMPLEMENTATIONS["cpu"]), x_RC),
        "eager": _forward(eager, x_RC),
        "torch.compile": _forward(torch.compile(eager, dynamic=False), x_RC),
    }
    # x read for the largest value; read again and written rounded. A row stays in cache in between.
    passes = 12 if scaling == "tensor" else 8
    return Contest(f"quantize per {scaling}", f"{rows} x {columns}", "cpu", sides, passes * rows * columns)


def gated_contest(rows: int, columns: int) -> Contest:
    gate, up, dy = (_normal(rows, columns, seed=seed) for seed in (5, 6, 7))

    def of(name: str) -> Callable[..., object]:
        forward = gated.IMPLEMENTATIONS[name]
        return lambda gate, up: forward(gate, up, "fp8_e4m3", "tensor", True)

    def with_backward(forward: Callable[..., object], backward: Callable[..., object]) -> Run:
        def run() -> object:
            with torch.no_grad():
                return forward(gate, up), backward(dy, gate, up)

        return run

    eager, eager_backward = of("reference"), gated.BACKWARDS["reference"]
    sides = {
        "cpu": with_backward(of("cpu"), gated.BACKWARDS["cpu"]),
        "eager": with_backward(eager, eager_backward),
        "torch.compile": with_backward(
            torch.compile(eager, dynamic=False), torch.compile(eager_backward, dynamic=False)
        ),
    }
    # gate and up read, the product written, read again and written rounded; backward three read and two written
    return Contest("gated quantize", f"{rows} x {columns}", "cpu", sides, (20 + 20) * rows * columns)


def recurrence_inputs(tokens: int, heads: int = 3, keys: int = 16, values: int = 32) -> tuple[Tensor, ...]:
    """(q_BTHK, k_BTHK, v_BTHV, log_decay_BTH) of one sequence."""
    q, k = (_normal(1, tokens, heads, keys, seed=seed, scale=keys**-0.5) for seed in (1, 2))
    v = _normal(1, tokens, heads, values, seed=3)
    return q, k, v, -torch.nn.functional.softplus(_normal(1, tokens, heads, seed=4) - 3)


def recurrence_side(name: str, inputs: tuple[Tensor, ...], chunk: int = 32) -> Run:
    """Forward and backward of one form; `compiled chunked` is torch.compile of the chunked one."""
    function = recurrence_forms.IMPLEMENTATIONS["chunked" if name == "torch.compile" else name]

    def call(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor) -> Tensor:
        return function(q, k, v, log_decay, chunk)

    return _both_ways(torch.compile(call, dynamic=False) if name == "torch.compile" else call, *inputs)


def recurrence_contest(tokens: int) -> Contest:
    inputs = recurrence_inputs(tokens)
    names = {"cpu": "cpu", "eager": "chunked", "torch.compile": "torch.compile"}
    sides = {side: recurrence_side(name, inputs) for side, name in names.items()}
    return Contest("recurrence", f"{tokens} tokens, 3 heads of 16 x 32", "cpu", sides)


CONTESTS: dict[str, tuple[Callable[[], Contest], ...]] = {
    "prenorm": (lambda: prenorm_contest(192, 96), lambda: prenorm_contest(1920, 96)),
    "quantize": (
        lambda: quantize_contest(272, 96, "tensor"),
        lambda: quantize_contest(2720, 96, "tensor"),
        lambda: quantize_contest(272, 96, "row"),
        lambda: quantize_contest(2720, 96, "row"),
    ),
    "gated": (lambda: gated_contest(192, 272), lambda: gated_contest(1920, 272)),
    "recurrence": (lambda: recurrence_contest(192), lambda: recurrence_contest(1920)),
}

# Large enough that nothing stays in cache between two calls: 64 MiB a tensor.
STREAMING: dict[str, Callable[[], Contest]] = {
    "prenorm": lambda: prenorm_contest(16384, 1024),
    "quantize": lambda: quantize_contest(16384, 1024, "row"),
    "gated": lambda: gated_contest(16384, 1024),
}
