"""What the implementations of `kernels.quantize` and `kernels.gated` share: formats, argument checks, op registration.

A call at 256 x 96 spends 8 us in the C++ kernel, so the functions that `register` returns reach it directly, and go
through the dispatcher only where somebody is there to see the op, as those of `kernels.prenorm_ops` do.

Shape suffixes: R rows, C columns (the contraction), G scales of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import torch
from torch import Tensor

LIBRARY = torch.library.Library("kernels", "FRAGMENT")

# A scale is never less, so that zeros and tiny values can be divided by it.
SMALLEST_SCALE = 1e-12
# Columns that share a scale where `scaling` is "block".
BLOCK = 128
SCALINGS = ("tensor", "row", "block")

QUANTIZE_SCHEMA = "(Tensor x, str form, str scaling, bool emulated) -> (Tensor, Tensor)"
GATED_SCHEMA = "(Tensor gate, Tensor up, str form, str scaling, bool emulated) -> (Tensor, Tensor)"
GATED_BACKWARD_SCHEMA = "(Tensor dy, Tensor gate, Tensor up) -> (Tensor, Tensor)"

# Inside it an op starts below its autograd kernel.
_below_autograd = torch._C._AutoDispatchBelowAutograd
# How many TorchDispatchModes are active, those of fake tensors and of tracing among them.
_dispatch_modes = torch._C._len_torch_dispatch_stack
_transforms = torch._C._are_functorch_transforms_active
# A trace names only what goes through the dispatcher.
_profiled = torch._C._autograd._profiler_enabled
# Any other type of tensor may want to see the op too.
_PLAIN = frozenset((Tensor, torch.nn.Parameter))

Results = TypeVar("Results", bound=tuple[Tensor, ...])


@dataclass(frozen=True)
class Format:
    """An fp8 format: its dtype in torch, mantissa bits, smallest normal and largest finite value."""

    dtype: torch.dtype
    mantissa_bits: int
    smallest_normal: float
    largest: float

    @property
    def beside(self) -> float:
        """Times a power of two p: a float32 beside which float32 steps by the format's step at p."""
        return 1.5 * 2.0 ** (23 - self.mantissa_bits)


# Micikevicius et al., "FP8 Formats for Deep Learning" (arXiv:2209.05433), table 1.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "fp8_e4m3": Format(torch.float8_e4m3fn, 3, 2.0**-6, 448.0),
        "fp8_e5m2": Format(torch.float8_e5m2, 2, 2.0**-14, 57344.0),
    }
)


def scales_in_a_row(columns: int, scaling: str) -> int:
    """G: how many scales a row of `columns` elements has, where it has its own."""
    return -(-columns // BLOCK) if scaling == "block" else 1


def scale_shape(rows: int, columns: int, scaling: str) -> tuple[int, int]:
    return (1, 1) if scaling == "tensor" else (rows, scales_in_a_row(columns, scaling))


@dataclass(frozen=True)
class Accepts:
    """What one implementation can be given: its op's name, the dtypes of its inputs, the device types."""

    name: str
    dtypes: tuple[torch.dtype, ...]
    devices: tuple[str, ...]

    def check(self, **tensors: Tensor) -> None:
        """Raises TypeError for a wrong dtype and ValueError for a wrong device or shape, before any pointer is taken.

        All tensors must be matrices with at least one element, alike in shape, dtype and device.
        """
        (first_name, first), *others = tensors.items()
        if first.dtype not in self.dtypes:
            names = " or ".join(str(dtype) for dtype in self.dtypes)
            raise TypeError(f"{self.name} takes {names}, not {first.dtype}. Convert it, or use reference.")
        if first.device.type not in self.devices:
            raise ValueError(
                f"{self.name} runs on {' or '.join(self.devices)} tensors, not on {first.device}. "
                "Choose another implementation, or another device."
            )
        check_matrix(self.name, first_name, first)
        for name, other in others:
            if other.shape != first.shape:
                raise ValueError(f"{self.name}: {name} has the shape {tuple(other.shape)}, not {tuple(first.shape)}.")
            if other.dtype != first.dtype:
                raise TypeError(f"{self.name}: {name} is {other.dtype}, not {first.dtype} as {first_name}.")
            if other.device != first.device:
                raise ValueError(f"{self.name}: {name} is on {other.device}, not on {first.device}.")

    def check_memory(self, *addresses: int) -> None:
        """Raises ValueError for a null address."""
        if not all(addresses):
            raise ValueError(
                f"{self.name}: a tensor has elements but no memory: its storage was freed, or it only stands for "
                "another."
            )


def check_matrix(who: str, name: str, x: Tensor) -> None:
    """Raises ValueError unless x is a matrix with at least one element."""
    if x.dim() != 2 or not x.numel():
        raise ValueError(
            f"{who}: {name} must be a matrix with at least one element, got the shape {tuple(x.shape)}. "
            "Flatten leading dimensions with flatten(0, -2)."
        )


def check_choices(who: str, form: str, scaling: str) -> Format:
    """The format named `form`. Raises ValueError for a format or a scaling that does not exist."""
    if form not in FORMATS:
        raise ValueError(f"{who}: there is no format {form!r}. Choose one of {', '.join(FORMATS)}.")
    if scaling not in SCALINGS:
        raise ValueError(f"{who}: there is no scaling {scaling!r}. Choose one of {', '.join(SCALINGS)}.")
    return FORMATS[form]


def is_transposed(x: Tensor) -> bool:
    """Whether x is the transpose of a contiguous matrix (and not contiguous itself, which callers look at first)."""
    return x.stride() == (1, x.shape[0])


def dense(x: Tensor) -> Tensor:
    """x itself where it is contiguous or the transpose of a contiguous matrix, else a contiguous copy."""
    return x if x.is_contiguous() or is_transposed(x) else x.contiguous()


def register(
    name: str, schema: str, tensors: int, implementation: Callable[..., Results], fake: Callable[..., Results]
) -> Callable[..., Results]:
    """Registers the op `kernels::<name>`, with its fake, and returns the function to call, with positional arguments.

    The first `tensors` arguments are tensors. `implementation` must check all it is given, since anyone can call the
    op. The op is not differentiable: its results never require a gradient.
    """
    LIBRARY.define(f"{name}{schema}", tags=(torch.Tag.pt2_compliant_tag,))
    LIBRARY.impl(name, implementation, "CompositeExplicitAutograd")
    operator = getattr(torch.ops.kernels, name).default

    def below_autograd(*arguments: Any) -> Results:
        with _below_autograd():
            return operator(*arguments)

    def call(*arguments: Any) -> Results:
        if torch.compiler.is_compiling():
            return operator(*arguments)
        for tensor in arguments[:tensors]:
            if type(tensor) not in _PLAIN or tensor.is_neg():
                return below_autograd(*arguments)
        if _dispatch_modes() or _transforms() or _profiled():
            return below_autograd(*arguments)
        return implementation(*arguments)

    torch.library.register_fake(operator, fake, lib=LIBRARY)
    LIBRARY.impl(name, below_autograd, "Autograd")
    return call
