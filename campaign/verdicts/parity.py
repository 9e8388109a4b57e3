"""Treatment must compute control's training step within its declared class (DESIGN 2; the records are
`records.ParityClaim` and `records.ParityMeasure`, the formulas `campaign/parity.py`). Outside it: invalid, `parity`.

bitwise: losses, gradient norms and gradients of every probed step are equal to the bit.

rounding: two things. With quantization off (the exact arm) the step may differ from the reference by the order of the
sums alone: gradient distance at most `bound`, and each parameter's error, each step's loss and each step's gradient
norm at most 10 `bound` (a single parameter or a later step scatters more than the whole gradient: 16 times was seen).
As configured, the limits of `precision`, or those of the exact arm where they are wider: a control that is the
reference itself has distance 0, and no factor of 0 leaves room for rounding.

precision: as configured, with D control's distance to the reference,
  gradient distance             <= factor D,
  error of each parameter       <= factor 2 (control's own error at it + the noise that D gives it),
  difference of each step's loss <= factor (2 control's largest + 0.05 D),
  and of each step's norm       <= factor (2 control's largest + 1.5 D).
The slack is for what is random in an honest edit: which way four losses or one small gradient are rounded (calibrated
in docs/protocol.md, where honest edits stay at least 1.9 times below each of the last three limits).

In both, a gradient that is all zero in treatment and not in the reference is red, however small its part of the whole.
Equal to the bit is within every class; distances that could not be taken, and NaN, are red.

none: nothing is compared, and a warning says so. Only `campaign.measure` declares it, of steps that return nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from campaign.records import INVALID, ArmParity, Evidence, ParityClaim, ParityMeasure, Plan, Verdict
from campaign.records.plan import NOT_COMPARED, REFERENCED
from campaign.traits import ranks
from campaign.verdicts._case import Case

ORDER = 40
SUMS = ParityClaim("rounding")  # what the order of sums explains
CALLABLES = "campaign.callables."
WATCHED = "campaign.launch.Command"


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
    wrong = judged(case.evidence)
    if not wrong:
        return None
    return case.verdict(
        INVALID,
        "parity",
        f"treatment does not compute control's training step: {wrong}",
        _remedy(case.plan, case.evidence.probe.parity),
    )


def judged(evidence: Evidence) -> str:
    """What of the plan's claim the probe breaks, in words; empty where it holds. The evidence has a probe."""
    plan, probe = evidence.plan, evidence.probe
    found = probe.parity if probe else None
    if plan.hypothesis.null and found is not None and _silent(found):
        return ""
    # Control's, so that an edit does not set its own allowance.
    several = ranks(probe.arm("control").facts) if probe else 1
    return broken(plan.hypothesis.parity, found, steps=plan.rules > 1, ranks=several)


def broken(claim: ParityClaim, found: ParityMeasure | None, *, steps: bool = True, ranks: int = 1) -> str:
    """What of the claim does not hold, in words; empty when it holds. NaN distances break it. Without `steps` only
    whole gradients are compared, as in plans that recorded no more."""
    if claim.kind == NOT_COMPARED:
        return ""
    if found is None:
        return "parity was not measured"
    if found.bitwise:
        return ""
    if _silent(found):
        return f"claimed {claim.kind}, but the workload tells neither its loss nor its gradients"
    if claim.kind == "loss":
        return _losses(claim, found)
    if found.unlike:
        return f"claimed {claim.kind}, but {found.unlike[0]}"
    if claim.kind == "bitwise":
        return _bits(found, ranks)
    missing = f"claimed {claim.kind}, but distances are missing: {_why_missing(found)}"
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
    return next(_step_by_step(claim, found, missing), "") if steps else ""


def _silent(found: ParityMeasure) -> bool:
    return {"loss", "gradients"} <= set(found.untold)


def _losses(claim: ParityClaim, found: ParityMeasure) -> str:
    if not found.loss_apart:
        return f"claimed loss, but {found.unlike[0] if found.unlike else 'the workload does not tell its loss'}"
    return _first_beyond("the loss", found.loss_apart, claim.bound)


