"""The untimed look at an arm: what it computes and what ran to compute it. Runs in the trial's process."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy

GRADIENT_SAMPLE = 65_536


def probe_workload(
    workload: Any, steps: int, gradients_file: Path, captured: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """Run `steps` untimed steps and say what they were: the fields of `records.ArmProbe`.

    The first step's gradients go to `gradients_file` (npz; at most `GRADIENT_SAMPLE` evenly spaced elements of each
    parameter, float64) and into one digest over every element. Operators are counted in the first step, device
    kernels (CUDA) in one step more; a workload that never imported torch has neither. `captured` holds the operators
    that ran while the workload was built, which a replayed graph never dispatches again; they are added.
    """
    counters = _counted_step(workload)
    for name, count in (captured or {}).items():
        counters[name] = counters.get(name, 0.0) + count
    workload.synchronize()
    digest = _save_gradients(workload.gradients(), gradients_file)
    losses, norms = [], []
    for number in range(steps):
        if number:
            workload.step()
        last = workload.last_step()
        losses.append(float(last["loss"]))
        norms.append(float(last["gradient_norm"]))
    if workload.device.startswith("cuda"):
        from campaign.probe.operators import device_kernels

        counters |= device_kernels(workload)
    return {
        "losses": losses,
        "gradient_norms": norms,
        "gradients_sha256": digest,
        "counters": counters,
        "facts": {**workload.facts(), "low_precision": workload.low_precision},
    }


def _counted_step(workload: Any) -> dict[str, float]:
    if "torch" not in sys.modules:
        workload.step()
        return {}
    from campaign.probe.operators import counted

    return counted(workload.step)[1]


def _save_gradients(gradients: dict[str, Any], path: Path) -> str:
    digest = hashlib.sha256()
    samples: dict[str, Any] = {}
    for name in sorted(gradients):
        flat = _array(gradients[name]).reshape(-1)
        digest.update(name.encode())
        digest.update(flat.tobytes())
        stride = max(1, -(-flat.size // GRADIENT_SAMPLE))
        samples[name] = flat[::stride].astype(numpy.float64)
    with path.open("wb") as file:
        numpy.savez(file, **samples)
    return digest.hexdigest()


def _array(gradient: Any) -> numpy.ndarray:
    """A torch tensor or anything numpy reads, as contiguous float32 on the host."""
    if hasattr(gradient, "detach"):
        gradient = gradient.detach().float().cpu().numpy()
    return numpy.ascontiguousarray(gradient, dtype=numpy.float32)
