"""Binds `recurrence.cpp` to the ops `kernels::recurrence_cpu` and `kernels::recurrence_cpu_backward*`.

Importing this file needs no compiler; the source is built at the first call. float32 on the CPU, one thread. Any
strides between tokens, heads and sequences are read in place; a tensor whose last dimension is strided is copied.

A register cap builds the same source with `-ffixed-xmm<N>` for every vector register above the cap (a zmm or ymm
register carries the number of its xmm part), so the arithmetic is the same and only the room for it differs.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import platform
from pathlib import Path

import torch
from torch import Tensor

from kernels import build
from kernels.errors import Unavailable
from kernels.recurrence_ops import BACKWARDS, Accepts, Backward, Gradients, register, states_shape

SOURCE = Path(__file__).with_name("recurrence.cpp")
HEADER = Path(__file__).with_name("recurrence_chunk.h")
# With fewer the compiler has no register left for what an instruction itself needs.
FEWEST_REGISTERS = 6

_POINTER = ctypes.c_void_p
_FLOAT32 = torch.float32
_FORWARD_SIZES = ctypes.c_int64 * 18
_BACKWARD_SIZES = ctypes.c_int64 * 21
_NO_MEMORY = "recurrence_cpu: a tensor has elements but no memory: it was freed, or it only stands for another."


def backward_symbol(variant: str) -> str:
    """The C symbol of a backward variant, everything it runs inlined: what a disassembly is asked for."""
    return f"recurrence_backward_{variant}_f32"


def flags(registers: int = 0) -> tuple[str, ...]:
    """The compiler's flags under a cap of `registers` vector registers, 0 for none.

    Raises ValueError for a cap outside what this CPU has, and Unavailable as `kernels.build.build` does or on a CPU
    whose compiler has no such flags.
    """
    # Products and sums fuse the same way whatever the compiler's default, and a changed header is a changed object.
    header = hashlib.sha256(HEADER.read_bytes()).hexdigest()[:16]
    common = (*build.FLAGS, "-ffp-contract=fast", f"-DRECURRENCE_CHUNK_{header}")
    if registers == 0:
        return common
    if platform.machine().lower() not in ("x86_64", "amd64"):
        raise Unavailable(
            reason=f"A cap on vector registers is written for x86-64 compilers, and this is {platform.machine()}.",
            remedy="Set ops.recurrence_registers=0.",
        )
    _ACCEPTS.check_registers(registers)
    return (*common, *(f"-ffixed-xmm{n}" for n in range(registers, vector_registers())))


def object_path(registers: int = 0) -> Path:
    """The built object that the backward pass under this cap runs from. Raises as `flags` and `kernels.build.build`."""
    return build.build(SOURCE, flags(registers))


@functools.cache
def library(registers: int = 0) -> ctypes.CDLL:
    """The loaded kernel, built if need be. Raises as `flags` and `kernels.build.load` do."""
    loaded = build.load(SOURCE, flags(registers))
    loaded.recurrence_vector_registers.argtypes = []
    loaded.recurrence_vector_registers.restype = ctypes.c_int64
    loaded.recurrence_forward_f32.argtypes = [*[_POINTER] * 6, _FORWARD_SIZES]
    loaded.recurrence_forward_f32.restype = None
    for variant in BACKWARDS:
        function = getattr(loaded, backward_symbol(variant))
        function.argtypes = [*[_POINTER] * 10, _BACKWARD_SIZES]
        function.restype = None
    return loaded


def vector_registers() -> int:
    """How many vector registers the kernel is compiled for here: 32 with AVX-512, else 16."""
    return library().recurrence_vector_registers()


_ACCEPTS = Accepts(
    name="recurrence_cpu",
    dtypes=(_FLOAT32,),
    devices=("cpu",),
    caps=lambda: (FEWEST_REGISTERS, vector_registers()),
    cap_of="vector registers of this CPU",
)


def _fits(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, chunk: int) -> bool:
    """What `Accepts.check` lets pass, in one expression: those checks on every call would cost more than the call."""
    shape, values = q.shape, v.shape
    return bool(
        q.dtype is k.dtype is v.dtype is log_decay.dtype is _FLOAT32
        and q.is_cpu
        and k.is_cpu
        and v.is_cpu
        and log_decay.is_cpu
        and len(shape) == len(values) == 4
        and shape[3]
        and values[3]
        and k.shape == shape
        and values[:3] == shape[:3] == log_decay.shape
        and chunk > 0
    )


def _rows(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 else x.contiguous()


def _forward(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, chunk: int, registers: int) -> tuple[Tensor, Tensor]:
    if not _fits(q, k, v, log_decay, chunk):
        _ACCEPTS.check(q, k, v, log_decay, chunk)
    if registers:
        _ACCEPTS.check_registers(registers)
    # The names keep copies alive during the call.
    q, k, v = _rows(q), _rows(k), _rows(v)
    o, states = v.new_empty(v.shape), q.new_empty(states_shape(q, v, chunk))
    if o.numel():
        at = q.data_ptr(), k.data_ptr(), v.data_ptr(), log_decay.data_ptr()
        if not all(at):
            raise ValueError(_NO_MEMORY)
        strides = *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *log_decay.stride()
        sizes = _FORWARD_SIZES(*q.shape, v.shape[3], chunk, *strides)
        library().recurrence_forward_f32(*at, o.data_ptr(), states.data_ptr(), sizes)
    return o, states


def _backward_of(variant: str) -> Backward:
    symbol = backward_symbol(variant)

    def backward(
        grad_o: Tensor,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        log_decay: Tensor,
        states: Tensor,
        chunk: int,
        registers: int,
    ) -> Gradients:
        if not _fits(q, k, v, log_decay, chunk):
            _ACCEPTS.check(q, k, v, log_decay, chunk)
        if not (
            grad_o.dtype is states.dtype is _FLOAT32
            and grad_o.is_cpu
            and states.is_cpu
            and grad_o.shape == v.shape
            and states.shape == states_shape(q, v, chunk)
        ):
            _ACCEPTS.check_backward(grad_o, q, v, states, chunk)
        if registers:
            _ACCEPTS.check_registers(registers)
        grad_o, q, k, v, states = _rows(grad_o), _rows(q), _rows(k), _rows(v), states.contiguous()
        grads = q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), log_decay.new_empty(log_decay.shape)
        if v.numel():
            at = tuple(x.data_ptr() for x in (q, k, v, log_decay, grad_o, states))
            if not all(at):
                raise ValueError(_NO_MEMORY)
            strides = *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *log_decay.stride(), *grad_o.stride()[:3]
            sizes = _BACKWARD_SIZES(*q.shape, v.shape[3], chunk, *strides)
            getattr(library(registers), symbol)(*at, *(x.data_ptr() for x in grads), sizes)
        return grads

    return backward


recurrence_cpu = register(_ACCEPTS, _forward, {variant: _backward_of(variant) for variant in BACKWARDS})
