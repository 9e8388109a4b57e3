"""What torch ran: dispatched operators and device kernels. Imports torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from torch.utils._python_dispatch import TorchDispatchMode

T = TypeVar("T")


# The position of the first matrix among the arguments: the addend of addmm and baddbmm comes before it.
PRODUCTS = {
    "aten::mm": 0,
    "aten::bmm": 0,
    "aten::_scaled_mm": 0,
    "aten::_int_mm": 0,
    "aten::addmm": 1,
    "aten::baddbmm": 1,
}


class OperatorCounts(TorchDispatchMode):
    """Counts dispatched operators by `op:namespace::name`, overload left out, and matrix products by `gemm:DTYPE` of
    their first matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        self.counts[f"op:{name}"] += 1
        if name in PRODUCTS:
            self.counts[f"gemm:{str(args[PRODUCTS[name]].dtype).removeprefix('torch.')}"] += 1
        return func(*args, **(kwargs or {}))


def counted(act: Callable[[], T]) -> tuple[T, dict[str, float]]:
    """What `act()` returns, and what was dispatched meanwhile, by `op:namespace::name` and `gemm:DTYPE`."""
    with OperatorCounts() as counting:
        result = act()
    return result, {name: float(count) for name, count in sorted(counting.counts.items())}


def device_kernels(workload: Any) -> dict[str, float]:
    """How often each device kernel ran in one step, by `kernel:NAME`, from a profiler trace that times nothing."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        workload.step()
        workload.synchronize()
    return {f"kernel:{event.key}": float(event.count) for event in profiled.key_averages()}
