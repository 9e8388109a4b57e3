"""`kernels.prenorm` by hand arithmetic, against torch's own RMSNorm, and in what it refuses."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from kernels import prenorm, prenorm_cpu
from kernels.errors import Unavailable

ROOT = Path(__file__).resolve().parents[2]


def _cpu_or_skip() -> None:
    try:
        prenorm_cpu.library()
    except Unavailable as error:
        pytest.skip(error.reason)


@pytest.fixture(params=["reference", "cpu"])
def implementation(request: pytest.FixtureRequest) -> prenorm.Prenorm:
    if request.param == "cpu":
        _cpu_or_skip()
    return prenorm.IMPLEMENTATIONS[request.param]


def _row(*values: float) -> Tensor:
    return torch.tensor([values], requires_grad=True)


def test_a_row_of_three_and_four_by_hand(implementation: prenorm.Prenorm) -> None:
    x, residual, weight = _row(1.0, 5.0), _row(2.0, -1.0), torch.tensor([1.0, 2.0], requires_grad=True)
    y, h = implementation(x, residual, weight, 0.0)
    # h = (3, 4), mean square 12.5, so y = (3, 2 * 4) / sqrt(12.5).
    root = math.sqrt(12.5)
    assert h.tolist() == [[3.0, 4.0]]
    assert y[0].tolist() == pytest.approx([3 / root, 8 / root], rel=1e-6)
    grad_x, grad_residual, grad_weight = torch.autograd.grad(y[0, 0], (x, residual, weight))
    # d(3 / rms) by h: (1 / rms) * (1 - 9 / 25, -12 / 25), because mean(a h) / mean(h^2) = (3 / 2) / 12.5 = 3 / 25.
    assert grad_x[0].tolist() == pytest.approx([0.64 / root, -0.48 / root], rel=1e-5)
    assert torch.equal(grad_x, grad_residual)
    assert grad_weight.tolist() == pytest.approx([3 / root, 0.0], rel=1e-6)


def test_eps_is_inside_the_root(implementation: prenorm.Prenorm) -> None:
    y, _ = implementation(torch.zeros(1, 4), torch.ones(1, 4), torch.ones(4), 3.0)
    assert y.tolist() == [[0.5] * 4]


def test_a_row_of_zeros_gives_zeros_and_a_finite_gradient(implementation: prenorm.Prenorm) -> None:
    x = torch.zeros(2, 3, requires_grad=True)
    y, h = implementation(x, torch.zeros(2, 3), torch.ones(3), 0.25)
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert y.tolist() == h.tolist() == [[0.0] * 3] * 2
    # At h = 0 only the scale 1 / sqrt(0.25) = 2 is left.
    assert grad.tolist() == [[2.0] * 3] * 2


def test_it_agrees_with_the_rms_norm_of_torch(implementation: prenorm.Prenorm) -> None:
    generator = torch.Generator().manual_seed(3)
    x, residual = (torch.randn(5, 48, generator=generator, requires_grad=True) for _ in range(2))
    weight = torch.randn(48, generator=generator, requires_grad=True)
    y, _ = implementation(x, residual, weight, 1e-5)
    theirs = torch.nn.functional.rms_norm(x + residual, (48,), weight, 1e-5)
    torch.testing.assert_close(y, theirs)
    cotangent = torch.randn(5, 48, generator=generator)
    ours = torch.autograd.grad(y, (x, residual, weight), cotangent)
    torch.testing.assert_close(ours, torch.autograd.grad(theirs, (x, residual, weight), cotangent))


def test_nan_and_infinity_get_through_to_their_row_only(implementation: prenorm.Prenorm) -> None:
    x = torch.ones(3, 8)
    x[0, 2], x[1, 3] = math.nan, math.inf
    y, h = implementation(x, torch.zeros(3, 8), torch.ones(8), 1e-5)
    assert y[0].isnan().all() and y[1, 3].isnan()
    assert h[1, 3] == math.inf and h[0, 2].isnan()
    assert y[2].isfinite().all()


def test_only_the_inputs_that_ask_for_a_gradient_get_one(implementation: prenorm.Prenorm) -> None:
    weight = torch.ones(4, requires_grad=True)
    x = torch.ones(2, 4)
    y, _ = implementation(x, torch.ones(2, 4), weight, 0.0)
    y.sum().backward()
    assert x.grad is None
    assert weight.grad is not None and weight.grad.tolist() == pytest.approx([2.0] * 4)


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65])
def test_the_raw_kernel_writes_all_of_its_buffers_and_nothing_beyond(rows: int) -> None:
    _cpu_or_skip()
    width, guard = 37, 8
    generator = torch.Generator().manual_seed(rows)
    x, residual, grad_y, grad_h = (torch.randn(rows, width, generator=generator) for _ in range(4))
    weight = torch.randn(width, generator=generator)
    sizes = {"y": rows * width, "h": rows * width, "dx": rows * width, "dw": width}
    buffers = {name: torch.full((size + guard,), math.nan) for name, size in sizes.items()}
    at = {name: buffer.data_ptr() for name, buffer in buffers.items()}
    library = prenorm_cpu.library()
    inputs = (x.data_ptr(), residual.data_ptr(), weight.data_ptr())
    library.prenorm_forward_f32(*inputs, 1e-5, rows, width, at["y"], at["h"])
    gradients = (grad_y.data_ptr(), grad_h.data_ptr())
    library.prenorm_backward_f32(*gradients, at["h"], weight.data_ptr(), 1e-5, rows, width, at["dx"], at["dw"])
    for name, buffer in buffers.items():
        written = rows > 0 or name == "dw"
        assert buffer[: sizes[name]].isfinite().all() or not written, name
        assert buffer[sizes[name] :].isnan().all(), f"{name} was written beyond its end"


def _ones(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.ones(shape, dtype=dtype)


@pytest.mark.parametrize(
    ("error", "said", "wrong"),
    [
        (TypeError, r"takes torch\.float32, not torch\.float64", {"x": _ones(2, 4, dtype=torch.float64)}),
        (TypeError, r"takes torch\.float32, not torch\.bfloat16", {"x": _ones(2, 4, dtype=torch.bfloat16)}),
        (TypeError, r"residual is torch\.float64", {"residual": _ones(2, 4, dtype=torch.float64)}),
        (TypeError, r"weight is torch\.float16", {"weight": _ones(4, dtype=torch.float16)}),
        (ValueError, r"residual has the shape \(2, 5\)", {"residual": _ones(2, 5)}),
        (ValueError, r"residual has the shape \(4,\)", {"residual": _ones(4)}),
        (ValueError, r"weight has the shape \(5,\)", {"weight": _ones(5)}),
        (ValueError, r"weight has the shape \(1, 4\)", {"weight": _ones(1, 4)}),
        (ValueError, "at least one element", {"x": _ones(2, 0), "residual": _ones(2, 0), "weight": _ones(0)}),
        (ValueError, "at least one element", {"x": _ones(), "residual": _ones(), "weight": _ones(1)}),
        (ValueError, "eps must be finite and at least 0, got -1", {"eps": -1.0}),
        (ValueError, "eps must be finite and at least 0, got nan", {"eps": math.nan}),
        (ValueError, "runs on cpu tensors, not on meta", {"x": _ones(2, 4).to("meta")}),
        (ValueError, "residual is on meta", {"residual": _ones(2, 4).to("meta")}),
    ],
)
def test_the_compiled_kernel_refuses_what_it_cannot_take(
    error: type[Exception], said: str, wrong: dict[str, Any]
) -> None:
    fits = {"x": _ones(2, 4), "residual": _ones(2, 4), "weight": _ones(4), "eps": 1e-5}
    with pytest.raises(error, match=said):
        prenorm.cpu(**{**fits, **wrong})


def test_the_backward_op_called_directly_refuses_what_does_not_fit() -> None:
    backward = torch.ops.kernels.prenorm_cpu_backward
    fits = {"grad_y": _ones(2, 4), "grad_h": _ones(2, 4), "h": _ones(2, 4), "weight": _ones(4), "eps": 0.0}
    for error, said, wrong in (
        (ValueError, "grad_y has the shape", {"grad_y": _ones(1, 4)}),
        (TypeError, r"grad_h is torch\.float64", {"grad_h": _ones(2, 4, dtype=torch.float64)}),
        (TypeError, r"takes torch\.float32, not torch\.float64", {"h": _ones(2, 4, dtype=torch.float64)}),
        (ValueError, "weight has the shape", {"weight": _ones(5)}),
        (ValueError, "eps must be finite", {"eps": -1.0}),
    ):
        with pytest.raises(error, match=said):
            backward(**{**fits, **wrong})


@pytest.mark.parametrize("name", ["x", "residual", "weight"])
def test_a_tensor_whose_memory_was_freed_is_refused(name: str) -> None:
    _cpu_or_skip()
    given = {"x": _ones(2, 4), "residual": _ones(2, 4), "weight": _ones(4)}
    given[name].untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="no memory"):
        prenorm.cpu(**given, eps=0.0)


def test_a_negated_view_is_read_with_its_sign(implementation: prenorm.Prenorm) -> None:
    # Its memory holds the opposite numbers, and only the dispatcher knows.
    leaf = _row(3.0, 4.0)
    view = torch._neg_view(leaf)
    y, h = implementation(view, torch.zeros(1, 2), torch.ones(2), 0.0)
    assert h.tolist() == [[-3.0, -4.0]]
    cotangent = torch._neg_view(torch.tensor([[1.0, 1.0]]))
    (grad,) = torch.autograd.grad((y, h), leaf, (torch.zeros(1, 2), cotangent))
    assert grad.tolist() == [[1.0, 1.0]]


def test_the_op_called_by_its_name_has_the_same_gradients() -> None:
    _cpu_or_skip()
    given = _row(1.0, 5.0), _row(2.0, -1.0), torch.tensor([1.0, 2.0], requires_grad=True)
    ours = torch.autograd.grad(prenorm.cpu(*given, 0.5), given, (torch.ones(1, 2), torch.ones(1, 2)))
    named = torch.ops.kernels.prenorm_cpu(*given, 0.5)
    theirs = torch.autograd.grad(named, given, (torch.ones(1, 2), torch.ones(1, 2)))
    assert all(torch.equal(one, two) for one, two in zip(ours, theirs, strict=True))


def test_a_second_derivative_is_an_error_and_not_zeros() -> None:
    _cpu_or_skip()
    x, cotangent = _row(1.0, 2.0), _row(1.0, 1.0)
    y, _ = prenorm.cpu(x, torch.zeros(1, 2), torch.ones(2), 0.0)
    (grad,) = torch.autograd.grad(y, x, cotangent, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        grad.sum().backward()


def test_loading_the_kernel_leaves_denormal_numbers_to_the_process() -> None:
    # An object linked with -ffast-math turns them off for the whole process, and so changes every other result.
    _cpu_or_skip()
    assert torch.tensor([2.0**-140]).mul(0.5).item() == 2.0**-141


def test_importing_the_kernel_needs_neither_triton_nor_a_compiler(tmp_path: Path) -> None:
    program = """
import sys
sys.modules["triton"] = None  # Any import of it now fails.
import torch
from kernels import prenorm
from kernels.errors import Unavailable
x, weight = torch.ones(2, 4), torch.ones(4)
assert prenorm.reference(x, x, weight, 0.0)[0].tolist() == [[1.0] * 4] * 2
for function in (prenorm.cpu, prenorm.triton):
    try:
        function(x, x, weight, 0.0)
    except Unavailable as error:
        print(error.reason, "|", error.remedy)
"""
    told = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path), "CXX": "", "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    for_cpu, for_triton = told.stdout.splitlines()
    assert "There is no C++ compiler on the PATH" in for_cpu and "apt-get install g++" in for_cpu
    assert "Triton is not installed. |" in for_triton and "pip install triton" in for_triton


def test_triton_says_what_is_missing_where_it_cannot_run() -> None:
    if torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("Triton's kernels may run here")
    with pytest.raises(Unavailable) as caught:
        prenorm.triton(_ones(2, 4), _ones(2, 4), _ones(4), 0.0)
    assert "Triton" in caught.value.reason
    assert "ops.prenorm" in caught.value.remedy
