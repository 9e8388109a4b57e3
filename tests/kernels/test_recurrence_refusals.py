"""What `kernels.recurrence_forms` refuses, and that it says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from kernels import recurrence_cpu, recurrence_forms
from kernels.errors import Unavailable

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("q_BTHK", "k_BTHK", "v_BTHV", "log_decay_BTH")


def _cpu_or_skip() -> None:
    try:
        recurrence_cpu.library()
    except Unavailable as error:
        pytest.skip(error.reason)


def _ones(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.ones(shape, dtype=dtype)


FITS: dict[str, Any] = {
    "q_BTHK": _ones(1, 3, 2, 4),
    "k_BTHK": _ones(1, 3, 2, 4),
    "v_BTHV": _ones(1, 3, 2, 5),
    "log_decay_BTH": -_ones(1, 3, 2),
    "chunk": 2,
}


@pytest.mark.parametrize("registers", [-1, 1, 5, 33, 1000])
def test_a_cap_that_no_build_can_keep_is_refused_with_the_rule(registers: int) -> None:
    _cpu_or_skip()
    with pytest.raises(ValueError, match=rf"registers={registers} is neither 0 \(no cap\) nor 6 to"):
        recurrence_forms.cpu(**FITS, registers=registers)


@pytest.mark.parametrize(
    ("error", "said", "wrong"),
    [
        (TypeError, r"takes torch\.float32, not torch\.float64", {"q_BTHK": _ones(1, 3, 2, 4, dtype=torch.float64)}),
        (TypeError, r"k is torch\.bfloat16", {"k_BTHK": _ones(1, 3, 2, 4, dtype=torch.bfloat16)}),
        (TypeError, r"log_decay is torch\.float64", {"log_decay_BTH": _ones(1, 3, 2, dtype=torch.float64)}),
        (ValueError, r"k has the shape \(1, 3, 2, 5\)", {"k_BTHK": _ones(1, 3, 2, 5)}),
        (ValueError, r"v has the shape \(1, 2, 2, 5\)", {"v_BTHV": _ones(1, 2, 2, 5)}),
        (ValueError, r"log_decay has the shape \(1, 3\)", {"log_decay_BTH": _ones(1, 3)}),
        (ValueError, "needs q as", {"q_BTHK": _ones(3, 2, 4)}),
        (ValueError, "needs q as", {"q_BTHK": _ones(1, 3, 2, 0), "k_BTHK": _ones(1, 3, 2, 0)}),
        (ValueError, "needs v as", {"v_BTHV": _ones(1, 3, 2, 0)}),
        (ValueError, "runs on cpu tensors, not on meta", {"q_BTHK": _ones(1, 3, 2, 4).to("meta")}),
        (ValueError, "v is on meta", {"v_BTHV": _ones(1, 3, 2, 5).to("meta")}),
        (ValueError, "at least 1 token, got chunk=0", {"chunk": 0}),
        (ValueError, "backward='split' is not one of fused, phase_split, live_state", {"backward": "split"}),
    ],
)
def test_the_compiled_kernel_refuses_what_it_cannot_take(
    error: type[Exception], said: str, wrong: dict[str, Any]
) -> None:
    with pytest.raises(error, match=said):
        recurrence_forms.cpu(**{**FITS, **wrong})


@pytest.mark.parametrize("name", ["reference", "chunked"])
def test_the_forms_without_a_backward_of_their_own_refuse_one(name: str) -> None:
    for wrong in ({"backward": "phase_split"}, {"registers": 8}, {"backward": "split"}):
        with pytest.raises(ValueError, match="backward="):
            recurrence_forms.IMPLEMENTATIONS[name](**{**FITS, **wrong})


def test_the_backward_op_called_directly_refuses_what_does_not_fit() -> None:
    _cpu_or_skip()
    q, k, v, log_decay, chunk = FITS.values()
    fits = {"grad_o": v, "q": q, "k": k, "v": v, "log_decay": log_decay, "states": _ones(1, 2, 2, 4, 5)}
    backward = torch.ops.kernels.recurrence_cpu_backward
    assert len(backward(**fits, chunk=chunk, registers=0)) == 4
    for error, said, wrong in (
        (ValueError, "grad_o has the shape", {"grad_o": q}),
        (TypeError, r"grad_o is torch\.float64", {"grad_o": v.double()}),
        (ValueError, "states has the shape", {"states": _ones(1, 2, 3, 4, 5)}),
        (ValueError, "v has the shape", {"v": _ones(1, 4, 2, 5)}),
        (ValueError, "registers=3", {"registers": 3}),
    ):
        with pytest.raises(error, match=said):
            backward(**{"chunk": chunk, "registers": 0, **fits, **wrong})


@pytest.mark.parametrize("name", NAMES)
def test_a_tensor_whose_memory_was_freed_is_refused(name: str) -> None:
    _cpu_or_skip()
    given = {key: value.clone() if isinstance(value, Tensor) else value for key, value in FITS.items()}
    given[name].untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="no memory"):
        recurrence_forms.cpu(**given)


def test_importing_the_forms_needs_neither_triton_nor_a_compiler(tmp_path: Path) -> None:
    program = """
import sys
sys.modules["triton"] = None  # Any import of it now fails.
import torch
from kernels import recurrence_forms
from kernels.errors import Unavailable
x, log_decay = torch.ones(1, 2, 1, 1), torch.zeros(1, 2, 1)
for name in ("reference", "chunked"):
    assert recurrence_forms.IMPLEMENTATIONS[name](x, x, x, log_decay, 1).flatten().tolist() == [1.0, 2.0]
for function in (recurrence_forms.cpu, recurrence_forms.triton):
    try:
        function(x, x, x, log_decay, 1)
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
    assert "There is no C++ compiler on the PATH" in for_cpu
    assert "Triton is not installed. |" in for_triton and "ops.recurrence" in for_triton
