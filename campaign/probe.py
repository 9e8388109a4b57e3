"""The untimed look at an arm: what it computes and what ran to compute it. Runs in the trial's process."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import torch
from torch.utils._python_dispatch import TorchDispatchMode

GRADIENT_SAMPLE = 65_536


class OperatorCounts(TorchDispatchMode):
    """Counts dispatched operators by `namespace::name`, overload left out."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[func._schema.name] += 1
        return func(*args, **(kwargs or {}))


def probe_workload(workload: Any, steps: int, gradients_file: Path) -> dict[str, Any]:
    """Run `steps` untimed steps and say what they were: the fields of `records.ArmProbe`.

    The first step's gradients go to `gradients_file` (npz; at most `GRADIENT_SAMPLE` evenly spaced elements of each
    parameter, float64) and into one digest over every element. Operators are counted in the first step, device
    kernels (CUDA) in one step more.
    """
    losses, norms = [], []
    counted = OperatorCounts()
    with counted:
        workload.step()
    workload.synchronize()
    gradients = {name: gradient.detach() for name, gradient in workload.gradients().items()}
    digest = _save_gradients(gradients, gradients_file)
    for number in range(steps):
        if number:
            workload.step()
        last = workload.last_step()
        losses.append(float(last["loss"]))
        norms.append(float(last["gradient_norm"]))
    counters = {f"op:{name}": float(count) for name, count in sorted(counted.counts.items())}
    if workload.device.startswith("cuda"):
        counters |= _device_kernels(workload)
    return {
        "losses": losses,
        "gradient_norms": norms,
        "gradients_sha256": digest,
        "counters": counters,
        "facts": workload.facts(),
    }


def _save_gradients(gradients: dict[str, torch.Tensor], path: Path) -> str:
    digest = hashlib.sha256()
    samples = {}
    for name in sorted(gradients):
        flat = gradients[name].to("cpu", torch.float32).contiguous().view(-1)
        digest.update(name.encode())
        digest.update(flat.numpy().tobytes())
        stride = max(1, -(-flat.numel() // GRADIENT_SAMPLE))
        samples[name] = flat[::stride].double().numpy()
    with path.open("wb") as file:
        numpy.savez(file, **samples)
    return digest.hexdigest()


def _device_kernels(workload: Any) -> dict[str, float]:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        workload.step()
        workload.synchronize()
    return {f"kernel:{event.key}": float(event.count) for event in profiled.key_averages()}
