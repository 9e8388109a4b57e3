"""Theoretical occupancy: how many warps of a kernel fit on one multiprocessor, from what the compiler reports.

Limits are those of the CUDA Programming Guide, appendix "Compute Capabilities", tables "Streaming Multiprocessor
Information" and "Memory Information per Compute Capability", and of `cuda/__device/arch_traits.h` in NVIDIA's CCCL. The
allocation rules are those of NVIDIA's occupancy calculator (`cuda_occupancy.h` of the CUDA toolkit, 13.0): registers
are given to whole warps, in units of 256, out of one of the four partitions of a multiprocessor; shared memory to whole
blocks, in units of 128 bytes, with 1 KiB of the system's own in each block (before compute capability 8.0 in units of
256 bytes, with none).

This says what fits, not what is fast: a kernel of few warps may be at the limit of its unit all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from campaign.errors import BadInput, UnknownName

WARP_THREADS = 32
LARGEST_BLOCK_THREADS = 1024
REGISTERS = 65_536  # 32-bit registers of a multiprocessor, and the most that one block may have
LARGEST_THREAD_REGISTERS = 255
REGISTER_UNIT = 256
PARTITIONS = 4
SHARED_UNIT_BYTES = 128
RESERVED_SHARED_BYTES = 1024


@dataclass(frozen=True)
class Architecture:
    """One multiprocessor: resident warps and blocks at most, and its shared memory in bytes, of which each block takes
    whole units, the system's part included."""

    warps: int
    blocks: int
    shared_bytes: int
    shared_unit_bytes: int = SHARED_UNIT_BYTES
    reserved_shared_bytes: int = RESERVED_SHARED_BYTES


ARCHITECTURES = {
    "sm_70": Architecture(64, 32, 96 * 1024, shared_unit_bytes=256, reserved_shared_bytes=0),
    "sm_75": Architecture(32, 16, 64 * 1024, shared_unit_bytes=256, reserved_shared_bytes=0),
    "sm_80": Architecture(warps=64, blocks=32, shared_bytes=164 * 1024),
    "sm_86": Architecture(warps=48, blocks=16, shared_bytes=100 * 1024),
    "sm_87": Architecture(warps=48, blocks=16, shared_bytes=164 * 1024),
    "sm_88": Architecture(warps=48, blocks=16, shared_bytes=100 * 1024),
    "sm_89": Architecture(warps=48, blocks=24, shared_bytes=100 * 1024),
    "sm_90": Architecture(warps=64, blocks=32, shared_bytes=228 * 1024),
    "sm_100": Architecture(warps=64, blocks=32, shared_bytes=228 * 1024),
    "sm_103": Architecture(warps=64, blocks=32, shared_bytes=228 * 1024),
    "sm_110": Architecture(warps=48, blocks=24, shared_bytes=228 * 1024),
    "sm_120": Architecture(warps=48, blocks=24, shared_bytes=100 * 1024),
    "sm_121": Architecture(warps=48, blocks=24, shared_bytes=100 * 1024),
}


@dataclass(frozen=True)
class Occupancy:
    """What fits on one multiprocessor. `share` is `warps` of the most it can hold, from 0 (the kernel cannot be
    launched) to 1. `limited_by` names what runs out first, several when they do together: warps, blocks, registers,
    shared memory."""

    blocks: int
    warps: int
    share: float
    limited_by: tuple[str, ...]


def theoretical(architecture: str, *, registers: int, threads: int, shared_bytes: int = 0) -> Occupancy:
    """Occupancy of blocks of `threads` threads, each thread with `registers` 32-bit registers, each block with
    `shared_bytes` of shared memory (without the system's part).

    Raises UnknownName for an architecture that is not in the table, BadInput for numbers that no kernel has.
    """
    if architecture not in ARCHITECTURES:
        raise UnknownName("architecture with known occupancy limits", architecture, ARCHITECTURES)
    if not 1 <= threads <= LARGEST_BLOCK_THREADS:
        raise BadInput(f"{threads} threads a block: a block has 1 to {LARGEST_BLOCK_THREADS}")
    if not 0 <= registers <= LARGEST_THREAD_REGISTERS:
        raise BadInput(f"{registers} registers a thread: a thread has at most {LARGEST_THREAD_REGISTERS}")
    if shared_bytes < 0:
        raise BadInput(f"{shared_bytes} bytes of shared memory: it is 0 or more")
    chip = ARCHITECTURES[architecture]
    block_warps = -(-threads // WARP_THREADS)
    limits = {
        "warps": chip.warps // block_warps,
        "blocks": chip.blocks,
        "registers": _blocks_by_registers(registers, block_warps),
        "shared memory": _blocks_by_shared(chip, shared_bytes),
    }
    blocks = min(limits.values())
    warps = blocks * block_warps
    return Occupancy(
        blocks=blocks,
        warps=warps,
        share=warps / chip.warps,
        limited_by=tuple(name for name, limit in limits.items() if limit == blocks),
    )


def _blocks_by_registers(registers: int, block_warps: int) -> int:
    warp_registers = _rounded_up(max(registers, 1) * WARP_THREADS, REGISTER_UNIT)
    # A block's warps are spread over the partitions, and a warp's registers all lie in its own.
    if warp_registers * _rounded_up(block_warps, PARTITIONS) > REGISTERS:
        return 0
    return (REGISTERS // PARTITIONS // warp_registers * PARTITIONS) // block_warps


def _blocks_by_shared(chip: Architecture, shared_bytes: int) -> int:
    each = _rounded_up(shared_bytes + chip.reserved_shared_bytes, chip.shared_unit_bytes)
    return chip.shared_bytes // each if each else chip.blocks  # a block that takes none is not limited by it


def _rounded_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
