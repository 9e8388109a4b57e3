"""Triton kernels of `kernels.gated`: `kernels::gated_quantize_triton` and `kernels::gated_backward_triton`.

Importing this file needs Triton. Equations and bytes are in `kernels/gated.py`, and the ways of the launches, of tiles
and of rounding in `kernels/quantize_triton.py`. With one scale for all, y is not written but made again from gate and
up, which in bfloat16 are no more bytes than y in float32. So 8 more bytes per element in float32 than without a scale
for all, 4 in bfloat16.

Shape suffixes: R rows, C columns, P programs.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.quantize_ops import (
    BLOCK,
    GATED_BACKWARD_SCHEMA,
    GATED_SCHEMA,
    Accepts,
    check_choices,
    register,
    scales_in_a_row,
)
from kernels.quantize_triton import (
    DEVICES,
    DTYPES,
    PROGRAMS,
    TILE,
    WARPS,
    constants_of,
    magnitude,
    outputs_for,
    require_device,
    rounded,
    scale_of,
    specialization,
)
from kernels.specialization import Specialization

__all__ = ["gated_backward_triton", "gated_quantize_triton", "require_device"]


@triton.jit
def gated_product(gate_ptr, up_ptr, row, column, inside, gate_row, gate_column, up_row, up_column):
    """A tile of y in float32, zeros outside."""
    gate = tl.load(gate_ptr + row * gate_row + column * gate_column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * up_row + column * up_column, mask=inside, other=0.0).to(tl.float32)
    return gate / (1.0 + tl.exp(-gate)) * up


@triton.jit
def gated_largest(
    gate_ptr,
    up_ptr,
    partials_ptr,
    rows,
    columns,
    gate_row,
    gate_column,
    up_row,
    up_column,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
):
    """partials_P: the largest magnitude of every P-th tile of y, as integers."""
    program = tl.program_id(0)
    across = tl.cdiv(columns, TILE_COLUMNS)
    tiles = tl.cdiv(rows, TILE_ROWS) * across
    largest = tl.zeros([TILE_ROWS, TILE_COLUMNS], dtype=tl.int32)
    for tile in range(program, tiles, tl.num_programs(0)):
        row = ((tile // across) * TILE_ROWS + tl.arange(0, TILE_ROWS))[:, None].to(tl.int64)
        column = ((tile % across) * TILE_COLUMNS + tl.arange(0, TILE_COLUMNS))[None, :].to(tl.int64)
        inside = (row < rows) & (column < columns)
        y = gated_product(gate_ptr, up_ptr, row, column, inside, gate_row, gate_column, up_row, up_column)
        largest = tl.maximum(largest, magnitude(y))
    tl.store(partials_ptr + program, tl.max(tl.max(largest, axis=1), axis=0))


@triton.jit
def gated_tensor(
    gate_ptr,
    up_ptr,
    partials_ptr,
    payload_ptr,
    scale_ptr,
    rows,
    columns,
    gate_row,
    gate_column,
    up_row,
    up_column,
    programs,
    LARGEST: tl.constexpr,
    SMALLEST_NORMAL: tl.constexpr,
    BESIDE: tl.constexpr,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
    PARTIALS: tl.constexpr,
):
    """The payload of every P-th tile of y, and from the first program the scale."""
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
        y = gated_product(gate_ptr, up_ptr, row, column, inside, gate_row, gate_column, up_row, up_column)
        scaled = tl.div_rn(y, tl.broadcast_to(scale[:, None], [TILE_ROWS, TILE_COLUMNS]))
        value = rounded(scaled, SMALLEST_NORMAL, BESIDE)
        tl.store(payload_ptr + row * columns + column, value.to(payload_ptr.dtype.element_ty), mask=inside)


@triton.jit
def gated_groups(
    gate_ptr,
    up_ptr,
    payload_ptr,
    scale_ptr,
    rows,
    columns,
    gate_row,
    gate_column,
    up_row,
    up_column,
    group,
    LARGEST: tl.constexpr,
    SMALLEST_NORMAL: tl.constexpr,
    BESIDE: tl.constexpr,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
):
    """Payload and scales of TILE_ROWS rows of one group of columns of y. Grid: row tiles, groups of a row."""
    row = (tl.program_id(0) * TILE_ROWS + tl.arange(0, TILE_ROWS))[:, None].to(tl.int64)
    first = tl.program_id(1) * group
    last = tl.minimum(first + group, columns)
    largest = tl.zeros([TILE_ROWS, TILE_COLUMNS], dtype=tl.int32)
    for start in range(first, last, TILE_COLUMNS):
        column = (start + tl.arange(0, TILE_COLUMNS))[None, :].to(tl.int64)
        inside = (row < rows) & (column < last)
        y = gated_product(gate_ptr, up_ptr, row, column, inside, gate_row, gate_column, up_row, up_column)
        largest = tl.maximum(largest, magnitude(y))
    scale = scale_of(tl.max(largest, axis=1), LARGEST)[:, None]
    tl.store(scale_ptr + row * tl.num_programs(1) + tl.program_id(1), scale, mask=row < rows)
    for start in range(first, last, TILE_COLUMNS):
        column = (start + tl.arange(0, TILE_COLUMNS))[None, :].to(tl.int64)
        inside = (row < rows) & (column < last)
        y = gated_product(gate_ptr, up_ptr, row, column, inside, gate_row, gate_column, up_row, up_column)
        scaled = tl.div_rn(y, tl.broadcast_to(scale, [TILE_ROWS, TILE_COLUMNS]))
        value = rounded(scaled, SMALLEST_NORMAL, BESIDE)
        tl.store(payload_ptr + row * columns + column, value.to(payload_ptr.dtype.element_ty), mask=inside)


@triton.jit
def gated_backward(
    dy_ptr,
    gate_ptr,
    up_ptr,
    grad_gate_ptr,
    grad_up_ptr,
    rows,
    columns,
    dy_row,
    dy_column,
    gate_row,
    gate_column,
    up_row,
    up_column,
    TILE_ROWS: tl.constexpr,
    TILE_COLUMNS: tl.constexpr,
):
    """One tile of both gradients. Grid: row tiles, column tiles."""
    row = (tl.program_id(0) * TILE_ROWS + tl.arange(0, TILE_ROWS))[:, None].to(tl.int64)
    column = (tl.program_id(1) * TILE_COLUMNS + tl.arange(0, TILE_COLUMNS))[None, :].to(tl.int64)
    inside = (row < rows) & (column < columns)
    dy = tl.load(dy_ptr + row * dy_row + column * dy_column, mask=inside, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + row * gate_row + column * gate_column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * up_row + column * up_column, mask=inside, other=0.0).to(tl.float32)
    s = 1.0 / (1.0 + tl.exp(-gate))
    grad_gate = dy * up * (s * (1.0 + gate * (1.0 - s)))
    at = row * columns + column
    tl.store(grad_gate_ptr + at, grad_gate.to(grad_gate_ptr.dtype.element_ty), mask=inside)
    tl.store(grad_up_ptr + at, (dy * (gate * s)).to(grad_up_ptr.dtype.element_ty), mask=inside)


def _specializations(element: str, form: str, payload: str) -> tuple[Specialization, ...]:
    pair = {"gate_ptr": f"*{element}", "up_ptr": f"*{element}"}
    quantized = {"payload_ptr": f"*{payload}", "scale_ptr": "*fp32"}
    sizes = ("rows", "columns", "gate_row", "up_row")
    name = f"{form}_{element}"
    constants: dict[str, Any] = {"gate_column": 1, "up_column": 1}
    rounding = {**constants, **constants_of(form)}
    return (
        specialization(gated_largest, f"gated_largest_{name}", {**pair, "partials_ptr": "*i32"}, sizes, **constants),
        specialization(
            gated_tensor,
            f"gated_tensor_{name}",
            {**pair, "partials_ptr": "*i32", **quantized},
            (*sizes, "programs"),
            PARTIALS=PROGRAMS,
            **rounding,
        ),
        specialization(gated_groups, f"gated_groups_{name}", {**pair, **quantized}, (*sizes, "group"), **rounding),
    )


def _backward_specialization(element: str) -> Specialization:
    names = ("dy_ptr", "gate_ptr", "up_ptr", "grad_gate_ptr", "grad_up_ptr")
    return specialization(
        gated_backward,
        f"gated_backward_{element}",
        dict.fromkeys(names, f"*{element}"),
        ("rows", "columns", "dy_row", "gate_row", "up_row"),
        dy_column=1,
        gate_column=1,
        up_column=1,
    )


# What static evidence (registers, spills) is taken from.
SPECIALIZATIONS: tuple[Specialization, ...] = (
    *_specializations("bf16", "fp8_e4m3", "fp8e4nv"),
    *_specializations("fp32", "fp8_e4m3", "fp32"),
    _backward_specialization("bf16"),
    _backward_specialization("fp32"),
)

_FORWARD = Accepts(name="gated_quantize_triton", dtypes=DTYPES, devices=DEVICES)
_BACKWARD = Accepts(name="gated_backward_triton", dtypes=DTYPES, devices=DEVICES)


def _gated(gate: Tensor, up: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    _FORWARD.check(gate=gate, up=up)
    check_choices(_FORWARD.name, form, scaling)
    payload, scale = outputs_for(gate, form, scaling, emulated)
    rows, columns = gate.shape
    sizes = rows, columns, *gate.stride(), *up.stride()
    constants = {**constants_of(form), **TILE}
    row_tiles = triton.cdiv(rows, TILE["TILE_ROWS"])
    if scaling == "tensor":
        programs = min(row_tiles * triton.cdiv(columns, TILE["TILE_COLUMNS"]), PROGRAMS)
        partials_P = gate.new_empty(programs, dtype=torch.int32)
        gated_largest[(programs,)](gate, up, partials_P, *sizes, **TILE, num_warps=WARPS)
        gated_tensor[(programs,)](
            gate,
            up,
            partials_P,
            payload,
            scale,
            *sizes,
            programs,
            PARTIALS=triton.next_power_of_2(programs),
            **constants,
            num_warps=WARPS,
        )
    else:
        group = columns if scaling == "row" else BLOCK
        grid = row_tiles, scales_in_a_row(columns, scaling)
        gated_groups[grid](gate, up, payload, scale, *sizes, group, **constants, num_warps=WARPS)
    return payload, scale


def _gated_fake(gate: Tensor, up: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    _FORWARD.check(gate=gate, up=up)
    check_choices(_FORWARD.name, form, scaling)
    return outputs_for(gate, form, scaling, emulated)


def _backward(dy: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    _BACKWARD.check(gate=gate, up=up, dy=dy)
    grad_gate, grad_up = gate.new_empty(gate.shape), gate.new_empty(gate.shape)
    rows, columns = gate.shape
    grid = triton.cdiv(rows, TILE["TILE_ROWS"]), triton.cdiv(columns, TILE["TILE_COLUMNS"])
    strides = *dy.stride(), *gate.stride(), *up.stride()
    gated_backward[grid](dy, gate, up, grad_gate, grad_up, rows, columns, *strides, **TILE, num_warps=WARPS)
    return grad_gate, grad_up


def _backward_fake(dy: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    _BACKWARD.check(gate=gate, up=up, dy=dy)
    return gate.new_empty(gate.shape), gate.new_empty(gate.shape)


gated_quantize_triton = register(_FORWARD.name, GATED_SCHEMA, 2, _gated, _gated_fake)
gated_backward_triton = register(_BACKWARD.name, GATED_BACKWARD_SCHEMA, 3, _backward, _backward_fake)
