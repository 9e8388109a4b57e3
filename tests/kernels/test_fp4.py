"""`kernels.fp4` by hand-made tables, and against a search for the nearest value."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from kernels import fp4, fp4_cpu
from kernels.errors import Unavailable
from tests.kernels.every import INTERPRETED

# By code, from OCP Microscaling Formats (MX) 1.0, table 5.
VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
BLOCKS = {"nvfp4": 16, "mxfp4": 32}


def _cpu_or_skip() -> None:
    try:
        fp4_cpu.library()
    except Unavailable as error:
        pytest.skip(error.reason)


@pytest.fixture(params=["reference", "cpu"])
def implementation(request: pytest.FixtureRequest) -> fp4.Quantize:
    if request.param == "cpu":
        _cpu_or_skip()
    return fp4.IMPLEMENTATIONS[request.param]


def _codes(packed: Tensor) -> list[int]:
    """The codes of one row, the first of each byte in its low half."""
    return [code for byte in packed[0].tolist() for code in (byte & 15, byte >> 4)]


def _nv(*second: float) -> Tensor:
    """Two blocks of 16: the first makes the tensor scale 1 (448 * 6 = 2688), the second is given, filled with zeros."""
    return torch.tensor([[2688.0, *[0.0] * 15, *second, *[0.0] * (16 - len(second))]])


def _mx(*block: float) -> Tensor:
    return torch.tensor([[*block, *[0.0] * (32 - len(block))]])


def test_every_value_has_its_code_two_to_a_byte_low_half_first(implementation: fp4.Quantize) -> None:
    # Within a block that holds a 6 the scale is 1: 6 / 6 / 1 in nvfp4, 2^(2 - 2) in mxfp4.
    packed, scale, overall = implementation(_nv(*VALUES), "nvfp4")
    assert overall.tolist() == [1.0] and scale.float().tolist() == [[448.0, 1.0]]
    assert packed[0, 8:].tolist() == [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE]
    # 2688 / 448 is 6.
    assert packed[0, :8].tolist() == [0x07, 0, 0, 0, 0, 0, 0, 0]
    packed, scale, overall = implementation(_mx(*VALUES), "mxfp4")
    assert overall.tolist() == [1.0] and scale.view(torch.uint8).tolist() == [[127]]
    assert packed[0, :8].tolist() == [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE]
    assert packed.dtype == torch.uint8 and packed.shape == (1, 16)


TIES = {0.25: 0.0, 0.75: 1.0, 1.25: 1.0, 1.75: 2.0, 2.5: 2.0, 3.5: 4.0, 5.0: 4.0}


@pytest.mark.parametrize("form", list(BLOCKS))
@pytest.mark.parametrize("sign", [1, -1])
def test_ties_go_to_the_even_code_and_their_neighbours_to_the_nearer_value(
    implementation: fp4.Quantize, form: str, sign: int
) -> None:
    for (tie, even), lower, upper in zip(TIES.items(), VALUES[:7], VALUES[1:8], strict=True):
        at = torch.tensor(tie)
        around = (tie, at.nextafter(torch.tensor(0.0)).item(), at.nextafter(torch.tensor(9.0)).item())
        block = [6.0, *(sign * value for value in around)]
        packed, _, _ = implementation(_nv(*block) if form == "nvfp4" else _mx(*block), form)
        start = 16 if form == "nvfp4" else 0
        got = [VALUES[code] for code in _codes(packed)[start + 1 : start + 4]]
        assert got == [sign * even, sign * lower, sign * upper], tie


def test_the_scale_of_an_nvfp4_block_is_rounded_and_what_is_then_above_six_is_six(implementation: fp4.Quantize) -> None:
    # 6.375 / 6 = 1.0625 is the tie between 1 and 1.125, so the scale is 1 and 6.375 is cut to 6.
    packed, scale, _ = implementation(_nv(6.375, 3.0), "nvfp4")
    assert scale.float().tolist() == [[448.0, 1.0]]
    assert _codes(packed)[16:18] == [7, 5]
    # 7.2 / 6 = 1.2 rounds to 1.25, and 7.2 / 1.25 = 5.76 to 6.
    packed, scale, _ = implementation(_nv(7.2), "nvfp4")
    assert scale.float().tolist() == [[448.0, 1.25]] and _codes(packed)[16] == 7


def test_an_nvfp4_block_far_below_the_others_has_the_smallest_scale_and_zeros(implementation: fp4.Quantize) -> None:
    packed, scale, overall = implementation(_nv(1e-6, -1e-6), "nvfp4")
    assert scale[0, 1].float() == 2.0**-9
    # Minus zero keeps its sign.
    assert _codes(packed)[16:19] == [0, 8, 0]
    assert fp4.dequantize(packed, scale, overall)[0, 16:].tolist() == [0.0] * 16


def test_the_tensor_scale_of_nvfp4(implementation: fp4.Quantize) -> None:
    packed, scale, overall = implementation(_nv(6.0) * 4, "nvfp4")
    assert overall.tolist() == [4.0] and scale.float().tolist() == [[448.0, 1.0]]
    assert fp4.dequantize(packed, scale, overall)[0, [0, 16]].tolist() == [4 * 2688.0, 24.0]
    _, scale, overall = implementation(torch.zeros(1, 16), "nvfp4")
    assert overall.item() == torch.tensor(1e-12).item() and scale.float().tolist() == [[2.0**-9]]


@pytest.mark.parametrize(
    ("largest", "stored", "code"),
    [
        (6.0, 127, 7),
        (4.0, 127, 6),
        (7.9, 127, 7),  # Cut to 6.
        (8.0, 128, 6),  # 2^(3 - 2) = 2, and 8 / 2 = 4.
        (3.9, 126, 7),  # 2^(1 - 2), and 7.8 is cut.
        (1.0, 125, 6),
        (0.0, 0, 0),
        (2.0**127, 252, 6),
        (2.0**-124, 1, 6),
        (2.0**-126, 0, 4),  # The scale stops at 2^-127, so 2^-126 is 2 of them.
    ],
)
def test_the_scale_of_an_mxfp4_block_by_hand(
    implementation: fp4.Quantize, largest: float, stored: int, code: int
) -> None:
    packed, scale, overall = implementation(_mx(largest), "mxfp4")
    assert scale.dtype == torch.float8_e8m0fnu and overall.tolist() == [1.0]
    assert scale.view(torch.uint8).tolist() == [[stored]]
    assert _codes(packed) == [code] + [0] * 31
    assert fp4.dequantize(packed, scale, overall)[0, 0].item() == VALUES[code] * 2.0 ** (stored - 127)


@pytest.mark.parametrize("form", list(BLOCKS))
def test_each_code_is_the_nearest_by_search(implementation: fp4.Quantize, form: str) -> None:
    x = torch.randn(20, 96, generator=torch.Generator().manual_seed(4))
    packed, scale, overall = implementation(x, form)
    total = (overall * scale.float()).double().repeat_interleave(BLOCKS[form], dim=1)
    values = torch.tensor(VALUES, dtype=torch.float64)
    best = (x.double()[..., None] / total[..., None] - values).abs().min(dim=2).values
    error = (x.double() - fp4.dequantize(packed, scale, overall).double()).abs() / total
    torch.testing.assert_close(error, best, rtol=0, atol=1e-6)
    # Half the widest step of a value up to 6; the scale of mxfp4 lets a block reach almost 8.
    assert error.max() <= (1.0 if form == "nvfp4" else 2.0)


def test_nan_and_infinity_show_when_dequantized(implementation: fp4.Quantize) -> None:
    for wrong in (math.nan, math.inf, -math.inf):
        x = torch.ones(2, 64)
        x[0, 3] = wrong
        packed, scale, overall = implementation(x, "mxfp4")
        assert scale.view(torch.uint8)[0, 0] == 255 and packed[0, :16].tolist() == [0] * 16
        assert fp4.dequantize(packed, scale, overall).isnan().sum() == 32
        packed, scale, overall = implementation(x, "nvfp4")
        assert not overall.isfinite() and scale[0, 0].float().isnan()
        assert fp4.dequantize(packed, scale, overall).isnan().all()


def test_block_scales_lie_where_tensor_cores_read_them() -> None:
    # From cuBLAS's figure: in a tile 16 bytes for r mod 32, in these 4 for r div 32, in these the column.
    places = {
        (0, 0): 0,
        (0, 1): 1,
        (1, 0): 16,
        (31, 3): 499,
        (32, 0): 4,
        (127, 3): 511,
        (0, 4): 512,  # The next tile to the right.
        (128, 0): 1024,  # The next row of tiles, two tiles wide.
        (129, 4): 1552,
    }
    scale = torch.zeros(130, 5, dtype=torch.uint8)
    for mark, (r, c) in enumerate(places, start=1):
        scale[r, c] = mark
    blocked = fp4.blocked_scales(scale.view(torch.float8_e4m3fn))
    assert blocked.dtype == torch.float8_e4m3fn and blocked.shape == (4 * 512,) and blocked.is_contiguous()
    found = {at: mark for at, mark in enumerate(blocked.view(torch.uint8).tolist()) if mark}
    assert found == {at: mark for mark, at in enumerate(places.values(), start=1)}
    with pytest.raises(ValueError, match=r"\[R, G\] in a dtype of one byte"):
        fp4.blocked_scales(torch.ones(4, 4))


def test_what_does_not_fit_is_refused(implementation: fp4.Quantize) -> None:
    for x, form, said in (
        (torch.ones(2, 24), "nvfp4", "whole number of blocks of 16 columns, got 24"),
        (torch.ones(2, 48), "mxfp4", "whole number of blocks of 32 columns, got 48"),
        (torch.ones(2, 32), "fp4", "no format 'fp4'. Choose one of nvfp4, mxfp4"),
        (torch.ones(32), "mxfp4", r"got the shape \(32,\)"),
        (torch.ones(0, 32), "mxfp4", "at least one element"),
    ):
        with pytest.raises(ValueError, match=said):
            implementation(x, form)


def test_the_compiled_kernel_refuses_other_dtypes_and_devices() -> None:
    _cpu_or_skip()
    with pytest.raises(TypeError, match=r"takes torch\.float32, not torch\.float64"):
        fp4.cpu(torch.ones(2, 32, dtype=torch.float64), "mxfp4")
    with pytest.raises(ValueError, match="runs on cpu tensors, not on meta"):
        fp4.cpu(torch.ones(2, 32, device="meta"), "mxfp4")


def test_a_scale_that_does_not_belong_to_the_payload_is_refused() -> None:
    packed, scale, overall = fp4.reference(torch.ones(2, 32), "nvfp4")
    with pytest.raises(ValueError, match="does not belong to 2 rows of 32 values"):
        fp4.dequantize(packed, scale[:, :1], overall)
    with pytest.raises(ValueError, match=r"torch\.float32"):
        fp4.dequantize(packed, scale.float(), overall)


def test_triton_says_what_is_missing_where_it_cannot_run() -> None:
    if torch.cuda.is_available() or INTERPRETED:
        pytest.skip("Triton's kernels may run here")
    with pytest.raises(Unavailable, match="Triton"):
        fp4.triton(torch.ones(2, 32), "mxfp4")
