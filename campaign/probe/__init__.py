"""The untimed look at an arm: what it computes and what ran to compute it. Runs in the trial's process."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

from campaign.timing import told

GRADIENT_SAMPLE = 65_536
PARAMETER_SAMPLE = 1_024


def probe_workload(
    workload: Any,
    steps: int,
    gradients_file: Path,
    captured: Mapping[str, float] | None = None,
    graphs: Callable[[], int] | None = None,
) -> dict[str, Any]:
    """Run `steps` untimed steps and say what they were: the fields of `records.ArmProbe`.

    Losses, gradient norms and gradients come from steps that nothing watches, since a workload may run otherwise while
    a dispatch mode is active (kernels go through the dispatcher, torch.compile stands aside): what is compared is what
    will be timed. The first step's gradients go to `gradients_file` (npz; at most `GRADIENT_SAMPLE` evenly spaced
    elements of each parameter, float64) and into one digest over every element; those of the later steps go into
    another digest.

    A loss or a norm that the workload does not tell is left out. Operators are counted in one step after these, so
    that caches are seen as they are from step to step, and device kernels (CUDA) in one more; a workload that never
    imported torch has neither. `captured` holds the operators that ran while the workload was built, which a replayed
    graph never dispatches again; they are added. `graphs` tells how many graphs torch.compile has built.
    """
    losses, norms = [], []
    digest, later = "", hashlib.sha256()
    for _ in range(steps):
        workload.step()
        workload.synchronize()
        if digest:
            later.update(gradients_sha256(workload.gradients()).encode())
        else:
            digest = _save_gradients(workload.gradients(), gradients_file)
        last = told(workload)
        losses += [] if last["loss"] is None else [last["loss"]]
        norms += [] if last["gradient_norm"] is None else [last["gradient_norm"]]
    compiled = graphs() if graphs else 0
    counters = _counted_step(workload)
    for name, count in (captured or {}).items():
        counters[name] = counters.get(name, 0.0) + count
    if compiled:
        counters["compile:graphs"] = float(compiled)
    if workload.device.startswith("cuda"):
        from campaign.probe.operators import device_kernels

        counters |= device_kernels(workload)
    return {
        "losses": losses,
        "gradient_norms": norms,
        "gradients_sha256": digest,
        "later_gradients_sha256": later.hexdigest(),
        "counters": counters,
        "facts": {**workload.facts(), "low_precision": workload.low_precision},
    }


def _counted_step(workload: Any) -> dict[str, float]:
    if "torch" not in sys.modules:
        workload.step()
        return {}
    from campaign.probe.operators import counted

    return counted(workload.step)[1]


def restarted_step(workload: Any) -> dict[str, Any]:
    """Put the workload back to its start and repeat step 1: its loss, gradient norm and gradients' digest. The digest
    is empty and nothing runs where the workload has no `restart()`."""
    restart = getattr(workload, "restart", None)
    if restart is None:
        return {"loss": None, "gradient_norm": None, "gradients_sha256": ""}
    restart()
    workload.step()
    workload.synchronize()
    digest = gradients_sha256(workload.gradients())
    return {**told(workload), "gradients_sha256": digest}


def unmoved_parameters(workload: Any) -> list[str]:
    """Take one more untimed step; the names of the parameters of which it changed none of `PARAMETER_SAMPLE` evenly
    spaced elements. Empty where the workload has no `parameters()`."""
    if not hasattr(workload, "parameters"):
        return []
    before = {name: _sample(value) for name, value in workload.parameters().items()}
    workload.step()
    workload.synchronize()
    after = workload.parameters()
    return [name for name, sample in before.items() if name in after and (_sample(after[name]) == sample).all()]


def _sample(parameter: Any) -> numpy.ndarray:
    flat = parameter.reshape(-1)
    return _array(flat[:: _stride(parameter.shape, PARAMETER_SAMPLE)]).copy()


def _stride(shape: Sequence[int], most: int) -> int:
    """The distance of evenly spaced elements, at most about `most` of them. It shares no factor with a width, which
    would look at the same few columns of every row."""
    stride = max(1, -(-math.prod(shape) // most))
    while any(math.gcd(stride, width) > 1 for width in shape[1:]):
        stride += 1
    return stride


def gradients_sha256(gradients: Mapping[str, Any]) -> str:
    """One digest over the names and every element, as float32, of all gradients."""
    digest = hashlib.sha256()
    for name in sorted(gradients):
        digest.update(name.encode())
        digest.update(_array(gradients[name]).tobytes())
    return digest.hexdigest()


def _save_gradients(gradients: Mapping[str, Any], path: Path) -> str:
    samples: dict[str, Any] = {}
    for name in sorted(gradients):
        gradient = _array(gradients[name])
        stride = _stride(gradient.shape, GRADIENT_SAMPLE)
        samples[name] = gradient.reshape(-1)[::stride].astype(numpy.float64)
    with path.open("wb") as file:
        numpy.savez(file, **samples)
    return gradients_sha256(gradients)


def _array(gradient: Any) -> numpy.ndarray:
    """A torch tensor or anything numpy reads, as contiguous float32 on the host."""
    if hasattr(gradient, "detach"):
        gradient = gradient.detach().float().cpu().numpy()
    return numpy.ascontiguousarray(gradient, dtype=numpy.float32)
