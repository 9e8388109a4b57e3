"""Every kernel file under what torch does to ops: tracing, its own op checks, CUDA graphs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from kernels.cases import Case
from tests.kernels.every import (
    COMPILED,
    MODULES,
    OurCalls,
    available,
    comparable,
    cotangents_of,
    each_kind,
    each_kind_but_the_reference,
    leaves_of,
    outputs_of,
    run,
)


@each_kind_but_the_reference
def test_torch_compile_captures_it_in_one_graph_with_equal_results(
    module: ModuleType, implementation: str, device: str, case: Case
) -> None:
    function = available(module, implementation, device)
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True, dynamic=False)
    inputs = case.inputs(device)
    outputs, gradients = run(function, case, inputs)
    again, gradients_again = run(compiled, case, inputs)
    for one, two in [*zip(outputs, again, strict=True), *((gradients[n], gradients_again[n]) for n in gradients)]:
        assert two.dtype == one.dtype
        torch.testing.assert_close(comparable(two), comparable(one))


@each_kind
def test_every_op_passes_opcheck(module: ModuleType, implementation: str, device: str, case: Case) -> None:
    function = available(module, implementation, device)
    seen = OurCalls()
    with seen:
        leaves = leaves_of(case.inputs(device))
        outputs = outputs_of(function, *leaves.values(), **case.options)
        if case.gradients is not None:
            seen.in_backward = True
            go_back(outputs, leaves)
    if implementation not in COMPILED:
        assert not seen.calls
        return
    ops = {func._schema.name for func, _, _ in seen.calls}
    assert ops and any(name.endswith("_backward") for name in ops) == (case.gradients is not None)
    for func, args, in_backward in seen.calls:
        differentiable = not in_backward
        passed = tuple(
            arg.requires_grad_() if differentiable and isinstance(arg, Tensor) and arg.is_floating_point() else arg
            for arg in args
        )
        torch.library.opcheck(func, passed)


def go_back(outputs: list[Tensor], leaves: dict[str, Tensor]) -> None:
    """From all outputs together, and from each alone."""
    cotangents = cotangents_of(outputs)
    for chosen in [outputs, *([output] for output in outputs)]:
        given = cotangents if len(chosen) > 1 else [torch.ones_like(chosen[0])]
        torch.autograd.grad(chosen, list(leaves.values()), given, allow_unused=True, retain_graph=True)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_captured_cuda_graph_replays_the_kernel_on_new_inputs(module: ModuleType) -> None:
    for implementation, devices in module.DEVICES.items():
        if "cuda" not in devices:
            continue
        function = available(module, implementation, "cuda")
        case = next(case for case in module.CASES if implementation in case.implementations)
        static = case.inputs("cuda")
        cotangents = None
        if case.gradients is not None:
            cotangents = cotangents_of(outputs_of(function, *static.values(), **case.options))

        def step(
            function: Any = function, case: Case = case, static: Any = static, cotangents: Any = cotangents
        ) -> list[Tensor]:
            outputs, gradients = run(function, case, static, cotangents)
            return [*outputs, *gradients.values()]

        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            replayed = step()
        for tensor in static.values():
            tensor.mul_(-0.5).add_(0.25)
        graph.replay()
        torch.cuda.synchronize()
        for got, want in zip(replayed, step(), strict=True):
            torch.testing.assert_close(comparable(got), comparable(want))
