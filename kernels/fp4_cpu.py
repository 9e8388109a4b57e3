"""Binds `fp4.cpp` to the op `kernels::fp4_cpu`.

Importing this file needs no compiler; the source is built at the first call. float32 on the CPU, one thread.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import torch
from torch import Tensor

from kernels import build
from kernels.fp4_ops import SCHEMA, Quantized, check_blocks, outputs_for
from kernels.quantize_cpu import flags
from kernels.quantize_ops import Accepts, register

SOURCE = Path(__file__).with_name("fp4.cpp")

_POINTER = ctypes.c_void_p
_SIZE = ctypes.c_int64
_ACCEPTS = Accepts(name="fp4_cpu", dtypes=(torch.float32,), devices=("cpu",))


def object_path() -> Path:
    """The built object. Raises kernels.errors.Unavailable where it cannot be built."""
    return build.build(SOURCE, flags())


@functools.cache
def library() -> ctypes.CDLL:
    """The loaded kernel, built if need be. Raises kernels.errors.Unavailable where it cannot be built."""
    loaded = build.load(SOURCE, flags())
    loaded.fp4_nv.argtypes = [_POINTER, _SIZE, _SIZE, *[_POINTER] * 3]
    loaded.fp4_nv.restype = None
    loaded.fp4_mx.argtypes = [_POINTER, _SIZE, _SIZE, *[_POINTER] * 2]
    loaded.fp4_mx.restype = None
    return loaded


def _quantize(x: Tensor, form: str) -> Quantized:
    _ACCEPTS.check(x=x)
    packed, scale, overall = outputs_for(x, check_blocks(_ACCEPTS.name, form, x))
    x = x.contiguous()
    _ACCEPTS.check_memory(x.data_ptr())
    if form == "nvfp4":
        library().fp4_nv(x.data_ptr(), *x.shape, packed.data_ptr(), scale.data_ptr(), overall.data_ptr())
    else:
        library().fp4_mx(x.data_ptr(), *x.shape, packed.data_ptr(), scale.data_ptr())
        overall.fill_(1.0)
    return packed, scale, overall


def _fake(x: Tensor, form: str) -> Quantized:
    _ACCEPTS.check(x=x)
    return outputs_for(x, check_blocks(_ACCEPTS.name, form, x))


fp4_cpu = register(_ACCEPTS.name, SCHEMA, 1, _quantize, _fake)
