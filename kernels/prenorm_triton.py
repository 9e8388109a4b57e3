"""Triton kernels of `kernels.prenorm`: `kernels::prenorm_triton` and `kernels::prenorm_triton_backward`.

Importing this file needs Triton. Equations and bytes are in `kernels/prenorm.py`.

Forward: one program a row; the row stays in registers between the sum of squares and the scaling. Backward: a fixed
number of programs, each walking every P-th row with its share of the weight gradient in float32 registers, written
once as a row of partials_PD; their sum over P is a second, small reduction. No atomics, so a result repeats bit for
bit. Offsets are 64-bit, so N * D may pass 2^31.

Shape suffixes: N rows, D width, P programs; BLOCK is D rounded up to a power of two.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.errors import Unavailable
from kernels.prenorm_ops import Accepts, past_the_norm, register
from kernels.specialization import Specialization

# A row stays in the registers of one program, and 1,024 threads with more than 8 elements each would spill them.
WIDEST = 8192


@triton.jit
def prenorm_forward(x_ptr, residual_ptr, weight_ptr, y_ptr, h_ptr, eps, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < width
    at = row * width + column
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + at, mask=inside, other=0.0).to(tl.float32)
    stored = (x + residual).to(h_ptr.dtype.element_ty)
    tl.store(h_ptr + at, stored, mask=inside)
    # Normalise what was stored, not the float32 sum: the backward pass reads the stored one.
    h = stored.to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, (h * rstd * weight).to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def prenorm_backward(
    grad_y_ptr,
    grad_h_ptr,
    h_ptr,
    weight_ptr,
    grad_input_ptr,
    partials_ptr,
    eps,
    rows,
    width,
    HAS_GRAD_H: tl.constexpr,
    BLOCK: tl.constexpr,
):
    # 64-bit from the start: the loop variable takes its type from here, and row * width may pass 2^31.
    program = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < width
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    partial = tl.zeros([BLOCK], dtype=tl.float32)
    for row in range(program, rows, tl.num_programs(0)):
        at = row * width + column
        grad_y = tl.load(grad_y_ptr + at, mask=inside, other=0.0).to(tl.float32)
        h = tl.load(h_ptr + at, mask=inside, other=0.0).to(tl.float32)
        # Summed again: the row is in registers anyway, and nothing has to be kept for this pass.
        rstd = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / width + eps)
        partial += grad_y * (h * rstd)
        scaled = grad_y * weight
        pull = tl.sum(scaled * h, axis=0) * rstd * rstd / width
        grad = rstd * (scaled - h * pull)
        if HAS_GRAD_H:
            grad += tl.load(grad_h_ptr + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(grad_input_ptr + at, grad.to(grad_input_ptr.dtype.element_ty), mask=inside)
    tl.store(partials_ptr + program * width + column, partial, mask=inside)


def block_of(width: int) -> tuple[int, int]:
    """(BLOCK, warps) for rows of `width`, at 8 elements a thread."""
    block = triton.next_power_of_2(width)
    return block, max(block // 256, 1)


def _specializations(width: int, element: str) -> tuple[Specialization, ...]:
    block, warps = block_of(width)
    tensor = f"*{element}"
    forward = dict.fromkeys(("x_ptr", "residual_ptr", "weight_ptr", "y_ptr", "h_ptr"), tensor)
    backward = dict.fromkeys(("grad_y_ptr", "grad_h_ptr", "h_ptr", "weight_ptr"), tensor)
    return (
        Specialization(
            name=f"prenorm_forward_{element}_{width}",
            kernel=prenorm_forward,
            signature={**forward, "eps": "fp32", "width": "i32", "BLOCK": "constexpr"},
            constants={"BLOCK": block},
            warps=warps,
        ),
        Specialization(
            name=f"prenorm_backward_{element}_{width}",
            kernel=prenorm_backward,
            signature={
                **backward,
                "grad_input_ptr": tensor,
                "partials_ptr": "*fp32",
                "eps": "fp32",
                "rows": "i32",
                "width": "i32",
                "HAS_GRAD_H": "constexpr",
                "BLOCK": "constexpr",
            },
            constants={"HAS_GRAD_H": True, "BLOCK": block},
            warps=warps,
        ),
    )


# What static evidence (registers, spills) is taken from: the widths of the presets, and the widest row.
SPECIALIZATIONS: tuple[Specialization, ...] = (
    *_specializations(256, "fp32"),
    *_specializations(1536, "bf16"),
    *_specializations(WIDEST, "fp32"),
    *_specializations(WIDEST, "bf16"),
)


@functools.cache
def _programs(device: torch.device) -> int:
    """How many programs share the rows: two a multiprocessor; a handful under the interpreter."""
    return 2 * torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


def _forward(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    _ACCEPTS.check(x, {"residual": residual}, weight)
    _ACCEPTS.check_eps(eps)
    x, residual, weight = x.contiguous(), residual.contiguous(), weight.contiguous()
    y, h = torch.empty_like(x), torch.empty_like(x)
    width = weight.numel()
    rows = x.numel() // width
    if rows:
        block, warps = block_of(width)
        prenorm_forward[(rows,)](x, residual, weight, y, h, eps, width, BLOCK=block, num_warps=warps)
    return y, h


def _backward(
    grad_y: Tensor | None, grad_h: Tensor | None, h: Tensor, weight: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    _ACCEPTS.check(h, {"grad_y": grad_y, "grad_h": grad_h}, weight)
    _ACCEPTS.check_eps(eps)
    width = weight.numel()
    rows = h.numel() // width
    if grad_y is None or not rows:
        return past_the_norm(grad_h, h, weight)
    grad_y, h, weight = grad_y.contiguous(), h.contiguous(), weight.contiguous()
    grad_input = torch.empty_like(h)
    block, warps = block_of(width)
    programs = min(rows, _programs(h.device))
    partials_PD = torch.empty((programs, width), dtype=torch.float32, device=h.device)
    prenorm_backward[(programs,)](
        grad_y,
        grad_y if grad_h is None else grad_h.contiguous(),
        h,
        weight,
        grad_input,
        partials_PD,
        eps,
        rows,
        width,
        HAS_GRAD_H=grad_h is not None,
        BLOCK=block,
        num_warps=warps,
    )
    return grad_input, partials_PD.sum(dim=0).to(weight.dtype)


# Whether Triton was told to interpret its kernels (TRITON_INTERPRET=1), so that they run on CPU tensors.
INTERPRETED = not isinstance(prenorm_forward, triton.JITFunction)

_ACCEPTS = Accepts(
    name="prenorm_triton",
    dtypes=(torch.float32, torch.bfloat16),
    devices=("cuda", "cpu") if INTERPRETED else ("cuda",),
    widest=WIDEST,
)

prenorm_triton = register(_ACCEPTS, _forward, _backward)


def require_device() -> None:
    """Raises Unavailable on a machine where Triton's kernels cannot be launched."""
    if not INTERPRETED and not torch.cuda.is_available():
        raise Unavailable(
            reason="Triton is installed, but torch finds no CUDA device.",
            remedy="Run on a machine with a CUDA GPU and a CUDA build of torch, or set ops.prenorm to cpu.",
        )
