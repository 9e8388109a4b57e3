"""One prenorm block, and whether its activations are kept or computed again.

A block carries the pair (x, residual): x is what the last sublayer produced and is not added yet, so that the addition
and the norm of the next sublayer are one op, `prenorm(x, residual, weight, eps) -> (y, h)` with h = x + residual and
y = rmsnorm(h) * weight. Shapes: B sequences, T tokens, D width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

NORM_EPS = 1e-6

Prenorm = Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]]


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
    """Two sublayers: a token mixer (recurrent or attention), then the gated MLP."""

    def __init__(self, mix: nn.Module, mlp: nn.Module, width: int, prenorm: Prenorm, recompute: bool) -> None:
        super().__init__()
        self.mix_norm, self.mix = Norm(width, prenorm), mix
        self.mlp_norm, self.mlp = Norm(width, prenorm), mlp
        self.recompute = recompute
        self._inside = tuple(self.parameters())

    def forward(self, x_BTD: Tensor, residual_BTD: Tensor) -> tuple[Tensor, Tensor]:
        if self.recompute and torch.is_grad_enabled():
            return recomputed(self._compute, (x_BTD, residual_BTD), self._inside)
        return self._compute(x_BTD, residual_BTD)

    def _compute(self, x_BTD: Tensor, residual_BTD: Tensor) -> tuple[Tensor, Tensor]:
        y_BTD, residual_BTD = self.mix_norm(x_BTD, residual_BTD)
        y_BTD, residual_BTD = self.mlp_norm(self.mix(y_BTD), residual_BTD)
        return self.mlp(y_BTD), residual_BTD


def recomputed(compute: Callable[..., Any], inputs: tuple[Tensor, ...], parameters: tuple[Tensor, ...]) -> Any:
    """compute(*inputs), keeping only the inputs for the backward pass, which computes the rest again.

    `parameters` are all that `compute` reads besides its inputs. `torch.utils.checkpoint` does the same through a hook
    in Python on every saved tensor, which is a sixth of a step at the size of the CPU preset. No state of a random
    generator is kept, as nothing here draws random numbers and a CUDA graph could not capture it.
    """
    return _Recomputed.apply(compute, len(inputs), *inputs, *parameters)


class _Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, compute: Callable[..., Any], count: int, *tensors: Tensor) -> Any:
        ctx.compute, ctx.count = compute, count
        ctx.save_for_backward(*tensors)
        return compute(*tensors[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, needed = ctx.saved_tensors, ctx.needs_input_grad[2:]
        # Fresh leaves in place of the inputs; parameters are leaves already.
        inputs = [saved[i].detach().requires_grad_(needed[i]) for i in range(ctx.count)]
        leaves = [*inputs, *saved[ctx.count :]]
        with torch.enable_grad():
            outputs = ctx.compute(*inputs)
        wanted = [leaf for leaf in leaves if leaf.requires_grad]
        found = iter(torch.autograd.grad(outputs, wanted, gradients))
        return None, None, *(next(found) if leaf.requires_grad else None for leaf in leaves)
