"""What the compiled implementations of `kernels.prenorm` share: argument checks, op registration, autograd.

A call at 128 x 96 spends 3 us in the C++ kernel, so every layer around it counts. `torch.library.custom_op` and
`register_autograd` enter the dispatcher twice a call and cost more than the kernel saves. The functions that `register`
returns reach it directly instead, and go through the dispatcher only where somebody is there to see the op.

Shape suffixes: N rows (all leading dimensions flattened), D width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_LIBRARY = torch.library.Library("kernels", "FRAGMENT")

# Inside it an op starts below its autograd kernel. torch.library puts the same guard into what it generates.
_below_autograd = torch._C._AutoDispatchBelowAutograd
# How many TorchDispatchModes are active, those of fake tensors and of tracing among them.
_dispatch_modes = torch._C._len_torch_dispatch_stack
_transforms = torch._C._are_functorch_transforms_active
# A trace names only what goes through the dispatcher.
_profiled = torch._C._autograd._profiler_enabled
# Any other type of tensor may want to see the op too.
_PLAIN = frozenset((Tensor, torch.nn.Parameter))

# (x, residual, weight, eps) -> (y, h), both new, contiguous tensors.
Forward = Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]]
# (grad_y, grad_h, h, weight, eps) -> (grad_input, grad_weight); None stands for a gradient of zeros.
Backward = Callable[[Tensor | None, Tensor | None, Tensor, Tensor, float], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Accepts:
    """What one implementation can be given: its op's name, the dtypes of x, the device types, the widest row."""

    name: str
    dtypes: tuple[torch.dtype, ...]
    devices: tuple[str, ...]
    widest: int | None = None

    def check(self, like: Tensor, others: dict[str, Tensor | None], weight: Tensor) -> None:
        """Raises TypeError for a wrong dtype and ValueError for a wrong device or shape, before any pointer is taken.

        `like` is x or h; every tensor of `others` must match it in shape, dtype and device.
        """
        if like.dtype not in self.dtypes:
            raise TypeError(
                f"{self.name} takes {_names(self.dtypes)}, not {like.dtype}. Use ops.prenorm=reference for this dtype."
            )
        if like.device.type not in self.devices:
            raise ValueError(
                f"{self.name} runs on {' or '.join(self.devices)} tensors, not on {like.device}. "
                "Choose another ops.prenorm, or another device."
            )
        if like.dim() == 0 or like.shape[-1] == 0:
            raise ValueError(f"{self.name} needs rows of at least one element, got the shape {tuple(like.shape)}.")
        if self.widest is not None and like.shape[-1] > self.widest:
            raise ValueError(f"{self.name} takes rows of at most {self.widest} elements, got {like.shape[-1]}.")
        for name, other in others.items():
            if other is None:
                continue
            if other.shape != like.shape:
                raise ValueError(f"{self.name}: {name} has the shape {tuple(other.shape)}, not {tuple(like.shape)}.")
            if other.dtype != like.dtype:
                raise TypeError(f"{self.name}: {name} is {other.dtype}, not {like.dtype} as its partner.")
            if other.device != like.device:
                raise ValueError(f"{self.name}: {name} is on {other.device}, not on {like.device}.")
        if weight.shape != like.shape[-1:]:
            raise ValueError(f"{self.name}: weight has the shape {tuple(weight.shape)}, not ({like.shape[-1]},).")
        if weight.dtype not in (torch.float32, like.dtype):
            raise TypeError(f"{self.name}: weight is {weight.dtype}, not torch.float32 or {like.dtype}.")
        if weight.device != like.device:
            raise ValueError(f"{self.name}: weight is on {weight.device}, not on {like.device}.")

    def check_eps(self, eps: float) -> None:
        """Raises ValueError unless eps is finite and at least 0."""
        if not 0.0 <= eps < float("inf"):
            raise ValueError(f"{self.name}: eps must be finite and at least 0, got {eps}.")


def _names(dtypes: Sequence[torch.dtype]) -> str:
    return " or ".join(str(dtype) for dtype in dtypes)


