"""What the compiled implementations of `kernels.prenorm` share: argument checks, op registration, autograd.

Shape suffixes: N rows (all leading dimensions flattened), D width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# `torch.library.custom_op` would do the same and check on every call that no output is an input. `opcheck` proves that
# in the tests; without it a forward and backward pass of 1 x 8 takes about a sixth less time, all of it overhead.
_LIBRARY = torch.library.Library("kernels", "FRAGMENT")


class ForwardRows(Protocol):
    """Writes y_ND, h_ND and the float32 rstd_N from contiguous inputs with at least one row."""

    def __call__(
        self,
        x_ND: Tensor,
        residual_ND: Tensor,
        weight_D: Tensor,
        eps: float,
        y_ND: Tensor,
        h_ND: Tensor,
        rstd_N: Tensor,
    ) -> None: ...


class BackwardRows(Protocol):
    """Writes grad_input_ND and grad_weight_D from contiguous inputs with at least one row; no grad_h_ND means zeros."""

    def __call__(
        self,
        grad_y_ND: Tensor,
        grad_h_ND: Tensor | None,
        h_ND: Tensor,
        weight_D: Tensor,
        rstd_N: Tensor,
        grad_input_ND: Tensor,
        grad_weight_D: Tensor,
    ) -> None: ...


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

    def check_rstd(self, rstd: Tensor, h: Tensor) -> None:
        """Raises ValueError unless rstd is the float32 tensor that the forward pass saved for h."""
        if rstd.dtype != torch.float32 or rstd.shape != h.shape[:-1] or rstd.device != h.device:
            raise ValueError(
                f"{self.name}: rstd must be float32 {tuple(h.shape[:-1])} on {h.device}, "
                f"got {rstd.dtype} {tuple(rstd.shape)} on {rstd.device}."
            )


def _names(dtypes: Sequence[torch.dtype]) -> str:
    return " or ".join(str(dtype) for dtype in dtypes)


def _dense_like(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _outputs(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return _dense_like(x), _dense_like(x), x.new_empty(x.shape[:-1], dtype=torch.float32)


def register(accepts: Accepts, forward_rows: ForwardRows, backward_rows: BackwardRows) -> Callable[..., Any]:
    """Registers `kernels::<name>` and `kernels::<name>_backward` with fakes and autograd, and returns the forward op.

    The op maps (x, residual, weight, eps) to (y, h, rstd); rstd is float32, one a row, and not differentiable.
    Its outputs are new contiguous tensors, whatever the layout of the inputs.
    """

    def forward(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
        accepts.check(x, {"residual": residual}, weight)
        accepts.check_eps(eps)
        y, h, rstd = _outputs(x)
        if rstd.numel():
            forward_rows(x.contiguous(), residual.contiguous(), weight.contiguous(), eps, y, h, rstd)
        return y, h, rstd

    def backward(
        grad_y: Tensor | None, grad_h: Tensor | None, h: Tensor, weight: Tensor, rstd: Tensor
    ) -> tuple[Tensor, Tensor]:
        accepts.check(h, {"grad_y": grad_y, "grad_h": grad_h}, weight)
        accepts.check_rstd(rstd, h)
        grad_input, grad_weight = _dense_like(h), _dense_like(weight)
        if grad_y is None or not rstd.numel():
            # Nothing came back through the norm, so the gradient of h passes as it is.
            grad_weight.zero_()
            if grad_h is None:
                grad_input.zero_()
            else:
                grad_input.copy_(grad_h)
            return grad_input, grad_weight
        backward_rows(
            grad_y.contiguous(),
            None if grad_h is None else grad_h.contiguous(),
            h.contiguous(),
            weight.contiguous(),
            rstd.contiguous(),
            grad_input,
            grad_weight,
        )
        return grad_input, grad_weight

    backward_name = f"{accepts.name}_backward"
    for name, arguments, results, implementation in (
        (accepts.name, "Tensor x, Tensor residual, Tensor weight, float eps", "Tensor, Tensor, Tensor", forward),
        (
            backward_name,
            "Tensor? grad_y, Tensor? grad_h, Tensor h, Tensor weight, Tensor rstd",
            "Tensor, Tensor",
            backward,
        ),
    ):
        _LIBRARY.define(f"{name}({arguments}) -> ({results})", tags=(torch.Tag.pt2_compliant_tag,))
        _LIBRARY.impl(name, implementation, "CompositeExplicitAutograd")
    operator = getattr(torch.ops.kernels, accepts.name).default
    backward_operator = getattr(torch.ops.kernels, backward_name).default

    def forward_fake(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
        accepts.check(x, {"residual": residual}, weight)
        return _outputs(x)

    def backward_fake(
        grad_y: Tensor | None, grad_h: Tensor | None, h: Tensor, weight: Tensor, rstd: Tensor
    ) -> tuple[Tensor, Tensor]:
        return _dense_like(h), _dense_like(weight)

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
        _, h, rstd = output
        ctx.save_for_backward(h, inputs[2], rstd)
        ctx.mark_non_differentiable(rstd)
        # An output that nothing used then arrives as None, and the kernel skips its bytes.
        ctx.set_materialize_grads(False)

    @once_differentiable
    def through(
        ctx: Any, grad_y: Tensor | None, grad_h: Tensor | None, _: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        if grad_y is None and grad_h is None:
            return None, None, None, None
        h, weight, rstd = ctx.saved_tensors
        grad_input, grad_weight = backward_operator(grad_y, grad_h, h, weight, rstd)
        # h = x + residual, so both have the same gradient.
        return grad_input, grad_input, grad_weight, None

    torch.library.register_fake(operator, forward_fake, lib=_LIBRARY)
    torch.library.register_fake(backward_operator, backward_fake, lib=_LIBRARY)
    torch.library.register_autograd(operator, through, setup_context=setup_context, lib=_LIBRARY)
    return operator
