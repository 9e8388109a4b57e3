"""What was timed still computes the training step when the clock stops: the losses and gradient norms of the timed
steps are compared with control's in the same round. Outside: invalid, `last_step`.

Each block's last step is compared with that of control's block of the same pair, which has trained as long on the same
data. bitwise: all of them, to the bit. Otherwise, over the later half of the round's pairs, the median of
|log(treatment / control)| may be 0.025 for the loss and 0.12 for the gradient norm after up to 100 steps, in proportion
more after up to 200, and twice that from there on. A median, because single steps of two honest trainings that differ
in rounding meet spikes at different heights (norms apart by a factor of 3.7 at one step were seen), while medians of 20
steps stayed below 0.014 and 0.055 in the first 100 steps and below 0.021 and 0.086 in the first 300 (docs/protocol.md).

One more step must also change every parameter in treatment that it changes in control, however little the loss says
of it.

Where the two have not taken equally many steps (whole processes alternated) nothing is compared, and a warning says so.
A block is compared by what both arms tell of it; a loss that only control tells is red, and so is a norm where the
claim is more than one about losses. A `loss` claim of a wider bound than 2.5 % is held to its own bound. Several ranks
may differ in the order of their sums: a bitwise claim is then held to the limits of the others.
"""

from __future__ import annotations

import math
import statistics

from campaign.records import INVALID, Block, ParityClaim, Round, Verdict
from campaign.records.plan import NOT_COMPARED
from campaign.traits import ranks
from campaign.verdicts._case import Case
from campaign.verdicts._timed import blocks_of, first_wrong, in_step, steps_taken

ORDER = 54
LIMITS = {"loss": 0.025, "gradient_norm": 0.12}  # of |log(treatment / control)| after up to `STEPS` steps
STEPS, MOST = 100, 2.0
WORDS = {"loss": "loss", "gradient_norm": "gradient norm"}


def rule(case: Case) -> Verdict | None:
    wrong = first_wrong(case, lambda one: different(one, case.plan.hypothesis.parity))
    if not wrong:
        return None
    return case.verdict(
        INVALID,
        "last_step",
        f"{wrong}; the probe saw no such difference: treatment does something else as it runs",
        "look for what the edit keeps from step to step, or does only at first",
    )


def different(one: Round, claim: ParityClaim) -> str:
    """How treatment's timed steps differ from control's beyond the claim, in words; empty when they do not."""
    frozen = sorted(set(one.trial("treatment").unmoved) - set(one.trial("control").unmoved))
    if frozen:
        more = f" and {len(frozen) - 1} more" if len(frozen) > 1 else ""
        return f"a step of treatment no longer changes {frozen[0]}{more}, and a step of control does"
    if claim.kind == NOT_COMPARED or not in_step(one):
        return ""
    control, treatment = blocks_of(one, "control"), blocks_of(one, "treatment")
    to_the_bit = claim.kind == "bitwise" and ranks(one.trial("control").facts) == 1
    steps = steps_taken(one, "treatment")
    for field, limit in LIMITS.items():
        pairs, hidden = _told(field, control, treatment)
        if hidden and (field == "loss" or claim.kind != "loss"):
            return (
                f"treatment does not tell the {WORDS[field]} of {hidden} of {len(control)} timed blocks, control does"
            )
        if to_the_bit:
            apart = [pair for pair in pairs if pair[0] != pair[1]]
            if apart:
                return (
                    f"claimed bitwise, but after {steps} steps the {WORDS[field]} of {len(apart)} of {len(pairs)} timed"
                    f" blocks differs (the last such: control {apart[-1][0]:.9g}, treatment {apart[-1][1]:.9g})"
                )
            continue
        limit *= min(MOST, max(1.0, steps / STEPS))
        if claim.kind == "loss" and field == "loss":
            limit = max(limit, math.log1p(claim.bound))
        found = statistics.median(_apart(*pair) for pair in pairs[len(pairs) // 2 :]) if pairs else 0.0
        if not found <= limit:
            return (
                f"after {steps} steps treatment's {WORDS[field]} differs from control's by {math.expm1(found):.1%} at"
                f" the median pair of the later half; the limit is {math.expm1(limit):.1%} (the last: control"
                f" {pairs[-1][0]:.6g}, treatment {pairs[-1][1]:.6g})"
            )
    return ""


def _told(field: str, control: list[Block], treatment: list[Block]) -> tuple[list[tuple[float, float]], int]:
    """(what both arms tell of each block, how many blocks only control tells it of)."""
    pairs = [(getattr(a, field), getattr(b, field)) for a, b in zip(control, treatment, strict=True)]
    hidden = sum(a is not None and b is None for a, b in pairs)
    return [(a, b) for a, b in pairs if a is not None and b is not None], hidden


def _apart(control: float, treatment: float) -> float:
    """|log(treatment / control)|; infinite where the signs differ or one of them alone is zero."""
    if control == treatment:
        return 0.0
    return abs(math.log(treatment / control)) if control * treatment > 0 else math.inf
