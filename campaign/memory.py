"""Peak memory of a whole step, measured outside the timed blocks. Runs in the trial's process.

On CPU the deciding number is the exact peak of live tensor storage in one step, counted by a dispatch mode; the
process peak (VmHWM) stands beside it, since it also holds what torch does not dispatch (a kernel's own scratch).
On CUDA it is the caching allocator's peak.
"""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from campaign.records import Memory


def step_memory(workload: Any) -> Memory:
    """The peak of one step in steady state, in bytes. Takes a few untimed steps."""
    if workload.device.startswith("cuda"):
        return _cuda_memory(workload)
    return Memory(
        live_peak_bytes=live_tensor_peak(workload.step),
        process_peak_bytes=_process_peak(workload),
        limit_bytes=_memory_limit(),
    )


def live_tensor_peak(step: Any) -> int:
    """The largest sum of live tensor storages, in bytes, while `step()` runs once.

    `step` runs twice: first to learn which storages outlive it (parameters, optimizer state, buffers), so that they
    count from its start and not from their first use.
    """
    survey = _Storages()
    with survey:
        step()
    tracked = _Storages(survey.survivors())
    with tracked:
        step()
    return tracked.peak


class _Storages(TorchDispatchMode):
    """Follows every storage that an operator reads or makes, from first sight until it is freed."""

    def __init__(self, known: tuple[torch.UntypedStorage, ...] = ()) -> None:
        super().__init__()
        self.live = 0
        self.peak = 0
        self._seen: dict[int, tuple[int, weakref.ref[torch.UntypedStorage]]] = {}
        for storage in known:
            self._follow(storage)

    def survivors(self) -> tuple[torch.UntypedStorage, ...]:
        alive = (reference() for _, reference in self._seen.values())
        return tuple(storage for storage in alive if storage is not None)

    def _follow(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key in self._seen:
            return
        nbytes = storage.nbytes()

        def freed(_: Any, key: int = key, nbytes: int = nbytes) -> None:
            self._seen.pop(key, None)
            self.live -= nbytes

        self._seen[key] = (nbytes, weakref.ref(storage, freed))
        self.live += nbytes
        self.peak = max(self.peak, self.live)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in tree_iter((args, kwargs, result)):
            if isinstance(value, torch.Tensor) and value.device.type == "cpu":
                self._follow(value.untyped_storage())
        return result


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


def _cuda_memory(workload: Any) -> Memory:
    workload.synchronize()
    torch.cuda.reset_peak_memory_stats()
    workload.step()
    workload.synchronize()
    free, total = torch.cuda.mem_get_info()
    return Memory(
        live_peak_bytes=torch.cuda.max_memory_allocated(),
        reserved_peak_bytes=torch.cuda.max_memory_reserved(),
        device_used_bytes=total - free,
        limit_bytes=total,
    )
