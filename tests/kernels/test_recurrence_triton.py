"""The Triton backward passes of the recurrence against the reference, by Triton's interpreter: no GPU is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# V = 40 is one tile of 64 for fused and two of 32 for live_state; the last chunk is short.
PROGRAM = """
import torch
from kernels import recurrence_forms
from kernels.recurrence_ops import BACKWARDS

generator = torch.Generator().manual_seed(3)
q, k = (torch.randn(1, 21, 2, 5, generator=generator) for _ in range(2))
v, cotangent = (torch.randn(1, 21, 2, 40, generator=generator) for _ in range(2))
log_decay = -torch.rand(1, 21, 2, generator=generator)

def gradients(function, dtype, *options):
    inputs = [x.to(dtype).requires_grad_() for x in (q, k, v, log_decay)]
    o = function(*inputs, 8, *options)
    return [o, *torch.autograd.grad(o, inputs, cotangent.to(dtype))]

want = gradients(recurrence_forms.reference, torch.float64)
for backward in BACKWARDS:
    # The interpreter has no registers to cap; a cap must still get through to the launch.
    for one, two in zip(gradients(recurrence_forms.triton, torch.float32, backward, 128), want, strict=True):
        torch.testing.assert_close(one.double(), two, rtol=1e-4, atol=1e-4)
    print(backward)
for registers in (23, 256):
    try:
        recurrence_forms.triton(q, k, v, log_decay, 8, "fused", registers)
    except ValueError as error:
        print(error)
wide = torch.zeros(1, 1, 1, 129)
try:
    recurrence_forms.triton(wide, wide, wide, torch.zeros(1, 1, 1), 8)
except ValueError as error:
    print(error)
"""


def test_every_backward_pass_agrees_with_the_reference_under_the_interpreter() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr[-3000:]
    assert told.stdout.splitlines() == [
        "fused",
        "phase_split",
        "live_state",
        "recurrence_triton: registers=23 is neither 0 (no cap) nor 24 to 255 registers a thread.",
        "recurrence_triton: registers=256 is neither 0 (no cap) nor 24 to 255 registers a thread.",
        "recurrence_triton takes K, V and chunk up to 128, got K=129, V=129, chunk=8.",
    ]


def test_the_specializations_are_the_kernels_that_are_launched() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    from kernels.recurrence_triton import SPECIALIZATIONS

    names = [entry.name for entry in SPECIALIZATIONS]
    assert len(set(names)) == len(names)
    for entry in SPECIALIZATIONS:
        assert list(entry.signature) == list(entry.kernel.arg_names)
        assert {name for name, kind in entry.signature.items() if kind == "constexpr"} == set(entry.constants)
        assert set(entry.divisible) <= set(entry.signature)
    assert [entry.options["maxnreg"] for entry in SPECIALIZATIONS if entry.options] == [64, 96, 128, 168]
