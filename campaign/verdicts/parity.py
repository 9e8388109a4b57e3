"""Treatment must compute control's training step within its declared class, by distances between step-1 gradients
(DESIGN 2; formulas in `records.ParityClaim`): bitwise, rounding or precision. Outside it: invalid, `parity`.

Equal to the bit is within every class. Otherwise distances that could not be taken count as red. A control that is the
reference itself has distance 0, and no factor of 0 leaves room for rounding; the claim's `bound`, which the
unquantized distance may reach anyway, is then the limit.
"""

from __future__ import annotations

from campaign.records import INVALID, ParityClaim, ParityMeasure, Verdict
from campaign.verdicts._case import Case

ORDER = 40


def rule(case: Case) -> Verdict | None:
    if case.evidence.probe is None:
        if case.plan.hypothesis.null:
            return None
        return case.verdict(
            INVALID,
            "not_probed",
            "the arms were never probed: parity and engagement are unknown",
            f"run again from the start: {case.plan.command}",
        )
    wrong = broken(case.plan.hypothesis.parity, case.evidence.probe.parity)
    if not wrong:
        return None
    return case.verdict(
        INVALID,
        "parity",
        f"treatment does not compute control's training step: {wrong}",
        f"mend the edit, or declare a wider class (parity.kind) in conf/hypothesis/{case.plan.hypothesis.name}.yaml",
    )


def broken(claim: ParityClaim, found: ParityMeasure | None) -> str:
    """What of the claim does not hold, in words; empty when it holds. NaN distances break it."""
    if found is None:
        return "parity was not measured"
    if found.bitwise:
        return ""
    if claim.kind == "bitwise":
        return f"claimed bitwise, but losses differ by up to {found.loss_difference:.3g} or gradients differ in a bit"
    missing = f"claimed {claim.kind}, but distances are missing: {found.message or 'the reference did not run'}"
    if found.control_distance is None or found.treatment_distance is None:
        return missing
    limit = claim.factor * found.control_distance
    if claim.kind == "rounding":
        limit = max(limit, claim.bound)
        if found.exact_distance is None:
            return missing
        if not found.exact_distance <= claim.bound:
            return f"with quantization off its gradients are {found.exact_distance:.3g} from the reference's" + (
                f", the bound is {claim.bound:.3g}"
            )
    if not found.treatment_distance <= limit:
        return f"its gradients are {found.treatment_distance:.3g} from the reference's" + (
            f", the limit is {limit:.3g} (control's distance {found.control_distance:.3g}, factor {claim.factor:g})"
        )
    return ""
