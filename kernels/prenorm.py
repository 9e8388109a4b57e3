"""Residual add + RMSNorm in one pass, forward and backward.

RMSNorm is from Zhang & Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019 (arXiv:1910.07467), equation 4,
here with the residual add of a prenorm block in front and eps inside the root:

    h_ND = x_ND + residual_ND                         the new residual stream
    s_N  = 1 / sqrt(mean_D(h_ND^2) + eps)             computed again from h_ND in the backward pass
    y_ND = h_ND * s_N * weight_D

and with a = grad_y * weight, for the gradient g of both x and residual:

    g_ND          = grad_h_ND + s_N * (a_ND - h_ND * s_N^2 * mean_D(a_ND * h_ND))
    grad_weight_D = sum_N(grad_y_ND * h_ND * s_N)

Shapes: N rows (all leading dimensions flattened), D width. x, residual, y, h: [..., D]; weight: [D].
Dtypes: float32, and bfloat16 where the implementation says so; sums are always float32. h is rounded to the dtype of
x before it is normalised, so that what the backward pass reads is what the forward pass used.

Bytes moved in float32, per element of [N, D] (every tensor read or written once counts 4; [N] and [D] left out):

    |          | fused                           | `reference`, op by op in eager torch |
    | forward  | 16: x, residual in; y, h out    | 40: add 12, square 8, mean 4, scale 8, weight 8 |
    | backward | 16: grad_y, grad_h, h in; g out | 104: weight 24, scale 24, mean and square 32, sums 24 |

The eager column is the sum over the ATen calls of one forward and one backward of what each reads and writes. An edit
that swaps `reference` for `cpu` or `triton` can win about that ratio where memory is the limit, and only on the share
of a step that is spent here.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from kernels.cases import Case, Layout, Tolerance
from kernels.errors import without_triton
from kernels.prenorm_cpu import prenorm_cpu


def reference(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(y, h) in plain torch, any floating dtype and device; sums in float32, or in float64 for float64 inputs."""
    accumulate = torch.promote_types(x.dtype, torch.float32)
    h = x + residual
    wide = h.to(accumulate)
    rstd = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return (wide * rstd * weight.to(accumulate)).to(x.dtype), h


def cpu(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(y, h) by the compiled C++ kernel; float32 on the CPU, one thread, built at the first call.

    Raises Unavailable without a C++ compiler, TypeError for another dtype, ValueError for another device or shape.
    """
    return prenorm_cpu(x, residual, weight, eps)


def triton(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(y, h) by the Triton kernels; float32 or bfloat16 on CUDA, weight in float32 or the dtype of x.

    Raises Unavailable without Triton or without a CUDA device, TypeError and ValueError as `cpu` does.
    """
    try:
        from kernels import prenorm_triton
    except ModuleNotFoundError as error:
        raise without_triton(error, "set ops.prenorm to cpu or reference") from error
    if not x.is_cuda:
        prenorm_triton.require_device()
    return prenorm_triton.prenorm_triton(x, residual, weight, eps)


Prenorm = Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]]
IMPLEMENTATIONS: dict[str, Prenorm] = {"reference": reference, "cpu": cpu, "triton": triton}
DEVICES: dict[str, tuple[str, ...]] = {"reference": ("cpu", "cuda"), "cpu": ("cpu",), "triton": ("cuda",)}

_FLOAT32 = Tolerance(
    relative=2e-6,
    absolute=2e-6,
    reason="A float32 rounding is 6e-8 relative; a row sum in any order and a root add a few tens of them.",
)
_FLOAT32_GRADIENT = Tolerance(
    relative=1e-5,
    absolute=1e-5,
    reason="The gradient of h is a difference of two terms, so the roundings of both, each of size up to the row's "
    "rstd, stay where they cancel; the weight gradient adds up to 130 rows.",
)
_FLOAT32_ONE_ELEMENT = Tolerance(
    relative=1e-5,
    absolute=1e-4,
    reason="With one element y is the sign of h, so its true gradient is almost 0 and what is left is float32 "
    "rounding times rstd, which reaches a few hundred where h is near 0.",
)
_BFLOAT16 = Tolerance(
    relative=2.0**-6,
    absolute=2.0**-6,
    reason="bfloat16 keeps 8 bits: h and y are each rounded by up to 2^-9 relative, and h at a sum near 4 by 2^-7.",
)
_BFLOAT16_GRADIENT = Tolerance(
    relative=2.0**-5,
    absolute=2.0**-4,
    reason="Besides its own rounding the gradient carries that of h, by up to 2^-8 a term; the weight gradient adds "
    "such errors over up to 130 rows, as their square root.",
)


def _case(
    name: str,
    *shape: int,
    eps: float = 1e-5,
    layout: Layout = "contiguous",
    scale: float = 1.0,
    gradients: Tolerance = _FLOAT32_GRADIENT,
) -> Case:
    return Case(
        name=name,
        shapes={"x": shape, "residual": shape, "weight": shape[-1:]},
        options={"eps": eps},
        implementations=("reference", "cpu", "triton"),
        outputs=_FLOAT32,
        gradients=gradients,
        layout=layout,
        scale=scale,
    )


def _bfloat16_case(name: str, *shape: int, weight: torch.dtype) -> Case:
    return Case(
        name=name,
        shapes={"x": shape, "residual": shape, "weight": shape[-1:]},
        options={"eps": 1e-5},
        implementations=("reference", "triton"),
        outputs=_BFLOAT16,
        gradients=_BFLOAT16_GRADIENT,
        dtype=torch.bfloat16,
        dtypes={"weight": weight},
    )


CASES: tuple[Case, ...] = (
    _case("odd", 7, 129),
    _case("three_dimensions", 2, 3, 257),
    _case("small_odd", 3, 5),
    _case("one_vector", 31),
    _case("one_element", 1, 1, gradients=_FLOAT32_ONE_ELEMENT),
    _case("width_one", 9, 1, gradients=_FLOAT32_ONE_ELEMENT),
    _case("many_rows", 130, 33),
    _case("no_rows", 0, 8),
    _case("no_rows_in_three_dimensions", 2, 0, 8),
    _case("strided", 7, 129, layout="strided"),
    _case("transposed", 2, 3, 65, layout="transposed"),
    _case("expanded", 6, 40, layout="expanded"),
    _case("large_values", 4, 64, scale=1e4),
    _case("large_eps", 4, 64, eps=1.0),
    _bfloat16_case("bfloat16", 7, 129, weight=torch.bfloat16),
    _bfloat16_case("bfloat16_float32_weight", 130, 33, weight=torch.float32),
)
