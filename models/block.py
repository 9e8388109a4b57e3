"""One prenorm block, and whether its activations are kept or computed again.

A block carries the pair (x, residual): x is what the last sublayer produced and is not added yet, so that the addition
and the norm of the next sublayer are one op, `prenorm(x, residual, weight, eps) -> (y, h)` with h = x + residual and
y = rmsnorm(h) * weight. Shapes: B sequences, T tokens, D width.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from types import FunctionType

import torch
from torch import Tensor, nn

from kernels import build
from kernels.errors import Unavailable
from models.ops import Prenorm
from models.precision import Precision
from models.recompute import Kept, recomputed

NORM_EPS = 1e-6

_dispatch_modes = torch._C._len_torch_dispatch_stack

# (block, x_BTD, residual_BTD, kept) -> (x_BTD, residual_BTD).
Compute = Callable[["Block", Tensor, Tensor, Kept | None], tuple[Tensor, Tensor]]


class Norm(nn.Module):
    """The weight of one prenorm and the implementation that runs it."""

    def __init__(self, width: int, prenorm: Prenorm) -> None:
        super().__init__()
        self.prenorm = prenorm
        self.weight_D = nn.Parameter(torch.empty(width))

    def initialize(self, generator: torch.Generator) -> None:
        nn.init.ones_(self.weight_D)

    def forward(self, x_BTD: Tensor, residual_BTD: Tensor) -> tuple[Tensor, Tensor]:
        return self.prenorm(x_BTD, residual_BTD, self.weight_D, NORM_EPS)


class Block(nn.Module):
    """Two sublayers: a token mixer (recurrent or attention), then the gated MLP.

    `recompute` is `none`, `full` or `selective` (`models.config.CheckpointConfig`). `compiled` replaces `compute`.
    """

    def __init__(
        self,
        mix: nn.Module,
        mlp: nn.Module,
        width: int,
        prenorm: Prenorm,
        precision: Precision,
        recompute: str = "none",
        compiled: Compute | None = None,
    ) -> None:
        super().__init__()
        self.mix_norm, self.mix = Norm(width, prenorm), mix
        self.mlp_norm, self.mlp = Norm(width, prenorm), mlp
        self.precision, self.recompute, self.compiled = precision, recompute, compiled
        self._inside = tuple(self.parameters())
        self._quantized = precision.quantized(self.modules())

    def forward(self, x_BTD: Tensor, residual_BTD: Tensor) -> tuple[Tensor, Tensor]:
        if self.recompute == "none" or not torch.is_grad_enabled():
            return self._run(x_BTD, residual_BTD)
        return recomputed(self._run, (x_BTD, residual_BTD), self._inside, keep=self.recompute == "selective")

    def compute(self, x_BTD: Tensor, residual_BTD: Tensor, kept: Kept | None) -> tuple[Tensor, Tensor]:
        y_BTD, residual_BTD = self.mix_norm(x_BTD, residual_BTD)
        y_BTD, residual_BTD = self.mlp_norm(self.mix(y_BTD, kept), residual_BTD)
        return self.mlp(y_BTD, kept), residual_BTD

    def _run(self, x_BTD: Tensor, residual_BTD: Tensor, kept: Kept | None = None) -> tuple[Tensor, Tensor]:
        # torch.compile compiles nothing while a dispatch mode watches.
        if self.compiled is None or _dispatch_modes():
            return self.compute(x_BTD, residual_BTD, kept)
        self.precision.check(self._quantized)
        return self.compiled(self, x_BTD, residual_BTD, kept)


def compiled_block(device: str) -> Compute:
    """`Block.compute` through torch.compile, for all blocks of one model: those of a kind share their code.

    Raises `Unavailable` where there is no compiler to finish the work: C++ on the CPU, Triton on CUDA.
    """
    if device == "cpu":
        build.find_compiler()
    elif importlib.util.find_spec("triton") is None:
        raise Unavailable(
            reason="compile is block, and Triton is not installed, through which torch.compile writes CUDA kernels.",
            remedy="Install it (pip install triton), or set workload.compile to none.",
        )
    # torch.compile files what it has compiled under a function's code and gives up above eight entries. With code of
    # its own, another model in this process does not count.
    code = Block.compute.__code__.replace()
    return torch.compile(FunctionType(code, globals(), "compute"), dynamic=False, fullgraph=True)
