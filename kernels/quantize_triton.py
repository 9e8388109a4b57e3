"""Triton kernels of `kernels.quantize`: `kernels::quantize_triton`.

Importing this file needs Triton. Equations and bytes are in `kernels/quantize.py`.

One scale for all takes two launches: a fixed number of programs write the largest magnitude of their share, then each
program reads all of these and rounds its tiles. With scales of their own, rows and blocks take one launch. There are no
atomics, and a maximum has no rounding, so a result repeats bit for bit. Inputs are read through their strides, in
tiles, so that a transposed one is read in whole lines too; the payload is written contiguous, contraction innermost, as
tensor cores want it. Offsets are 64-bit, so R * C may pass 2^31.

Values are rounded arithmetically before they are cast to fp8, as the reference does: the cast is then exact wherever
it is done, under Triton's interpreter too, which rounds some ties otherwise. What rounds to zero is +0.

Shape suffixes: R rows, C columns, P programs.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.errors import Unavailable
from kernels.quantize_ops import (
    BLOCK,
    FORMATS,
    QUANTIZE_SCHEMA,
    SMALLEST_SCALE,
    Accepts,
    check_choices,
    register,
    scale_shape,
    scales_in_a_row,
)
from kernels.specialization import Specialization

_SMALLEST_SCALE = tl.constexpr(SMALLEST_SCALE)
# A tile has 2,048 elements: 16 for each thread of 4 warps.
TILE = {"TILE_ROWS": 16, "TILE_COLUMNS": 128}
WARPS = 4
# Programs that share one scale, at most; each reads the maxima of all.
PROGRAMS = 512


@triton.jit
def magnitude(x):
    """|x| of float32 as an integer: sorts as the value does, with infinity and then NaN on top."""
    return x.to(tl.int32, bitcast=True) & 0x7FFFFFFF


@triton.jit
def scale_of(largest, LARGEST: tl.constexpr):
    """The scale of what has this largest magnitude, as `magnitude` gives it. LARGEST: that of the format."""
    scale = tl.div_rn(largest.to(tl.float32, bitcast=True), tl.full(largest.shape, LARGEST, tl.float32))
    # Not a maximum, which would drop NaN.
    return tl.where(scale < _SMALLEST_SCALE, _SMALLEST_SCALE, scale)


@triton.jit
def rounded(x, SMALLEST_NORMAL: tl.constexpr, BESIDE: tl.constexpr):
    """x to the nearest value of a format, ties to even; BESIDE is `Format.beside`."""
    power = (x.to(tl.int32, bitcast=True) & 0x7F800000).to(tl.float32, bitcast=True)
    c = tl.where(power < SMALLEST_NORMAL, SMALLEST_NORMAL, power) * BESIDE
    return (x + c) - c


@triton.jit
def quantize_largest(
    x_ptr,
    partials_ptr,
    rows,
    columns,
    row_stride,
    column_stride,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
):
    """partials_P: the largest magnitude of every P-th tile of x, as integers."""
    program = tl.program_id(0)
    across = tl.cdiv(columns, TILE_COLUMNS)
    tiles = tl.cdiv(rows, TILE_ROWS) * across
    largest = tl.zeros([TILE_ROWS, TILE_COLUMNS], dtype=tl.int32)
    for tile in range(program, tiles, tl.num_programs(0)):
        row = ((tile // across) * TILE_ROWS + tl.arange(0, TILE_ROWS))[:, None].to(tl.int64)
        column = ((tile % across) * TILE_COLUMNS + tl.arange(0, TILE_COLUMNS))[None, :].to(tl.int64)
        inside = (row < rows) & (column < columns)
        x = tl.load(x_ptr + row * row_stride + column * column_stride, mask=inside, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, magnitude(x))
    tl.store(partials_ptr + program, tl.max(tl.max(largest, axis=1), axis=0))


@triton.jit
def quantize_tensor(
    x_ptr,
    partials_ptr,
    payload_ptr,
    scale_ptr,
    rows,
    columns,
    row_stride,
    column_stride,
    programs,
    LARGEST: tl.constexpr,
    SMALLEST_NORMAL: tl.constexpr,
    BESIDE: tl.constexpr,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
    PARTIALS: tl.constexpr,
):
    """The payload of every P-th tile of x, and from the first program the scale."""
    program = tl.program_id(0)
    at = tl.arange(0, PARTIALS)
    partials = tl.load(partials_ptr + at, mask=at < programs, other=0)
    scale = scale_of(tl.max(tl.reshape(partials, [1, PARTIALS]), axis=1), LARGEST)
    tl.store(scale_ptr + tl.arange(0, 1), scale, mask=tl.full([1], program, tl.int32) == 0)
    across = tl.cdiv(columns, TILE_COLUMNS)
    tiles = tl.cdiv(rows, TILE_ROWS) * across
    for tile in range(program, tiles, tl.num_programs(0)):
        row = ((tile // across) * TILE_ROWS + tl.arange(0, TILE_ROWS))[:, None].to(tl.int64)
        column = ((tile % across) * TILE_COLUMNS + tl.arange(0, TILE_COLUMNS))[None, :].to(tl.int64)
        inside = (row < rows) & (column < columns)
        x = tl.load(x_ptr + row * row_stride + column * column_stride, mask=inside, other=0.0).to(tl.float32)
        scaled = tl.div_rn(x, tl.broadcast_to(scale[:, None], [TILE_ROWS, TILE_COLUMNS]))
        value = rounded(scaled, SMALLEST_NORMAL, BESIDE)
        tl.store(payload_ptr + row * columns + column, value.to(payload_ptr.dtype.element_ty), mask=inside)


@triton.jit
def quantize_groups(
    x_ptr,
    payload_ptr,
    scale_ptr,
    rows,
    columns,
    row_stride,
    column_stride,
    group,
    LARGEST: tl.constexpr,
    SMALLEST_NORMAL: tl.constexpr,
    BESIDE: tl.constexpr,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
):
    """Payload and scales of TILE_ROWS rows of one group of columns. Grid: row tiles, groups of a row."""
    row = (tl.program_id(0) * TILE_ROWS + tl.arange(0, TILE_ROWS))[:, None].to(tl.int64)
    first = tl.program_id(1) * group
    last = tl.minimum(first + group, columns)
    largest = tl.zeros([TILE_ROWS, TILE_COLUMNS], dtype=tl.int32)
    for start in range(first, last, TILE_COLUMNS):
        column = (start + tl.arange(0, TILE_COLUMNS))[None, :].to(tl.int64)
        inside = (row < rows) & (column < last)
        x = tl.load(x_ptr + row * row_stride + column * column_stride, mask=inside, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, magnitude(x))
    scale = scale_of(tl.max(largest, axis=1), LARGEST)[:, None]
    tl.store(scale_ptr + row * tl.num_programs(1) + tl.program_id(1), scale, mask=row < rows)
    for start in range(first, last, TILE_COLUMNS):
        column = (start + tl.arange(0, TILE_COLUMNS))[None, :].to(tl.int64)
        inside = (row < rows) & (column < last)
        x = tl.load(x_ptr + row * row_stride + column * column_stride, mask=inside, other=0.0).to(tl.float32)
        scaled = tl.div_rn(x, tl.broadcast_to(scale, [TILE_ROWS, TILE_COLUMNS]))
        value = rounded(scaled, SMALLEST_NORMAL, BESIDE)
        tl.store(payload_ptr + row * columns + column, value.to(payload_ptr.dtype.element_ty), mask=inside)


def constants_of(form: str) -> dict[str, float]:
    """The constants by which the kernels know a format."""
    chosen = FORMATS[form]
    return {"LARGEST": chosen.largest, "SMALLEST_NORMAL": chosen.smallest_normal, "BESIDE": chosen.beside}


def specialization(
    kernel: Any, name: str, pointers: dict[str, str], sizes: tuple[str, ...], **constants: Any
) -> Specialization:
    """With 32-bit integers for `sizes`, and `constants` for the rest."""
    constants = {**constants, **TILE}
    return Specialization(
        name=name,
        kernel=kernel,
        signature={**pointers, **dict.fromkeys(sizes, "i32"), **dict.fromkeys(constants, "constexpr")},
        constants=constants,
        warps=WARPS,
    )


def _specializations(element: str, form: str, payload: str) -> tuple[Specialization, ...]:
    x = {"x_ptr": f"*{element}"}
    scale = {"payload_ptr": f"*{payload}", "scale_ptr": "*fp32"}
    sizes = ("rows", "columns", "row_stride")
    name = f"{form}_{element}"
    constants: dict[str, Any] = {"column_stride": 1}
    rounding = {**constants, **constants_of(form)}
    return (
        specialization(quantize_largest, f"quantize_largest_{name}", {**x, "partials_ptr": "*i32"}, sizes, **constants),
        specialization(
            quantize_tensor,
            f"quantize_tensor_{name}",
            {**x, "partials_ptr": "*i32", **scale},
            (*sizes, "programs"),
            PARTIALS=PROGRAMS,
            **rounding,
        ),
        specialization(quantize_groups, f"quantize_groups_{name}", {**x, **scale}, (*sizes, "group"), **rounding),
    )


# What static evidence (registers, spills) is taken from.
SPECIALIZATIONS: tuple[Specialization, ...] = (
    *_specializations("bf16", "fp8_e4m3", "fp8e4nv"),
    *_specializations("bf16", "fp8_e5m2", "fp8e5"),
    *_specializations("fp32", "fp8_e4m3", "fp32"),
)

# Whether Triton was told to interpret its kernels (TRITON_INTERPRET=1), so that they run on CPU tensors.
INTERPRETED = not isinstance(quantize_largest, triton.JITFunction)

DTYPES = (torch.float32, torch.bfloat16)
DEVICES = ("cuda", "cpu") if INTERPRETED else ("cuda",)

_ACCEPTS = Accepts(name="quantize_triton", dtypes=DTYPES, devices=DEVICES)


def outputs_for(x: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    """(payload, scale) for x, contiguous and not yet written."""
    return (
        x.new_empty(x.shape, dtype=torch.float32 if emulated else FORMATS[form].dtype),
        x.new_empty(scale_shape(x.shape[0], x.shape[1], scaling), dtype=torch.float32),
    )


def _quantize(x: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    _ACCEPTS.check(x=x)
    check_choices(_ACCEPTS.name, form, scaling)
    payload, scale = outputs_for(x, form, scaling, emulated)
    rows, columns = x.shape
    constants = constants_of(form)
    if scaling == "tensor":
        tiles = triton.cdiv(rows, TILE["TILE_ROWS"]) * triton.cdiv(columns, TILE["TILE_COLUMNS"])
        programs = min(tiles, PROGRAMS)
        partials_P = x.new_empty(programs, dtype=torch.int32)
        quantize_largest[(programs,)](x, partials_P, rows, columns, *x.stride(), **TILE, num_warps=WARPS)
        quantize_tensor[(programs,)](
            x,
            partials_P,
            payload,
            scale,
            rows,
            columns,
            *x.stride(),
            programs,
            PARTIALS=triton.next_power_of_2(programs),
            **constants,
            **TILE,
            num_warps=WARPS,
        )
    else:
        grid = triton.cdiv(rows, TILE["TILE_ROWS"]), scales_in_a_row(columns, scaling)
        group = columns if scaling == "row" else BLOCK
        quantize_groups[grid](
            x, payload, scale, rows, columns, *x.stride(), group, **constants, **TILE, num_warps=WARPS
        )
    return payload, scale


def _fake(x: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    _ACCEPTS.check(x=x)
    check_choices(_ACCEPTS.name, form, scaling)
    return outputs_for(x, form, scaling, emulated)


quantize_triton = register(_ACCEPTS.name, QUANTIZE_SCHEMA, 1, _quantize, _fake)


def require_device(option: str) -> None:
    """Raises Unavailable on a machine where Triton's kernels cannot be launched; `option` is what chose them."""
    if not INTERPRETED and not torch.cuda.is_available():
        raise Unavailable(
            reason="Triton is installed, but torch finds no CUDA device.",
            remedy=f"Run on a machine with a CUDA GPU and a CUDA build of torch, or set {option} to cpu.",
        )
