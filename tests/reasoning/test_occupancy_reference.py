"""Theoretical occupancy against NVIDIA's own calculator, `cuda_occupancy.h`, compiled here where a CUDA toolkit is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from campaign.occupancy import ARCHITECTURES, theoretical

HEADERS = sorted(Path("/usr/local").glob("cuda*/include/cuda_occupancy.h"))
# Resident threads, shared memory in KiB and the system's part of a block, from the programming guide.
LIMITS = {
    "sm_70": (7, 0, 2048, 96, 0), "sm_75": (7, 5, 1024, 64, 0), "sm_80": (8, 0, 2048, 164, 1024),
    "sm_86": (8, 6, 1536, 100, 1024), "sm_87": (8, 7, 1536, 164, 1024), "sm_89": (8, 9, 1536, 100, 1024),
    "sm_90": (9, 0, 2048, 228, 1024), "sm_100": (10, 0, 2048, 228, 1024), "sm_103": (10, 3, 2048, 228, 1024),
    "sm_110": (11, 0, 1536, 228, 1024), "sm_120": (12, 0, 1536, 100, 1024), "sm_121": (12, 1, 1536, 100, 1024),
}  # fmt: skip
PROGRAM = """
#include <cstdio>
#include <initializer_list>
#include <cuda_occupancy.h>
int main() {
  int major, minor, threads, kib, reserved;
  while (std::scanf("%d %d %d %d %d", &major, &minor, &threads, &kib, &reserved) == 5) {
    cudaOccDeviceProp chip;
    chip.computeMajor = major; chip.computeMinor = minor;
    chip.maxThreadsPerBlock = 1024; chip.maxThreadsPerMultiprocessor = threads;
    chip.regsPerBlock = chip.regsPerMultiprocessor = 65536; chip.warpSize = 32; chip.numSms = 1;
    chip.sharedMemPerBlock = 49152; chip.sharedMemPerMultiprocessor = (size_t)kib * 1024;
    chip.sharedMemPerBlockOptin = (size_t)kib * 1024 - reserved; chip.reservedSharedMemPerBlock = reserved;
    for (int registers : {16, 32, 64, 100, 128, 153, 168, 255})
      for (int block : {32, 96, 128, 256, 384, 1024})
        for (int shared : {0, 1, 1000, 8192, 49152, 98304, 232448}) {
          cudaOccFuncAttributes kernel;
          kernel.maxThreadsPerBlock = 1024; kernel.numRegs = registers; kernel.sharedSizeBytes = 0;
          kernel.partitionedGCConfig = PARTITIONED_GC_OFF; kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
          kernel.maxDynamicSharedSizeBytes = chip.sharedMemPerBlockOptin; kernel.numBlockBarriers = 1;
          cudaOccDeviceState state;
          state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
          cudaOccResult found;
          if (cudaOccMaxActiveBlocksPerMultiprocessor(&found, &chip, &kernel, &state, block, shared)) return 1;
          std::printf("%d %d %d %d %d %d\\n", major, minor, registers, block, shared,
                      found.activeBlocksPerMultiprocessor);
        }
  }
}
"""


@pytest.mark.skipif(not HEADERS or not shutil.which("g++"), reason="needs cuda_occupancy.h and g++")
def test_blocks_that_fit_are_those_of_nvidias_calculator(tmp_path):
    source, program = tmp_path / "occupancy.cpp", tmp_path / "occupancy"
    source.write_text(PROGRAM)
    subprocess.run(["g++", "-I", str(HEADERS[-1].parent), str(source), "-o", str(program)], check=True)
    asked = "\n".join(" ".join(map(str, limits)) for limits in LIMITS.values())
    answer = subprocess.run([str(program)], input=asked, capture_output=True, text=True, check=True).stdout
    rows = [tuple(map(int, line.split())) for line in answer.splitlines()]
    assert len(rows) == len(LIMITS) * 8 * 6 * 7
    for major, minor, registers, threads, shared, blocks in rows:
        found = theoretical(f"sm_{major}{minor}", registers=registers, threads=threads, shared_bytes=shared)
        assert found.blocks == blocks, (major, minor, registers, threads, shared)


def test_sm_88_is_sm_86_by_another_number():
    """NVIDIA's CCCL (cuda/__device/arch_traits.h) gives it the same limits; the calculator does not name it."""
    assert ARCHITECTURES["sm_88"] == ARCHITECTURES["sm_86"] and set(ARCHITECTURES) == {*LIMITS, "sm_88"}