def past_the_norm(grad_h: Tensor | None, h: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """(grad_input, grad_weight) where nothing came back through y: the gradient of h passes as it is."""
    grad_input = torch.zeros_like(h) if grad_h is None else grad_h.clone(memory_format=torch.contiguous_format)
    return grad_input, torch.zeros_like(weight)


def register(accepts: Accepts, forward: Forward, backward: Backward) -> Callable[..., tuple[Tensor, Tensor]]:
    """Registers the ops of one implementation, with fakes and autograd, and returns the function to call.

    `kernels::<name>` and that function map (x, residual, weight, eps) to (y, h), `kernels::<name>_backward` maps
    (grad_y, grad_h, h, weight, eps) to (grad_input, grad_weight). `forward` and `backward` must check all they are
    given, since anyone can call the ops. A second derivative is an error.
    """
    backward_name = f"{accepts.name}_backward"
    for name, arguments, results, implementation in (
        (accepts.name, "Tensor x, Tensor residual, Tensor weight, float eps", "Tensor, Tensor", forward),
        (
            backward_name,
            "Tensor? grad_y, Tensor? grad_h, Tensor h, Tensor weight, float eps",
            "Tensor, Tensor",
            backward,
        ),
    ):
        _LIBRARY.define(f"{name}({arguments}) -> ({results})", tags=(torch.Tag.pt2_compliant_tag,))
        _LIBRARY.impl(name, implementation, "CompositeExplicitAutograd")
    operator = getattr(torch.ops.kernels, accepts.name).default
    backward_operator = getattr(torch.ops.kernels, backward_name).default

    def forward_fake(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        accepts.check(x, {"residual": residual}, weight)
        dense = x.contiguous()
        return torch.empty_like(dense), torch.empty_like(dense)

    def backward_fake(
        grad_y: Tensor | None, grad_h: Tensor | None, h: Tensor, weight: Tensor, eps: float
    ) -> tuple[Tensor, Tensor]:
        return torch.empty_like(h.contiguous()), torch.empty_like(weight.contiguous())

    def run(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        if (
            type(x) in _PLAIN
            and type(residual) in _PLAIN
            and type(weight) in _PLAIN
            and not (x.is_neg() or residual.is_neg() or weight.is_neg())
            and not (_dispatch_modes() or _transforms() or _profiled())
        ):
            return forward(x, residual, weight, eps)
        with _below_autograd():
            return operator(x, residual, weight, eps)

    def gradients(ctx: Any, grad_y: Tensor | None, grad_h: Tensor | None) -> tuple[Tensor | None, ...]:
        if grad_y is None and grad_h is None:
            return None, None, None, None
        h, weight = ctx.saved_tensors
        if (
            grad_y is not None
            and grad_h is not None
            and type(grad_y) in _PLAIN
            and type(grad_h) in _PLAIN
            and type(h) in _PLAIN
            and not (grad_y.is_neg() or grad_h.is_neg())
            and not (_dispatch_modes() or _transforms() or _profiled())
        ):
            grad_input, grad_weight = backward(grad_y, grad_h, h, weight, ctx.eps)
        else:
            grad_input, grad_weight = backward_operator(grad_y, grad_h, h, weight, ctx.eps)
        # h = x + residual, so both have the same gradient.
        return grad_input, grad_input, grad_weight, None

    gradients_once = once_differentiable(gradients)

    class Prenorm(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
            y, h = run(x, residual, weight, eps)
            ctx.save_for_backward(h, weight)
            ctx.eps = eps
            # An output that nothing used then arrives as None, and the kernel skips its bytes.
            ctx.set_materialize_grads(False)
            return y, h

        @staticmethod
        def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
            # Only a backward pass that is itself recorded needs the guard against a second derivative.
            return (gradients_once if torch.is_grad_enabled() else gradients)(ctx, *grads)

    def call(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        if torch.compiler.is_compiling():
            return operator(x, residual, weight, eps)
        return (Prenorm.apply if torch.is_grad_enabled() else run)(x, residual, weight, eps)

    def autograd(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        if torch.is_grad_enabled() and (x.requires_grad or residual.requires_grad or weight.requires_grad):
            return Prenorm.apply(x, residual, weight, eps)
        with _below_autograd():
            return operator(x, residual, weight, eps)

    torch.library.register_fake(operator, forward_fake, lib=_LIBRARY)
    torch.library.register_fake(backward_operator, backward_fake, lib=_LIBRARY)
    _LIBRARY.impl(accepts.name, autograd, "Autograd")
    return call
