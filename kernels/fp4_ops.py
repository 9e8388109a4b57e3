"""The 4-bit formats of `kernels.fp4`, and what its implementations share.

Shape suffixes: R rows, C columns (the contraction), G blocks of a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

# (packed [R, C / 2] uint8, block scales [R, G], tensor scale [1] float32).
Quantized = tuple[Tensor, Tensor, Tensor]

# By code; the codes 8 to 15 are these with a minus sign. OCP Microscaling Formats (MX) 1.0, table 5.
E2M1_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
E2M1_LARGEST = 6.0
E4M3_LARGEST = 448.0
E4M3_SMALLEST = 2.0**-9
SCHEMA = "(Tensor x, str form) -> (Tensor, Tensor, Tensor)"


@dataclass(frozen=True)
class Format:
    """How many elements share a scale, and its dtype."""

    block: int
    scale: torch.dtype


FORMATS: Mapping[str, Format] = MappingProxyType(
    {"nvfp4": Format(16, torch.float8_e4m3fn), "mxfp4": Format(32, torch.float8_e8m0fnu)}
)


def check_blocks(who: str, form: str, x: Tensor) -> Format:
    """The format named `form`. Raises ValueError if there is none, or if x [R, C] is not whole blocks wide."""
    if form not in FORMATS:
        raise ValueError(f"{who}: there is no format {form!r}. Choose one of {', '.join(FORMATS)}.")
    chosen = FORMATS[form]
    if x.shape[1] % chosen.block:
        raise ValueError(
            f"{who}: {form} needs a whole number of blocks of {chosen.block} columns, got {x.shape[1]}. Pad with zeros."
        )
    return chosen


def outputs_for(x: Tensor, form: Format) -> Quantized:
    """(packed, scales, tensor scale) for x, contiguous and not yet written."""
    rows, columns = x.shape
    return (
        x.new_empty((rows, columns // 2), dtype=torch.uint8),
        x.new_empty((rows, columns // form.block), dtype=form.scale),
        x.new_empty((1,), dtype=torch.float32),
    )
