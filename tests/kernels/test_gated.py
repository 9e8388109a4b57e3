"""`kernels.gated` by hand arithmetic, against torch's silu and autograd, and in what it refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from kernels import gated, gated_cpu, quantize
from kernels.errors import Unavailable
from kernels.quantize_ops import FORMATS
from tests.kernels.every import INTERPRETED


def _cpu_or_skip() -> None:
    try:
        gated_cpu.library()
    except Unavailable as error:
        pytest.skip(error.reason)


@pytest.fixture(params=["reference", "cpu"])
def name(request: pytest.FixtureRequest) -> str:
    if request.param == "cpu":
        _cpu_or_skip()
    return request.param


def _normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_a_row_by_hand(name: str) -> None:
    # The sigmoid of ln 3 is 3/4, that of -ln 3 is 1/4, that of 0 is 1/2.
    gate, up = torch.tensor([[math.log(3), -math.log(3), 0.0]]), torch.tensor([[2.0, 2.0, 5.0]])
    payload, scale = gated.IMPLEMENTATIONS[name](gate, up, "fp8_e4m3", "row", True)
    largest = 0.75 * math.log(3) * 2
    assert scale.item() == pytest.approx(largest / 448, rel=1e-6)
    # The second is a third of the first, 149.33, which lies between 144 and 160.
    assert payload.tolist() == [[448.0, -144.0, 0.0]]
    dy = torch.tensor([[1.0, 1.0, 3.0]])
    grad_gate, grad_up = gated.BACKWARDS[name](dy, gate, up)
    want = [2 * 0.75 * (1 + math.log(3) / 4), 2 * 0.25 * (1 - math.log(3) * 3 / 4), 3 * 5 * 0.5]
    assert grad_gate[0].tolist() == pytest.approx(want, rel=1e-6)
    assert grad_up[0].tolist() == pytest.approx([0.75 * math.log(3), -0.25 * math.log(3), 0.0], rel=1e-6)


@pytest.mark.parametrize("form", ["fp8_e4m3", "fp8_e5m2"])
@pytest.mark.parametrize("scaling", ["tensor", "row", "block"])
@pytest.mark.parametrize("emulated", [True, False])
def test_it_is_the_two_passes_up_to_float32_rounding(form: str, scaling: str, emulated: bool) -> None:
    _cpu_or_skip()
    gate, up = _normal(128, 272), _normal(128, 272, seed=1)
    payload, scale = gated.cpu(gate, up, form, scaling, emulated)
    wanted, wanted_scale = quantize.reference(F.silu(gate) * up, form, scaling, emulated)
    assert payload.dtype == wanted.dtype and payload.shape == wanted.shape
    torch.testing.assert_close(scale, wanted_scale, rtol=6e-7, atol=0)
    # A value within a few float32 roundings of a tie may go the other way: one in some ten thousand.
    other = payload.float() != wanted.float()
    assert other.float().mean() < 1e-3
    if scaling == "row":
        largest = torch.finfo(FORMATS[form].dtype).max
        assert (payload.float().abs().amax(dim=1) == largest).all()


def test_the_exponential_is_good_to_float32_rounding_over_its_whole_range() -> None:
    _cpu_or_skip()
    gate = torch.linspace(-86.0, 88.0, 40_001)[:, None]
    # With up = 1 / sigmoid the product is about the gate, however small the sigmoid; a row's scale tells its size.
    up = (1 / torch.sigmoid(gate.double())).float()
    _, scale = gated.cpu(gate, up, "fp8_e4m3", "row", True)
    exact = (gate.double() * torch.sigmoid(gate.double()) * up.double()).abs() / 448
    error = ((scale.double() - exact) / exact.clamp(min=1e-12)).abs().max().item()
    # 1.1 ulp of the exponential, and half an ulp for each of: its sum, the quotient, the product, the division by 448.
    assert error < 3.2 * 2.0**-23


def test_gates_far_out_saturate_without_noise(name: str) -> None:
    gate, up = torch.tensor([[200.0, -200.0, -90.0, 88.5]]), torch.ones(1, 4)
    payload, scale = gated.IMPLEMENTATIONS[name](gate, up, "fp8_e4m3", "tensor", True)
    assert scale.item() == pytest.approx(200 / 448, rel=1e-6)
    # 88.5 * 448 / 200 is 198.24, between 192 and 208.
    assert payload.tolist() == [[448.0, 0.0, 0.0, 192.0]]
    grad_gate, grad_up = gated.BACKWARDS[name](torch.ones(1, 4), gate, up)
    assert grad_gate[0].tolist() == pytest.approx([1.0, 0.0, 0.0, 1.0], abs=1e-30)
    assert grad_up[0].tolist() == pytest.approx([200.0, 0.0, 0.0, 88.5], abs=1e-30)


def test_nan_and_infinity_show_in_their_row_only(name: str) -> None:
    gate, up = torch.ones(5, 6), torch.ones(5, 6)
    gate[0, 1], up[1, 2], gate[2, 3], gate[3, 4] = math.nan, math.nan, math.inf, -math.inf
    payload, scale = gated.IMPLEMENTATIONS[name](gate, up, "fp8_e4m3", "row", True)
    assert payload[[0, 1, 3]].isnan().all() and scale[[0, 1, 3]].isnan().all()
    assert scale[2] == math.inf and payload[2, 3].isnan() and payload[2].nansum() == 0
    assert (payload[4] == 448).all()
    grad_gate, grad_up = gated.BACKWARDS[name](torch.ones(5, 6), gate, up)
    assert grad_gate[0, 1].isnan() and grad_up[0, 1].isnan() and grad_gate[1, 2].isnan()
    assert grad_gate[4].isfinite().all() and grad_up[4].isfinite().all()


def test_the_gradients_are_those_of_autograd(name: str) -> None:
    gate, up, dy = (_normal(16, 40, seed=seed) * 4 for seed in range(3))
    leaves = gate.double().requires_grad_(), up.double().requires_grad_()
    wanted = torch.autograd.grad(F.silu(leaves[0]) * leaves[1], leaves, dy.double())
    for got, want in zip(gated.BACKWARDS[name](dy, gate, up), wanted, strict=True):
        torch.testing.assert_close(got.double(), want, rtol=4e-6, atol=1e-5)


@pytest.mark.parametrize("scaling", ["tensor", "row", "block"])
@pytest.mark.parametrize("emulated", [True, False])
def test_halves_of_one_matrix_and_a_broadcast_row_are_read_where_they_lie(scaling: str, emulated: bool) -> None:
    _cpu_or_skip()
    gate, up = _normal(9, 600).chunk(2, dim=1)
    for one, two in ((gate, up), (gate, up[:1].expand(9, -1))):
        got = gated.cpu(one, two, "fp8_e4m3", scaling, emulated)
        want = gated.cpu(one.contiguous(), two.contiguous(), "fp8_e4m3", scaling, emulated)
        assert all(torch.equal(x.float(), y.float()) and x.is_contiguous() for x, y in zip(got, want, strict=True))
    got = gated.cpu_backward(gate, up, gate)
    want = gated.cpu_backward(gate.contiguous(), up.contiguous(), gate.contiguous())
    assert all(torch.equal(x, y) for x, y in zip(got, want, strict=True))


def test_neither_pass_records_a_gradient(name: str) -> None:
    gate, up = _normal(2, 4).requires_grad_(), _normal(2, 4).requires_grad_()
    results = (*gated.IMPLEMENTATIONS[name](gate, up, "fp8_e4m3", "row", True), *gated.BACKWARDS[name](up, gate, up))
    assert not any(result.requires_grad for result in results)


@pytest.mark.parametrize(
    ("error", "said", "wrong"),
    [
        (TypeError, r"takes torch\.float32, not torch\.bfloat16", {"gate": torch.ones(2, 4, dtype=torch.bfloat16)}),
        (TypeError, r"up is torch\.float64", {"up": torch.ones(2, 4, dtype=torch.float64)}),
        (ValueError, r"up has the shape \(2, 5\)", {"up": torch.ones(2, 5)}),
        (ValueError, r"up has the shape \(1, 4\)", {"up": torch.ones(1, 4)}),
        (ValueError, "up is on meta", {"up": torch.ones(2, 4, device="meta")}),
        (ValueError, "at least one element", {"gate": torch.ones(0, 4), "up": torch.ones(0, 4)}),
        (ValueError, r"got the shape \(1, 2, 4\)", {"gate": torch.ones(1, 2, 4), "up": torch.ones(1, 2, 4)}),
    ],
)
def test_both_compiled_passes_refuse_what_they_cannot_take(
    error: type[Exception], said: str, wrong: dict[str, Any]
) -> None:
    _cpu_or_skip()
    given = {"gate": torch.ones(2, 4), "up": torch.ones(2, 4), **wrong}
    with pytest.raises(error, match=said):
        gated.cpu(given["gate"], given["up"], "fp8_e4m3", "row", True)
    dy = torch.ones(given["gate"].shape, dtype=given["gate"].dtype)
    with pytest.raises(error, match=said):
        torch.ops.kernels.gated_backward_cpu(dy, given["gate"], given["up"])


def test_the_backward_pass_refuses_a_gradient_of_another_shape() -> None:
    _cpu_or_skip()
    with pytest.raises(ValueError, match=r"dy has the shape \(2, 5\)"):
        gated.cpu_backward(torch.ones(2, 5), torch.ones(2, 4), torch.ones(2, 4))


def test_a_format_or_scaling_that_does_not_exist_is_named(name: str) -> None:
    for form, scaling, said in (("fp4", "row", "no format 'fp4'"), ("fp8_e4m3", "all", "no scaling 'all'")):
        with pytest.raises(ValueError, match=said):
            gated.IMPLEMENTATIONS[name](torch.ones(2, 4), torch.ones(2, 4), form, scaling, True)


def test_a_tensor_whose_memory_was_freed_is_refused() -> None:
    _cpu_or_skip()
    gone = torch.ones(2, 4)
    gone.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="no memory"):
        gated.cpu(torch.ones(2, 4), gone, "fp8_e4m3", "tensor", True)
    with pytest.raises(ValueError, match="no memory"):
        gated.cpu_backward(gone, torch.ones(2, 4), torch.ones(2, 4))


def test_triton_says_what_is_missing_where_it_cannot_run() -> None:
    if torch.cuda.is_available() or INTERPRETED:
        pytest.skip("Triton's kernels may run here")
    for function, more in ((gated.triton, ("fp8_e4m3", "row", True)), (gated.triton_backward, (torch.ones(2, 4),))):
        with pytest.raises(Unavailable, match="Triton") as caught:
            function(torch.ones(2, 4), torch.ones(2, 4), *more)
        assert "ops.gated" in caught.value.remedy
