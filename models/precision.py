"""Which site runs in which format.

A *site* is a place in the model where a matrix product runs (`models.config.SITES`). The policy gives each its
format: sites named in `precision.tail` run in `precision.higher`, all others in `precision.gemm`. Parameters are
float32 masters and every site converts at use. Between sites activations are float32, except on CUDA below fp32,
where they are bfloat16.

Shapes: B sequences, T tokens, D the contracted width, E channels out.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.config import SITES, PrecisionConfig, QuantConfig
from models.quantize import Fp8Product

_HARDWARE_FP8 = (8, 9)


class Precision:
    """The policy of one workload. `low_precision` is `emulated`, `hardware` or `none`."""

    def __init__(self, precision: PrecisionConfig, quant: QuantConfig, device: str) -> None:
        self.formats = {site: precision.higher if site in precision.tail else precision.gemm for site in SITES}
        self.per_row = quant.scales == "per_row"
        wide = device == "cpu" or precision.gemm == "fp32"
        self.activation_dtype = torch.float32 if wide else torch.bfloat16
        self.emulated = device == "cpu" or torch.cuda.get_device_capability() < _HARDWARE_FP8
        if "fp8" not in self.formats.values():
            self.low_precision = "none"
        else:
            self.low_precision = "emulated" if self.emulated else "hardware"

    def project(self, x_BTD: Tensor, projection: Projection) -> Tensor:
        """x_BTD weight_ED^T in the format of the projection's site; the result has the dtype of x."""
        form, weight_ED = self.formats[projection.site], projection.weight
        if form == "fp8":
            y_ME = Fp8Product.apply(x_BTD.flatten(0, -2), weight_ED, self.per_row, self.emulated)
            return y_ME.view(*x_BTD.shape[:-1], -1)
        dtype = torch.bfloat16 if form == "bf16" else torch.float32
        return F.linear(x_BTD.to(dtype), weight_ED.to(dtype)).to(x_BTD.dtype)

    def fan_out(self, x_BTD: Tensor, *projections: Projection) -> tuple[Tensor, ...]:
        """One activation into several projections. Per consumer: each quantizes the activation for itself."""
        return tuple(self.project(x_BTD, projection) for projection in projections)


class Projection(nn.Module):
    """A weight [out, in] without bias at a named site. `gain` scales its initial standard deviation in^-0.5."""

    def __init__(self, site: str, into: int, out: int, gain: float = 1.0) -> None:
        super().__init__()
        self.site = site
        self.weight = nn.Parameter(torch.empty(out, into))
        self.deviation = gain * into**-0.5

    def initialize(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.weight, std=self.deviation, generator=generator)
