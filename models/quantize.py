"""How operands of the low-precision products are quantized: formats, scales, and who asked for it.

Shapes: R rows, C columns of one operand, contraction last; M rows of an activation, N of a weight, K of either.

A product `y_MN = x_MK w_NK^T` and its two gradients contract three axes, and scales must lie along the rows of the
operands. So every operand is wanted `along` its last axis and, for the other product it takes part in, `across`: its
transpose, quantized along the other axis. With one scale per tensor the second is a view of the first; with scales per
row or per block (1 x 128) it is quantized anew.

Formats: `fp8_e4m3` has all operands in e4m3, gradients too (as in DeepSeek-V3, arXiv:2412.19437). `fp8_e5m2` has
gradients in e5m2 and the rest in e4m3 (Micikevicius et al., 2022, arXiv:2209.05433, section 4: tensor cores do not
multiply e5m2 by e5m2). `nvfp4` and `mxfp4` have packed 4-bit values with a scale for 16 or 32 of them.

Roles: `models::quantize_weight`, `models::quantize_activation` and `models::quantize_gradient` are ops, so that an
observer can count them. They are dispatched only where a dispatch mode watches or torch.compile traces; else the
implementation is called directly, which a kernel of a few microseconds notices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels import fp4, quantize
from kernels.fp4_ops import FORMATS as FP4_FORMATS
from kernels.fp4_ops import outputs_for
from kernels.quantize_ops import FORMATS, dense, scale_shape
from models.config import QuantConfig
from models.ops import Quantize

_SCALINGS = {"per_tensor": "tensor", "per_row": "row", "per_block": "block"}
_ACTIVATION_FORM = {"fp8_e5m2": "fp8_e4m3"}

_dispatch_modes = torch._C._len_torch_dispatch_stack
_profiled = torch._C._autograd._profiler_enabled  # a trace names only what goes through the dispatcher
_library = torch.library.Library("models", "DEF")


class Quantized(NamedTuple):
    """An operand of value payload * scale (* overall).

    fp8: payload [R, C] is an fp8 dtype on hardware; emulated it is float32 that holds values of the format only. scale
    is float32 [1, 1], [R, 1] or [R, ceil(C / 128)], overall None. fp4: payload uint8 [R, C / 2] holds two values a
    byte, scale one e4m3 per 16 or e8m0 per 32 values, overall float32 [1].
    """

    payload: Tensor
    scale: Tensor
    overall: Tensor | None = None

    def transposed(self) -> Quantized:
        """The same numbers contracted the other way. Raises `ValueError` unless one scale is for the whole tensor."""
        if self.overall is not None or self.scale.numel() != 1:
            raise ValueError(
                "an operand scaled per row or block cannot be transposed: quantize it along the other axis."
            )
        return Quantized(self.payload.t(), self.scale)


class Operand(NamedTuple):
    """One matrix quantized along its rows and across them; None where the product quantizes it for itself."""

    along: Quantized | None = None
    across: Quantized | None = None


def _quantize(x_RC: Tensor, form: str, scaling: str, emulated: bool, implementation: str) -> list[Tensor]:
    if form in FP4_FORMATS:
        return list(fp4.IMPLEMENTATIONS[implementation](whole_blocks(x_RC, form), form))
    return list(quantize.IMPLEMENTATIONS[implementation](x_RC, form, scaling, emulated))


def _fake(x_RC: Tensor, form: str, scaling: str, emulated: bool, implementation: str) -> list[Tensor]:
    if form in FP4_FORMATS:
        return list(outputs_for(whole_blocks(x_RC, form), FP4_FORMATS[form]))
    dtype = torch.float32 if emulated else FORMATS[form].dtype
    # The Triton kernels write rows, the others keep the layout that they are given.
    like = x_RC.contiguous() if implementation == "triton" else dense(x_RC)
    rows, columns = x_RC.shape
    scale = x_RC.new_empty(scale_shape(rows, columns, scaling), dtype=torch.float32)
    return [torch.empty_like(like, dtype=dtype), scale]


def _role(name: str) -> Callable[..., list[Tensor]]:
    _library.define(
        f"{name}(Tensor x, str form, str scaling, bool emulated, str implementation) -> Tensor[]",
        tags=(torch.Tag.pt2_compliant_tag,),
    )
    # The low-level registration: a call through `torch.library.custom_op` costs three times as much.
    _library.impl(name, _quantize, "CompositeExplicitAutograd")
    torch.library.register_fake(f"models::{name}", _fake, lib=_library)
    return getattr(torch.ops.models, name).default


_weight_op, _activation_op, _gradient_op = (_role(f"quantize_{role}") for role in ("weight", "activation", "gradient"))


def whole_blocks(x_RC: Tensor, form: str) -> Tensor:
    """x with columns of zeros added up to a whole number of 4-bit blocks."""
    more = -x_RC.shape[1] % FP4_FORMATS[form].block
    return F.pad(x_RC, (0, more)) if more else x_RC


class Quantizer:
    """Quantizes operands as `quant` says, by the implementation `name`. Results never require a gradient."""

    def __init__(self, quant: QuantConfig, name: str, implementation: Quantize, emulated: bool) -> None:
        self.form = _ACTIVATION_FORM.get(quant.format, quant.format)
        self.gradient_form = quant.format
        self.fp4 = quant.format in FP4_FORMATS
        self.scaling = "block" if self.fp4 else _SCALINGS[quant.scales]
        self.emulated = emulated
        self.name = name
        self._implementation = implementation

    @property
    def reversible(self) -> bool:
        """Whether `across` is a view of `along`: one scale for the whole tensor."""
        return self.scaling == "tensor"

    def weight(self, w_NK: Tensor) -> Quantized:
        return self._call(_weight_op, w_NK, self.form)

    def activation(self, x_MK: Tensor) -> Quantized:
        return self._call(_activation_op, x_MK, self.form)

    def gradient(self, dy_MN: Tensor) -> Quantized:
        return self._call(_gradient_op, dy_MN, self.gradient_form)

    def _call(self, op: Callable[..., list[Tensor]], x_RC: Tensor, form: str) -> Quantized:
        x_RC = x_RC.detach()
        if torch.compiler.is_compiling() or _dispatch_modes() or _profiled():
            return Quantized(*op(x_RC, form, self.scaling, self.emulated, self.name))
        if self.fp4:
            return Quantized(*_quantize(x_RC, form, self.scaling, self.emulated, self.name))
        return Quantized(*self._implementation(x_RC, form, self.scaling, self.emulated))

    def activation_operand(self, x_MK: Tensor, *, shared: bool, known: bool) -> Operand:
        """What one consumer, or all that share it, need of an activation.

        With `known` the product's result is there already, so that only the backward pass has a use for x. Where it is
        not a view, `across` is for the backward pass alone: it is made here if several consumers will share it, and
        left to the one product otherwise, which keeps x until then.
        """
        if self.reversible:
            along = self.activation(x_MK)
            return Operand(along, self._reversed(along, keep=shared and torch.is_grad_enabled()))
        return Operand(
            None if known else self.activation(x_MK),
            self.activation(x_MK.t()) if shared and torch.is_grad_enabled() else None,
        )

    def weight_operand(self, w_NK: Tensor) -> Operand:
        """Both of them, to be kept."""
        along = self.weight(w_NK)
        return Operand(along, self._reversed(along, keep=True) if self.reversible else self.weight(w_NK.t()))

    def weight_across(self, w_NK: Tensor) -> Quantized:
        return self.weight(w_NK).transposed() if self.reversible else self.weight(w_NK.t())

    def activation_across(self, x_MK: Tensor) -> Quantized:
        return self.activation(x_MK).transposed() if self.reversible else self.activation(x_MK.t())

    def gradient_operand(self, dy_MN: Tensor) -> tuple[Quantized, Quantized]:
        """dy along and across."""
        along = self.gradient(dy_MN)
        return along, along.transposed() if self.reversible else self.gradient(dy_MN.t())

    def _reversed(self, along: Quantized, keep: bool) -> Quantized:
        """The transpose. On hardware, which reads rows, the copy that a product would make is made once and kept."""
        across = along.transposed()
        return Quantized(across.payload.contiguous(), across.scale) if keep and not self.emulated else across
