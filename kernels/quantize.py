"""Quantization to fp8 with scales: for a tensor, a row, or a block of 128 columns of a row.

With F the largest finite value of the format (448 for e4m3, 57,344 for e5m2; Micikevicius et al., "FP8 Formats for
Deep Learning", arXiv:2209.05433), and the maximum over what shares a scale:

    scale       = max(max|x_RC| / F, 1e-12)
    payload_RC  = round(x_RC / scale)            to the nearest value of the format, ties to even

Both are computed in float32, and every implementation gives the same numbers. Nothing exceeds F by more than the
rounding of the division, which rounds back to F, so the conversion saturates. NaN and infinity show: with a NaN the
scale and all its payload are NaN; with an infinity the scale is infinite, the payload NaN where x is infinite and 0
elsewhere.

Shapes: R rows, C columns (the contraction), G = ceil(C / 128) blocks of a row, the last one may be short.
x: [R, C]; payload: [R, C]; scale: float32, [1, 1] for "tensor", [R, 1] for "row", [R, G] for "block".
Dtypes: float32, and bfloat16 where the implementation says so. The payload is float8_e4m3fn or float8_e5m2; emulated it
is float32 that holds values of the format only, where what rounds to zero is +0 whatever its sign, as it is in the
Triton kernels for fp8 too.
Not differentiable: payload and scale never require a gradient.

Bytes moved in float32, per element of [R, C] (scales left out), emulated / in fp8:

    | fused                           | `reference`, op by op in eager torch                                    |
    | 12 / 9: x in twice; payload out | 68 / 25: abs 8, max 4, divide 8; to round 48 (and, clamp, multiply 24,   |
    |                                 | add, subtract 24), or to cast 5; a scale per block costs 20 more         |

Where x fits a cache its second reading is free: then 8 / 5.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.cases import Case, Layout, Tolerance
from kernels.errors import without_triton
from kernels.quantize_cpu import quantize_cpu
from kernels.quantize_ops import BLOCK, SMALLEST_SCALE, Format, check_choices, check_matrix


def round_to_format_(x: Tensor, form: Format) -> Tensor:
    """Rounds float32 in place to the nearest value of an fp8 format, ties to even, up to its largest value.

    The same numbers as casting to the format and back, in a third of the time, but for the sign of zero.

    A multiple of q is found by adding and taking away c = 1.5 * 2^23 * q, beside which float32 steps by q. Here q is
    the step of the format at x: 2^(exponent - mantissa bits), and the subnormal step below the smallest normal.
    """
    power = x.view(torch.int32).bitwise_and(0x7F800000).view(torch.float32)
    c = power.clamp_(min=form.smallest_normal).mul_(form.beside)
    return x.add_(c).sub_(c)


def reference(x: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    """(payload, scale) in plain torch, any floating dtype and device; computed in float32 even for float64 inputs.

    Raises ValueError for another format or scaling, and unless x is a matrix with at least one element.
    """
    chosen = check_choices("quantize", form, scaling)
    check_matrix("quantize", "x", x)
    x = x.detach().float()
    magnitude = x.abs()
    if scaling == "block":
        largest = F.pad(magnitude, (0, -x.shape[1] % BLOCK)).unflatten(1, (-1, BLOCK)).amax(dim=2)
    else:
        largest = magnitude.amax(dim=1 if scaling == "row" else (0, 1), keepdim=True)
    # By a tensor: on CUDA torch divides by a number by multiplying with its rounded reciprocal.
    scale = largest.div_(torch.full_like(largest, chosen.largest)).clamp_(min=SMALLEST_SCALE)
    divisor = scale.repeat_interleave(BLOCK, dim=1)[:, : x.shape[1]] if scaling == "block" else scale
    scaled = x / divisor
    return round_to_format_(scaled, chosen) if emulated else scaled.to(chosen.dtype), scale


def cpu(x: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    """(payload, scale) by the compiled C++ kernel; float32 on the CPU, one thread, built at the first call.

    Reads a contiguous matrix or the transpose of one as it lies, and gives the payload the same layout; anything else
    is copied first. Raises Unavailable without a C++ compiler, TypeError for another dtype, ValueError as `reference`
    does or for another device.
    """
    return quantize_cpu(x, form, scaling, emulated)


def triton(x: Tensor, form: str, scaling: str, emulated: bool) -> tuple[Tensor, Tensor]:
    """(payload, scale) by the Triton kernels; float32 or bfloat16 on CUDA, of any strides. The payload is contiguous.

    Raises Unavailable without Triton or without a CUDA device, TypeError and ValueError as `cpu` does.
    """
    try:
        from kernels import quantize_triton
    except ModuleNotFoundError as error:
        raise without_triton(error, "set ops.quantize to cpu or reference") from error
    if not x.is_cuda:
        quantize_triton.require_device("ops.quantize")
    return quantize_triton.quantize_triton(x, form, scaling, emulated)


Quantize = Callable[[Tensor, str, str, bool], tuple[Tensor, Tensor]]
IMPLEMENTATIONS: dict[str, Quantize] = {"reference": reference, "cpu": cpu, "triton": triton}
DEVICES: dict[str, tuple[str, ...]] = {"reference": ("cpu", "cuda"), "cpu": ("cpu",), "triton": ("cuda",)}

_EXACT = Tolerance(
    relative=0.0,
    absolute=0.0,
    reason="The payload is defined by one float32 division and one rounding, and a maximum has no rounding.",
)


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
        shapes={"x": shape},
        options={"form": form, "scaling": scaling, "emulated": emulated},
        implementations=float32 if dtype == torch.float32 else ("reference", "triton"),
        outputs=_EXACT,
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
    _case("block_wider_than_the_row", 3, 20, scaling="block"),
    _case("e5m2_tensor", 6, 65, form="fp8_e5m2"),
    _case("e5m2_row_fp8", 6, 65, form="fp8_e5m2", scaling="row", emulated=False),
    _case("e5m2_block", 2, 140, form="fp8_e5m2", scaling="block"),
    _case("one_element", 1, 1),
    _case("one_row", 1, 300, scaling="row"),
    _case("one_column", 300, 1, scaling="row"),
    _case("many_rows", 300, 33),
    _case("strided", 7, 129, layout="strided", scaling="row"),
    _case("transposed", 270, 96, layout="transposed"),
    _case("transposed_row", 270, 96, layout="transposed", scaling="row"),
    _case("transposed_block", 5, 300, layout="transposed", scaling="block", emulated=False),
    _case("expanded", 6, 40, layout="expanded"),
    _case("large_values", 4, 64, scale=1e30),
    _case("tiny_values", 4, 64, scale=1e-30, scaling="row"),
    _case("bfloat16", 7, 129, dtype=torch.bfloat16, emulated=False),
    _case("bfloat16_row", 130, 96, dtype=torch.bfloat16, scaling="row", emulated=False),
    _case("bfloat16_block", 9, 300, dtype=torch.bfloat16, scaling="block", emulated=False),
)
