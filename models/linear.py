"""Matrix products with a weight, as autograd functions: quantized, gated and quantized, and in a wide format.

    y_MN  = Q(x_MK) Q(w_NK)^T
    dx_MK = Q(dy_MN) Q(w_NK)
    dw_NK = Q(dy_MN)^T Q(x_MK)

Shapes: M rows, K contraction, N columns. Rounding passes gradients straight through: each operand's gradient is that
of the product alone. Every function takes `kept`, the result if it is known already (`models.recompute.Kept`): then
nothing is multiplied, and what the backward pass needs is saved as always.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from models.ops import FusedGate
from models.products import scaled_product
from models.quantize import Operand, Quantized, Quantizer


class Fp8Product(torch.autograd.Function):
    """x_MK w_NK^T with quantized operands in all three products.

    `x` and `w` hold what is quantized already; the product quantizes the rest for itself, where it needs it: the
    weight in each pass, and across an axis of its own the activation in the backward pass.
    """

    @staticmethod
    def forward(
        ctx: Any, x_MK: Tensor, w_NK: Tensor, quantizer: Quantizer, x: Operand, w: Operand, kept: Tensor | None
    ) -> Tensor:
        ctx.quantizer, ctx.dtype = quantizer, x_MK.dtype
        _save(ctx, (w_NK, *(() if x.across else (x_MK,))), x.across, w.across)
        return _product(quantizer, x, w_NK, w, x_MK.dtype, kept)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (w_NK, *x_MK), x_across, w_across = _saved(ctx)
        if x_across is None:
            x_across = ctx.quantizer.activation_across(x_MK[0])
        dx_MK, dw_NK = _gradients(ctx.quantizer, gradients[0], w_NK, x_across, w_across, ctx.dtype)
        return dx_MK, dw_NK, None, None, None, None


class GatedFp8Product(torch.autograd.Function):
    """(silu(gate_MK) * up_MK) w_NK^T, the gated activation never written but quantized.

    `x` holds what is quantized of it already, at least `x.along` or `kept` is given. The backward pass of the gate is
    one kernel too. Scales per row or block need the activation again for the gradient of the weight.
    """

    @staticmethod
    def forward(
        ctx: Any,
        gate_MK: Tensor,
        up_MK: Tensor,
        w_NK: Tensor,
        fused: FusedGate,
        quantizer: Quantizer,
        x: Operand,
        w: Operand,
        kept: Tensor | None,
    ) -> Tensor:
        ctx.quantizer, ctx.fused, ctx.dtype = quantizer, fused, up_MK.dtype
        _save(ctx, (w_NK, gate_MK, up_MK), x.across, w.across)
        return _product(quantizer, x, w_NK, w, up_MK.dtype, kept)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (w_NK, gate_MK, up_MK), x_across, w_across = _saved(ctx)
        if x_across is None:
            x_across = ctx.quantizer.activation_across(F.silu(gate_MK) * up_MK)
        dx_MK, dw_NK = _gradients(ctx.quantizer, gradients[0], w_NK, x_across, w_across, ctx.dtype)
        dgate_MK, dup_MK = ctx.fused.backward(dx_MK, gate_MK, up_MK)
        return dgate_MK, dup_MK, dw_NK, None, None, None, None, None


class WideProduct(torch.autograd.Function):
    """x_MK w_NK^T with operands converted to `wide`; the result has the dtype of x."""

    @staticmethod
    def forward(ctx: Any, x_MK: Tensor, w_NK: Tensor, wide: torch.dtype, kept: Tensor | None) -> Tensor:
        ctx.x_dtype, ctx.w_dtype = x_MK.dtype, w_NK.dtype
        x, w = x_MK.to(wide), w_NK.to(wide)
        ctx.save_for_backward(x, w)
        return (x @ w.t()).to(x_MK.dtype) if kept is None else _again(kept)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, w = ctx.saved_tensors
        dy = gradients[0].to(w.dtype)
        return (dy @ w).to(ctx.x_dtype), (dy.t() @ x).to(ctx.w_dtype), None, None


def _product(
    quantizer: Quantizer, x: Operand, w_NK: Tensor, w: Operand, dtype: torch.dtype, kept: Tensor | None
) -> Tensor:
    if kept is not None:
        return _again(kept)
    assert x.along is not None
    return scaled_product(x.along, quantizer.weight(w_NK) if w.along is None else w.along, dtype, fast=True)


def _again(kept: Tensor) -> Tensor:
    """The kept result as a result of this pass. torch.compile takes an alias to have no gradient."""
    return kept.clone() if torch.compiler.is_compiling() else kept.detach()


def _gradients(
    quantizer: Quantizer,
    dy_MN: Tensor,
    w_NK: Tensor,
    x_across: Quantized,
    w_across: Quantized | None,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """(dx_MK, dw_NK)."""
    dy, dy_across = quantizer.gradient_operand(dy_MN)
    if w_across is None:
        w_across = quantizer.weight_across(w_NK)
    return scaled_product(dy, w_across, dtype), scaled_product(dy_across, x_across, w_NK.dtype)


def _save(ctx: Any, plain: tuple[Tensor, ...], *operands: Quantized | None) -> None:
    """Through `save_for_backward`, so that an edit in place between the passes is an error."""
    ctx.plain = len(plain)
    ctx.parts = tuple(0 if operand is None else 2 if operand.overall is None else 3 for operand in operands)
    flat = [part for operand in operands if operand is not None for part in operand if part is not None]
    ctx.save_for_backward(*plain, *flat)


def _saved(ctx: Any) -> tuple[tuple[Tensor, ...], Quantized | None, Quantized | None]:
    saved, (first, second) = ctx.saved_tensors, ctx.parts
    plain, rest = saved[: ctx.plain], saved[ctx.plain :]
    return (
        plain,
        Quantized(*rest[:first]) if first else None,
        Quantized(*rest[first : first + second]) if second else None,
    )
