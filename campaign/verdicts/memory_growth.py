"""Peak memory may grow by the hypothesis' declared limit and no more: an estimate beyond both it and what the memory
rule can tell from noise (`effects.memory_change`) is a reject, `memory_growth` (DESIGN 5, guardrails)."""

from __future__ import annotations

from campaign import units
from campaign.records import REJECT, Verdict
from campaign.verdicts._case import Case

ORDER = 110


def rule(case: Case) -> Verdict | None:
    wrong = grown(case)
    if not wrong or not case.can_decide:
        return None
    return case.verdict(
        REJECT,
        "memory_growth",
        wrong,
        f"raise memory_growth_limit in conf/hypothesis/{case.plan.hypothesis.name}.yaml if the job can spare it",
        published=case.screen,
    )


def grown(case: Case) -> str:
    """How far memory grew beyond the declared limit, in words; empty when it did not."""
    limit = case.plan.hypothesis.memory_growth_limit
    for change in (stage.memory for stage in case.stages()):
        if change is not None and change.grown and change.ratio - 1 > limit:
            return (
                f"peak memory went from {units.size(change.control_bytes)} to {units.size(change.treatment_bytes)}"
                f" ({units.percent(change.ratio - 1)}); the hypothesis allows {units.percent(limit)}"
            )
    return ""
