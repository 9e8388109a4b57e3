"""What the compiled forms of the recurrence share: argument checks, op registration, autograd.

As in `kernels.prenorm_ops`, the function that `register` returns reaches its kernel directly, and goes through the
dispatcher only where somebody is there to see the op. Shapes are those of `kernels.recurrence`; N chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

BACKWARDS = ("fused", "phase_split", "live_state")

_LIBRARY = torch.library.Library("kernels", "FRAGMENT")
_below_autograd = torch._C._AutoDispatchBelowAutograd
_dispatch_modes = torch._C._len_torch_dispatch_stack
_transforms = torch._C._are_functorch_transforms_active
_profiled = torch._C._autograd._profiler_enabled  # a trace names only what goes through the dispatcher
_PLAIN = frozenset((Tensor, torch.nn.Parameter))
_INPUTS = "Tensor q, Tensor k, Tensor v, Tensor log_decay"

# (q, k, v, log_decay, chunk, registers) -> (o_BTHV, states_BHNKV), new and contiguous.
Forward = Callable[[Tensor, Tensor, Tensor, Tensor, int, int], tuple[Tensor, Tensor]]
# (grad_o, q, k, v, log_decay, states, chunk, registers) -> gradients of q, k, v and log_decay, new and contiguous.
Gradients = tuple[Tensor, Tensor, Tensor, Tensor]
Backward = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, int, int], Gradients]


@dataclass(frozen=True)
class Accepts:
    """What one implementation can be given: its op's name, the dtypes of q, the device types, its register caps.

    `widest` bounds K, V and chunk. A cap lies in `caps`, both ends included, or is 0 for none.
    """

    name: str
    dtypes: tuple[torch.dtype, ...]
    devices: tuple[str, ...]
    caps: Callable[[], tuple[int, int]]
    cap_of: str
    widest: int | None = None

    def check(self, q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, chunk: int) -> None:
        """Raises TypeError for a wrong dtype, ValueError for a wrong device, shape or chunk."""
        if q.dtype not in self.dtypes:
            takes = " or ".join(str(dtype) for dtype in self.dtypes)
            raise TypeError(f"{self.name} takes {takes}, not {q.dtype}. Use ops.recurrence=chunked for this dtype.")
        if q.device.type not in self.devices:
            raise ValueError(
                f"{self.name} runs on {' or '.join(self.devices)} tensors, not on {q.device}. "
                "Choose another ops.recurrence, or another device."
            )
        if q.dim() != 4 or q.shape[-1] == 0:
            raise ValueError(f"{self.name} needs q as [B, T, H, K] with K at least 1, got {tuple(q.shape)}.")
        if v.dim() != 4 or v.shape[-1] == 0:
            raise ValueError(f"{self.name} needs v as [B, T, H, V] with V at least 1, got {tuple(v.shape)}.")
        want = {"k": q.shape, "v": (*q.shape[:3], v.shape[-1]), "log_decay": q.shape[:3]}
        for name, other, dtype in (("k", k, q.dtype), ("v", v, q.dtype), ("log_decay", log_decay, torch.float32)):
            self._like(name, other, tuple(want[name]), dtype, q)
        if chunk < 1:
            raise ValueError(f"{self.name} needs chunks of at least 1 token, got chunk={chunk}.")
        if self.widest is not None and max(q.shape[-1], v.shape[-1], min(chunk, q.shape[1])) > self.widest:
            raise ValueError(
                f"{self.name} takes K, V and chunk up to {self.widest}, got K={q.shape[-1]}, V={v.shape[-1]}, "
                f"chunk={chunk}."
            )

    def check_backward(self, grad_o: Tensor, q: Tensor, v: Tensor, states: Tensor, chunk: int) -> None:
        """Raises as `check` does where what only the backward pass takes does not belong to q, v and chunk."""
        self._like("grad_o", grad_o, tuple(v.shape), q.dtype, q)
        self._like("states", states, states_shape(q, v, chunk), torch.float32, q)

    def check_registers(self, registers: int) -> None:
        """Raises ValueError unless `registers` is 0 or a cap that this implementation can keep."""
        if registers != 0:
            least, most = self.caps()
            if not least <= registers <= most:
                raise ValueError(
                    f"{self.name}: registers={registers} is neither 0 (no cap) nor {least} to {most} {self.cap_of}."
                )

    def _like(self, name: str, other: Tensor, shape: tuple[int, ...], dtype: torch.dtype, q: Tensor) -> None:
        if tuple(other.shape) != shape:
            raise ValueError(f"{self.name}: {name} has the shape {tuple(other.shape)}, not {shape}.")
        if other.dtype != dtype:
            raise TypeError(f"{self.name}: {name} is {other.dtype}, not {dtype}.")
        if other.device != q.device:
            raise ValueError(f"{self.name}: {name} is on {other.device}, not on {q.device}.")


def states_shape(q: Tensor, v: Tensor, chunk: int) -> tuple[int, ...]:
    """[B, H, N, K, V]: one state for the entry of each chunk."""
    batch, tokens, heads, width = q.shape
    return batch, heads, -(-tokens // chunk), width, v.shape[-1]


def check_backward_name(backward: str) -> None:
    if backward not in BACKWARDS:
        raise ValueError(f"backward={backward!r} is not one of {', '.join(BACKWARDS)}.")


def register(accepts: Accepts, forward: Forward, backwards: dict[str, Backward]) -> Callable[..., Tensor]:
    """Registers the ops of one implementation, with fakes and autograd, and returns the function to call.

    `kernels::<name>` maps (q, k, v, log_decay, chunk, backward, registers) to (o, states). `kernels::<name>_backward`,
    with `_<variant>` behind it unless that is `fused`, maps (grad_o, q, k, v, log_decay, states, chunk, registers) to
    the gradients of q, k, v and log_decay. `forward` and `backwards` must check all they are given, since anyone can
    call the ops. The function returns o only. A second derivative is an error.
    """

    def define(name: str, arguments: str, results: str, implementation: Any, fake: Any) -> Any:
        _LIBRARY.define(f"{name}({arguments}) -> ({results})", tags=(torch.Tag.pt2_compliant_tag,))
        _LIBRARY.impl(name, implementation, "CompositeExplicitAutograd")
        operator = getattr(torch.ops.kernels, name).default
        torch.library.register_fake(operator, fake, lib=_LIBRARY)
        return operator

    def checked(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, chunk: int, backward: str, registers: int) -> Any:
        check_backward_name(backward)
        return forward(q, k, v, log_decay, chunk, registers)

    def forward_fake(
        q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, chunk: int, backward: str, registers: int
    ) -> tuple[Tensor, Tensor]:
        accepts.check(q, k, v, log_decay, chunk)
        check_backward_name(backward)
        return v.new_empty(v.shape), q.new_empty(states_shape(q, v, chunk), dtype=torch.float32)

    def backward_fake(
        grad_o: Tensor, q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, states: Tensor, chunk: int, registers: int
    ) -> tuple[Tensor, ...]:
        return tuple(x.new_empty(x.shape) for x in (q, k, v, log_decay))

    operator = define(
        accepts.name,
        f"{_INPUTS}, int chunk, str backward, int registers",
        "Tensor, Tensor",
        checked,
        forward_fake,
    )
    backward_operators = {
        variant: define(
            f"{accepts.name}_backward" + ("" if variant == "fused" else f"_{variant}"),
            f"Tensor grad_o, {_INPUTS}, Tensor states, int chunk, int registers",
            "Tensor, Tensor, Tensor, Tensor",
            implementation,
            backward_fake,
        )
        for variant, implementation in backwards.items()
    }

    def run(
        q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, chunk: int, backward: str, registers: int
    ) -> tuple[Tensor, Tensor]:
        if unseen(q, k, v, log_decay):
            return checked(q, k, v, log_decay, chunk, backward, registers)
        with _below_autograd():
            return operator(q, k, v, log_decay, chunk, backward, registers)

    def gradients(ctx: Any, grad_o: Tensor | None, _: Tensor | None = None) -> tuple[Tensor | None, ...]:
        if grad_o is None:
            return (None,) * 7
        # Once only: under activation checkpointing the first access computes them again, and a second one is refused.
        saved = ctx.saved_tensors
        chosen: dict[str, Any] = backwards if unseen(grad_o, *saved) else backward_operators
        grads = chosen[ctx.variant](grad_o, *saved, ctx.chunk, ctx.registers)
        return (*grads, None, None, None)

    gradients_once = once_differentiable(gradients)

    class Recurrence(torch.autograd.Function):
        @staticmethod
        def forward(
            ctx: Any, q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, chunk: int, backward: str, registers: int
        ) -> tuple[Tensor, Tensor]:
            o, states = run(q, k, v, log_decay, chunk, backward, registers)
            ctx.save_for_backward(q, k, v, log_decay, states)
            ctx.chunk, ctx.variant, ctx.registers = chunk, backward, registers
            ctx.mark_non_differentiable(states)
            ctx.set_materialize_grads(False)
            return o, states

        @staticmethod
        def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
            # Only a backward pass that is itself recorded needs the guard against a second derivative.
            return (gradients_once if torch.is_grad_enabled() else gradients)(ctx, *grads)

    def call(
        q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, chunk: int, backward: str = "fused", registers: int = 0
    ) -> Tensor:
        if torch.compiler.is_compiling():
            return operator(q, k, v, log_decay, chunk, backward, registers)[0]
        chosen = Recurrence.apply if torch.is_grad_enabled() else run
        return chosen(q, k, v, log_decay, chunk, backward, registers)[0]

    def autograd(
        q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, chunk: int, backward: str, registers: int
    ) -> tuple[Tensor, Tensor]:
        if torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v, log_decay)):
            return Recurrence.apply(q, k, v, log_decay, chunk, backward, registers)
        with _below_autograd():
            return operator(q, k, v, log_decay, chunk, backward, registers)

    _LIBRARY.impl(accepts.name, autograd, "Autograd")
    return call


def unseen(*tensors: Tensor) -> bool:
    """Whether nobody watches and nothing stands between these tensors and their memory: the kernel may be reached."""
    for tensor in tensors:
        if type(tensor) not in _PLAIN or tensor.is_neg():
            return False
    return not (_dispatch_modes() or _transforms() or _profiled())
