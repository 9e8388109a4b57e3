"""Every kernel file against its own reference in float64: a new file in `kernels/` is picked up with no edit here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from kernels.cases import Case
from models.recompute import recomputed
from tests.kernels.every import (
    COMPILED,
    MODULES,
    OurCalls,
    assert_within,
    available,
    cotangents_of,
    each_differentiable_kind,
    each_kind,
    every_case,
    outputs_of,
    run,
    same_values,
)


@contextmanager
def memory_that_starts_as_nan() -> Iterator[None]:
    """Every torch.empty holds NaN in here, so a kernel that leaves an element of its output unwritten shows it."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(3).isnan().all(), "this torch does not fill uninitialized memory"
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def assert_matches_reference(module: ModuleType, function: Callable[..., tuple[Tensor, ...]], device: str, case: Case):
    inputs = case.inputs(device)
    exact_inputs = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in inputs.items()}
    if case.gradients is None:
        assert_outputs_match(run(function, case, inputs)[0], run(module.reference, case, exact_inputs)[0], case)
        return
    with torch.no_grad():
        cotangents = cotangents_of(outputs_of(function, *inputs.values(), **case.options))
    exact_cotangents = [cotangent.double() for cotangent in cotangents]
    alone = [(i,) for i in range(len(cotangents))]
    for through in [None, *alone]:
        outputs, gradients = run(function, case, inputs, cotangents, through)
        wanted, wanted_gradients = run(module.reference, case, exact_inputs, exact_cotangents, through)
        assert_outputs_match(outputs, wanted, case)
        for name, got in gradients.items():
            assert got.dtype == inputs[name].dtype
            assert_within(got, wanted_gradients[name], case.gradients, f"gradient of {name} through {through or 'all'}")


def assert_outputs_match(outputs: list[Tensor], wanted: list[Tensor], case: Case) -> None:
    for i, (got, want) in enumerate(zip(outputs, wanted, strict=True)):
        assert_within(got, want, case.outputs, f"output {i}")


def test_the_kernels_folder_has_kernels() -> None:
    assert "kernels.prenorm" in [module.__name__ for module in MODULES]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_kernel_says_where_each_implementation_runs_and_is_tested(module: ModuleType) -> None:
    assert module.IMPLEMENTATIONS["reference"] is module.reference
    assert set(module.DEVICES) == set(module.IMPLEMENTATIONS)
    names = [case.name for case in module.CASES]
    assert len(set(names)) == len(names)
    assert {name for case in module.CASES for name in case.implementations} == set(module.IMPLEMENTATIONS)
    assert all(case.outputs.reason and (case.gradients is None or case.gradients.reason) for case in module.CASES)
    assert {"strided", "transposed"} <= {case.layout for case in module.CASES}


@every_case
def test_outputs_and_every_gradient_match_the_reference_in_float64(
    module: ModuleType, implementation: str, device: str, case: Case
) -> None:
    assert_matches_reference(module, available(module, implementation, device), device, case)


@every_case
def test_every_element_of_an_output_is_written(
    module: ModuleType, implementation: str, device: str, case: Case
) -> None:
    function = available(module, implementation, device)
    with memory_that_starts_as_nan():
        assert_matches_reference(module, function, device, case)


@every_case
def test_inputs_are_left_as_they_were_and_outputs_are_new_memory(
    module: ModuleType, implementation: str, device: str, case: Case
) -> None:
    function = available(module, implementation, device)
    inputs = case.inputs(device)
    before = {name: tensor.clone() for name, tensor in inputs.items()}
    outputs, _ = run(function, case, inputs)
    for name, tensor in inputs.items():
        assert torch.equal(tensor, before[name])
        for output in outputs:
            assert output.numel() == 0 or output.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr()


def checkpointed_by_torch(function: Callable[..., tuple[Tensor, ...]], *arguments: Tensor) -> tuple[Tensor, ...]:
    return checkpoint(function, *arguments, use_reentrant=False, preserve_rng_state=False)


def checkpointed_by_the_model(function: Callable[..., tuple[Tensor, ...]], *arguments: Tensor) -> tuple[Tensor, ...]:
    return recomputed(function, arguments, ())


@pytest.mark.parametrize("checkpointed", [checkpointed_by_torch, checkpointed_by_the_model])
@each_differentiable_kind
def test_gradients_under_activation_checkpointing_are_bit_equal(
    module: ModuleType, implementation: str, device: str, case: Case, checkpointed: Callable[..., tuple[Tensor, ...]]
) -> None:
    function = available(module, implementation, device)

    def again(*arguments: Tensor, **options: float) -> tuple[Tensor, ...]:
        return checkpointed(functools.partial(function, **options), *arguments)

    assert_bit_equal(case, device, function, again)


@each_kind
def test_an_op_that_a_dispatch_mode_watches_gives_the_same_bits(
    module: ModuleType, implementation: str, device: str, case: Case
) -> None:
    # Unwatched, a wrapper may reach its kernel without the dispatcher.
    function = available(module, implementation, device)
    alone = run(function, case, case.inputs(device))
    with OurCalls() as seen:
        watched = run(function, case, case.inputs(device))
    assert bool(seen.calls) == (implementation in COMPILED)
    assert all(same_values(one, two) for one, two in zip(alone[0], watched[0], strict=True))
    assert all(same_values(alone[1][name], watched[1][name]) for name in alone[1])


def assert_bit_equal(
    case: Case, device: str, function: Callable[..., tuple[Tensor, ...]], other: Callable[..., tuple[Tensor, ...]]
) -> None:
    inputs = case.inputs(device)
    outputs, gradients = run(function, case, inputs)
    again, gradients_again = run(other, case, inputs)
    assert all(same_values(one, two) for one, two in zip(outputs, again, strict=True))
    assert all(same_values(gradients[name], gradients_again[name]) for name in gradients)
