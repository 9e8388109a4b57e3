"""An edit that resolves to control's own configuration changes nothing: invalid, before anything is timed. Only a null
hypothesis compares an arm with itself."""

from __future__ import annotations

from campaign.records import INVALID, Verdict
from campaign.verdicts._case import Case

ORDER = 25


def rule(case: Case) -> Verdict | None:
    plan = case.plan
    if plan.hypothesis.null or plan.treatment.hash != plan.control.hash:
        return None
    what = ", ".join(plan.hypothesis.edit.words) or "nothing"
    held = f"; the stack holds {', '.join(plan.stack)}" if plan.stack else ""
    return case.verdict(
        INVALID,
        "no_change",
        f"treatment is control: the edit ({what}) sets what control already has{held}",
        f"correct edit in conf/hypothesis/{plan.hypothesis.name}.yaml, or see what is in the stack:"
        f" campaign stack --campaign {plan.campaign}",
    )
