"""Every kernel file against its own reference in float64: a new file in `kernels/` is picked up with no edit here."""

from __future__ import annotations

import ast
import functools
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from kernels.cases import Case, Tolerance
from kernels.errors import Unavailable

ROOT = Path(__file__).resolve().parents[2]
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


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


def leaves_of(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().requires_grad_() for name, tensor in inputs.items()}


def run(
    function: Callable[..., tuple[Tensor, ...]],
    case: Case,
    inputs: dict[str, Tensor],
    cotangents: list[Tensor] | None = None,
    through: tuple[int, ...] | None = None,
) -> tuple[list[Tensor], dict[str, Tensor]]:
    """The outputs, and the gradient of every input through the outputs `through` (by default all of them)."""
    leaves = leaves_of(inputs)
    outputs = list(function(*leaves.values(), **case.options))
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


def assert_within(got: Tensor, want: Tensor, tolerance: Tolerance, what: str) -> None:
    assert got.shape == want.shape, f"{what}: the shape is {tuple(got.shape)}, not {tuple(want.shape)}"
    assert torch.isfinite(got).all(), f"{what}: holds NaN or infinity"
    excess = (got.double() - want).abs() - (tolerance.absolute + tolerance.relative * want.abs())
    worst = excess.max().item() if excess.numel() else 0.0
    assert worst <= 0.0, f"{what}: {worst:.3e} beyond the tolerance ({tolerance.reason})"


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
    exact_inputs = {name: tensor.double() for name, tensor in inputs.items()}
    with torch.no_grad():
        cotangents = cotangents_of(list(function(*inputs.values(), **case.options)))
    exact_cotangents = [cotangent.double() for cotangent in cotangents]
    alone = [(i,) for i in range(len(cotangents))]
    for through in [None, *alone]:
        outputs, gradients = run(function, case, inputs, cotangents, through)
        wanted, wanted_gradients = run(module.reference, case, exact_inputs, exact_cotangents, through)
        for i, (got, want) in enumerate(zip(outputs, wanted, strict=True)):
            assert_within(got, want, case.outputs, f"output {i}")
        for name, got in gradients.items():
            assert got.dtype == inputs[name].dtype
            assert_within(got, wanted_gradients[name], case.gradients, f"gradient of {name} through {through or 'all'}")


def test_the_kernels_folder_has_kernels() -> None:
    assert "kernels.prenorm" in [module.__name__ for module in MODULES]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_kernel_says_where_each_implementation_runs_and_is_tested(module: ModuleType) -> None:
    assert module.IMPLEMENTATIONS["reference"] is module.reference
    assert set(module.DEVICES) == set(module.IMPLEMENTATIONS)
    names = [case.name for case in module.CASES]
    assert len(set(names)) == len(names)
    assert {name for case in module.CASES for name in case.implementations} == set(module.IMPLEMENTATIONS)
    assert all(case.outputs.reason and case.gradients.reason for case in module.CASES)
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


@each_kind
def test_gradients_under_activation_checkpointing_are_bit_equal(
    module: ModuleType, implementation: str, device: str, case: Case
) -> None:
    function = available(module, implementation, device)

    def checkpointed(*arguments: Tensor, **options: float) -> tuple[Tensor, ...]:
        bound = functools.partial(function, **options)
        return checkpoint(bound, *arguments, use_reentrant=False, preserve_rng_state=False)

    inputs = case.inputs(device)
    outputs, gradients = run(function, case, inputs)
    again, gradients_again = run(checkpointed, case, inputs)
    assert all(torch.equal(one, two) for one, two in zip(outputs, again, strict=True))
    assert all(torch.equal(gradients[name], gradients_again[name]) for name in gradients)


@each_kind
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
        torch.testing.assert_close(two, one)


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


@each_kind
def test_every_op_passes_opcheck(module: ModuleType, implementation: str, device: str, case: Case) -> None:
    function = available(module, implementation, device)
    seen = OurCalls()
    with seen:
        leaves = leaves_of(case.inputs(device))
        outputs = list(function(*leaves.values(), **case.options))
        seen.in_backward = True
        cotangents = cotangents_of(outputs)
        for chosen in [outputs, *([output] for output in outputs)]:
            given = cotangents if len(chosen) > 1 else [torch.ones_like(chosen[0])]
            torch.autograd.grad(chosen, list(leaves.values()), given, allow_unused=True, retain_graph=True)
    if implementation == "reference":
        assert not seen.calls
        return
    ops = {func._schema.name for func, _, _ in seen.calls}
    assert any(name.endswith("_backward") for name in ops) and len(ops) >= 2
    for func, args, in_backward in seen.calls:
        differentiable = not in_backward
        passed = tuple(
            arg.requires_grad_() if differentiable and isinstance(arg, Tensor) and arg.is_floating_point() else arg
            for arg in args
        )
        torch.library.opcheck(func, passed)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_captured_cuda_graph_replays_the_kernel_on_new_inputs(module: ModuleType) -> None:
    for implementation, devices in module.DEVICES.items():
        if "cuda" not in devices:
            continue
        function = available(module, implementation, "cuda")
        case = next(case for case in module.CASES if implementation in case.implementations)
        static = leaves_of(case.inputs("cuda"))
        cotangents = cotangents_of(list(function(*static.values(), **case.options)))

        def step(
            function: Any = function, case: Case = case, static: Any = static, cotangents: Any = cotangents
        ) -> tuple[Tensor, ...]:
            outputs = list(function(*static.values(), **case.options))
            return (*outputs, *torch.autograd.grad(outputs, list(static.values()), cotangents))

        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            replayed = step()
        with torch.no_grad():
            for tensor in static.values():
                tensor.mul_(-0.5).add_(0.25)
        graph.replay()
        torch.cuda.synchronize()
        for got, want in zip(replayed, step(), strict=True):
            torch.testing.assert_close(got, want)


def test_triton_kernels_agree_with_the_reference_under_the_interpreter() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    if INTERPRETED:
        pytest.skip("this is the interpreter's own run")
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "triton-cpu"],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout[-4000:] + told.stderr[-2000:]
    assert re.search(r"\d+ passed", told.stdout) and "skipped" not in told.stdout, told.stdout[-2000:]


def test_triton_kernels_compile_for_hopper_without_spills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    triton = pytest.importorskip("triton", reason="Triton is not installed")
    if INTERPRETED:
        pytest.skip("interpreted kernels are not compiled")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    ptxas = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    if not ptxas.is_file():
        pytest.skip(f"this Triton has no assembler at {ptxas}")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    specializations = [
        entry
        for name in files_that_define("SPECIALIZATIONS")
        for entry in importlib.import_module(name).SPECIALIZATIONS
    ]
    assert specializations
    for entry in specializations:
        source = ASTSource(fn=entry.kernel, signature=entry.signature, constexprs=entry.constants)
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": entry.warps})
        ptx = tmp_path / f"{entry.name}.ptx"
        ptx.write_text(compiled.asm["ptx"])
        architecture = re.search(r"^\.target (\w+)", compiled.asm["ptx"], re.MULTILINE)
        assert architecture is not None
        told = subprocess.run(
            [ptxas, "-v", f"--gpu-name={architecture[1]}", ptx, "-o", tmp_path / "cubin"],
            capture_output=True,
            text=True,
            check=True,
        )
        print(entry.name, entry.warps, told.stderr)
        assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in told.stderr, told.stderr
