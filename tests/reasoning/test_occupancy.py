"""Theoretical occupancy against values worked out by hand from NVIDIA's tables, and against the published case."""

from __future__ import annotations

import pytest

from campaign.errors import BadInput, UnknownName
from campaign.occupancy import theoretical


@pytest.mark.parametrize(
    ("registers", "warps"),
    [
        # 255 x 32 = 8,160, in units of 256 8,192; a partition's 16,384 hold 2, so 8 warps in the four.
        (255, 8),
        # 153 x 32 = 4,896 -> 5,120; 16,384 / 5,120 = 3.2, so 3 a partition and 12 in all.
        (153, 12),
        # 100 x 32 = 3,200 -> 3,328; 16,384 / 3,328 = 4.9, so 4 a partition and 16 in all.
        (100, 16),
    ],
)
def test_registers_of_the_published_kernels_leave_the_published_warps(registers, warps):
    """Case D and case C of the case studies, on 48 resident warps: 16.7 %, 25 % and 33 % with blocks of 128 threads."""
    found = theoretical("sm_120", registers=registers, threads=128)
    assert (found.warps, found.share) == (warps, warps / 48)
    assert found.limited_by == ("registers",)
    # Hopper has the same registers and 64 warps.
    assert theoretical("sm_90", registers=registers, threads=128).warps == warps


def test_255_registers_fill_an_eighth_of_hopper():
    found = theoretical("sm_90", registers=255, threads=128)
    assert (found.blocks, found.warps, found.share) == (2, 8, 0.125)


@pytest.mark.parametrize(
    ("architecture", "registers", "threads", "shared", "blocks", "limited_by"),
    [
        # 32 x 32 = 1,024 a warp: 16 a partition, 64 warps; blocks of 4 warps: 16 by warps and by registers.
        ("sm_90", 32, 128, 0, 16, ("warps", "registers")),
        # One warp a block: 32 blocks at most, half of the 64 warps.
        ("sm_90", 16, 32, 0, 32, ("blocks",)),
        ("sm_120", 16, 32, 0, 24, ("blocks",)),
        # 227 KiB and the system's 1 KiB are all of the 228 KiB.
        ("sm_90", 32, 128, 227 * 1024, 1, ("shared memory",)),
        ("sm_90", 32, 128, 227 * 1024 + 1, 0, ("shared memory",)),
        # 100 KiB + 1 KiB twice are 202 of 228 KiB.
        ("sm_100", 32, 128, 100 * 1024, 2, ("shared memory",)),
        # 56 KiB + 1 KiB four times are exactly 228 KiB; one byte more takes a unit of 128 more.
        ("sm_90", 32, 128, 56 * 1024, 4, ("shared memory",)),
        ("sm_90", 32, 128, 56 * 1024 + 1, 3, ("shared memory",)),
        # 100 KiB a multiprocessor: 99 and the system's 1.
        ("sm_89", 32, 128, 99 * 1024, 1, ("shared memory",)),
        # 1,024 threads are 32 warps: two blocks fill 64 warps, one of 48 leaves 16 over.
        ("sm_90", 32, 1024, 0, 2, ("warps", "registers")),
        ("sm_86", 32, 1024, 0, 1, ("warps",)),
        # 128 x 32 = 4,096 a warp: 16 warps; a block of 512 threads has 16.
        ("sm_90", 128, 512, 0, 1, ("registers",)),
    ],
)
def test_the_scarcest_resource_limits(architecture, registers, threads, shared, blocks, limited_by):
    found = theoretical(architecture, registers=registers, threads=threads, shared_bytes=shared)
    assert (found.blocks, found.limited_by) == (blocks, limited_by)


def test_a_block_that_wants_more_registers_than_there_are_cannot_be_launched():
    # 129 x 32 -> 4,352 a warp, 16 warps: 69,632 of 65,536.
    found = theoretical("sm_90", registers=129, threads=512)
    assert (found.blocks, found.warps, found.share, found.limited_by) == (0, 0, 0.0, ("registers",))


def test_a_warp_that_is_not_full_takes_a_whole_one():
    assert theoretical("sm_90", registers=32, threads=33) == theoretical("sm_90", registers=32, threads=64)


def test_an_architecture_without_a_table_is_refused_not_guessed():
    with pytest.raises(UnknownName, match="sm_91"):
        theoretical("sm_91", registers=32, threads=128)


@pytest.mark.parametrize(
    ("registers", "threads", "shared", "says"),
    [
        (256, 128, 0, "at most 255"),
        (-1, 128, 0, "at most 255"),
        (32, 0, 0, "1 to 1024"),
        (32, 1025, 0, "1 to 1024"),
        (32, 128, -1, "0 or more"),
    ],
)
def test_numbers_that_no_kernel_has_are_refused(registers, threads, shared, says):
    with pytest.raises(BadInput, match=says):
        theoretical("sm_90", registers=registers, threads=threads, shared_bytes=shared)
