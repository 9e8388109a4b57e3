"""Which compiled kernels a configuration selects, and how each is got hold of for `kernels.static`.

A family's Triton file has `SPECIALIZATIONS` to compile without a device; its CPU file says which object it runs from
and which C symbols. Sizes that decide the code are those of the configuration; dtypes are those of its device, float32
on a CPU and bfloat16 on CUDA, and fp8 is e4m3, which every fp8 configuration uses.

The recurrent backward is looked at for every target, whichever runs. A register cap is counted in the registers of the
family that runs (vector registers of the CPU, or registers of a thread); for the other family it is the same share of
what that one has, which its variant says.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from kernels import build, gated_cpu, prenorm_cpu, quantize_cpu, recurrence_cpu
from kernels.errors import Unavailable

THREAD_REGISTERS = 256  # what ptxas shares out among the threads of a block: 255 and the zero register
FORM = "fp8_e4m3"
# Kernels of the recurrence in its Triton file, and those that make up a backward variant. Where there are two, the one
# that walks from chunk to chunk has the family's name.
_PARTS = (
    "forward",
    "backward_fused",
    "backward_live_state",
    "backward_phase_split_queries",
    "backward_phase_split_keys",
)
_BACKWARDS = {
    "fused": {"recurrence_backward": "backward_fused"},
    "live_state": {"recurrence_backward": "backward_live_state"},
    "phase_split": {
        "recurrence_backward": "backward_phase_split_keys",
        "recurrence_backward_queries": "backward_phase_split_queries",
    },
}
# Integer arguments of the listed kernels that are widths, chunks, tokens, or distances between rows of such widths.
_SIZES = frozenset(("rows", "columns", "row_stride", "gate_row", "up_row", "dy_row"))
_SIZES |= frozenset(("K", "V", "chunk", *(f"{tensor}_{by}" for tensor in "qkvg" for by in "bth")))


@dataclass(frozen=True)
class CpuKernel:
    """A function of a CPU object. `build()` gives the object's path; it raises kernels.errors.Unavailable."""

    name: str
    variant: str
    symbol: str
    build: Callable[[], Path]


@dataclass(frozen=True)
class TritonKernel:
    """A Triton kernel. `load()` gives its specialization and the names of the integer arguments that are multiples of
    16 at a launch; it imports Triton."""

    name: str
    variant: str
    load: Callable[[], tuple[Any, tuple[str, ...]]]


Kernel = CpuKernel | TritonKernel


def selected(ops: Mapping[str, Any], device: str, shapes: Mapping[str, Any]) -> list[Kernel]:
    """The kernels of the config's sections `ops` and `model`; see `kernels.static.rows_for`."""
    return [
        *_recurrence(ops, shapes),
        *_prenorm(ops, device, shapes),
        *_quantize(ops, device, shapes),
        *_gated(ops, device, shapes),
    ]


def sizes_of(entry: Any) -> tuple[str, ...]:
    """The integer arguments of a specialization that are multiples of 16 where the model's widths are."""
    return tuple(name for name, kind in entry.signature.items() if kind == "i32" and name in _SIZES)


def _element(device: str) -> str:
    return "bf16" if device.startswith("cuda") else "fp32"


def _prenorm(ops: Mapping[str, Any], device: str, shapes: Mapping[str, Any]) -> list[Kernel]:
    names = ("prenorm_forward", "prenorm_backward")
    chosen, width, element = ops.get("prenorm"), shapes["width"], _element(device)
    if chosen == "cpu":
        built = partial(build.build, prenorm_cpu.SOURCE)
        return [CpuKernel(name, f"fp32 width {width}", f"{name}_f32", built) for name in names]
    if chosen == "triton":
        return [
            TritonKernel(name, f"{element} width {width}", partial(_load_prenorm, name, element, width))
            for name in names
        ]
    return []


def _load_prenorm(name: str, element: str, width: int) -> tuple[Any, tuple[str, ...]]:
    from kernels import prenorm_triton

    # The listed ones differ in element and BLOCK only; this is the one of the config's width.
    listed = next(one for one in prenorm_triton.SPECIALIZATIONS if one.name.startswith(f"{name}_{element}_"))
    block, warps = prenorm_triton.block_of(width)
    entry = replace(listed, constants={**listed.constants, "BLOCK": block}, warps=warps)
    return entry, ("width",) if width % 16 == 0 else ()


def _quantize(ops: Mapping[str, Any], device: str, shapes: Mapping[str, Any]) -> list[Kernel]:
    if ops.get("quantize") == "cpu":
        symbol = quantize_cpu.symbol(FORM, emulated=True)
        return [CpuKernel("quantize", f"{FORM} emulated", symbol, quantize_cpu.object_path)]
    if ops.get("quantize") == "triton":
        names = [f"quantize_{part}" for part in ("largest", "tensor", "groups")]
        return _listed("kernels.quantize_triton", names, f"{FORM}_{_element(device)}", shapes)
    return []


