"""What a kernel is tested with: inputs, and tolerances that give their reason.

`tests/kernels/test_every_kernel.py` runs every case of every kernel file against that file's `reference` in float64.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

Layout = Literal["contiguous", "strided", "transposed", "expanded"]


@dataclass(frozen=True)
class Tolerance:
    """An element passes if |got - want| <= absolute + relative * |want|."""

    relative: float
    absolute: float
    reason: str


@dataclass(frozen=True)
class Case:
    """One set of inputs of a kernel.

    `shapes` names the tensor arguments in order, `options` the rest. `implementations` lists those that take these
    dtypes. Without `gradients` the kernel is not differentiable. `dtypes` overrides `dtype` by argument. Values are
    normal, times `scale`, from a generator seeded by the name of the case, so that they are the same on every machine.
    """

    name: str
    shapes: Mapping[str, tuple[int, ...]]
    options: Mapping[str, float | str]
    implementations: tuple[str, ...]
    outputs: Tolerance
    gradients: Tolerance | None
    dtype: torch.dtype = torch.float32
    dtypes: Mapping[str, torch.dtype] = field(default_factory=dict)
    layout: Layout = "contiguous"
    scale: float = 1.0

    def inputs(self, device: str) -> dict[str, Tensor]:
        """Fresh tensors by argument name, in the case's layout, dtype and order."""
        generator = torch.Generator().manual_seed(zlib.crc32(self.name.encode()))
        return {
            name: self._tensor(shape, self.dtypes.get(name, self.dtype), device, generator)
            for name, shape in self.shapes.items()
        }

    def _tensor(self, shape: tuple[int, ...], dtype: torch.dtype, device: str, generator: torch.Generator) -> Tensor:
        stored = list(shape)
        if self.layout == "strided":
            stored[-1] *= 2
        elif self.layout == "transposed":
            stored.reverse()
        elif self.layout == "expanded" and len(stored) > 1:
            stored[0] = 1
        values = (torch.randn(stored, generator=generator) * self.scale).to(device=device, dtype=dtype)
        if self.layout == "strided":
            return values[..., ::2]
        if self.layout == "transposed":
            return values.permute(*reversed(range(values.dim())))
        return values.expand(shape)
