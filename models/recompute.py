"""Computing activations again in the backward pass, all of them or all but the results of matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Kept:
    """Results of the matrix products of one block: recorded in the forward pass, handed back in the recompute.

    Products are told apart by their order, which is that of the code and the same both times.
    """

    def __init__(self, results: tuple[Tensor, ...] | None = None) -> None:
        self.results = list(results or ())
        self.replaying = results is not None
        self._at = 0

    def next(self) -> Tensor | None:
        """The result of the next product; None while recording."""
        if not self.replaying:
            return None
        self._at += 1
        return self.results[self._at - 1]

    def record(self, result: Tensor) -> None:
        if not self.replaying:
            self.results.append(result)


def recomputed(
    compute: Callable[..., Any], inputs: tuple[Tensor, ...], parameters: tuple[Tensor, ...], keep: bool = False
) -> Any:
    """compute(*inputs), keeping only the inputs for the backward pass, which computes the rest again.

    `parameters` are all that `compute` reads besides its inputs. With `keep` it is compute(*inputs, Kept) and what it
    records is kept as well. `torch.utils.checkpoint` does the same through a hook in Python on every saved tensor,
    which is a sixth of a step at the size of the CPU preset. No state of a random generator is kept, as nothing here
    draws random numbers and a CUDA graph could not capture it.
    """
    return _Recomputed.apply(compute, len(inputs), keep, *inputs, *parameters)


class _Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, compute: Callable[..., Any], count: int, keep: bool, *tensors: Tensor) -> Any:
        ctx.compute, ctx.count, ctx.keep, ctx.given = compute, count, keep, len(tensors)
        # Detached, so that torch.compile does not tell a first block, whose residual needs no gradient, from others.
        inputs = [tensor.detach() for tensor in tensors[:count]]
        kept = Kept() if keep else None
        outputs = compute(*inputs) if kept is None else compute(*inputs, kept)
        ctx.save_for_backward(*tensors, *(kept.results if kept else ()))
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        saved, needed = ctx.saved_tensors, ctx.needs_input_grad[3:]
        # Fresh leaves in place of the inputs; parameters are leaves already. All inputs that can have a gradient get
        # one, for the same reason as above.
        inputs = [x.detach().requires_grad_(x.is_floating_point()) for x in saved[: ctx.count]]
        leaves = [*inputs, *saved[ctx.count : ctx.given]]
        with torch.enable_grad():
            if ctx.keep:
                outputs = ctx.compute(*inputs, Kept(tuple(x.detach() for x in saved[ctx.given :])))
            else:
                outputs = ctx.compute(*inputs)
        wanted = [leaf for leaf in leaves if leaf.requires_grad]
        found = iter(torch.autograd.grad(outputs, wanted, gradients))
        results = [next(found) if leaf.requires_grad else None for leaf in leaves]
        return None, None, None, *(result if need else None for result, need in zip(results, needed, strict=True))
