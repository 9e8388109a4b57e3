"""Weights that are quantized once for an optimizer step and used by every pass of its microsteps.

A cached weight must never be an old one. It is quantized again
- at the start of every step (`refresh`), whatever happened before, an edit through `.data` included;
- at its next use after the optimizer has stepped (`forget`);
- at its next use where the tensor's version or address has changed: loading, a copy, any edit in place.

Between two uses inside a step only an edit through `.data` could hide from these checks: it leaves version and address
as they are. The quantized numbers stay at fixed addresses, so that a captured CUDA graph reads what `refresh` wrote;
a replay runs no Python and no checks, but every step begins with a refresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import torch

from models.quantize import Operand, Quantized, Quantizer

if TYPE_CHECKING:
    from models.precision import Projection


class CachedWeights:
    """Keeps the quantized weight of a projection on the projection itself."""

    def __init__(self, quantizer: Quantizer) -> None:
        self._quantizer = quantizer

    def refresh(self, projections: Iterable[Projection]) -> None:
        """Quantizes every weight anew."""
        for projection in projections:
            self._quantize(projection)

    def forget(self, projections: Iterable[Projection]) -> None:
        """Lets every weight be quantized at its next use."""
        for projection in projections:
            projection.seen = None

    def of(self, projection: Projection) -> Operand:
        """The quantized weight, checked unless torch.compile traces (`models.block` checks before) or a graph captures.

        A capture follows a refresh.
        """
        if not torch.compiler.is_compiling():
            self.check(projection)
        return projection.quantized

    def check(self, projection: Projection) -> None:
        """Quantizes the weight again if it is not what it was."""
        weight = projection.weight
        if projection.seen != (weight._version, weight.data_ptr()) and not (
            weight.is_cuda and torch.cuda.is_current_stream_capturing()
        ):
            self._quantize(projection)

    def _quantize(self, projection: Projection) -> None:
        weight = projection.weight
        fresh = self._quantizer.weight_operand(weight)
        held = projection.quantized
        if held.along is None:
            projection.quantized = fresh
        else:
            for mine, new in zip(_parts(held), _parts(fresh), strict=True):
                mine.copy_(new)
        projection.seen = weight._version, weight.data_ptr()


def _parts(operand: Operand) -> Iterator[torch.Tensor]:
    """The tensors of an operand, a transposed view left out."""
    sides: list[Quantized] = [side for side in operand if side is not None]
    if len(sides) == 2 and sides[1].payload.data_ptr() == sides[0].payload.data_ptr():
        sides.pop()
    for side in sides:
        yield from (part for part in side if part is not None)
