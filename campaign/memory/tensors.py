"""Memory of torch's tensors and caching allocator. Imports torch."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from campaign.records import Memory


def live_tensor_peak(step: Callable[[], object]) -> int:
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


def device_memory(workload: Any) -> Memory:
    """The caching allocator's peak over one step on the current CUDA device, what captured graphs keep beyond it, and
    what the device holds in all."""
    workload.synchronize()
    torch.cuda.reset_peak_memory_stats()
    workload.step()
    workload.synchronize()
    free, total = torch.cuda.mem_get_info()
    pools = graph_pool_bytes(torch.cuda.memory_snapshot())
    return Memory(
        live_peak_bytes=torch.cuda.max_memory_allocated() + pools,
        reserved_peak_bytes=torch.cuda.max_memory_reserved(),
        device_used_bytes=total - free,
        graph_pool_bytes=pools,
        limit_bytes=total,
    )


def graph_pool_bytes(segments: list[dict[str, Any]]) -> int:
    """What lies free in the private pools of captured graphs: their intermediates, which a replay writes to again.

    `segments` is the allocator's snapshot; the default pool's id is (0, 0).
    """
    private = (one for one in segments if tuple(one["segment_pool_id"]) != (0, 0))
    return sum(one["total_size"] - one["allocated_size"] for one in private)
