"""Which site runs in which format, and what a product and its neighbours share.

A *site* is a place in the model where a matrix product runs (`models.config.SITES`). The policy gives each its
format: sites named in `precision.tail` run in `precision.higher`, all others in `precision.gemm`, where `fp8` stands
for the format that `quant` describes. Parameters are float32 masters and every site converts at use, or, with
`quant.weights: cached`, once a step. Between sites activations are float32, except on CUDA below fp32, where they are
bfloat16.

Shapes: B sequences, T tokens, D the contracted width, E channels out, M = B * T rows.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kernels.errors import Unavailable
from kernels.fp4_ops import FORMATS as FP4_FORMATS
from models.config import SITES, QuantConfig, WorkloadConfig
from models.linear import Fp8Product, GatedFp8Product, WideProduct
from models.ops import gated_of, quantize_of
from models.quantize import Operand, Quantized, Quantizer
from models.recompute import Kept
from models.weights import CachedWeights

_HARDWARE_FP8 = (8, 9)
_HARDWARE_BLOCKS = (9, 0)
_HARDWARE_FP4 = (10, 0)
_BLOCKS_CUDA = (12, 9)


class Precision:
    """The policy of one workload. `low_precision` is `emulated`, `hardware` or `none`.

    Raises `ValueError` for ops that do not exist or do not fit the format, `Unavailable` where the device lacks it.
    """

    def __init__(self, config: WorkloadConfig) -> None:
        precision, quant, device = config.precision, config.quant, config.device
        self.formats = {site: precision.higher if site in precision.tail else precision.gemm for site in SITES}
        wide = device == "cpu" or precision.gemm == "fp32"
        self.activation_dtype = torch.float32 if wide else torch.bfloat16
        self.quantizes = "fp8" in self.formats.values()
        capability = torch.cuda.get_device_capability() if device == "cuda" else None
        self.emulated = capability is None or capability < _HARDWARE_FP8
        self.low_precision = ("emulated" if self.emulated else "hardware") if self.quantizes else "none"
        if self.quantizes:
            _require(quant, capability)
        self.fused_gate = gated_of(config.ops)
        if self.fused_gate is not None and quant.format in FP4_FORMATS:
            raise ValueError(
                f"ops.gated is {config.ops.gated!r} with quant.format {quant.format!r}: the fused gate writes fp8. "
                "Set ops.gated to separate, or quant.format to fp8_e4m3."
            )
        self.quantizer = Quantizer(quant, config.ops.quantize, quantize_of(config.ops), self.emulated)
        self.shared = quant.activations == "shared"
        self.cached = CachedWeights(self.quantizer) if quant.weights == "cached" and self.quantizes else None

    def quantized(self, modules: Iterable[nn.Module]) -> tuple[Projection, ...]:
        """The projections among `modules` whose site runs in fp8."""
        return tuple(m for m in modules if isinstance(m, Projection) and self.formats[m.site] == "fp8")

    def check(self, projections: Iterable[Projection]) -> None:
        """Looks for edits of these weights, where compiled code cannot."""
        if self.cached is not None:
            for projection in projections:
                self.cached.check(projection)

    def project(self, x_BTD: Tensor, projection: Projection, kept: Kept | None = None) -> Tensor:
        """x_BTD weight_ED^T in the format of the projection's site; the result has the dtype of x."""
        (y_BTE,) = self.fan_out(x_BTD, projection, kept=kept)
        return y_BTE

    def fan_out(self, x_BTD: Tensor, *projections: Projection, kept: Kept | None = None) -> tuple[Tensor, ...]:
        """One activation into several projections, each a product of its own.

        Per consumer each quantizes the activation for itself; shared, the first in fp8 does it for all of them.
        """
        x_MD = x_BTD.flatten(0, -2)
        ours: Operand | None = None
        results = []
        for projection in projections:
            known = None if kept is None else kept.next()
            form = self.formats[projection.site]
            if form == "fp8":
                if ours is None or not self.shared:
                    ours = self.quantizer.activation_operand(x_MD, shared=self.shared, known=known is not None)
                y_ME = Fp8Product.apply(x_MD, projection.weight, self.quantizer, ours, self._weight(projection), known)
            else:
                wide = torch.bfloat16 if form == "bf16" else torch.float32
                y_ME = WideProduct.apply(x_MD, projection.weight, wide, known)
            if kept is not None:
                kept.record(y_ME)
            results.append(y_ME.view(*x_BTD.shape[:-1], -1))
        return tuple(results)

    def gated(self, gate_BTD: Tensor, up_BTD: Tensor, projection: Projection, kept: Kept | None = None) -> Tensor:
        """(silu(gate) * up) weight_ED^T. In fp8 with a fused gate the activation is written quantized, in one pass."""
        if self.fused_gate is None or self.formats[projection.site] != "fp8":
            return self.project(F.silu(gate_BTD) * up_BTD, projection, kept)
        known = None if kept is None else kept.next()
        gate_MD, up_MD = gate_BTD.flatten(0, -2), up_BTD.flatten(0, -2)
        quantizer, x = self.quantizer, Operand()
        if known is None or quantizer.reversible:
            along = Quantized(
                *self.fused_gate.forward(
                    gate_MD.detach(), up_MD.detach(), quantizer.form, quantizer.scaling, quantizer.emulated
                )
            )
            x = Operand(along, along.transposed() if quantizer.reversible else None)
        y_ME = GatedFp8Product.apply(
            gate_MD, up_MD, projection.weight, self.fused_gate, quantizer, x, self._weight(projection), known
        )
        if kept is not None:
            kept.record(y_ME)
        return y_ME.view(*up_BTD.shape[:-1], -1)

    def _weight(self, projection: Projection) -> Operand:
        return Operand() if self.cached is None else self.cached.of(projection)


