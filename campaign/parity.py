"""Whether two arms compute the same training step: how far each is from a reference step, over several steps.

The distance of arm a to the reference r is the relative L2 norm ||g_a - g_r|| / ||g_r|| over the sampled elements of
all parameters together at step 1, in float64. Quantized arms are judged by their distance to a step with quantization
off, not by closeness to each other: an honest kernel that rounds differently moves the quantized gradients by per
cents.

Of a single parameter p with n_p of N elements the error is e_p = ||g_a - g_r|| / ||g_r|| over p alone. It is a random
number when it comes from rounding, and the more so the fewer elements p has and the smaller its gradient is: noise
that lies evenly over all N elements and sums up to control's distance D would give p the error
D sqrt(n_p / N) / share_p with share_p = ||g_r of p|| / ||g_r||. `ParameterError.noise` is that, times 1 + 6 / sqrt(n_p)
for the scatter of a norm over few elements (a chi variable of n_p degrees scatters by about 1 / sqrt(2 n_p) of itself;
rounding errors have heavier tails).

Losses and gradient norms are compared step by step with the reference's, which trains on the same data from the same
start, as |a - r| / |r|.

A workload without a reference is compared with control: its losses and norms step by step, |t - c| / |c|, and its
step-1 gradients as ||g_t - g_c|| / ||g_c||. What a workload does not tell is named, in `untold` where neither arm tells
it and in `unlike` where one does.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path

import numpy

from campaign.records import ArmParity, ArmProbe, ParameterError, ParityClaim, ParityMeasure

SMALLEST_SIZE = 1e-300
FEW_ELEMENTS = 6.0
NOTHING = ("", hashlib.sha256().hexdigest())  # digests of the gradients of a workload that tells none

Gradients = Mapping[str, numpy.ndarray]


def measure(probes: Mapping[str, ArmProbe], gradients: Mapping[str, Path], claim: ParityClaim) -> ParityMeasure:
    """Compare the probed arms; `claim` says which parameter is the worst. Keys: control, treatment and, where they ran,
    reference (quantization off, reference kernels) and exact (treatment, quantization off). Arms that train different
    parameters have no distances, and `message` says which parameters differ."""
    control, treatment = probes["control"], probes["treatment"]
    loaded = {role: _load(path) for role, path in gradients.items()}
    told = {role: found for role, found in loaded.items() if found}
    odd = {name for left in told.values() for right in told.values() for name in _odd(left, right)}
    reference = None if odd or not {"control", "treatment"} <= told.keys() else told.get("reference")
    untold, unlike = _untold(control, treatment, told)

    def distance(role: str) -> float | None:
        return relative_distance(told[role], reference) if reference is not None and role in told else None

    def against(role: str) -> ArmParity | None:
        if reference is None or role not in told or not {role, "reference"} <= probes.keys():
            return None
        found, base = probes[role], probes["reference"]
        errors = parameter_errors(told[role], told["control"], reference)

        def beyond(one: ParameterError) -> float:
            limit = claim.exact_limit if role == "exact" else claim.parameter_limit(one.control_error + one.noise)
            return one.error / max(limit, SMALLEST_SIZE)

        return ArmParity(
            losses=_relative(found.losses, base.losses),
            gradient_norms=_relative(found.gradient_norms, base.gradient_norms),
            worst=max(errors, key=beyond, default=None),
            silent=tuple(name for name in sorted(reference) if reference[name].any() and not told[role][name].any()),
        )

    comparable = not odd and {"control", "treatment"} <= told.keys()
    return ParityMeasure(
        bitwise=control.gradients_sha256 == treatment.gradients_sha256
        and control.later_gradients_sha256 == treatment.later_gradients_sha256
        and control.losses == treatment.losses
        and control.gradient_norms == treatment.gradient_norms
        and not {"loss", "gradients"} <= set(untold),
        loss_difference=_largest_difference(control.losses, treatment.losses),
        control_distance=distance("control"),
        treatment_distance=distance("treatment"),
        exact_distance=distance("exact"),
        message=f"the arms train different parameters: {', '.join(sorted(odd)[:3])}" if odd else "",
        control=against("control"),
        treatment=against("treatment"),
        exact=against("exact"),
        loss_apart=_relative(treatment.losses, control.losses),
        norm_apart=_relative(treatment.gradient_norms, control.gradient_norms),
        gradient_distance=relative_distance(told["treatment"], told["control"]) if comparable else None,
        untold=untold,
        unlike=unlike,
    )


def _odd(left: Gradients, right: Gradients) -> set[str]:
    """Parameters that only one of the two has, or that differ in size."""
    return {
        *(left.keys() ^ right.keys()),
        *(name for name in left.keys() & right if left[name].size != right[name].size),
    }


def _untold(
    control: ArmProbe, treatment: ArmProbe, gradients: Mapping[str, Gradients]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(what neither arm tells, sentences about what the arms do not tell alike)."""
    untold, unlike = [], []
    arms = (control, treatment)
    for what, counts in (
        ("loss", [len(arm.losses) for arm in arms]),
        ("gradient norm", [len(arm.gradient_norms) for arm in arms]),
    ):
        if not any(counts):
            untold.append(what)
        elif counts[0] != counts[1]:
            unlike.append(f"treatment tells the {what} of {counts[1]} probed steps, control of {counts[0]}")
    tells = [bool(gradients.get(arm.arm)) or arm.gradients_sha256 not in NOTHING for arm in arms]
    if not any(tells):
        untold.append("gradients")
    elif not all(tells):
        unlike.append(f"{arms[tells.index(True)].arm} tells its gradients, {arms[tells.index(False)].arm} does not")
    return tuple(untold), tuple(unlike)


