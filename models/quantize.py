"""Low-precision matrix products: operands in fp8 e4m3, forward and backward.

Shapes: M rows, K contraction, N columns of a product; R rows and C columns of one operand, contraction last.

    y_MN  = Q(x_MK) Q(w_NK)^T
    dx_MK = Q(dy_MN) Q(w_NK)
    dw_NK = Q(dy_MN)^T Q(x_MK)

Rounding passes gradients straight through: each operand's gradient is that of the product alone. Gradients are e4m3
as well (as in DeepSeek-V3, arXiv:2412.19437), so that both kinds of scale share one path.

How often: a weight at every use (`quant.weights: per_use`: forward, recompute, backward), an activation once for each
projection that consumes it (`quant.activations: per_consumer`) in each forward pass, a gradient once. With one scale
per tensor the transposed operand is a view of the same numbers. With a scale per row it is not, because a scale must
lie along the rows of the result: activation, weight and gradient are quantized again along the other axis.

Quantization is the op `models::quantize`, so that its calls can be counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

LARGEST = 448.0
_SMALLEST_NORMAL = 2.0**-6
_MANTISSA_BITS = 3
_SMALLEST_SCALE = 1e-12

_library = torch.library.Library("models", "DEF")
_library.define("quantize(Tensor x, bool per_row, bool emulated) -> (Tensor payload, Tensor scale)")


def round_to_e4m3_(x: Tensor) -> Tensor:
    """Rounds float32 in place to the nearest e4m3 value, ties to even, for |x| up to 464.

    The same numbers as casting to float8_e4m3fn and back, in a third of the time.

    A multiple of q is found by adding and taking away c = 1.5 * 2^23 * q, beside which float32 steps by q. Here q is
    the step of e4m3 at x: 2^(exponent - 3), and the subnormal step below 2^-6.
    """
    power = x.view(torch.int32).bitwise_and(0x7F800000).view(torch.float32)
    c = power.clamp_(min=_SMALLEST_NORMAL).mul_(1.5 * 2.0 ** (23 - _MANTISSA_BITS))
    return x.add_(c).sub_(c)


def _quantize(x_RC: Tensor, per_row: bool, emulated: bool) -> tuple[Tensor, Tensor]:
    largest = x_RC.abs().amax(dim=1 if per_row else (0, 1), keepdim=True)
    scale = largest.float().div_(LARGEST).clamp_(min=_SMALLEST_SCALE)
    # x / scale can end a hair above 448, which rounds back to 448.
    scaled_RC = x_RC / scale
    return round_to_e4m3_(scaled_RC) if emulated else scaled_RC.to(torch.float8_e4m3fn), scale


def _quantize_fake(x_RC: Tensor, per_row: bool, emulated: bool) -> tuple[Tensor, Tensor]:
    dtype = torch.float32 if emulated else torch.float8_e4m3fn
    rows = x_RC.shape[0] if per_row else 1
    return torch.empty_like(x_RC, dtype=dtype), x_RC.new_empty((rows, 1), dtype=torch.float32)


# The low-level registration: a call through `torch.library.custom_op` costs three times as much.
_library.impl("quantize", _quantize, "CompositeExplicitAutograd")
torch.library.register_fake("models::quantize", _quantize_fake, lib=_library)
_quantize_op = torch.ops.models.quantize.default


@dataclass(frozen=True)
class Quantized:
    """An operand of value payload * scale. Scale is float32 [R, 1] or [1, 1].

    Payload [R, C] is float8_e4m3fn on hardware; emulated it is float32 that holds e4m3 values only.
    """

    payload: Tensor
    scale: Tensor

    def transposed(self) -> Quantized:
        """The same numbers contracted the other way. Raises `ValueError` if rows have scales of their own."""
        if self.scale.shape[0] != 1:
            raise ValueError("an operand scaled per row cannot be transposed: quantize it along the other axis.")
        return Quantized(self.payload.t(), self.scale)

    def dequantized(self) -> Tensor:
        return self.payload.float() * self.scale


def quantize(x_RC: Tensor, *, per_row: bool, emulated: bool) -> Quantized:
    """payload = round(x / scale) with scale = max|x| / 448, over the tensor or over each row."""
    return Quantized(*_quantize_op(x_RC, per_row, emulated))


def scaled_product(a: Quantized, b: Quantized, out: torch.dtype, *, fast: bool = False) -> Tensor:
    """a_MK b_NK^T: payloads multiplied and summed in float32, scales applied to the sum. [M, N] in dtype `out`.

    fp8 payloads go through `torch._scaled_mm` (sm_89 and newer), where `fast` allows sums of less than float32.
    Emulated payloads go through a float32 product.
    """
    if a.payload.dtype == torch.float8_e4m3fn:
        return _hardware_product(a, b, out, fast)
    product_MN = a.payload @ b.payload.t()
    return product_MN.mul_(a.scale * b.scale.t()).to(out)


def _hardware_product(a: Quantized, b: Quantized, out: torch.dtype, fast: bool) -> Tensor:
    # Tensor cores want the contraction innermost in both operands, and K and N in whole groups of 16.
    columns = b.payload.shape[0]
    a_MK, b_NK, scale_b = _in_groups(a.payload, 1), _in_groups(b.payload, 16), b.scale
    per_row = scale_b.shape[0] > 1
    if per_row:
        scale_b = F.pad(scale_b, (0, 0, 0, b_NK.shape[0] - columns), value=1.0)
    # The row-wise product writes bfloat16 only.
    wide = torch.bfloat16 if per_row else out
    product_MN = torch._scaled_mm(
        a_MK, b_NK.t(), scale_a=a.scale, scale_b=scale_b.t(), out_dtype=wide, use_fast_accum=fast
    )
    return product_MN[:, :columns].to(out)


def _in_groups(payload_RC: Tensor, row_group: int) -> Tensor:
    """Contiguous, with zeros added to a whole number of row groups and of 16 columns."""
    more_rows, more_columns = -payload_RC.shape[0] % row_group, -payload_RC.shape[1] % 16
    if more_rows or more_columns:
        padded = F.pad(payload_RC.view(torch.uint8), (0, more_columns, 0, more_rows))
        return padded.view(payload_RC.dtype)
    return payload_RC.contiguous()


class Fp8Product(torch.autograd.Function):
    """y_MN = x_MK w_NK^T with quantized operands in all three products; see the module."""

    @staticmethod
    def forward(ctx: Any, x_MK: Tensor, w_NK: Tensor, per_row: bool, emulated: bool) -> Tensor:
        x = quantize(x_MK, per_row=per_row, emulated=emulated)
        w = quantize(w_NK, per_row=per_row, emulated=emulated)
        ctx.per_row, ctx.emulated, ctx.dtype = per_row, emulated, x_MK.dtype
        if per_row:
            ctx.save_for_backward(w_NK, x_MK)
        else:
            ctx.save_for_backward(w_NK, x.payload, x.scale)
        return scaled_product(x, w, x_MK.dtype, fast=True)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (dy_MN,) = gradients
        w_NK, *activation = ctx.saved_tensors

        def quantized(matrix: Tensor) -> Quantized:
            return quantize(matrix, per_row=ctx.per_row, emulated=ctx.emulated)

        dy = quantized(dy_MN)
        if ctx.per_row:
            dy_t, w_t, x_t = quantized(dy_MN.t()), quantized(w_NK.t()), quantized(activation[0].t())
        else:
            dy_t, w_t, x_t = dy.transposed(), quantized(w_NK).transposed(), Quantized(*activation).transposed()
        return scaled_product(dy, w_t, ctx.dtype), scaled_product(dy_t, x_t, w_NK.dtype), None, None
