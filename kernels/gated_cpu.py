"""Binds `gated.cpp` to the ops `kernels::gated_quantize_cpu` and `kernels::gated_backward_cpu`.

Importing this file needs no compiler; the source is built at the first call. float32 on the CPU, one thread. Rows may
lie any distance apart; a tensor whose columns are not beside each other is copied.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from kernels import build
from kernels.quantize_cpu import flags
from kernels.quantize_ops import (
    BLOCK,
    FORMATS,
    GATED_BACKWARD_SCHEMA,
    GATED_SCHEMA,
    Accepts,
    check_choices,
    register,
    scale_shape,
)

SOURCE = Path(__file__).with_name("gated.cpp")
BACKWARD_SYMBOL = "gated_backward_f32"

_POINTER = ctypes.c_void_p
_SIZE = ctypes.c_int64
# A tensor and the distance of its rows.
_ROWS = (_POINTER, _SIZE)
_FLOAT32 = torch.float32
_FORWARD = Accepts(name="gated_quantize_cpu", dtypes=(_FLOAT32,), devices=("cpu",))
_BACKWARD = Accepts(name="gated_backward_cpu", dtypes=(_FLOAT32,), devices=("cpu",))


def object_path() -> Path:
    """The built object. Raises kernels.errors.Unavailable where it cannot be built."""
    return build.build(SOURCE, flags())


@functools.cache
def library() -> ctypes.CDLL:
    """The loaded kernel, built if need be. Raises kernels.errors.Unavailable where it cannot be built."""
    loaded = build.load(SOURCE, flags())
    loaded.gated_backward_f32.argtypes = [*_ROWS, *_ROWS, *_ROWS, _SIZE, _SIZE, _POINTER, _POINTER]
    loaded.gated_backward_f32.restype = None
    return loaded


def symbol(form: str, emulated: bool) -> str:
    """The C symbol of a choice: what a disassembly is asked for."""
    return form.replace("fp8", "gated_quantize") + ("_emulated" if emulated else "")


@functools.cache
def _kernel(form: str, scaling: str, emulated: bool) -> tuple[Callable[..., None], torch.dtype]:
    """The C function of one choice, and the dtype of its payload."""
    check_choices(_FORWARD.name, form, scaling)
    function = getattr(library(), symbol(form, emulated))
    function.argtypes = [*_ROWS, *_ROWS, *[_SIZE] * 3, *[_POINTER] * 3]
    function.restype = None
    return function, _FLOAT32 if emulated else FORMATS[form].dtype


def _by_rows(x: Tensor) -> Tensor:
    """x itself where its columns are beside each other, else a contiguous copy."""
    return x if x.stride(1) == 1 else x.contiguous()


# The kernel sees addresses only. In both ops one expression recognises what fits; what it does not goes through the
# checks, which say what is wrong.


def _gated(gate: Tensor, up: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    shape = gate.shape
    if not (
        gate.dtype is up.dtype is _FLOAT32
        and gate.is_cpu
        and up.is_cpu
        and len(shape) == 2
        and up.shape == shape
        and gate.numel()
    ):
        _FORWARD.check(gate=gate, up=up)
    function, dtype = _kernel(form, scaling, emulated)
    rows, columns = shape
    gate, up = _by_rows(gate), _by_rows(up)
    at = gate.data_ptr(), up.data_ptr()
    if not all(at):
        _FORWARD.check_memory(*at)
    group = 0 if scaling == "tensor" else columns if scaling == "row" else BLOCK
    payload = torch.empty(shape, dtype=dtype)
    scale = torch.empty(scale_shape(rows, columns, scaling))
    # Kept by its name during the call.
    scratch = None if emulated else torch.empty(group or rows * columns)
    function(
        at[0],
        gate.stride(0),
        at[1],
        up.stride(0),
        rows,
        columns,
        group,
        None if scratch is None else scratch.data_ptr(),
        payload.data_ptr(),
        scale.data_ptr(),
    )
    return payload, scale


def _gated_fake(gate: Tensor, up: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    _FORWARD.check(gate=gate, up=up)
    dtype = check_choices(_FORWARD.name, form, scaling).dtype
    return (
        gate.new_empty(gate.shape, dtype=_FLOAT32 if emulated else dtype),
        gate.new_empty(scale_shape(gate.shape[0], gate.shape[1], scaling)),
    )


def _backward(dy: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    shape = gate.shape
    if not (
        dy.dtype is gate.dtype is up.dtype is _FLOAT32
        and dy.is_cpu
        and gate.is_cpu
        and up.is_cpu
        and len(shape) == 2
        and dy.shape == shape
        and up.shape == shape
        and gate.numel()
    ):
        _BACKWARD.check(gate=gate, up=up, dy=dy)
    dy, gate, up = _by_rows(dy), _by_rows(gate), _by_rows(up)
    at = dy.data_ptr(), gate.data_ptr(), up.data_ptr()
    if not all(at):
        _BACKWARD.check_memory(*at)
    grad_gate, grad_up = torch.empty(shape), torch.empty(shape)
    library().gated_backward_f32(
        at[0],
        dy.stride(0),
        at[1],
        gate.stride(0),
        at[2],
        up.stride(0),
        *shape,
        grad_gate.data_ptr(),
        grad_up.data_ptr(),
    )
    return grad_gate, grad_up


def _backward_fake(dy: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    _BACKWARD.check(gate=gate, up=up, dy=dy)
    return gate.new_empty(gate.shape), gate.new_empty(gate.shape)


gated_quantize_cpu = register(_FORWARD.name, GATED_SCHEMA, 2, _gated, _gated_fake)
gated_backward_cpu = register(_BACKWARD.name, GATED_BACKWARD_SCHEMA, 3, _backward, _backward_fake)
