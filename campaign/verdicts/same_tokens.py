"""Both arms train on equally many tokens a step: parity compares the same step on the same data, so an arm that says
another number counts tokens that it has not trained on, and time a token would be a number about nothing. Invalid,
`tokens`."""

from __future__ import annotations

from campaign.records import INVALID, Verdict
from campaign.verdicts._case import Case

ORDER = 51


def rule(case: Case) -> Verdict | None:
    if case.plan.rules < 2:
        return None
    for one in case.sorted.valid():
        counts = {trial.arm: {b.tokens / b.steps for b in one.blocks if b.arm == trial.arm} for trial in one.trials}
        if counts["control"] != counts["treatment"]:
            said = {arm: " or ".join(f"{value:g}" for value in sorted(found)) for arm, found in counts.items()}
            return case.verdict(
                INVALID,
                "tokens",
                f"round {one.id}: treatment says {said['treatment']} tokens a step, control {said['control']}, and"
                " parity compares steps on the same data",
                "correct tokens_per_step, or make the batch size part of the workload and not of an edit",
            )
    return None
