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
from kernels.prenorm_ops import Accepts, past_the_norm, register

SOURCE = Path(__file__).with_name("prenorm.cpp")

_POINTER = ctypes.c_void_p
_SIZE = ctypes.c_int64
_FLOAT32 = torch.float32
_INFINITY = float("inf")
_ACCEPTS = Accepts(name="prenorm_cpu", dtypes=(_FLOAT32,), devices=("cpu",))


@functools.cache
def library() -> ctypes.CDLL:
    """The loaded kernel, built if need be. Raises kernels.errors.Unavailable where it cannot be built."""
    loaded = build.load(SOURCE)
    loaded.prenorm_forward_f32.argtypes = [*[_POINTER] * 3, ctypes.c_float, _SIZE, _SIZE, *[_POINTER] * 3]
    loaded.prenorm_forward_f32.restype = None
    loaded.prenorm_backward_f32.argtypes = [*[_POINTER] * 5, _SIZE, _SIZE, *[_POINTER] * 3]
    loaded.prenorm_backward_f32.restype = None
    return loaded


# The kernel sees addresses only, so nothing that does not fit may reach it. In both ops one expression recognises what
# fits, and what it does not recognise goes through the checks of `_ACCEPTS`, which say what is wrong. Those checks on
# every call would take as long as the kernel at 128 x 96.


def _forward(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    shape = x.shape
    if not (
        x.dtype is residual.dtype is weight.dtype is _FLOAT32
        and x.is_cpu
        and residual.is_cpu
        and weight.is_cpu
        and residual.shape == shape
        and weight.dim() == 1
        and weight.shape == shape[-1:]
        and weight.numel()
        and 0.0 <= eps < _INFINITY
    ):
        _ACCEPTS.check(x, {"residual": residual}, weight)
        _ACCEPTS.check_eps(eps)
    # Each is the same tensor where it is contiguous already; the names keep the copies alive during the call.
    x, residual, weight = x.contiguous(), residual.contiguous(), weight.contiguous()
    width = weight.numel()
    rows = x.numel() // width
    y, h, rstd_N = torch.empty_like(x), torch.empty_like(x), x.new_empty(rows)
    library().prenorm_forward_f32(
        x.data_ptr(),
        residual.data_ptr(),
        weight.data_ptr(),
        eps,
        rows,
        width,
        y.data_ptr(),
        h.data_ptr(),
        rstd_N.data_ptr(),
    )
    return y, h, rstd_N


def _backward(
    grad_y: Tensor | None, grad_h: Tensor | None, h: Tensor, weight: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    shape, width = h.shape, weight.numel()
    if not (
        grad_y is not None
        and grad_h is not None
        and grad_y.dtype is grad_h.dtype is h.dtype is weight.dtype is rstd.dtype is _FLOAT32
        and grad_y.is_cpu
        and grad_h.is_cpu
        and h.is_cpu
        and weight.is_cpu
        and rstd.is_cpu
        and grad_y.shape == shape
        and grad_h.shape == shape
        and weight.dim() == 1
        and weight.shape == shape[-1:]
        and width
        and rstd.dim() == 1
        and rstd.numel() * width == h.numel()
    ):
        _ACCEPTS.check(h, {"grad_y": grad_y, "grad_h": grad_h}, weight)
        _ACCEPTS.check_rstd(rstd, h)
        if grad_y is None:
            return past_the_norm(grad_h, h, weight)
    grad_y, h, weight, rstd = grad_y.contiguous(), h.contiguous(), weight.contiguous(), rstd.contiguous()
    if grad_h is not None:
        grad_h = grad_h.contiguous()
    grad_input, grad_weight, scratch_D = torch.empty_like(h), torch.empty_like(weight), torch.empty_like(weight)
    library().prenorm_backward_f32(
        grad_y.data_ptr(),
        None if grad_h is None else grad_h.data_ptr(),
        h.data_ptr(),
        weight.data_ptr(),
        rstd.data_ptr(),
        rstd.numel(),
        width,
        grad_input.data_ptr(),
        grad_weight.data_ptr(),
        scratch_D.data_ptr(),
    )
    return grad_input, grad_weight


prenorm_cpu = register(_ACCEPTS, _forward, _backward)
