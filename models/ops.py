"""The implementations that a config names, looked up once.

Every family of `kernels` has a mapping from names to functions. Nothing here asks what is available: a name that cannot
run on this machine raises `kernels.errors.Unavailable` when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor

from kernels import gated, prenorm, quantize, recurrence_forms
from models.config import OpsConfig, refusal

# (x, residual, weight, eps) -> (y, h).
Prenorm = Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]]
# (q_BTHK, k_BTHK, v_BTHV, log_decay_BTH, chunk) -> o_BTHV.
Recurrence = Callable[[Tensor, Tensor, Tensor, Tensor, int], Tensor]
# (x_RC, form, scaling, emulated) -> (payload, scale).
Quantize = Callable[[Tensor, str, str, bool], tuple[Tensor, Tensor]]
# (gate_RC, up_RC, form, scaling, emulated) -> (payload, scale), and (dy_RC, gate_RC, up_RC) -> (dgate_RC, dup_RC).
Gated = Callable[[Tensor, Tensor, str, str, bool], tuple[Tensor, Tensor]]
GatedBackward = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]

# Where the gated activation and its quantization are two passes.
SEPARATE = "separate"


@dataclass(frozen=True)
class FusedGate:
    """silu(gate) * up written quantized in one pass, and its backward pass."""

    name: str
    forward: Gated
    backward: GatedBackward


def named(seam: str, name: str, known: Mapping[str, Any]) -> Any:
    """The implementation that `ops.<seam>` names. Raises `ValueError` for a name that does not exist."""
    if name not in known:
        raise ValueError(refusal(f"ops.{seam}", name, known))
    return known[name]


def prenorm_of(ops: OpsConfig) -> Prenorm:
    return named("prenorm", ops.prenorm, prenorm.IMPLEMENTATIONS)


def recurrence_of(ops: OpsConfig) -> Recurrence:
    """The recurrence with its backward pass and register cap. Raises `ValueError` where a form has no such choice."""
    chosen = named("recurrence", ops.recurrence, recurrence_forms.IMPLEMENTATIONS)
    if ops.recurrence_backward == "fused" and not ops.recurrence_registers:
        return chosen
    if ops.recurrence not in ("cpu", "triton"):
        raise ValueError(
            f"ops.recurrence is {ops.recurrence!r}, whose backward pass is autograd's: ops.recurrence_backward is "
            f"{ops.recurrence_backward!r} and ops.recurrence_registers {ops.recurrence_registers}, but they must be "
            "'fused' and 0, or ops.recurrence cpu or triton."
        )
    return partial(chosen, backward=ops.recurrence_backward, registers=ops.recurrence_registers)


def quantize_of(ops: OpsConfig) -> Quantize:
    return named("quantize", ops.quantize, quantize.IMPLEMENTATIONS)


def gated_of(ops: OpsConfig) -> FusedGate | None:
    """None for `separate`, the two passes."""
    forwards = {SEPARATE: None} | {name: f for name, f in gated.IMPLEMENTATIONS.items() if name != "reference"}
    forward = named("gated", ops.gated, forwards)
    return None if forward is None else FusedGate(ops.gated, forward, gated.BACKWARDS[ops.gated])
