"""Memory of torch's tensors and caching allocator. Imports torch."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from campaign.records import Memory

_MARK = "campaign: memory is measured from here"


def live_tensor_peak(step: Callable[[], object]) -> int:
    """The largest sum of live tensor storages on the CPU, in bytes, while `step()` runs once.

    `step` runs three times. In the second, torch's own allocator tells the profiler of everything it gives and takes
    back: nothing watches the operators then, because torch.compile does not run under a dispatch mode and a kernel may
    go round the dispatcher. (The first is for the profiler, which misses that a block is freed which was there before
    it.) The third runs under a dispatch mode, to learn which storages outlive a step (parameters, optimizer state,
    gradients, caches): they count from the start. It comes last, because dynamo stays away from a function that it
    once met under a mode.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        step()
        with record_function(_MARK):
            pass
        step()
    with _Storages() as survey:
        step()
    return sum(storage.nbytes() for storage in survey.survivors()) + _highest(profiled)


def _highest(profiled: profile) -> int:
    """The highest sum that the allocator's changes on the CPU reached after the mark; at least 0."""
    recorded: Any = profiled.profiler
    events = sorted(recorded.kineto_results.events(), key=lambda event: event.start_ns())
    begun = next(event.start_ns() + event.duration_ns() for event in events if event.name() == _MARK)
    changes = (
        event.nbytes()
        for event in events
        if event.name() == "[memory]" and event.device_type() == DeviceType.CPU and event.start_ns() >= begun
    )
    return max(accumulate(changes, initial=0))


class _Storages(TorchDispatchMode):
    """Follows every storage that an operator reads or makes."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[int, weakref.ref[torch.UntypedStorage]] = {}

    def survivors(self) -> tuple[torch.UntypedStorage, ...]:
        alive = (reference() for reference in self._seen.values())
        return tuple(storage for storage in alive if storage is not None)

    def _follow(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        known = self._seen.get(key)
        # An address is used again after its storage has died.
        if known is None or known() is None:
            self._seen[key] = weakref.ref(storage)

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
