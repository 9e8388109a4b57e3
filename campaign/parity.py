"""Whether two arms compute the same training step: distances between their gradients of step 1.

The distance of arm a to the reference r is the relative L2 norm ||g_a - g_r|| / ||g_r|| over the sampled elements of
all parameters together, in float64. Quantized arms are judged by their distance to a step with quantization off, not
by closeness to each other: an honest kernel that rounds differently moves the quantized gradients by per cents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy

from campaign.records import ArmProbe, ParityMeasure

SMALLEST_SIZE = 1e-300


def measure(probes: Mapping[str, ArmProbe], gradients: Mapping[str, Path]) -> ParityMeasure:
    """Compare the probed arms. Keys: control, treatment and, where they ran, reference (quantization off, reference
    kernels) and exact (treatment, quantization off). Arms that train different parameters have no distances, and
    `message` says which parameters differ."""
    control, treatment = probes["control"], probes["treatment"]
    loaded = {role: _load(path) for role, path in gradients.items()}
    reference = loaded.get("reference")
    odd = {name for left in loaded.values() for right in loaded.values() for name in left.keys() ^ right.keys()}
    if odd:
        reference = None

    def distance(role: str) -> float | None:
        return relative_distance(loaded[role], reference) if reference is not None and role in loaded else None

    return ParityMeasure(
        bitwise=control.gradients_sha256 == treatment.gradients_sha256
        and control.losses == treatment.losses
        and control.gradient_norms == treatment.gradient_norms,
        loss_difference=_largest_difference(control.losses, treatment.losses),
        control_distance=distance("control"),
        treatment_distance=distance("treatment"),
        exact_distance=distance("exact"),
        message=f"the arms train different parameters: {', '.join(sorted(odd)[:3])}" if odd else "",
    )


def relative_distance(left: Mapping[str, numpy.ndarray], right: Mapping[str, numpy.ndarray]) -> float:
    """||left - right|| / ||right|| over all parameters, which both sides name alike."""
    apart = sum(float(numpy.square(left[name] - right[name]).sum()) for name in right)
    size = sum(float(numpy.square(right[name]).sum()) for name in right)
    return math.sqrt(apart / max(size, SMALLEST_SIZE))


def _load(path: Path) -> dict[str, numpy.ndarray]:
    with numpy.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def _largest_difference(left: tuple[float, ...], right: tuple[float, ...]) -> float:
    return max(abs(a - b) for a, b in zip(left, right, strict=True))
