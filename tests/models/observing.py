"""Runs workloads and counts what they dispatch."""

from __future__ import annotations

import collections
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from models.workload import ReferenceWorkload


class Calls(TorchDispatchMode):
    """Counts the ops of a step by name, and matrix products by the dtype of their operands too."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: collections.Counter[str] = collections.Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func).removesuffix(".default")
        self.counts[f"{name} {args[0].dtype}" if func is torch.ops.aten.mm.default else name] += 1
        return func(*args, **(kwargs or {}))

    def roles(self) -> tuple[int, int, int]:
        """Quantizations of weights, activations and gradients."""
        weights, activations, gradients = (
            self.counts[f"models.quantize_{role}"] for role in ("weight", "activation", "gradient")
        )
        return weights, activations, gradients


def counted(config: dict[str, Any], unwatched: int = 1) -> Calls:
    """The calls of a step that others came before."""
    workload = stepped(config, unwatched)
    with Calls() as calls:
        workload.step()
    return calls


def stepped(config: dict[str, Any], steps: int = 1) -> ReferenceWorkload:
    workload = ReferenceWorkload(**config)
    for _ in range(steps):
        workload.step()
    return workload


def trained(workload: ReferenceWorkload) -> dict[str, Tensor]:
    """Copies of the latest gradients and of the parameters."""
    pairs = [("gradient", workload.gradients()), ("parameter", workload.parameters())]
    return {f"{kind} {name}": tensor.clone() for kind, tensors in pairs for name, tensor in tensors.items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether all tensors are equal to the bit."""
    return one.keys() == other.keys() and all(torch.equal(tensor, other[name]) for name, tensor in one.items())
