"""The gated activation of an MLP, written quantized in the same pass, and its backward pass.

    s_RC        = 1 / (1 + exp(-gate_RC))
    y_RC        = gate_RC * s_RC * up_RC                     (SwiGLU: Shazeer, 2020, arXiv:2002.05202)
    scale       = max(max|y_RC| / F, 1e-12)
    payload_RC  = round(y_RC / scale)                        scales and rounding are those of `kernels.quantize`

Rounding passes gradients straight through, so with dy the gradient of y:

    grad_gate_RC = dy_RC * up_RC * s_RC * (1 + gate_RC * (1 - s_RC))
    grad_up_RC   = dy_RC * gate_RC * s_RC

The two passes are ops of their own, and the caller joins them: `IMPLEMENTATIONS` and `BACKWARDS` by name. Neither is
differentiable.

Shapes: R rows, C columns (the contraction of what follows), G = ceil(C / 128). gate, up, dy, y, payload: [R, C]; scale:
float32, [1, 1], [R, 1] or [R, G], by `scaling`.
Dtypes: float32, and bfloat16 where the implementation says so; computed in float32, and y is not rounded before it is
quantized. Gradients have the dtype of gate. NaN and infinity in gate or up show as in `kernels.quantize`; gate = -inf
gives NaN, as torch's silu does.

Bytes moved in float32, per element of [R, C] (scales left out), emulated / in fp8:

    |                            | fused                                   | `reference`, op by op in eager torch  |
    | forward, a scale per group | 12 / 9: gate, up in; payload out        | 88 / 45: silu 8, times up 12, then    |
    | forward, one scale for all | 20 / 17: and y out and in again         | 68 / 25 to quantize                   |
    | backward                   | 20: dy, gate, up in; both gradients out | 96 by the equations; autograd of silu |
    |                            |                                         | and a product 36                      |
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels import quantize
from kernels.cases import Case, Layout, Tolerance
from kernels.errors import without_triton
from kernels.gated_cpu import gated_backward_cpu, gated_quantize_cpu


def reference(gate: Tensor, up: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    """(payload, scale) in plain torch, any floating dtype and device; y in float32, or in float64 for float64 inputs.

    Raises ValueError as `kernels.quantize.reference` does.
    """
    gate, up = _wide(gate), _wide(up)
    return quantize.reference(F.silu(gate) * up, form, scaling, emulated)


def reference_backward(dy: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    """(grad_gate, grad_up) in plain torch, any floating dtype and device."""
    dtype = gate.dtype
    dy, gate, up = _wide(dy), _wide(gate), _wide(up)
    s = torch.sigmoid(gate)
    grad_gate = dy * up * (s * (1.0 + gate * (1.0 - s)))
    return grad_gate.to(dtype), (dy * (gate * s)).to(dtype)


def _wide(x: Tensor) -> Tensor:
    return x.detach().to(torch.promote_types(x.dtype, torch.float32))


def cpu(gate: Tensor, up: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    """(payload, scale) by the compiled C++ kernel; float32 on the CPU, one thread, built at the first call.

    Reads rows any distance apart as they lie. Raises Unavailable without a C++ compiler, TypeError for another dtype,
    ValueError for another device, shape, format or scaling.
    """
    return gated_quantize_cpu(gate, up, form, scaling, emulated)


def cpu_backward(dy: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    """(grad_gate, grad_up) by the compiled C++ kernel; takes and raises what `cpu` does."""
    return gated_backward_cpu(dy, gate, up)


def triton(gate: Tensor, up: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    """(payload, scale) by the Triton kernels; float32 or bfloat16 on CUDA, of any strides.

    Raises Unavailable without Triton or without a CUDA device, TypeError and ValueError as `cpu` does.
    """
    return _triton(gate).gated_quantize_triton(gate, up, form, scaling, emulated)


def triton_backward(dy: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    """(grad_gate, grad_up) by the Triton kernel; takes and raises what `triton` does."""
    return _triton(gate).gated_backward_triton(dy, gate, up)


def _triton(gate: Tensor) -> ModuleType:
    try:
        from kernels import gated_triton
    except ModuleNotFoundError as error:
        raise without_triton(error, "set ops.gated to cpu or separate") from error
    if not gate.is_cuda:
        gated_triton.require_device("ops.gated")
    return gated_triton


Gated = Callable[[Tensor, Tensor, str, str, bool], tuple[Tensor, Tensor]]
Backward = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
IMPLEMENTATIONS: dict[str, Gated] = {"reference": reference, "cpu": cpu, "triton": triton}
BACKWARDS: dict[str, Backward] = {
    "reference": reference_backward,
    "cpu": cpu_backward,
    "triton": triton_backward,
}
DEVICES: dict[str, tuple[str, ...]] = {"reference": ("cpu", "cuda"), "cpu": ("cpu",), "triton": ("cuda",)}

# The scale is compared by the same rule; tests/kernels/test_gated.py holds it to float32 rounding.
_E4M3 = Tolerance(
    relative=2.0**-3,
    absolute=2.0**-9,
    reason="y has a few float32 roundings, so that next to a tie its payload may be the next e4m3 value: up to 1/8 "
    "away, or 2^-9 among subnormals.",
)
_E5M2 = Tolerance(
    relative=2.0**-2,
    absolute=2.0**-16,
    reason="As for e4m3: the next e5m2 value is up to 1/4 away, or 2^-16 among subnormals.",
)

# For `BACKWARDS`; the absolute part times the scale of a case.
BACKWARD_TOLERANCES: dict[torch.dtype, Tolerance] = {
    torch.float32: Tolerance(
        relative=4e-6,
        absolute=4e-6,
        reason="1 - s loses what float32 rounds off s, 6e-8, times a gate of up to 20 before s is 1; and where "
        "1 + gate * (1 - s) cancels, near -1.28, roundings of the size of dy * up are left.",
    ),
    torch.bfloat16: Tolerance(
        relative=2.0**-7, absolute=2.0**-7, reason="Gradients are rounded to bfloat16, which keeps 8 bits."
    ),
}


def _case(
    name: str,
    *shape: int,
    form: str = "fp8_e4m3",
    scaling: str = "tensor",
    emulated: bool = True,
    layout: Layout = "contiguous",
    scale: float = 1.0,
    dtype: torch.dtype = torch.float32,
) -> Case:
    float32 = ("reference", "cpu", "triton")
    return Case(
        name=name,
        shapes={"gate": shape, "up": shape},
        options={"form": form, "scaling": scaling, "emulated": emulated},
        implementations=float32 if dtype == torch.float32 else ("reference", "triton"),
        outputs=_E4M3 if form == "fp8_e4m3" else _E5M2,
        gradients=None,
        dtype=dtype,
        layout=layout,
        scale=scale,
    )


CASES: tuple[Case, ...] = (
    _case("tensor", 7, 129),
    _case("tensor_fp8", 7, 129, emulated=False),
    _case("row", 7, 129, scaling="row"),
    _case("row_fp8", 5, 300, scaling="row", emulated=False),
    _case("block_with_a_short_last", 3, 300, scaling="block"),
    _case("block_fp8", 4, 256, scaling="block", emulated=False),
    _case("e5m2_tensor_fp8", 6, 65, form="fp8_e5m2", emulated=False),
    _case("e5m2_row", 6, 65, form="fp8_e5m2", scaling="row"),
    _case("one_element", 1, 1),
    _case("one_column", 300, 1, scaling="row"),
    _case("many_rows", 300, 33),
    _case("strided", 7, 129, layout="strided", scaling="row"),
    _case("transposed", 40, 96, layout="transposed"),
    _case("transposed_block", 5, 300, layout="transposed", scaling="block", emulated=False),
    _case("expanded", 6, 40, layout="expanded"),
    _case("large_values", 4, 64, scale=1e3),
    _case("tiny_values", 4, 64, scale=1e-12, scaling="row"),
    _case("bfloat16", 7, 129, dtype=torch.bfloat16, emulated=False),
    _case("bfloat16_row", 130, 96, dtype=torch.bfloat16, scaling="row", emulated=False),
    _case("bfloat16_block", 9, 300, dtype=torch.bfloat16, scaling="block", emulated=False),
)
