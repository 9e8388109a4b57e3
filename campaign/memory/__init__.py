"""Peak memory of a whole step, measured outside the timed blocks. Runs in the trial's process.

On CPU the deciding number is the exact peak of live tensor storage in one step, from torch's own allocator; the
process peak (VmHWM) stands beside it, since it also holds what torch does not allocate (a kernel's own scratch). On
CUDA it is the caching allocator's peak. A workload that never imported torch has no tensors: its process peak decides.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from campaign.records import Memory


def step_memory(workload: Any) -> Memory:
    """The peak of one step in steady state, in bytes. Takes a few untimed steps.

    Raises RuntimeError where neither tensors nor the process can be measured.
    """
    if "torch" not in sys.modules:
        peak = _process_peak(workload)
        if peak is None:
            raise RuntimeError("this system does not tell a process's peak memory (/proc/self/clear_refs)")
        return Memory(live_peak_bytes=peak, process_peak_bytes=peak, limit_bytes=_memory_limit())
    from campaign.memory.tensors import device_memory, live_tensor_peak

    if workload.device.startswith("cuda"):
        return device_memory(workload)
    return Memory(
        live_peak_bytes=live_tensor_peak(workload.step),
        process_peak_bytes=_process_peak(workload),
        limit_bytes=_memory_limit(),
    )


def _process_peak(workload: Any) -> int | None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
        workload.step()
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None


def _memory_limit() -> int:
    """The smaller of physical memory and the control group's limit, in bytes."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            return min(physical, int(text))
    return physical
