"""What a plan will do, said before its first round."""

from __future__ import annotations

from campaign import units
from campaign.records import Plan
from campaign.records.plan import SLOWER


def subject(plan: Plan) -> str:
    """'fusion on root+a: reference_cpu, cpu, predicted 1.040x, needs compiler'."""
    claim = plan.hypothesis
    on = f"on {'+'.join(('root', *plan.stack))}"
    predicted = f", predicted {units.ratio(claim.predicted_ratio)}"
    if claim.asks == SLOWER:
        on, predicted = f"of {plan.treatment.name} against {plan.control.name}", ""
    needs = f", needs {', '.join(claim.needs)}" if claim.needs else ""
    return f"{claim.name} {on}: {plan.workload}, {plan.device}{predicted}{needs}"


def rule(plan: Plan) -> str:
    """'plan fusion-1: looks after 4, 6 rounds, then 6 to confirm a gain; 40 pairs a round, wall clock, alpha 0.01,
    accept from 1.030x'."""
    protocol, factor = plan.protocol, 1 + plan.threshold
    confirm, goal = f", then {protocol.confirm_rounds} to confirm a gain", f"accept from {units.ratio(factor)}"
    if plan.hypothesis.asks == SLOWER:
        confirm, goal = "", f"slower below {units.ratio(1 / factor)}"
    elif plan.hypothesis.null or not protocol.decisive:
        confirm = ", which cannot accept"
    return (
        f"plan {plan.id}: looks after {', '.join(map(str, protocol.looks))} rounds{confirm}; {protocol.pairs} pairs a "
        f"round, {protocol.clock} clock, alpha {plan.alpha:g}, {goal}"
    )
