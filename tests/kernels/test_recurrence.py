"""`kernels.recurrence_forms` by hand arithmetic, and between its forms, variants and register caps."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from kernels import recurrence_cpu, recurrence_forms
from kernels.cases import Case
from kernels.errors import Unavailable
from kernels.recurrence_ops import BACKWARDS

ON_CPU = [case for case in recurrence_forms.CASES if "cpu" in case.implementations]


def _cpu_or_skip() -> None:
    try:
        recurrence_cpu.library()
    except Unavailable as error:
        pytest.skip(error.reason)


@pytest.fixture(params=["reference", "chunked", "cpu"])
def implementation(request: pytest.FixtureRequest) -> recurrence_forms.Recurrence:
    if request.param == "cpu":
        _cpu_or_skip()
    return recurrence_forms.IMPLEMENTATIONS[request.param]


def _random(tokens: int = 13, batch: int = 2, heads: int = 2, keys: int = 5, values: int = 7) -> list[Tensor]:
    generator = torch.Generator().manual_seed(tokens)
    shape = (batch, tokens, heads)
    q, k = (torch.randn(*shape, keys, generator=generator, requires_grad=True) for _ in range(2))
    v = torch.randn(*shape, values, generator=generator, requires_grad=True)
    log_decay = (-torch.rand(shape, generator=generator)).requires_grad_()
    return [q, k, v, log_decay]


def _gradients(function: Any, inputs: list[Tensor], *options: Any) -> list[Tensor]:
    """The output and the gradient of every input, from a cotangent that is the same for one shape."""
    o = function(*inputs, *options)
    cotangent = torch.randn(o.shape, generator=torch.Generator().manual_seed(5))
    return [o.detach(), *torch.autograd.grad(o, inputs, cotangent)]


@pytest.mark.parametrize("chunk", [1, 2, 3, 8])
def test_three_tokens_by_hand(implementation: recurrence_forms.Recurrence, chunk: int) -> None:
    # One head, K = 1, V = 2, every decay 1/2: S = (1, 2), then (0.5 + 3, 1 + 4), then (1.75 + 10, 2.5 + 12).
    q = torch.tensor([1.0, 2.0, 3.0]).view(1, 3, 1, 1).requires_grad_()
    k = torch.tensor([1.0, 1.0, 2.0]).view(1, 3, 1, 1).requires_grad_()
    v = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).view(1, 3, 1, 2).requires_grad_()
    log_decay = torch.full((1, 3, 1), math.log(0.5), requires_grad=True)
    o = implementation(q, k, v, log_decay, chunk)
    assert o.flatten().tolist() == pytest.approx([1, 2, 7, 10, 35.25, 43.5], rel=1e-6)
    dq, dk, dv, dlog = torch.autograd.grad(o[0, 2].sum(), (q, k, v, log_decay))
    # dS_3 = 3 (1, 1), and a half of it for each step back.
    assert dq.flatten().tolist() == pytest.approx([0, 0, 11.75 + 14.5], rel=1e-6)
    assert dk.flatten().tolist() == pytest.approx([0.75 * 3, 1.5 * 7, 3 * 11], rel=1e-6)
    assert dv.flatten().tolist() == pytest.approx([0.75, 0.75, 1.5, 1.5, 6, 6], rel=1e-6)
    # a_t <dS_t, S_(t-1)>; before the first token there is no state to decay.
    assert dlog.flatten().tolist() == pytest.approx([0, 0.5 * 1.5 * 3, 0.5 * 3 * 8.5], rel=1e-5, abs=1e-5)


def test_a_token_changes_nothing_before_it_nor_in_other_heads_and_sequences(
    implementation: recurrence_forms.Recurrence,
) -> None:
    inputs = [x.detach() for x in _random()]
    before = implementation(*inputs, 4)
    changed = [x.clone() for x in inputs]
    for x in changed:
        x[1, 6, 0] -= 1.0
    after = implementation(*changed, 4)
    assert torch.equal(after[0], before[0]) and torch.equal(after[:, :, 1], before[:, :, 1])
    assert torch.equal(after[1, :6, 0], before[1, :6, 0])
    assert (after[1, 6:, 0] != before[1, 6:, 0]).any(dim=-1).all()


@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_a_decay_to_zero_starts_over(name: str) -> None:
    if name == "cpu":
        _cpu_or_skip()
    function = recurrence_forms.IMPLEMENTATIONS[name]
    q, k, v, log_decay = (x.detach().clone() for x in _random())
    log_decay[:, 6] = -math.inf
    o = function(q, k, v, log_decay, 4)
    alone = function(q[:, 6:], k[:, 6:], v[:, 6:], log_decay[:, 6:], 4)
    torch.testing.assert_close(o[:, 6:], alone)


def test_parts_of_one_projection_give_what_copies_of_them_give(implementation: recurrence_forms.Recurrence) -> None:
    # The layout of the model: q, k and v side by side in the last dimension of one tensor.
    heads, keys, values = 3, 4, 6
    qkv = torch.randn(2, 11, heads * (2 * keys + values), generator=torch.Generator().manual_seed(1))
    widths = [heads * keys, heads * keys, heads * values]
    views = [part.unflatten(-1, (heads, -1)) for part in qkv.split(widths, dim=-1)]
    log_decay = -torch.rand(2, 11, heads, generator=torch.Generator().manual_seed(2))
    copies = [view.contiguous() for view in views]
    assert not views[0].is_contiguous()
    got = _gradients(implementation, [x.requires_grad_() for x in (*views, log_decay)], 4)
    want = _gradients(implementation, [x.requires_grad_() for x in (*copies, log_decay)], 4)
    for one, two in zip(got, want, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("case", ON_CPU, ids=lambda case: case.name)
def test_the_compiled_backward_passes_give_the_same_bits(case: Case) -> None:
    _cpu_or_skip()
    inputs = [tensor.requires_grad_() for tensor in case.inputs("cpu").values()]
    fused, *others = (_gradients(recurrence_forms.cpu, inputs, case.options["chunk"], name) for name in BACKWARDS)
    for other in others:
        assert all(torch.equal(one, two) for one, two in zip(fused, other, strict=True))


def _spills(registers: int, variant: str) -> int:
    """Moves of whole vectors to and from the stack in a backward pass that may use `registers` vector registers."""
    symbol = recurrence_cpu.backward_symbol(variant)
    told = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={symbol}", recurrence_cpu.object_path(registers)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"<{symbol}>:" in told.stdout
    return len(re.findall(r"\tvmov[au]p[sd] .*\(%r[sb]p", told.stdout))


def test_a_register_cap_keeps_every_bit_and_adds_spills() -> None:
    _cpu_or_skip()
    inputs = _random(tokens=40, keys=16, values=32)
    for variant in BACKWARDS:
        free = _gradients(recurrence_forms.cpu, inputs, 16, variant)
        try:
            capped = _gradients(recurrence_forms.cpu, inputs, 16, variant, 8)
        except Unavailable as error:
            pytest.skip(error.reason)
        assert all(torch.equal(one, two) for one, two in zip(free, capped, strict=True))
        if shutil.which("objdump"):
            assert _spills(8, variant) > _spills(0, variant) + 20


def test_tiles_with_less_live_state_spill_less_under_a_cap() -> None:
    _cpu_or_skip()
    if shutil.which("objdump") is None or recurrence_cpu.vector_registers() < 32:
        pytest.skip("needs objdump and AVX-512")
    fused, live_state = _spills(12, "fused"), _spills(12, "live_state")
    assert live_state < fused / 2, (fused, live_state)


def test_the_cost_of_the_chunked_form_is_linear_in_tokens() -> None:
    def cost(tokens: int) -> int:
        inputs = _random(tokens, batch=1, heads=1, keys=4, values=8)
        with FlopCounterMode(display=False) as counted:
            _gradients(recurrence_forms.chunked, inputs, 8)
        return counted.get_total_flops()

    # 8 * 16^2 tokens fill two levels of carried states whole, and four times as many add one short level.
    assert 3.9 <= cost(8192) / cost(2048) <= 4.1


@pytest.mark.parametrize("chunk", [1, 3, 13, 64])
def test_the_chunk_changes_rounding_only(chunk: int) -> None:
    _cpu_or_skip()
    inputs = _random()
    want = _gradients(recurrence_forms.reference, inputs)
    for function in (recurrence_forms.chunked, recurrence_forms.cpu):
        for one, two in zip(_gradients(function, inputs, chunk), want, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("tokens", [1, 15, 16, 33])
def test_the_raw_kernel_writes_all_of_its_buffers_and_nothing_beyond(tokens: int) -> None:
    _cpu_or_skip()
    q, k, v, log_decay = (x.detach() for x in _random(tokens))
    chunk, guard, library = 16, 8, recurrence_cpu.library()
    chunks = -(-tokens // chunk)
    counts = {"o": v.numel(), "states": 2 * 2 * chunks * 5 * 7, "dq": q.numel(), "dk": k.numel(), "dv": v.numel()}
    counts["dlog"] = log_decay.numel()
    buffers = {name: torch.full((count + guard,), math.nan) for name, count in counts.items()}
    at = {name: buffer.data_ptr() for name, buffer in buffers.items()}
    strides = [stride for x in (q, k, v, log_decay, v) for stride in x.stride()[:3]]
    sizes = [*q.shape, 7, chunk, *strides]
    inputs = [x.data_ptr() for x in (q, k, v, log_decay)]
    forward_sizes = recurrence_cpu.library().recurrence_forward_f32.argtypes[-1]
    library.recurrence_forward_f32(*inputs, at["o"], at["states"], forward_sizes(*sizes[:18]))
    for variant in BACKWARDS:
        function = getattr(library, recurrence_cpu.backward_symbol(variant))
        grads = (at["dq"], at["dk"], at["dv"], at["dlog"])
        function(*inputs, v.data_ptr(), at["states"], *grads, function.argtypes[-1](*sizes))
        for name, buffer in buffers.items():
            assert buffer[: counts[name]].isfinite().all(), name
            assert buffer[counts[name] :].isnan().all(), f"{name} was written beyond its end"
            if name not in ("o", "states"):
                buffer.fill_(math.nan)


def test_a_negated_view_is_read_with_its_sign() -> None:
    # Its memory holds the opposite numbers, and only the dispatcher knows.
    _cpu_or_skip()
    q, k, v, log_decay = _random()
    want = recurrence_forms.cpu(q, k, -v, log_decay, 4)
    assert torch.equal(recurrence_forms.cpu(q, k, torch._neg_view(v), log_decay, 4), want)


def test_the_op_called_by_its_name_has_the_same_gradients() -> None:
    _cpu_or_skip()
    inputs = _random()
    ours = _gradients(recurrence_forms.cpu, inputs, 4, "phase_split", 0)
    named = _gradients(lambda *given: torch.ops.kernels.recurrence_cpu(*given)[0], inputs, 4, "phase_split", 0)
    assert all(torch.equal(one, two) for one, two in zip(ours, named, strict=True))


def test_a_second_derivative_is_an_error_and_not_zeros() -> None:
    _cpu_or_skip()
    inputs = _random()
    o = recurrence_forms.cpu(*inputs, 4)
    cotangent = torch.ones_like(o).requires_grad_()
    (grad,) = torch.autograd.grad(o, inputs[0], cotangent, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        grad.sum().backward()