def _bits(found: ParityMeasure, ranks: int) -> str:
    """What is not equal to the bit, beyond what the order of the sums of several ranks explains."""
    if ranks > 1:
        steps = _first_beyond("the loss", found.loss_apart, SUMS.exact_limit)
        steps = steps or _first_beyond("the gradient norm", found.norm_apart, SUMS.exact_limit)
        distance = found.gradient_distance
        if steps:
            return f"claimed bitwise, and the order of the sums of {ranks} ranks does not explain that {steps}"
        if "gradients" in found.untold or (distance is not None and distance <= SUMS.bound):
            return ""
        apart = found.message if distance is None else f"its gradients are {distance:.3g} from control's"
        return f"claimed bitwise, and the order of the sums of {ranks} ranks does not explain that {apart}"
    losses = "" if found.loss_difference is None else f"losses differ by up to {found.loss_difference:.3g} or "
    return f"claimed bitwise, but {losses}gradients differ in a bit"


def _first_beyond(what: str, apart: tuple[float, ...], limit: float) -> str:
    wrong = [step for step, value in enumerate(apart) if not value <= limit]
    if not wrong:
        return ""
    said = f"{what} of step {wrong[0] + 1} of {len(apart)} differs by {apart[wrong[0]]:.3g} of control's"
    return f"{said}, the limit is {limit:.3g}"


def _why_missing(found: ParityMeasure) -> str:
    if "gradients" in found.untold:
        return "the workload does not tell its gradients"
    return found.message or "the reference did not run"


def _remedy(plan: Plan, found: ParityMeasure | None) -> str:
    """What helps: to tell more, to repeat oneself, or to mend the edit or the claim."""
    name, target = plan.hypothesis.name, plan.control.target
    kind = plan.hypothesis.parity.kind
    if found is not None and not found.loss_apart and (kind == "loss" or _silent(found)):
        if target == WATCHED:
            return "name the loss in workload.steps (a pattern with (?P<loss>...), or loss: KEY)"
        if target.startswith(CALLABLES):
            return "return the loss from both steps"
        return "campaign.record(loss=loss) in the loop, or `loss` in what the workload's last_step() returns"
    if plan.hypothesis.null:
        return "let the step repeat itself (seeds, shuffling, dropout), or claim less: hypothesis.parity.kind=loss"
    if kind in REFERENCED and found is not None and {"loss", "gradients"} & set(found.untold):
        return f"claim what can be checked: parity.kind=loss in conf/hypothesis/{name}.yaml"
    if kind == "loss":
        return f"mend the edit, or declare a wider parity.bound in conf/hypothesis/{name}.yaml"
    return f"mend the edit, or declare a wider class (parity.kind) in conf/hypothesis/{name}.yaml"


def _step_by_step(claim: ParityClaim, found: ParityMeasure, missing: str) -> Iterator[str]:
    """What breaks the limits of losses, norms and single parameters."""
    control, treatment, exact, distance = found.control, found.treatment, found.exact, found.control_distance
    if control is None or treatment is None or distance is None or (claim.kind == "rounding" and exact is None):
        yield missing
        return
    if not treatment.losses:
        yield f"claimed {claim.kind}, but the workload does not tell its loss: steps after the first are unknown"
        return
    if claim.kind == "rounding" and exact is not None:
        yield from _beyond(exact, "with quantization off", claim.exact_limit, claim.exact_limit, claim.exact_limit)
    worst = treatment.worst
    yield from _beyond(
        treatment,
        "as configured",
        claim.parameter_limit(worst.control_error + worst.noise) if worst else 0.0,
        claim.loss_limit(max(control.losses, default=0.0), distance),
        claim.norm_limit(max(control.gradient_norms, default=0.0), distance),
    )


def _beyond(arm: ArmParity, where: str, error: float, loss: float, norm: float) -> Iterator[str]:
    if arm.silent:
        more = f" and {len(arm.silent) - 1} more" if len(arm.silent) > 1 else ""
        yield f"{where} the gradient of {arm.silent[0]}{more} is all zero, and the reference's is not"
    worst = arm.worst
    if worst is not None and not worst.error <= error:
        yield (
            f"{where} the gradient of {worst.name} is {worst.error:.3g} from the reference's (cosine"
            f" {worst.cosine:.4f}), the limit is {error:.3g} (control's {worst.control_error:.3g})"
        )
    for what, values, limit in (("loss", arm.losses, loss), ("gradient norm", arm.gradient_norms, norm)):
        wrong = [step for step, value in enumerate(values, start=1) if not value <= limit]
        if wrong:
            step = wrong[0]
            yield (
                f"{where} the {what} of step {step} of {len(values)} differs by {values[step - 1]:.3g} of the"
                f" reference's, the limit is {limit:.3g}"
            )
