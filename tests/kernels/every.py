"""Every case of every kernel file: what the tests of this folder that know no kernel by name are made of.

A kernel file is one of `kernels/` that defines `CASES` and `IMPLEMENTATIONS`.
"""

from __future__ import annotations

import ast
import importlib
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from kernels.cases import Case, Tolerance
from kernels.errors import Unavailable

ROOT = Path(__file__).resolve().parents[2]
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# The implementations that are ops of ours; all others are made of torch's.
COMPILED = ("cpu", "triton")


def files_that_define(*names: str) -> list[str]:
    """Modules of `kernels/` with these names at their top level, found without importing them."""
    found = []
    for path in sorted((ROOT / "kernels").glob("*.py")):
        defined = set()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                defined |= {target.id for target in targets if isinstance(target, ast.Name)}
        if defined.issuperset(names):
            found.append(f"kernels.{path.stem}")
    return found


MODULES = [importlib.import_module(name) for name in files_that_define("CASES", "IMPLEMENTATIONS")]


def devices_of(module: ModuleType, implementation: str) -> tuple[str, ...]:
    devices = module.DEVICES[implementation]
    # The interpreter runs Triton's kernels on CPU tensors, in float32 only: it is wrong for some bfloat16.
    return ("cpu",) if implementation == "triton" and INTERPRETED else devices


def combinations(choose: Callable[[ModuleType], list[Case]]) -> list[Any]:
    chosen = []
    for module in MODULES:
        for implementation, device in ((i, d) for i in module.IMPLEMENTATIONS for d in devices_of(module, i)):
            cases = [
                case
                for case in choose(module)
                if implementation in case.implementations and not (INTERPRETED and case.dtype != torch.float32)
            ]
            if device == "cuda" and not torch.cuda.is_available():
                del cases[1:]  # One skip says it.
            name = f"{module.__name__}-{implementation}-{device}"
            chosen += [pytest.param(module, implementation, device, case, id=f"{name}-{case.name}") for case in cases]
    return chosen


def one_of_each_kind(module: ModuleType) -> list[Case]:
    """The first case of each dtype, layout and number of dimensions, and the first with nothing in it."""
    kinds: dict[Any, Case] = {}
    for case in module.CASES:
        shape = next(iter(case.shapes.values()))
        kinds.setdefault((case.dtype, case.layout, len(shape) if case.layout == "contiguous" else 0, 0 in shape), case)
    return list(kinds.values())


every_case = pytest.mark.parametrize(
    ("module", "implementation", "device", "case"), combinations(lambda module: list(module.CASES))
)
each_kind = pytest.mark.parametrize(("module", "implementation", "device", "case"), combinations(one_of_each_kind))
each_differentiable_kind = pytest.mark.parametrize(
    ("module", "implementation", "device", "case"),
    combinations(lambda module: [case for case in one_of_each_kind(module) if case.gradients is not None]),
)
# The reference is plain torch, which dynamo takes long to unroll where it walks over tokens.
each_kind_but_the_reference = pytest.mark.parametrize(
    ("module", "implementation", "device", "case"),
    [one for one in combinations(one_of_each_kind) if one.values[1] != "reference"],
)


def available(module: ModuleType, implementation: str, device: str) -> Callable[..., tuple[Tensor, ...]]:
    """The implementation, or a skip that says why it cannot run here."""
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    function = module.IMPLEMENTATIONS[implementation]
    case = next(case for case in module.CASES if implementation in case.implementations)
    try:
        function(*case.inputs(device).values(), **case.options)
    except Unavailable as error:
        pytest.skip(error.reason)
    return function


def outputs_of(
    function: Callable[..., Tensor | tuple[Tensor, ...]], *arguments: Tensor, **options: Any
) -> list[Tensor]:
    """What the implementation returns, one tensor or several, as a list."""
    returned = function(*arguments, **options)
    return [returned] if isinstance(returned, Tensor) else list(returned)


def leaves_of(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().requires_grad_() for name, tensor in inputs.items()}


def run(
    function: Callable[..., tuple[Tensor, ...]],
    case: Case,
    inputs: dict[str, Tensor],
    cotangents: list[Tensor] | None = None,
    through: tuple[int, ...] | None = None,
) -> tuple[list[Tensor], dict[str, Tensor]]:
    """The outputs, and the gradient of every input through the outputs `through` (by default all of them).

    A kernel that is not differentiable has no gradients, and its outputs need none even where its inputs do.
    """
    if case.gradients is None:
        outputs = outputs_of(function, *leaves_of(inputs).values(), **case.options)
        assert not any(output.requires_grad for output in outputs)
        return outputs, {}
    leaves = leaves_of(inputs)
    outputs = outputs_of(function, *leaves.values(), **case.options)
    if cotangents is None:
        cotangents = cotangents_of(outputs)
    chosen = range(len(outputs)) if through is None else through
    gradients = torch.autograd.grad(
        [outputs[i] for i in chosen],
        list(leaves.values()),
        [cotangents[i].to(outputs[i].dtype) for i in chosen],
        allow_unused=True,
    )
    # An input that an output does not depend on has no gradient, which means zeros.
    filled = [
        torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(leaves.values(), gradients, strict=True)
    ]
    return [output.detach() for output in outputs], dict(zip(leaves, filled, strict=True))


def cotangents_of(outputs: list[Tensor]) -> list[Tensor]:
    """Gradients of the outputs to start from, not contiguous, as those of a transposed consumer are."""
    generator = torch.Generator().manual_seed(11)
    return [
        torch.randn(*output.shape, 2, generator=generator).to(device=output.device, dtype=output.dtype)[..., 0]
        for output in outputs
    ]


def same_values(one: Tensor, two: Tensor) -> bool:
    """Whether two tensors of any dtype hold the same values; torch compares no fp8."""
    return one.dtype == two.dtype and torch.equal(one.double(), two.double())


def comparable(x: Tensor) -> Tensor:
    """x in a dtype that torch.testing compares with a tolerance."""
    return x.float() if x.element_size() == 1 else x


def assert_within(got: Tensor, want: Tensor, tolerance: Tolerance, what: str) -> None:
    """Compares values in float64, whatever the dtypes: integers, and fp8, too."""
    got, want = got.double(), want.double()
    assert got.shape == want.shape, f"{what}: the shape is {tuple(got.shape)}, not {tuple(want.shape)}"
    assert torch.isfinite(got).all(), f"{what}: holds NaN or infinity"
    excess = (got - want).abs() - (tolerance.absolute + tolerance.relative * want.abs())
    worst = excess.max().item() if excess.numel() else 0.0
    assert worst <= 0.0, f"{what}: {worst:.3e} beyond the tolerance ({tolerance.reason})"


class OurCalls(TorchDispatchMode):
    """Records each call of an op of ours, with its arguments, as the forward and backward passes make them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, tuple[Any, ...], bool]] = []
        self.in_backward = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "kernels":
            copies = tuple(arg.detach().clone() if isinstance(arg, Tensor) else arg for arg in args)
            self.calls.append((func, copies, self.in_backward))
        return func(*args, **(kwargs or {}))
