"""Backward passes that are ops of their own, of the kernel files that list them in `BACKWARDS`.

Such a function maps (gradient of the output, *inputs) to the gradients of the inputs.
"""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from torch import Tensor

from kernels.cases import Case, Tolerance
from kernels.errors import Unavailable
from tests.kernels.every import COMPILED, OurCalls, assert_within, combinations, one_of_each_kind, same_values


def has_backwards(module: ModuleType) -> bool:
    return isinstance(getattr(module, "BACKWARDS", None), dict)


every_backward = pytest.mark.parametrize(
    ("module", "implementation", "device", "case"),
    combinations(lambda module: list(module.CASES) if has_backwards(module) else []),
)
each_kind_of_backward = pytest.mark.parametrize(
    ("module", "implementation", "device", "case"),
    combinations(lambda module: one_of_each_kind(module) if has_backwards(module) else []),
)


def arguments_of(case: Case, device: str) -> list[Tensor]:
    """A gradient that is not contiguous, as that of a transposed consumer is, and the inputs."""
    inputs = list(case.inputs(device).values())
    generator = torch.Generator().manual_seed(11)
    gradient = torch.randn(*inputs[0].shape, 2, generator=generator)[..., 0]
    return [gradient.to(device=device, dtype=inputs[0].dtype), *inputs]


def called(module: ModuleType, implementation: str, arguments: list[Tensor]) -> list[Tensor]:
    try:
        return list(module.BACKWARDS[implementation](*arguments))
    except Unavailable as error:
        pytest.skip(error.reason)


def device_or_skip(device: str) -> str:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    return device


@every_backward
def test_a_separate_backward_pass_matches_the_reference_in_float64(
    module: ModuleType, implementation: str, device: str, case: Case
) -> None:
    arguments = arguments_of(case, device_or_skip(device))
    got = called(module, implementation, arguments)
    wanted = module.BACKWARDS["reference"](*(argument.double() for argument in arguments))
    given = module.BACKWARD_TOLERANCES[case.dtype]
    tolerance = Tolerance(given.relative, given.absolute * max(case.scale, 1.0), given.reason)
    for i, (one, two) in enumerate(zip(got, wanted, strict=True)):
        assert one.dtype == case.dtype and one.is_contiguous() and not one.requires_grad
        assert_within(one, two, tolerance, f"gradient {i}")


@each_kind_of_backward
def test_a_separate_backward_op_passes_opcheck_and_gives_the_same_bits_watched(
    module: ModuleType, implementation: str, device: str, case: Case
) -> None:
    arguments = arguments_of(case, device_or_skip(device))
    alone = called(module, implementation, arguments)
    with OurCalls() as seen:
        watched = called(module, implementation, arguments)
    assert all(same_values(one, two) for one, two in zip(alone, watched, strict=True))
    assert len(seen.calls) == (implementation in COMPILED)
    for func, args, _ in seen.calls:
        torch.library.opcheck(func, args)