def _gated(ops: Mapping[str, Any], device: str, shapes: Mapping[str, Any]) -> list[Kernel]:
    if ops.get("gated") == "cpu":
        symbol = gated_cpu.symbol(FORM, emulated=True)
        return [
            CpuKernel("gated_quantize", f"{FORM} emulated", symbol, gated_cpu.object_path),
            CpuKernel("gated_backward", "fp32", gated_cpu.BACKWARD_SYMBOL, gated_cpu.object_path),
        ]
    if ops.get("gated") == "triton":
        module, element = "kernels.gated_triton", _element(device)
        names = [f"gated_{part}" for part in ("largest", "tensor", "groups")]
        return [
            *_listed(module, names, f"{FORM}_{element}", shapes),
            *_listed(module, ["gated_backward"], element, shapes),
        ]
    return []


def _listed(module: str, names: Sequence[str], suffix: str, shapes: Mapping[str, Any]) -> list[Kernel]:
    """The listed specializations `NAME_SUFFIX` of a file; they do not depend on the config's sizes but for whether
    those are multiples of 16."""
    whole = shapes["width"] % 16 == 0 and shapes["ff_width"] % 16 == 0

    def load(name: str) -> tuple[Any, tuple[str, ...]]:
        entry = next(one for one in importlib.import_module(module).SPECIALIZATIONS if one.name == f"{name}_{suffix}")
        return entry, sizes_of(entry) if whole else ()

    return [
        TritonKernel(name, suffix.replace("_bf16", " bf16").replace("_fp32", " fp32"), partial(load, name))
        for name in names
    ]


def _recurrence(ops: Mapping[str, Any], shapes: Mapping[str, Any]) -> list[Kernel]:
    running, variant = ops.get("recurrence"), ops.get("recurrence_backward", "fused")
    asked = ops.get("recurrence_registers", 0)
    vectors, thread = _caps(running, asked)
    found: list[Kernel] = []
    if running == "cpu":
        found.append(CpuKernel("recurrence_forward", "fp32", "recurrence_forward_f32", recurrence_cpu.object_path))
    if running == "triton":
        found.append(TritonKernel("recurrence_forward", "bf16", partial(_load_recurrence, "forward", 0, shapes)))
    symbol, built = recurrence_cpu.backward_symbol(variant), partial(_capped_object, vectors)
    found.append(CpuKernel("recurrence_backward", _named(f"{variant} fp32", vectors, asked), symbol, built))
    for name, part in _BACKWARDS[variant].items():
        load = partial(_load_recurrence, part, thread, shapes)
        found.append(TritonKernel(name, _named(f"{variant} bf16", thread, asked), load))
    return found


def _load_recurrence(part: str, cap: int, shapes: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
    import triton

    from kernels import recurrence_triton

    def block(width: int) -> int:
        return max(16, triton.next_power_of_2(width))

    key_width, value_width, chunk = shapes["key_width"], shapes["value_width"], shapes["chunk"]
    listed = {name: _uncapped(recurrence_triton.SPECIALIZATIONS, f"recurrence_{name}_") for name in _PARTS}
    entry = listed[part]
    # The listed tile is the widest that this variant takes; one that holds all of V has no parts to add in float32.
    values = min(block(value_width), entry.constants["BV"])
    if part == "backward_live_state" and values == block(value_width):
        entry = replace(listed["backward_fused"], warps=entry.warps)
    constants = {**entry.constants, "BC": block(chunk), "BK": block(key_width), "BV": values}
    entry = replace(entry, constants=constants, options={"maxnreg": cap} if cap else {})
    whole = all(size % 16 == 0 for size in (key_width, value_width, chunk))
    return entry, sizes_of(entry) if whole else ()


def _uncapped(entries: Sequence[Any], start: str) -> Any:
    return next(entry for entry in entries if entry.name.startswith(start) and not entry.options)


def _caps(running: str | None, cap: int) -> tuple[int, int]:
    """The cap in vector registers of a CPU and in registers of a GPU's thread; 0 for none."""
    if not cap or running not in ("cpu", "triton"):
        return 0, 0
    try:
        vectors = recurrence_cpu.vector_registers()
    except Unavailable:
        vectors = 32  # nothing is built here, and the row will say so
    return (
        (cap, cap * THREAD_REGISTERS // vectors)
        if running == "cpu"
        else (max(cap * vectors // THREAD_REGISTERS, 1), cap)
    )


def _named(variant: str, here: int, asked: int) -> str:
    """'fused fp32, cap 12', and '..., cap 96 (same share as 12)' in the family that does not run."""
    if not here:
        return variant
    return f"{variant}, cap {here}" + (f" (same share as {asked})" if here != asked else "")


def _capped_object(cap: int) -> Path:
    try:
        return recurrence_cpu.object_path(cap)
    except ValueError as error:
        raise Unavailable(reason=f"{error}", remedy="Choose another ops.recurrence_registers.") from error
