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
_NO_MEMORY = "prenorm_cpu: a tensor has elements but no memory: its storage was freed, or it only stands for another."
_ACCEPTS = Accepts(name="prenorm_cpu", dtypes=(_FLOAT32,), devices=("cpu",))


@functools.cache
def library() -> ctypes.CDLL:
    """The loaded kernel, built if need be. Raises kernels.errors.Unavailable where it cannot be built."""
    loaded = build.load(SOURCE)
    loaded.prenorm_forward_f32.argtypes = [*[_POINTER] * 3, ctypes.c_float, _SIZE, _SIZE, *[_POINTER] * 2]
    loaded.prenorm_forward_f32.restype = None
    loaded.prenorm_backward_f32.argtypes = [*[_POINTER] * 4, ctypes.c_float, _SIZE, _SIZE, *[_POINTER] * 2]
    loaded.prenorm_backward_f32.restype = None
    return loaded


# The kernel sees addresses only, so nothing that does not fit may reach it. In both ops one expression recognises what
# fits, and what it does not recognise goes through the checks of `_ACCEPTS`, which say what is wrong. Those checks on
# every call would take as long as the kernel at 128 x 96.


def _forward(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    shape, width = x.shape, weight.numel()
    if not (
        x.dtype is residual.dtype is weight.dtype is _FLOAT32
        and x.is_cpu
        and residual.is_cpu
        and weight.is_cpu
        and residual.shape == shape
        and shape
        and weight.shape == shape[-1:]
        and width
        and 0.0 <= eps < _INFINITY
    ):
        _ACCEPTS.check(x, {"residual": residual}, weight)
        _ACCEPTS.check_eps(eps)
    # Each is the same tensor where it is contiguous already; the names keep the copies alive during the call.
    x, residual, weight = x.contiguous(), residual.contiguous(), weight.contiguous()
    rows = x.numel() // width
    at = x.data_ptr(), residual.data_ptr(), weight.data_ptr()
    if rows and not all(at):
        raise ValueError(_NO_MEMORY)
    y, h = torch.empty_like(x), torch.empty_like(x)
    library().prenorm_forward_f32(*at, eps, rows, width, y.data_ptr(), h.data_ptr())
    return y, h


def _backward(
    grad_y: Tensor | None, grad_h: Tensor | None, h: Tensor, weight: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    shape, width = h.shape, weight.numel()
    if not (
        grad_y is not None
        and grad_h is not None
        and grad_y.dtype is grad_h.dtype is h.dtype is weight.dtype is _FLOAT32
        and grad_y.is_cpu
        and grad_h.is_cpu
        and h.is_cpu
        and weight.is_cpu
        and grad_y.shape == shape
        and grad_h.shape == shape
        and shape
        and weight.shape == shape[-1:]
        and width
        and 0.0 <= eps < _INFINITY
    ):
        _ACCEPTS.check(h, {"grad_y": grad_y, "grad_h": grad_h}, weight)
        _ACCEPTS.check_eps(eps)
        if grad_y is None:
            return past_the_norm(grad_h, h, weight)
    grad_y, h, weight = grad_y.contiguous(), h.contiguous(), weight.contiguous()
    rows = h.numel() // width
    grad_h_at = None
    if grad_h is not None:
        grad_h = grad_h.contiguous()
        grad_h_at = grad_h.data_ptr()
    at = grad_y.data_ptr(), h.data_ptr(), weight.data_ptr()
    if rows and not (all(at) and grad_h_at != 0):
        raise ValueError(_NO_MEMORY)
    grad_input, grad_weight = torch.empty_like(h), torch.empty_like(weight)
    library().prenorm_backward_f32(
        at[0], grad_h_at, at[1], at[2], eps, rows, width, grad_input.data_ptr(), grad_weight.data_ptr()
    )
    return grad_input, grad_weight


prenorm_cpu = register(_ACCEPTS, _forward, _backward)