class Projection(nn.Module):
    """A weight [out, in] without bias at a named site. `gain` scales its initial standard deviation in^-0.5.

    `quantized` and `seen` are those of `models.weights.CachedWeights`.
    """

    def __init__(self, site: str, into: int, out: int, gain: float = 1.0) -> None:
        super().__init__()
        self.site = site
        self.weight = nn.Parameter(torch.empty(out, into))
        self.deviation = gain * into**-0.5
        self.quantized = Operand()
        self.seen: tuple[int, int] | None = None

    def initialize(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.weight, std=self.deviation, generator=generator)


def _require(quant: QuantConfig, capability: tuple[int, int] | None) -> None:
    """Raises `Unavailable` where the device cannot multiply what `quant` makes. None is the CPU."""
    device = "the CPU" if capability is None else f"a CUDA device of capability {capability[0]}.{capability[1]}"
    if quant.format in FP4_FORMATS and (capability is None or capability < _HARDWARE_FP4):
        raise Unavailable(
            reason=f"quant.format is {quant.format}, and {device} has no fp4 products; they need capability 10.0.",
            remedy="Set workload.quant.format to fp8_e4m3, or run on a Blackwell GPU (B200, sm_100).",
        )
    if quant.format == "mxfp4" and not hasattr(F, "scaled_mm"):
        raise Unavailable(
            reason=f"quant.format is mxfp4, and torch {torch.__version__} has no torch.nn.functional.scaled_mm.",
            remedy="Set workload.quant.format to nvfp4, or install torch 2.10 or newer.",
        )
    if quant.scales != "per_block" or quant.format in FP4_FORMATS or capability is None or capability < _HARDWARE_FP8:
        return
    cuda = tuple(int(part) for part in (torch.version.cuda or "0.0").split(".")[:2])
    if capability != _HARDWARE_BLOCKS or cuda < _BLOCKS_CUDA:
        raise Unavailable(
            reason=f"quant.scales is per_block, and {device} with CUDA {torch.version.cuda} has no fp8 products with "
            "scales per 128; they need capability 9.0 and CUDA 12.9.",
            remedy="Set workload.quant.scales to per_tensor or per_row.",
        )