def relative_distance(left: Gradients, right: Gradients) -> float:
    """||left - right|| / ||right|| over all parameters, which both sides name alike."""
    apart = sum(float(numpy.square(left[name] - right[name]).sum()) for name in right)
    size = sum(float(numpy.square(right[name]).sum()) for name in right)
    return math.sqrt(apart / max(size, SMALLEST_SIZE))


def parameter_errors(found: Gradients, control: Gradients, reference: Gradients) -> list[ParameterError]:
    """The error of each parameter whose reference gradient is not zero (see the module's docstring)."""
    total = math.sqrt(sum(float(numpy.square(gradient).sum()) for gradient in reference.values()))
    elements = sum(gradient.size for gradient in reference.values())
    distance = relative_distance(control, reference)
    errors = []
    for name, gradient in reference.items():
        size = float(numpy.linalg.norm(gradient))
        if not size:
            continue
        length = float(numpy.linalg.norm(found[name]))
        spread = distance * math.sqrt(gradient.size / elements) * (1 + FEW_ELEMENTS / math.sqrt(gradient.size))
        errors.append(
            ParameterError(
                name=name,
                error=float(numpy.linalg.norm(found[name] - gradient)) / size,
                cosine=float((found[name] * gradient).sum()) / size / length if length else 0.0,
                share=size / total,
                control_error=float(numpy.linalg.norm(control[name] - gradient)) / size,
                noise=spread * total / size,
            )
        )
    return errors


def _load(path: Path) -> dict[str, numpy.ndarray]:
    with numpy.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def _relative(found: tuple[float, ...], reference: tuple[float, ...]) -> tuple[float, ...]:
    """Shape [steps]; empty where the two did not tell equally many steps."""
    if len(found) != len(reference):
        return ()
    return tuple(abs(a - b) / max(abs(b), SMALLEST_SIZE) for a, b in zip(found, reference, strict=True))


def _largest_difference(left: tuple[float, ...], right: tuple[float, ...]) -> float | None:
    if not left or len(left) != len(right):
        return None
    return max(abs(a - b) for a, b in zip(left, right, strict=True))
