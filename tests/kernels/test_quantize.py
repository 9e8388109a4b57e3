"""`kernels.quantize` by hand arithmetic, against torch's own casts, and in what it refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from kernels import quantize, quantize_cpu
from kernels.errors import Unavailable
from kernels.quantize_ops import FORMATS
from tests.kernels.every import INTERPRETED

FORMS = tuple(FORMATS)


def _cpu_or_skip() -> None:
    try:
        quantize_cpu.library()
    except Unavailable as error:
        pytest.skip(error.reason)


@pytest.fixture(params=["reference", "cpu"])
def implementation(request: pytest.FixtureRequest) -> quantize.Quantize:
    if request.param == "cpu":
        _cpu_or_skip()
    return quantize.IMPLEMENTATIONS[request.param]


def _bytes(payload: Tensor) -> Tensor:
    return payload.contiguous().view(torch.uint8)


def _values_of(form: str) -> Tensor:
    """All finite values of a format, by torch, largest negative code last."""
    values = torch.arange(256, dtype=torch.uint8).view(FORMATS[form].dtype).float()
    return values[values.isfinite()]


def _row(*values: float) -> Tensor:
    return torch.tensor([values])


@pytest.mark.parametrize("form", FORMS)
def test_every_value_of_the_format_stands_for_itself(implementation: quantize.Quantize, form: str) -> None:
    # The largest is among them, so the scale is 1.
    values = _values_of(form)[None]
    payload, scale = implementation(values, form, "tensor", True)
    assert scale.tolist() == [[1.0]]
    assert torch.equal(payload, values)
    payload, scale = implementation(values, form, "tensor", False)
    assert scale.tolist() == [[1.0]] and payload.dtype == FORMATS[form].dtype
    assert torch.equal(_bytes(payload), _bytes(values.to(FORMATS[form].dtype)))


def test_the_formats_are_those_of_torch() -> None:
    for form, chosen in FORMATS.items():
        info = torch.finfo(chosen.dtype)
        assert (chosen.largest, chosen.smallest_normal) == (info.max, info.smallest_normal), form
        assert info.eps == 2.0**-chosen.mantissa_bits


@pytest.mark.parametrize(
    ("form", "given", "want"),
    [
        # Ties go to the even mantissa: between 1 and 1.125, 1.125 and 1.25; 416 and 448.
        ("fp8_e4m3", (1.0625, 1.1875, 432.0, -1.0625), (1.0, 1.25, 448.0, -1.0)),
        # Subnormals step by 2^-9: halves of it, one and a half, and between the last of them and the first normal.
        ("fp8_e4m3", (2.0**-10, 3 * 2.0**-10, 7.5 * 2.0**-9, 1.01 * 2.0**-10), (0.0, 2.0**-8, 2.0**-6, 2.0**-9)),
        ("fp8_e5m2", (1.125, 1.375, 53248.0, -1.375), (1.0, 1.5, 49152.0, -1.5)),
        ("fp8_e5m2", (2.0**-17, 3 * 2.0**-17, 3.5 * 2.0**-16, 1.01 * 2.0**-17), (0.0, 2.0**-15, 2.0**-14, 2.0**-16)),
    ],
)
@pytest.mark.parametrize("emulated", [True, False])
def test_ties_and_subnormals_by_hand(
    implementation: quantize.Quantize, form: str, given: tuple[float, ...], want: tuple[float, ...], emulated: bool
) -> None:
    payload, scale = implementation(_row(*given, FORMATS[form].largest), form, "tensor", emulated)
    assert scale.item() == 1.0
    assert payload.float()[0, :-1].tolist() == list(want)


@pytest.mark.parametrize("form", FORMS)
def test_midpoints_their_neighbours_and_many_others_round_as_torch_casts(
    implementation: quantize.Quantize, form: str
) -> None:
    values = _values_of(form)
    positive = values[values >= 0].sort().values
    ties = (positive[1:] + positive[:-1]) / 2
    generator = torch.Generator().manual_seed(5)
    exponents = torch.randint(-40, 9, (4000,), generator=generator)
    others = torch.randn(4000, generator=generator) * 2.0**exponents
    down, up = ties.nextafter(torch.tensor(0.0)), ties.nextafter(torch.tensor(math.inf))
    magnitudes = torch.cat((ties, down, up, others[others.abs() < 448], torch.tensor([2.0**-149, 2.0**-126, 0.0])))
    given = torch.cat((magnitudes, -magnitudes, positive[-1:]))[None]
    cast = given.to(FORMATS[form].dtype)
    payload, scale = implementation(given, form, "tensor", False)
    assert scale.item() == 1.0
    assert torch.equal(_bytes(payload), _bytes(cast))
    emulated, _ = implementation(given, form, "tensor", True)
    assert torch.equal(emulated, cast.float())
    assert not emulated[emulated == 0].signbit().any()


def test_it_divides_and_does_not_multiply_by_a_rounded_reciprocal(implementation: quantize.Quantize) -> None:
    values = _values_of("fp8_e4m3")
    positive = values[values > 0].sort().values
    ties = (positive[1:] + positive[:-1]) / 2
    want = ties.to(torch.float8_e4m3fn).float()
    lost = 0
    for scale in range(3, 400, 2):
        # Exact products, so the division is exact and each quotient is the tie.
        payload, got = implementation(torch.cat((ties, positive[-1:]))[None] * scale, "fp8_e4m3", "tensor", True)
        assert got.item() == scale
        assert torch.equal(payload[0, :-1], want)
        by_reciprocal = (ties * scale) * (1 / torch.tensor(float(scale)))
        lost += int((by_reciprocal.to(torch.float8_e4m3fn).float() != want).sum())
    assert lost > 0, "no scale here tells the two apart"


def test_scales_of_a_tensor_of_rows_and_of_blocks_by_hand(implementation: quantize.Quantize) -> None:
    x = torch.zeros(2, 130)
    x[0, 0], x[0, 129], x[1, 5], x[1, 128] = 448.0, -2.0 * 448.0, 1.75, 0.875
    _, scale = implementation(x, "fp8_e4m3", "tensor", True)
    assert scale.tolist() == [[2.0]]
    payload, scale = implementation(x, "fp8_e4m3", "row", True)
    assert scale.tolist() == [[2.0], [2.0**-8]]
    assert (payload[0, 0], payload[0, 129], payload[1, 128]) == (224.0, -448.0, 224.0)
    payload, scale = implementation(x, "fp8_e4m3", "block", True)
    # The second block of each row has two columns.
    assert scale.tolist() == [[1.0, 2.0], [2.0**-8, 2.0**-9]]
    assert (payload[0, 0], payload[0, 129], payload[1, 5], payload[1, 128]) == (448.0, -448.0, 448.0, 448.0)
    _, scale = implementation(x * 128, "fp8_e5m2", "row", True)
    assert scale.tolist() == [[2.0], [2.0**-8]]


def test_zeros_and_tiny_values_have_the_smallest_scale(implementation: quantize.Quantize) -> None:
    smallest = torch.tensor(1e-12).item()
    payload, scale = implementation(torch.tensor([[0.0, -0.0], [4.4e-12, 0.0]]), "fp8_e4m3", "row", True)
    assert scale.tolist() == [[smallest], [smallest]]
    # 4.4 lies between 4 and 4.5.
    assert payload.tolist() == [[0.0, 0.0], [4.5, 0.0]]
    payload, _ = implementation(torch.tensor([[0.0, -0.0]]), "fp8_e4m3", "row", False)
    assert _bytes(payload).tolist() == [[0x00, 0x80]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("emulated", [True, False])
def test_the_largest_element_is_the_largest_value_and_nothing_overflows(
    implementation: quantize.Quantize, form: str, emulated: bool
) -> None:
    generator = torch.Generator().manual_seed(9)
    # The division can end a hair above the largest value, which float8 could take for NaN.
    sizes = 1 + torch.rand(5000, 1, generator=generator)
    x = -sizes * 2.0 ** torch.randint(-20, 100, (5000, 1), generator=generator)
    x[0] = torch.finfo(torch.float32).min
    payload, _ = implementation(x, form, "row", emulated)
    assert (payload.float() == -FORMATS[form].largest).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("emulated", [True, False])
def test_nan_and_infinity_show_in_their_row_only(implementation: quantize.Quantize, form: str, emulated: bool) -> None:
    x = torch.ones(3, 40)
    x[0, 7], x[1, 9] = math.nan, -math.inf
    payload, scale = implementation(x, form, "row", emulated)
    payload = payload.float()
    assert scale[0].isnan() and payload[0].isnan().all()
    assert scale[1] == math.inf and payload[1, 9].isnan() and payload[1].nansum() == 0
    assert payload[1].isnan().sum() == 1
    assert (payload[2] == FORMATS[form].largest).all()


@pytest.mark.parametrize("scaling", ["tensor", "row", "block"])
@pytest.mark.parametrize("emulated", [True, False])
def test_a_transposed_matrix_keeps_its_layout_and_has_the_same_numbers(
    implementation: quantize.Quantize, scaling: str, emulated: bool
) -> None:
    x = torch.randn(270, 300, generator=torch.Generator().manual_seed(1)).t()
    payload, scale = implementation(x, "fp8_e4m3", scaling, emulated)
    assert payload.stride() == x.stride()
    straight, straight_scale = implementation(x.contiguous(), "fp8_e4m3", scaling, emulated)
    assert torch.equal(_bytes(payload), _bytes(straight)) and torch.equal(scale, straight_scale)
    assert straight.is_contiguous()


@pytest.mark.parametrize("group", [0, 37, 5])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("emulated", "width"), [(True, 4), (False, 1)])
def test_the_raw_kernel_writes_all_of_its_buffers_and_nothing_beyond(
    group: int, transposed: bool, emulated: bool, width: int
) -> None:
    _cpu_or_skip()
    rows, columns, guard = 261, 37, 64
    x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(group))
    payload = torch.full((rows * columns * width + guard,), 0x7F, dtype=torch.uint8)
    scales = 1 if group == 0 else rows * -(-columns // group)
    scale = torch.full((scales + guard,), math.nan)
    function, _ = quantize_cpu._kernel("fp8_e4m3", "row", emulated)
    function(x.data_ptr(), rows, columns, group, transposed, payload.data_ptr(), scale.data_ptr())
    written = payload[:-guard].view(torch.float32 if emulated else torch.float8_e4m3fn)
    assert written.float().isfinite().all() and (payload[-guard:] == 0x7F).all()
    assert scale[:scales].isfinite().all() and scale[scales:].isnan().all()


@pytest.mark.parametrize(
    ("error", "said", "wrong"),
    [
        (TypeError, r"takes torch\.float32, not torch\.float64", {"x": torch.ones(2, 4, dtype=torch.float64)}),
        (TypeError, r"takes torch\.float32, not torch\.bfloat16", {"x": torch.ones(2, 4, dtype=torch.bfloat16)}),
        (ValueError, r"got the shape \(4,\)", {"x": torch.ones(4)}),
        (ValueError, r"got the shape \(2, 3, 4\)", {"x": torch.ones(2, 3, 4)}),
        (ValueError, "at least one element", {"x": torch.ones(0, 4)}),
        (ValueError, "runs on cpu tensors, not on meta", {"x": torch.ones(2, 4, device="meta")}),
        (ValueError, "no format 'fp8_e3m4'. Choose one of fp8_e4m3, fp8_e5m2", {"form": "fp8_e3m4"}),
        (ValueError, "no scaling 'column'. Choose one of tensor, row, block", {"scaling": "column"}),
    ],
)
def test_the_compiled_kernel_refuses_what_it_cannot_take(
    error: type[Exception], said: str, wrong: dict[str, Any]
) -> None:
    _cpu_or_skip()
    fits: dict[str, Any] = {"x": torch.ones(2, 4), "form": "fp8_e4m3", "scaling": "row", "emulated": True}
    with pytest.raises(error, match=said):
        quantize.cpu(**{**fits, **wrong})
    with pytest.raises(error, match=said):
        torch.ops.kernels.quantize_cpu(*{**fits, **wrong}.values())


@pytest.mark.parametrize("wrong", [{"form": "fp4"}, {"scaling": "column"}, {"x": torch.ones(4)}])
def test_the_reference_refuses_the_same_choices(wrong: dict[str, Any]) -> None:
    fits: dict[str, Any] = {"x": torch.ones(2, 4), "form": "fp8_e4m3", "scaling": "row", "emulated": True}
    with pytest.raises(ValueError, match="quantize:"):
        quantize.reference(**{**fits, **wrong})


def test_a_tensor_whose_memory_was_freed_is_refused() -> None:
    _cpu_or_skip()
    x = torch.ones(2, 4)
    x.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="no memory"):
        quantize.cpu(x, "fp8_e4m3", "tensor", True)


def test_a_negated_view_is_read_with_its_sign(implementation: quantize.Quantize) -> None:
    # Its memory holds the opposite numbers, and only the dispatcher knows.
    payload, _ = implementation(torch._neg_view(_row(448.0, 1.0)), "fp8_e4m3", "tensor", True)
    assert payload.tolist() == [[-448.0, -1.0]]


def test_triton_says_what_is_missing_where_it_cannot_run() -> None:
    if torch.cuda.is_available() or INTERPRETED:
        pytest.skip("Triton's kernels may run here")
    with pytest.raises(Unavailable, match="Triton") as caught:
        quantize.triton(torch.ones(2, 4), "fp8_e4m3", "tensor", True)
    assert "ops.quantize" in caught.value.remedy
