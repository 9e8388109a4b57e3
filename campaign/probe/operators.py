"""What torch ran: dispatched operators and device kernels. Imports torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from torch.utils._python_dispatch import TorchDispatchMode

T = TypeVar("T")


class OperatorCounts(TorchDispatchMode):
    """Counts dispatched operators by `namespace::name`, overload left out."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[func._schema.name] += 1
        return func(*args, **(kwargs or {}))


def counted(act: Callable[[], T]) -> tuple[T, dict[str, float]]:
    """What `act()` returns, and how often each operator was dispatched meanwhile, by `op:namespace::name`."""
    with OperatorCounts() as counting:
        result = act()
    return result, {f"op:{name}": float(count) for name, count in sorted(counting.counts.items())}


def device_kernels(workload: Any) -> dict[str, float]:
    """How often each device kernel ran in one step, by `kernel:NAME`, from a profiler trace that times nothing."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        workload.step()
        workload.synchronize()
    return {f"kernel:{event.key}": float(event.count) for event in profiled.key_averages()}
