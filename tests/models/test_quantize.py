from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from kernels.errors import Unavailable
from kernels.quantize import IMPLEMENTATIONS
from models.config import QuantConfig, WorkloadConfig
from models.linear import Fp8Product
from models.precision import Precision
from models.products import scaled_product
from models.quantize import Operand, Quantized, Quantizer

ROLES = (
    torch.ops.models.quantize_weight.default,
    torch.ops.models.quantize_activation.default,
    torch.ops.models.quantize_gradient.default,
)


def quantizer(scales: str = "per_tensor", form: str = "fp8_e4m3", name: str = "reference") -> Quantizer:
    return Quantizer(QuantConfig(scales=scales, format=form), name, IMPLEMENTATIONS[name], emulated=True)


def dequantized(x: Quantized) -> Tensor:
    """Along whole rows, whatever the scales are."""
    columns = x.payload.shape[1]
    scales = x.scale.repeat_interleave(128, dim=1)[:, :columns] if x.scale.shape[1] > 1 else x.scale
    return x.payload.float() * scales


def test_one_scale_for_the_tensor_for_each_row_or_for_each_block() -> None:
    x = torch.tensor([[448.0, 1.0], [7.0, 0.001]])
    whole = quantizer().weight(x)
    # Scale 1: 0.001 is half a subnormal step and a bit.
    assert whole.scale.tolist() == [[1.0]]
    assert dequantized(whole).tolist() == [[448.0, 1.0], [7.0, 2**-9]]
    rows = quantizer("per_row").weight(x)
    # Row two has scale 7 / 448 = 1/64: 0.064 is 8.19 steps of 2^-7.
    assert rows.scale.tolist() == [[1.0], [1 / 64]]
    assert dequantized(rows).tolist() == [[448.0, 1.0], [7.0, 0.0625 / 64]]
    # The second block is one column wide.
    blocks = quantizer("per_block").weight(torch.cat([torch.full((1, 128), 448.0), torch.tensor([[7.0]])], dim=1))
    assert blocks.scale.tolist() == [[1.0, 1 / 64]]
    assert dequantized(blocks)[0, -1].item() == 7.0


def test_gradients_of_the_e5m2_format_are_e5m2_and_the_rest_is_e4m3() -> None:
    x = torch.tensor([[448.0, 1.125]])  # 1.125 has three bits after the point; e5m2 has two
    hybrid = quantizer(form="fp8_e5m2")
    assert dequantized(hybrid.weight(x)).tolist() == dequantized(hybrid.activation(x)).tolist() == [[448.0, 1.125]]
    # Scale 448 / 57344 = 1/128: 144 lies half way between 128 and 160, to the even 128.
    assert dequantized(hybrid.gradient(x)).tolist() == [[448.0, 1.0]]


@pytest.mark.parametrize("scales", ["per_row", "per_block"])
def test_operands_with_scales_of_their_own_rows_cannot_be_transposed(scales: str) -> None:
    with pytest.raises(ValueError, match="quantize it along the other axis"):
        quantizer(scales).weight(torch.ones(2, 2)).transposed()


def test_scales_are_applied_to_the_sum() -> None:
    # Payloads [448, 0] and [448, 448] with scales 4 and 2: 448 * 448 * 8.
    a = quantizer().activation(torch.tensor([[1792.0, 0.0]]))
    b = quantizer().weight(torch.tensor([[896.0, 896.0]]))
    assert scaled_product(a, b, torch.float32).tolist() == [[1792.0 * 896.0]]


def test_scales_of_blocks_are_applied_block_by_block() -> None:
    # 128 times 1 x 1, then 1 times 256 x 0.5, which a scale for both blocks would not hold beside each other.
    a = quantizer("per_block").activation(torch.cat([torch.ones(1, 128), torch.full((1, 1), 256.0)], dim=1))
    b = quantizer("per_block").weight(torch.cat([torch.ones(1, 128), torch.full((1, 1), 0.5)], dim=1))
    assert scaled_product(a, b, torch.float32).tolist() == [[256.0]]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("scales", ["per_tensor", "per_row"])
def test_gradients_are_products_of_quantized_operands(scales: str, cached: bool, shared: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x, w, dy = (torch.randn(shape, generator=generator) for shape in ((6, 5), (7, 5), (6, 7)))
    x.requires_grad_()
    w.requires_grad_()

    def q(matrix: Tensor) -> Tensor:
        # Written with the cast of torch, not with the code under test.
        scale = matrix.abs().amax(dim=1 if scales == "per_row" else (0, 1), keepdim=True) / 448
        return ((matrix / scale).to(torch.float8_e4m3fn).float() * scale).detach()

    ours = quantizer(scales)
    weight = ours.weight_operand(w) if cached else Operand()
    y = Fp8Product.apply(x, w, ours, ours.activation_operand(x, shared=shared, known=False), weight, None)
    y.backward(dy)
    torch.testing.assert_close(y, q(x) @ q(w).t())
    torch.testing.assert_close(x.grad, q(dy) @ q(w.t()).t())
    torch.testing.assert_close(w.grad, q(dy.t()) @ q(x.t()).t())


def test_a_known_result_is_taken_as_it_is_and_its_gradients_are_computed() -> None:
    x, w, dy = (torch.full(shape, 448.0) for shape in ((3, 2), (4, 2), (3, 4)))  # scales of 1
    x.requires_grad_()
    w.requires_grad_()
    known = torch.arange(12.0).view(3, 4)
    ours = quantizer()
    y = Fp8Product.apply(x, w, ours, ours.activation_operand(x, shared=False, known=True), Operand(), known)
    assert torch.equal(y, known) and y.data_ptr() == known.data_ptr()
    y.backward(dy)
    assert x.grad is not None and x.grad.tolist() == [[4.0 * 448**2] * 2] * 3
    assert w.grad is not None and w.grad.tolist() == [[3.0 * 448**2] * 2] * 4


@pytest.mark.parametrize("emulated", [True, False])
@pytest.mark.parametrize("layout", ["rows", "transposed", "strided"])
def test_every_role_is_an_op_with_a_fake_and_no_aliases(layout: str, emulated: bool) -> None:
    x = {"rows": torch.randn(3, 5), "transposed": torch.randn(5, 3).t(), "strided": torch.randn(3, 10)[:, ::2]}[layout]
    choices = [("tensor", "reference"), ("row", "cpu"), ("block", "reference")]
    for role, (scaling, name) in zip(ROLES, choices, strict=True):
        torch.library.opcheck(role, (x, "fp8_e4m3", scaling, emulated, name))
    if emulated:
        torch.library.opcheck(ROLES[0], (x, "nvfp4", "block", False, "cpu"))


@pytest.mark.parametrize("form", ["nvfp4", "mxfp4"])
def test_fp4_is_unavailable_on_a_cpu_and_says_what_it_needs(small: Any, form: str) -> None:
    config = WorkloadConfig.from_dict(small(quant={"format": form}))
    with pytest.raises(Unavailable, match=f"quant.format is {form}, and the CPU has no fp4 products") as caught:
        Precision(config)
    assert "fp8_e4m3" in caught.value.remedy
    # Where nothing is quantized the format asks for nothing.
    Precision(WorkloadConfig.from_dict(small(quant={"format": form}, precision={"gemm": "bf16"})))
