"""Launches the Triton kernels of the recurrence: ops `kernels::recurrence_triton` and `..._backward*`.

Importing this file needs Triton. The kernels and what each variant keeps are in `kernels.recurrence_triton_kernels`.
Shapes as in `kernels.recurrence`; W parts, one for each tile of V.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from kernels import recurrence_triton_kernels as kernels
from kernels.errors import Unavailable
from kernels.recurrence_ops import Accepts, Backward, Gradients, register, states_shape
from kernels.specialization import Specialization

# A program holds K x V of the state; more than this fits no multiprocessor.
WIDEST = 128
# Values in a tile where V may be cut: in the forward pass, and in the backward pass that keeps less.
_FORWARD_VALUES = 64
_LIVE_STATE_VALUES = 32
# Warps that share a tile. The forward pass needs 8 to fit into registers; live_state spreads its small tile over 8 too.
_WARPS = {"forward": 8, "fused": 4, "phase_split": 4, "live_state": 8}
# What ptxas takes as a cap: below 24 no kernel fits, above 255 an instruction cannot name a register.
_CAPS = (24, 255)


def _block(width: int) -> int:
    """`width` rounded up to what tl.dot takes: a power of two of at least 16."""
    return max(16, triton.next_power_of_2(width))


def _blocks(tokens: int, key_width: int, chunk: int) -> dict[str, int]:
    return {"BC": _block(min(chunk, tokens)), "BK": _block(key_width)}


def _rows(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 else x.contiguous()


def _launch(variant: str, q: Tensor, blocks: dict[str, int], registers: int = 0) -> dict[str, Any]:
    options: dict[str, Any] = {"num_warps": _WARPS[variant]}
    if q.dtype == torch.float32 or blocks["BC"] > 64 or blocks["BK"] > 64:
        # Triton's own 3 stages load ahead, and with tiles of this size they do not fit into shared memory.
        options["num_stages"] = 1
    if registers:
        options["maxnreg"] = registers
    return options


def _forward(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, chunk: int, registers: int) -> tuple[Tensor, Tensor]:
    _ACCEPTS.check(q, k, v, log_decay, chunk)
    _ACCEPTS.check_registers(registers)
    q, k, v = _rows(q), _rows(k), _rows(v)
    batch, tokens, heads, key_width = q.shape
    value_width = v.shape[-1]
    o = v.new_empty(v.shape)
    states = q.new_empty(states_shape(q, v, chunk), dtype=torch.float32)
    if o.numel():
        values = min(_block(value_width), _FORWARD_VALUES)
        strides = *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *log_decay.stride()
        sizes = tokens, heads, key_width, value_width, chunk
        grid = (batch * heads, triton.cdiv(value_width, values))
        blocks = _blocks(tokens, key_width, chunk)
        kernels.forward[grid](
            q, k, v, log_decay, o, states, *strides, *sizes, **blocks, BV=values, **_launch("forward", q, blocks)
        )
    return o, states


def _ready(
    grad_o: Tensor, q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, states: Tensor, chunk: int, registers: int
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """The checked tensors in the order of the kernels, and their strides."""
    _ACCEPTS.check(q, k, v, log_decay, chunk)
    _ACCEPTS.check_backward(grad_o, q, v, states, chunk)
    _ACCEPTS.check_registers(registers)
    read = _rows(q), _rows(k), _rows(v), log_decay, _rows(grad_o)
    return (*read, states.contiguous()), tuple(stride for x in read for stride in x.stride()[:3])


def _in_one_sweep(variant: str, most_values: int) -> Backward:
    def backward(
        grad_o: Tensor, q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, states: Tensor, chunk: int, registers: int
    ) -> Gradients:
        tensors, strides = _ready(grad_o, q, k, v, log_decay, states, chunk, registers)
        batch, tokens, heads, key_width = q.shape
        value_width = v.shape[-1]
        dv = v.new_empty(v.shape)
        values = min(_block(value_width), most_values)
        parts = triton.cdiv(value_width, values)
        # Parts are added in float32; a single one is the gradient itself.
        dtype = q.dtype if parts == 1 else torch.float32
        dq_WBTHK, dk_WBTHK = (q.new_empty((parts, *q.shape), dtype=dtype) for _ in range(2))
        dlog_WBTH = log_decay.new_empty((parts, *log_decay.shape))
        if dv.numel():
            sizes = batch, tokens, heads, key_width, value_width, chunk
            outputs = dq_WBTHK, dk_WBTHK, dv, dlog_WBTH
            blocks = _blocks(tokens, key_width, chunk)
            kernels.backward[(batch * heads, parts)](
                *tensors, *outputs, *strides, *sizes, **blocks, BV=values, **_launch(variant, q, blocks, registers)
            )
        if parts == 1:
            return dq_WBTHK[0], dk_WBTHK[0], dv, dlog_WBTH[0]
        return dq_WBTHK.sum(0).to(q.dtype), dk_WBTHK.sum(0).to(q.dtype), dv, dlog_WBTH.sum(0)

    return backward


def _in_two_phases(
    grad_o: Tensor, q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, states: Tensor, chunk: int, registers: int
) -> Gradients:
    tensors, strides = _ready(grad_o, q, k, v, log_decay, states, chunk, registers)
    batch, tokens, heads, key_width = q.shape
    value_width = v.shape[-1]
    dq, dk, dv = (x.new_empty(x.shape) for x in (q, k, v))
    dlog, qdq_BTH = (log_decay.new_empty(log_decay.shape) for _ in range(2))
    if dv.numel():
        sizes = tokens, heads, key_width, value_width, chunk
        blocks = {**_blocks(tokens, key_width, chunk), "BV": _block(value_width)}
        launch = _launch("phase_split", q, blocks, registers)
        kernels.queries[(batch * heads, states.shape[2])](*tensors, dq, qdq_BTH, *strides, *sizes, **blocks, **launch)
        kernels.keys[(batch * heads,)](*tensors, qdq_BTH, dk, dv, dlog, *strides, *sizes, **blocks, **launch)
    return dq, dk, dv, dlog


# Whether Triton was told to interpret its kernels (TRITON_INTERPRET=1), so that they run on CPU tensors.
INTERPRETED = not isinstance(kernels.forward, triton.JITFunction)

_ACCEPTS = Accepts(
    name="recurrence_triton",
    dtypes=(torch.float32, torch.bfloat16),
    devices=("cuda", "cpu") if INTERPRETED else ("cuda",),
    caps=lambda: _CAPS,
    cap_of="registers a thread",
    widest=WIDEST,
)

recurrence_triton = register(
    _ACCEPTS,
    _forward,
    {
        "fused": _in_one_sweep("fused", WIDEST),
        "phase_split": _in_two_phases,
        "live_state": _in_one_sweep("live_state", _LIVE_STATE_VALUES),
    },
)


def require_device() -> None:
    """Raises Unavailable on a machine where Triton's kernels cannot be launched."""
    if not INTERPRETED and not torch.cuda.is_available():
        raise Unavailable(
            reason="Triton is installed, but torch finds no CUDA device.",
            remedy="Run on a machine with a CUDA GPU and a CUDA build of torch, or set ops.recurrence to cpu.",
        )


