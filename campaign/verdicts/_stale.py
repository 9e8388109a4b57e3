"""A decision that came too late: the stack moved between its plan and its line in the ledger.

What was measured is about a control that is no longer head, as a merge queue's build is about a branch that has moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from campaign.records import ACCEPT, INCONCLUSIVE, INVALID, REJECT, Plan, Verdict

STALE = "stale"


def stale(verdict: Verdict, plan: Plan, stack: Sequence[str]) -> Verdict:
    """The verdict on `plan` once head is root with the edits named in `stack`. A null, and what never compared the
    arms, stand as they are."""
    if plan.hypothesis.null or verdict.verdict not in (ACCEPT, REJECT, INCONCLUSIVE):
        return verdict
    return replace(
        verdict,
        verdict=INVALID,
        reason=STALE,
        sentence=f"measured on {'+'.join(('root', *plan.stack))}, and head became {'+'.join(('root', *stack))} before"
        f" the decision; it would have been {verdict.verdict} ({verdict.reason}): {verdict.sentence}",
        remedy=f"measure it on the present stack: {plan.command}",
    )
