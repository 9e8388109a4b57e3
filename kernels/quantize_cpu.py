"""Binds `quantize.cpp` to the op `kernels::quantize_cpu`.

Importing this file needs no compiler; the source is built at the first call. float32 on the CPU, one thread.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from kernels import build
from kernels.quantize_ops import (
    BLOCK,
    FORMATS,
    QUANTIZE_SCHEMA,
    Accepts,
    check_choices,
    dense,
    is_transposed,
    register,
    scale_shape,
)

SOURCE = Path(__file__).with_name("quantize.cpp")
_HEADER = Path(__file__).with_name("quantize_round.h")

_POINTER = ctypes.c_void_p
_SIZE = ctypes.c_int64
_FLOAT32 = torch.float32
_ACCEPTS = Accepts(name="quantize_cpu", dtypes=(_FLOAT32,), devices=("cpu",))


@functools.cache
def flags() -> tuple[str, ...]:
    """The compiler's flags of what includes `quantize_round.h`: a changed header is a changed object."""
    return (*build.FLAGS, f"-DQUANTIZE_ROUND_{hashlib.sha256(_HEADER.read_bytes()).hexdigest()[:16]}")


def object_path() -> Path:
    """The built object. Raises kernels.errors.Unavailable where it cannot be built."""
    return build.build(SOURCE, flags())


@functools.cache
def library() -> ctypes.CDLL:
    """The loaded kernel, built if need be. Raises kernels.errors.Unavailable where it cannot be built."""
    return build.load(SOURCE, flags())


def symbol(form: str, emulated: bool) -> str:
    """The C symbol of a choice: what a disassembly is asked for."""
    return form.replace("fp8", "quantize") + ("_emulated" if emulated else "")


@functools.cache
def _kernel(form: str, scaling: str, emulated: bool) -> tuple[Callable[..., None], torch.dtype]:
    """The C function of one choice, and the dtype of its payload."""
    check_choices(_ACCEPTS.name, form, scaling)
    function = getattr(library(), symbol(form, emulated))
    function.argtypes = [_POINTER, *[_SIZE] * 4, *[_POINTER] * 2]
    function.restype = None
    return function, _FLOAT32 if emulated else FORMATS[form].dtype


def _quantize(x: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    # The kernel sees addresses only. One expression recognises what fits; what it does not goes through the checks,
    # which say what is wrong.
    if not (x.dtype is _FLOAT32 and x.is_cpu and x.dim() == 2 and x.numel()):
        _ACCEPTS.check(x=x)
    function, dtype = _kernel(form, scaling, emulated)
    rows, columns = x.shape
    transposed = False
    if not x.is_contiguous():
        x = dense(x)
        transposed = is_transposed(x)
    at = x.data_ptr()
    if not at:
        _ACCEPTS.check_memory(at)
    payload = torch.empty_like(x) if emulated else torch.empty_like(x, dtype=dtype)
    scale = torch.empty(scale_shape(rows, columns, scaling), dtype=_FLOAT32)
    group = 0 if scaling == "tensor" else columns if scaling == "row" else BLOCK
    function(at, rows, columns, group, transposed, payload.data_ptr(), scale.data_ptr())
    return payload, scale


def _fake(x: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    _ACCEPTS.check(x=x)
    dtype = check_choices(_ACCEPTS.name, form, scaling).dtype
    return (
        torch.empty_like(dense(x), dtype=_FLOAT32 if emulated else dtype),
        x.new_empty(scale_shape(x.shape[0], x.shape[1], scaling)),
    )


quantize_cpu = register(_ACCEPTS.name, QUANTIZE_SCHEMA, 1, _quantize, _fake)