_MULTIPLES = frozenset(("T", "K", "V", "chunk", *(f"{x}_{by}" for x in "qkvg" for by in "bth")))


def _specialization(
    kernel: Any, variant: str, phase: str = "", values: int = WIDEST, registers: int = 0, spills: bool = True
) -> Specialization:
    """`kernel` in bfloat16 as `variant` launches it for K = 64 and chunks of 64, on tiles of `values`."""
    in_float32 = {"log_decay_ptr", "dlog_ptr", "qdq_ptr", "states_ptr"}
    if variant == "live_state":
        in_float32 |= {"dq_ptr", "dk_ptr"}  # Parts.
    constants = {"BC": 64, "BK": 64, "BV": values}

    def type_of(argument: str) -> str:
        if argument in constants:
            return "constexpr"
        if argument.endswith("_ptr"):
            return "*fp32" if argument in in_float32 else "*bf16"
        return "i32"

    name = variant if variant == "forward" else f"backward_{variant}{phase}"
    return Specialization(
        name=f"recurrence_{name}_bf16_64x{values}_chunk64" + (f"_cap{registers}" if registers else ""),
        kernel=kernel,
        signature={argument: type_of(argument) for argument in kernel.arg_names},
        constants=constants,
        warps=_WARPS[variant],
        options={"maxnreg": registers} if registers else {},
        divisible=tuple(argument for argument in kernel.arg_names if argument in _MULTIPLES),
        spills_expected=spills,
    )


# What static evidence is taken from: one head of K = 64 and V = 128 in chunks of 64, with caps and without. ptxas
# refuses the two lowest caps.
SPECIALIZATIONS: tuple[Specialization, ...] = (
    _specialization(kernels.forward, "forward", values=_FORWARD_VALUES, spills=False),
    _specialization(kernels.backward, "fused"),
    _specialization(kernels.queries, "phase_split", "_queries", spills=False),
    _specialization(kernels.keys, "phase_split", "_keys"),
    _specialization(kernels.backward, "live_state", values=_LIVE_STATE_VALUES),
    *(_specialization(kernels.backward, "fused", registers=cap) for cap in (64, 96, 128, 168)),
)
