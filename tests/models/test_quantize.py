from __future__ import annotations

import pytest
import torch

from models.quantize import Fp8Product, quantize, round_to_e4m3_, scaled_product

# e4m3: steps of 2^(exponent - 3), of 2^-9 below 2^-6, largest 448; ties go to the even multiple.
HAND = [
    (448.0, 448.0),
    (1.0, 1.0),
    (0.3, 0.3125),  # 9.6 steps of 1/32
    (-17.0, -16.0),  # 8.5 steps of 2, a tie: to 8
    (19.0, 20.0),  # 9.5 steps of 2, a tie: to 10
    (250.0, 256.0),  # 15.6 steps of 16, into the next exponent
    (-431.0, -416.0),  # 13.5 less a bit of 32
    (1.5 * 2**-9, 2**-8),  # subnormal, a tie: to 2 steps
    (-(2**-10), 0.0),  # half a subnormal step, a tie: to 0
    (0.75 * 2**-9, 2**-9),
    (0.0, 0.0),
]


def test_rounding_agrees_with_hand_values() -> None:
    x = torch.tensor([given for given, _ in HAND])
    assert round_to_e4m3_(x).tolist() == [expected for _, expected in HAND]


def test_rounding_agrees_with_the_cast_of_torch_on_every_value_tie_and_neighbour() -> None:
    codes = torch.arange(256).to(torch.uint8).view(torch.float8_e4m3fn).float()
    values = codes[codes.isfinite()].unique()
    ties = (values[1:] + values[:-1]) / 2
    edges = torch.cat([values, ties])
    toward = [edges, edges.nextafter(torch.tensor(torch.inf)), edges.nextafter(torch.tensor(-torch.inf))]
    x = torch.cat([*toward, torch.randn(20_000, generator=torch.Generator().manual_seed(0)) * 100])
    x = x[x.abs() <= 448]
    expected = x.to(torch.float8_e4m3fn).float()
    assert torch.equal(round_to_e4m3_(x.clone()), expected)


@pytest.mark.parametrize("emulated", [True, False])
def test_one_scale_for_the_tensor_or_one_for_each_row(emulated: bool) -> None:
    x = torch.tensor([[448.0, 1.0], [7.0, 0.001]])
    whole = quantize(x, per_row=False, emulated=emulated)
    # Scale 1: 0.001 is half a subnormal step and a bit.
    assert whole.scale.tolist() == [[1.0]]
    assert whole.dequantized().tolist() == [[448.0, 1.0], [7.0, 2**-9]]
    rows = quantize(x, per_row=True, emulated=emulated)
    # Row two has scale 7 / 448 = 1/64: 0.064 is 8.19 steps of 2^-7.
    assert rows.scale.tolist() == [[1.0], [1 / 64]]
    assert rows.dequantized().tolist() == [[448.0, 1.0], [7.0, 0.0625 / 64]]


def test_payload_is_fp8_where_the_hardware_reads_it() -> None:
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    real, emulated = (quantize(x, per_row=False, emulated=flag) for flag in (False, True))
    assert real.payload.dtype == torch.float8_e4m3fn
    assert torch.equal(real.payload.float(), emulated.payload)


def test_zeros_stay_zeros() -> None:
    assert torch.equal(quantize(torch.zeros(2, 3), per_row=True, emulated=True).dequantized(), torch.zeros(2, 3))


def test_not_a_number_is_not_hidden() -> None:
    x = torch.tensor([[1.0, torch.nan]])
    assert quantize(x, per_row=False, emulated=True).dequantized().isnan().any()


def test_rows_with_their_own_scales_cannot_be_transposed() -> None:
    with pytest.raises(ValueError, match="quantize it along the other axis"):
        quantize(torch.ones(2, 2), per_row=True, emulated=True).transposed()


def test_scales_are_applied_to_the_sum() -> None:
    # Payloads [448, 0] and [448, 448] with scales 4 and 2: 448 * 448 * 8.
    a = quantize(torch.tensor([[1792.0, 0.0]]), per_row=False, emulated=True)
    b = quantize(torch.tensor([[896.0, 896.0]]), per_row=False, emulated=True)
    assert scaled_product(a, b, torch.float32).tolist() == [[1792.0 * 896.0]]


@pytest.mark.parametrize("per_row", [False, True])
def test_gradients_are_products_of_quantized_operands(per_row: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x, w, dy = (torch.randn(shape, generator=generator) for shape in ((6, 5), (7, 5), (6, 7)))
    x.requires_grad_()
    w.requires_grad_()

    def q(matrix: torch.Tensor) -> torch.Tensor:
        # Written with the cast of torch, not with the code under test.
        scale = matrix.abs().amax(dim=1 if per_row else (0, 1), keepdim=True) / 448
        return ((matrix / scale).to(torch.float8_e4m3fn).float() * scale).detach()

    y = Fp8Product.apply(x, w, per_row, True)
    y.backward(dy)
    torch.testing.assert_close(y, q(x) @ q(w).t())
    torch.testing.assert_close(x.grad, q(dy) @ q(w.t()).t())
    torch.testing.assert_close(w.grad, q(dy.t()) @ q(x.t()).t())


def test_op_has_a_fake_and_no_aliases() -> None:
    for per_row in (False, True):
        for emulated in (False, True):
            torch.library.opcheck(torch.ops.models.quantize.default, (torch.randn(3, 5), per_row, emulated))
