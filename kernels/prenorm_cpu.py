"""Binds `prenorm.cpp` to the ops `kernels::prenorm_cpu` and `kernels::prenorm_cpu_backward`.

Importing this file needs no compiler; the source is built at the first call. float32 on the CPU, one thread.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import torch
from torch import Tensor

from kernels import build
from kernels.prenorm_ops import Accepts, register

SOURCE = Path(__file__).with_name("prenorm.cpp")

_POINTER = ctypes.c_void_p
_SIZE = ctypes.c_int64


@functools.cache
def library() -> ctypes.CDLL:
    """The loaded kernel, built if need be. Raises kernels.errors.Unavailable where it cannot be built."""
    loaded = build.load(SOURCE)
    loaded.prenorm_forward_f32.argtypes = [*[_POINTER] * 3, ctypes.c_float, _SIZE, _SIZE, *[_POINTER] * 3]
    loaded.prenorm_forward_f32.restype = None
    loaded.prenorm_backward_f32.argtypes = [*[_POINTER] * 5, _SIZE, _SIZE, *[_POINTER] * 3]
    loaded.prenorm_backward_f32.restype = None
    return loaded


def _forward_rows(
    x_ND: Tensor, residual_ND: Tensor, weight_D: Tensor, eps: float, y_ND: Tensor, h_ND: Tensor, rstd_N: Tensor
) -> None:
    library().prenorm_forward_f32(
        x_ND.data_ptr(),
        residual_ND.data_ptr(),
        weight_D.data_ptr(),
        eps,
        rstd_N.numel(),
        weight_D.numel(),
        y_ND.data_ptr(),
        h_ND.data_ptr(),
        rstd_N.data_ptr(),
    )


def _backward_rows(
    grad_y_ND: Tensor,
    grad_h_ND: Tensor | None,
    h_ND: Tensor,
    weight_D: Tensor,
    rstd_N: Tensor,
    grad_input_ND: Tensor,
    grad_weight_D: Tensor,
) -> None:
    scratch_D = torch.empty_like(weight_D)
    library().prenorm_backward_f32(
        grad_y_ND.data_ptr(),
        None if grad_h_ND is None else grad_h_ND.data_ptr(),
        h_ND.data_ptr(),
        weight_D.data_ptr(),
        rstd_N.data_ptr(),
        rstd_N.numel(),
        weight_D.numel(),
        grad_input_ND.data_ptr(),
        grad_weight_D.data_ptr(),
        scratch_D.data_ptr(),
    )


prenorm_cpu = register(
    Accepts(name="prenorm_cpu", dtypes=(torch.float32,), devices=("cpu",)), _forward_rows, _backward_rows
)
