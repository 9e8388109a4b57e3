"""Matrix products of quantized operands, emulated and on tensor cores.

Shapes: M rows, N columns, K contraction of a product; R rows and C columns of one operand, contraction last.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.fp4 import blocked_scales
from kernels.quantize_ops import BLOCK
from models.quantize import Quantized

# `torch._scaled_mm` wants K and the columns of the result in whole groups of 16 (of 32 in fp4,
# which is 16 bytes).
_GROUP = 16


def scaled_product(a: Quantized, b: Quantized, out: torch.dtype, *, fast: bool = False) -> Tensor:
    """a_MK b_NK^T: payloads multiplied and summed in float32, scales applied to the sum. [M, N] in dtype `out`.

    Emulated payloads go through a float32 product; with scales per block each block's payload is scaled first. fp8
    payloads go through `torch._scaled_mm` (sm_89 and newer), where `fast` allows sums of less than float32; fp4
    payloads the same from sm_100 on.
    """
    if a.overall is not None:
        return _fp4_product(a, b, out)
    if a.payload.dtype == torch.float32:
        if a.scale.shape[1] > 1 or b.scale.shape[1] > 1:
            return (_scaled_blocks(a) @ _scaled_blocks(b).t()).to(out)
        return (a.payload @ b.payload.t()).mul_(a.scale * b.scale.t()).to(out)
    # A contraction of at most one block has scales like those per row.
    if a.scale.shape[1] > 1:
        return _hardware_blocks(a, b, out)
    return _hardware_product(a, b, out, fast)


def _scaled_blocks(x: Quantized) -> Tensor:
    """payload * scale. Written with whole blocks: torch 2.13 compiles `scale.repeat_interleave(128, 1)` wrongly."""
    columns = x.payload.shape[1]
    whole = F.pad(x.payload, (0, -columns % BLOCK)) if columns % BLOCK else x.payload
    return (whole.unflatten(1, (-1, BLOCK)) * x.scale[..., None]).flatten(1)[:, :columns]


def _hardware_product(a: Quantized, b: Quantized, out: torch.dtype, fast: bool) -> Tensor:
    columns = b.payload.shape[0]
    a_MK, b_NK, scale_b = _in_groups(a.payload, 1, _GROUP), _in_groups(b.payload, _GROUP, _GROUP), b.scale
    per_row = scale_b.shape[0] > 1
    if per_row:
        scale_b = F.pad(scale_b, (0, 0, 0, b_NK.shape[0] - columns), value=1.0)
    # The row-wise product writes bfloat16 only.
    wide = torch.bfloat16 if per_row else out
    product_MN = torch._scaled_mm(
        a_MK, b_NK.t(), scale_a=a.scale, scale_b=scale_b.t(), out_dtype=wide, use_fast_accum=fast
    )
    return product_MN[:, :columns].to(out)


def _hardware_blocks(a: Quantized, b: Quantized, out: torch.dtype) -> Tensor:
    """Scales for 1 x 128 of both operands (cuBLAS 12.9, sm_90): their outer axis must be the contiguous one."""
    rows, columns = a.payload.shape[0], b.payload.shape[0]
    a_MK, b_NK = _in_groups(a.payload, _GROUP, BLOCK), _in_groups(b.payload, _GROUP, BLOCK)
    scale_a, scale_b = (
        F.pad(x.scale, (0, 0, 0, -x.scale.shape[0] % _GROUP), value=1.0).t().contiguous().t() for x in (a, b)
    )
    product_MN = torch._scaled_mm(a_MK, b_NK.t(), scale_a=scale_a, scale_b=scale_b.t(), out_dtype=torch.bfloat16)
    return product_MN[:rows, :columns].to(out)


def _fp4_product(a: Quantized, b: Quantized, out: torch.dtype) -> Tensor:
    """Packed 4-bit operands with swizzled block scales; the scales of the whole tensors are applied to the sum."""
    assert a.overall is not None and b.overall is not None
    columns = b.payload.shape[0]
    a_MK = _in_groups(a.payload, 1, _GROUP).view(torch.float4_e2m1fn_x2)
    b_NK = _in_groups(b.payload, _GROUP, _GROUP).view(torch.float4_e2m1fn_x2)
    # These fill up to 128 rows and 4 blocks, which covers the zeros added above.
    scale_a, scale_b = blocked_scales(a.scale), blocked_scales(b.scale)
    if scale_a.dtype == torch.float8_e4m3fn:
        product_MN = torch._scaled_mm(a_MK, b_NK.t(), scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16)
    else:
        recipe, order = F.ScalingType.BlockWise1x32, F.SwizzleType.SWIZZLE_32_4_4
        product_MN = F.scaled_mm(
            a_MK, b_NK.t(), scale_a, recipe, scale_b, recipe, order, order, output_dtype=torch.bfloat16
        )
    return (product_MN[:, :columns].float() * (a.overall * b.overall)).to(out)


def _in_groups(payload_RC: Tensor, row_group: int, column_group: int) -> Tensor:
    """Contiguous, with zeros added to a whole number of row and column groups."""
    more_rows, more_columns = -payload_RC.shape[0] % row_group, -payload_RC.shape[1] % column_group
    if more_rows or more_columns:
        padded = F.pad(payload_RC.view(torch.uint8), (0, more_columns, 0, more_rows))
        return padded.view(payload_RC.dtype)
    return payload_RC.contiguous()
