"""Quantization to 4-bit e2m1 with block scales, in two formats.

e2m1 has the magnitudes 0, 0.5, 1, 1.5, 2, 3, 4 and 6. Rounding is to the nearest, ties to the even code; what is above
6 after scaling is 6. B is a block of columns of one row.

nvfp4, blocks of 16 (NVIDIA, "Pretraining Large Language Models with NVFP4", arXiv:2509.25149, appendix C):

    tensor_scale   = max(max|x_RC| / (448 * 6), 1e-12)
    scale_RG       = e4m3(max_B|x| / 6 / tensor_scale)        within 2^-9 .. 448
    code_RC        = e2m1(x_RC / (tensor_scale * scale_RG))

mxfp4, blocks of 32 (OCP Microscaling Formats (MX) 1.0, section 6.3), tensor_scale = 1:

    scale_RG       = 2^(floor(log2(max_B|x|)) - 2)            as e8m0, at least 2^-127
    code_RC        = e2m1(x_RC / scale_RG)

All is computed in float32, and every implementation gives the same bits. e2m1 has no NaN. In mxfp4 a block with a NaN
or an infinity gets the scale NaN, and all codes 0. In nvfp4 a NaN makes the tensor scale and all block scales NaN, an
infinity the tensor scale infinite and the scale of its block NaN. Dequantized, all that has such a scale is NaN.

Shapes: R rows, C columns (the contraction), a whole number of blocks; G blocks of a row. x: [R, C]; packed: uint8
[R, C / 2], two codes a byte, the first in the low half (as torch.float4_e2m1fn_x2 has them); scale: [R, G] in
float8_e4m3fn or float8_e8m0fnu; tensor_scale: float32 [1].
Dtypes of x: float32, and bfloat16 where the implementation says so.
Not differentiable: results never require a gradient.

Bytes moved in float32, per element of [R, C] (scales left out):

    |       | fused                                 | `reference`, op by op in eager torch                        |
    | nvfp4 | 8.5: x in twice; packed out           | 121: comparisons and their sum 69, the rest magnitudes,     |
    | mxfp4 | 4.5: x in once, where a block is kept | 116: division, scales, signs and packing                    |
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.cases import Case, Layout, Tolerance
from kernels.errors import without_triton
from kernels.fp4_cpu import fp4_cpu
from kernels.fp4_ops import (
    E2M1_LARGEST,
    E2M1_VALUES,
    E4M3_LARGEST,
    E4M3_SMALLEST,
    FORMATS,
    Quantized,
    check_blocks,
)
from kernels.quantize import round_to_format_
from kernels.quantize_ops import FORMATS as FP8_FORMATS
from kernels.quantize_ops import SMALLEST_SCALE, check_matrix


def reference(x: Tensor, form: str) -> Quantized:
    """(packed, scale, tensor_scale) in plain torch, any floating dtype and device; computed in float32.

    Raises ValueError for another format, and unless x is a matrix with at least one element, whole blocks wide.
    """
    check_matrix("fp4", "x", x)
    chosen = check_blocks("fp4", form, x)
    blocks_RGB = x.detach().float().unflatten(1, (-1, chosen.block))
    magnitude = blocks_RGB.abs()
    largest = magnitude.amax(dim=2, keepdim=True)
    if form == "nvfp4":
        overall = _divided(largest.amax().reshape(1), E4M3_LARGEST * E2M1_LARGEST).clamp_(min=SMALLEST_SCALE)
        wanted = (_divided(largest, E2M1_LARGEST) / overall).clamp_(max=E4M3_LARGEST)
        near = round_to_format_(wanted, FP8_FORMATS["fp8_e4m3"]).clamp_(min=E4M3_SMALLEST)
        scale = near.to(chosen.scale)
        scaled = blocks_RGB / (overall * near)
    else:
        overall = torch.ones(1, device=x.device)
        exponent = largest.view(torch.int32) >> 23
        # e8m0 adds 127 to an exponent, as float32 does; 255 is NaN.
        stored = torch.where(exponent < 255, (exponent - 2).clamp(min=0), 255)
        scale = stored.to(torch.uint8).view(chosen.scale)
        # 1 / scale exactly, a normal number even where float32 has not the scale.
        scaled = blocks_RGB * torch.where(stored < 255, (254 - stored) << 23, 0).view(torch.float32)
    codes_RC = _codes(scaled).flatten(1)
    return codes_RC[:, ::2] | (codes_RC[:, 1::2] << 4), scale.squeeze(2), overall


def _divided(x: Tensor, by: float) -> Tensor:
    # By a tensor: on CUDA torch divides by a number by multiplying with its rounded reciprocal.
    return x / torch.full_like(x, by)


def _codes(scaled: Tensor) -> Tensor:
    """The codes of the nearest values. A tie is passed from an odd code to the even one above, not the other way."""
    magnitude = scaled.abs()
    code = torch.zeros_like(scaled, dtype=torch.uint8)
    for lower, (one, two) in enumerate(pairwise(E2M1_VALUES)):
        tie = (one + two) / 2
        code += magnitude >= tie if lower % 2 else magnitude > tie
    # NaN compares as false, and has no sign here.
    return code + 8 * (scaled.signbit() & ~scaled.isnan()).to(torch.uint8)


def cpu(x: Tensor, form: str) -> Quantized:
    """(packed, scale, tensor_scale) by the compiled C++ kernel; float32 on the CPU, one thread, built once.

    Raises Unavailable without a C++ compiler, TypeError for another dtype, ValueError as `reference` does or for
    another device.
    """
    return fp4_cpu(x, form)


def dequantize(packed: Tensor, scale: Tensor, tensor_scale: Tensor) -> Tensor:
    """The float32 values [R, C] that what an implementation returned stands for. The scale's dtype tells the format.

    Raises ValueError for a scale of another dtype or shape.
    """
    block = {form.scale: form.block for form in FORMATS.values()}.get(scale.dtype)
    rows, half = packed.shape
    if block is None or tuple(scale.shape) != (rows, 2 * half // block):
        raise ValueError(
            f"The scale {scale.dtype} {tuple(scale.shape)} does not belong to {rows} rows of {2 * half} values. "
            "It is e4m3 per 16 or e8m0 per 32."
        )
    values = torch.tensor((*E2M1_VALUES, *(-value for value in E2M1_VALUES)), device=packed.device)
    codes_RC = torch.stack((packed & 15, packed >> 4), dim=2).flatten(1)
    total_RG = tensor_scale * scale.float()
    return values[codes_RC.int()] * total_RG.repeat_interleave(block, dim=1)


def blocked_scales(scale: Tensor) -> Tensor:
    """Block scales [R, G] in the order in which tensor cores read them: one dimension, contiguous, dtype of `scale`.

    For `torch.nn.functional.scaled_mm` with `SwizzleType.SWIZZLE_32_4_4`, or `torch._scaled_mm`. Rows are filled up
    with zeros to a multiple of 128 and columns to one of 4, and cut into tiles of 128 x 4, one row of tiles after the
    other; in a tile, element (r, c) is at 16 (r mod 32) + 4 (r div 32) + c. Source: cuBLAS documentation, "1D Block
    Scaling Factors Layout". Raises ValueError unless `scale` is a matrix of a dtype of one byte.
    """
    if scale.dim() != 2 or scale.element_size() != 1:
        raise ValueError(f"blocked_scales takes [R, G] in a dtype of one byte, got {scale.dtype} {tuple(scale.shape)}.")
    rows, columns = scale.shape
    padded = F.pad(scale.view(torch.uint8), (0, -columns % 4, 0, -rows % 128))
    tiles = padded.unflatten(1, (-1, 4)).unflatten(0, (-1, 4, 32))  # row of tiles, r div 32, r mod 32, tile, c
    return tiles.permute(0, 3, 2, 1, 4).flatten().view(scale.dtype)


def triton(x: Tensor, form: str) -> Quantized:
    """(packed, scale, tensor_scale) by the Triton kernels; float32 or bfloat16 on CUDA, of any strides.

    Raises Unavailable without Triton or without a CUDA device, TypeError and ValueError as `cpu` does.
    """
    try:
        from kernels import fp4_triton
    except ModuleNotFoundError as error:
        raise without_triton(error, "set ops.quantize to cpu or reference") from error
    if not x.is_cuda:
        fp4_triton.require_device("ops.quantize")
    return fp4_triton.fp4_triton(x, form)


Quantize = Callable[[Tensor, str], Quantized]
IMPLEMENTATIONS: dict[str, Quantize] = {"reference": reference, "cpu": cpu, "triton": triton}
DEVICES: dict[str, tuple[str, ...]] = {"reference": ("cpu", "cuda"), "cpu": ("cpu",), "triton": ("cuda",)}

_EXACT = Tolerance(
    relative=0.0,
    absolute=0.0,
    reason="Codes and scales are defined by single float32 operations and roundings, and a maximum has no rounding.",
)


def _case(
    name: str,
    *shape: int,
    form: str,
    layout: Layout = "contiguous",
    scale: float = 1.0,
    dtype: torch.dtype = torch.float32,
) -> Case:
    float32 = ("reference", "cpu", "triton")
    return Case(
        name=name,
        shapes={"x": shape},
        options={"form": form},
        implementations=float32 if dtype == torch.float32 else ("reference", "triton"),
        outputs=_EXACT,
        gradients=None,
        dtype=dtype,
        layout=layout,
        scale=scale,
    )


CASES: tuple[Case, ...] = (
    _case("nv", 7, 48, form="nvfp4"),
    _case("mx", 7, 96, form="mxfp4"),
    _case("nv_one_block", 1, 16, form="nvfp4"),
    _case("mx_one_block", 1, 32, form="mxfp4"),
    _case("nv_many_rows", 40, 272, form="nvfp4"),
    _case("mx_many_rows", 40, 288, form="mxfp4"),
    _case("strided", 7, 160, form="nvfp4", layout="strided"),
    _case("transposed", 40, 96, form="nvfp4", layout="transposed"),
    _case("transposed_mx", 40, 96, form="mxfp4", layout="transposed"),
    _case("expanded", 6, 64, form="mxfp4", layout="expanded"),
    _case("nv_large_values", 4, 64, form="nvfp4", scale=1e30),
    _case("mx_large_values", 4, 64, form="mxfp4", scale=1e30),
    _case("nv_tiny_values", 4, 64, form="nvfp4", scale=1e-20),
    _case("mx_tiny_values", 4, 64, form="mxfp4", scale=1e-37),
    _case("bfloat16_nv", 9, 304, form="nvfp4", dtype=torch.bfloat16),
    _case("bfloat16_mx", 9, 288, form="mxfp4", dtype=torch.bfloat16),
)
