"""Triton kernel of `kernels.fp4`: `kernels::fp4_triton`.

Importing this file needs Triton. Equations and bytes are in `kernels/fp4.py`. nvfp4 takes a first launch for the
largest magnitude of the whole tensor (`quantize_largest` of `kernels/quantize_triton.py`); then one program quantizes
and packs a tile of whole blocks. No atomics, so a result repeats bit for bit. Offsets are 64-bit.

Scales are written as bytes: those of e4m3 are made arithmetically, since the interpreter rounds a cast otherwise.

Shape suffixes: R rows, C columns, G blocks of a row, P programs.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fp4_ops import (
    E2M1_LARGEST,
    E4M3_LARGEST,
    E4M3_SMALLEST,
    SCHEMA,
    Quantized,
    check_blocks,
    outputs_for,
)
from kernels.quantize_ops import FORMATS as FP8_FORMATS
from kernels.quantize_ops import Accepts, register
from kernels.quantize_triton import (
    DEVICES,
    DTYPES,
    PROGRAMS,
    TILE,
    WARPS,
    magnitude,
    quantize_largest,
    require_device,
    rounded,
    scale_of,
    specialization,
)
from kernels.specialization import Specialization

__all__ = ["fp4_triton", "require_device"]

_E4M3 = FP8_FORMATS["fp8_e4m3"]
_SMALLEST_NORMAL = tl.constexpr(_E4M3.smallest_normal)
_BESIDE = tl.constexpr(_E4M3.beside)
_E4M3_LARGEST = tl.constexpr(E4M3_LARGEST)
_E4M3_SMALLEST = tl.constexpr(E4M3_SMALLEST)
_E2M1_LARGEST = tl.constexpr(E2M1_LARGEST)
# A tensor's largest magnitude over this is its scale.
_LARGEST = tl.constexpr(E4M3_LARGEST * E2M1_LARGEST)


@triton.jit
def e2m1_of(value):
    """The code of the nearest e2m1 value, ties to the even code; NaN is +0."""
    a = tl.abs(value)
    code = (a > 0.25).to(tl.int32) + (a >= 0.75).to(tl.int32) + (a > 1.25).to(tl.int32) + (a >= 1.75).to(tl.int32)
    code += (a > 2.5).to(tl.int32) + (a >= 3.5).to(tl.int32) + (a > 5.0).to(tl.int32)
    sign = (value.to(tl.int32, bitcast=True) >> 28) & 8
    return tl.where(value == value, code | sign, 0)


@triton.jit
def e4m3_byte(value):
    """The byte of a positive e4m3 value held in float32, or of NaN."""
    subnormal = value < _SMALLEST_NORMAL
    # Moved to the first normal binade, where its mantissa lies as the others do.
    moved = value + tl.where(subnormal, _SMALLEST_NORMAL, 0.0)
    code = (moved.to(tl.int32, bitcast=True) >> 20) - (120 << 3) - tl.where(subnormal, 8, 0)
    return tl.where(value == value, code, 0x7F)


@triton.jit
def fp4_quantize(
    x_ptr,
    partials_ptr,
    packed_ptr,
    scale_ptr,
    tensor_scale_ptr,
    rows,
    columns,
    row_stride,
    column_stride,
    programs,
    NV: tl.constexpr,
    BLOCK: tl.constexpr,
    PARTIALS: tl.constexpr,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
):
    """Codes and block scales of one tile, and from the first program the tensor scale. Grid: row, column tiles."""
    BLOCKS: tl.constexpr = TILE_COLUMNS // BLOCK
    row = (tl.program_id(0) * TILE_ROWS + tl.arange(0, TILE_ROWS))[:, None].to(tl.int64)
    column = (tl.program_id(1) * TILE_COLUMNS + tl.arange(0, TILE_COLUMNS))[None, :].to(tl.int64)
    inside = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * row_stride + column * column_stride, mask=inside, other=0.0).to(tl.float32)
    blocks = tl.reshape(x, [TILE_ROWS, BLOCKS, BLOCK])
    largest = tl.max(magnitude(blocks), axis=2)
    first = tl.full([1], tl.program_id(0) + tl.program_id(1), tl.int32) == 0
    if NV:
        at = tl.arange(0, PARTIALS)
        partials = tl.load(partials_ptr + at, mask=at < programs, other=0)
        overall = scale_of(tl.max(tl.reshape(partials, [1, PARTIALS]), axis=1), _LARGEST)
        tl.store(tensor_scale_ptr + tl.arange(0, 1), overall, mask=first)
        overall = tl.broadcast_to(overall[:, None], [TILE_ROWS, BLOCKS])
        sixth = tl.div_rn(largest.to(tl.float32, bitcast=True), tl.full([TILE_ROWS, BLOCKS], _E2M1_LARGEST, tl.float32))
        wanted = tl.div_rn(sixth, overall)
        near = rounded(tl.where(wanted > _E4M3_LARGEST, _E4M3_LARGEST, wanted), _SMALLEST_NORMAL, _BESIDE)
        scale = tl.where(near < _E4M3_SMALLEST, _E4M3_SMALLEST, near)
        stored = e4m3_byte(scale)
        total = tl.broadcast_to((overall * scale)[:, :, None], [TILE_ROWS, BLOCKS, BLOCK])
        scaled = tl.div_rn(blocks, total)
    else:
        tl.store(tensor_scale_ptr + tl.arange(0, 1), tl.full([1], 1.0, tl.float32), mask=first)
        exponent = largest >> 23
        stored = tl.where(exponent < 255, tl.maximum(exponent - 2, 0), 255)
        inverse = tl.where(exponent < 255, (254 - stored) << 23, 0).to(tl.float32, bitcast=True)
        scaled = blocks * inverse[:, :, None]
    group = (tl.program_id(1) * BLOCKS + tl.arange(0, BLOCKS))[None, :].to(tl.int64)
    groups = columns // BLOCK
    tl.store(scale_ptr + row * groups + group, stored.to(tl.uint8), mask=(row < rows) & (group < groups))
    low, high = tl.split(tl.reshape(e2m1_of(scaled), [TILE_ROWS, TILE_COLUMNS // 2, 2]))
    half = (tl.program_id(1) * (TILE_COLUMNS // 2) + tl.arange(0, TILE_COLUMNS // 2))[None, :].to(tl.int64)
    width = columns // 2
    tl.store(packed_ptr + row * width + half, (low | (high << 4)).to(tl.uint8), mask=(row < rows) & (half < width))


def _constants(form: str, block: int, programs: int) -> dict[str, int | bool]:
    return {"NV": form == "nvfp4", "BLOCK": block, "PARTIALS": triton.next_power_of_2(programs)}


def _specialization(form: str, block: int) -> Specialization:
    return specialization(
        fp4_quantize,
        f"fp4_{form}_bf16",
        {
            "x_ptr": "*bf16",
            "partials_ptr": "*i32",
            "packed_ptr": "*u8",
            "scale_ptr": "*u8",
            "tensor_scale_ptr": "*fp32",
        },
        ("rows", "columns", "row_stride", "programs"),
        column_stride=1,
        **_constants(form, block, PROGRAMS),
    )


# What static evidence (registers, spills) is taken from.
SPECIALIZATIONS: tuple[Specialization, ...] = (_specialization("nvfp4", 16), _specialization("mxfp4", 32))

_ACCEPTS = Accepts(name="fp4_triton", dtypes=DTYPES, devices=DEVICES)


def _quantize(x: Tensor, form: str) -> Quantized:
    _ACCEPTS.check(x=x)
    chosen = check_blocks(_ACCEPTS.name, form, x)
    packed, scale, overall = outputs_for(x, chosen)
    rows, columns = x.shape
    grid = triton.cdiv(rows, TILE["TILE_ROWS"]), triton.cdiv(columns, TILE["TILE_COLUMNS"])
    programs = min(grid[0] * grid[1], PROGRAMS)
    partials_P = x.new_empty(programs, dtype=torch.int32)
    sizes = rows, columns, *x.stride()
    if form == "nvfp4":
        quantize_largest[(programs,)](x, partials_P, *sizes, **TILE, num_warps=WARPS)
    fp4_quantize[grid](
        x,
        partials_P,
        packed,
        scale.view(torch.uint8),
        overall,
        *sizes,
        programs,
        **_constants(form, chosen.block, programs),
        **TILE,
        num_warps=WARPS,
    )
    return packed, scale, overall


def _fake(x: Tensor, form: str) -> Quantized:
    _ACCEPTS.check(x=x)
    return outputs_for(x, check_blocks(_ACCEPTS.name, form, x))


fp4_triton = register(_ACCEPTS.name, SCHEMA, 1, _quantize, _fake)
