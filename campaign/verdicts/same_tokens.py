"""Both arms train on equally many tokens a step: parity compares the same step on the same data, so an arm that says
another number counts tokens that it has not trained on, and time a token would be a number about nothing. Invalid,
`tokens`."""

from __future__ import annotations

from campaign.records import INVALID, Round, Verdict
from campaign.verdicts._case import Case
from campaign.verdicts._timed import first_wrong

ORDER = 51


def rule(case: Case) -> Verdict | None:
    wrong = first_wrong(case, _of_round)
    if not wrong:
        return None
    return case.verdict(
        INVALID,
        "tokens",
        f"{wrong}, and parity compares steps on the same data",
        "correct tokens_per_step, or make the batch size part of the workload and not of an edit",
    )


def _of_round(one: Round) -> str:
    counts = {trial.arm: {b.tokens / b.steps for b in one.blocks if b.arm == trial.arm} for trial in one.trials}
    if counts["control"] == counts["treatment"]:
        return ""
    said = {arm: " or ".join(f"{value:g}" for value in sorted(found)) for arm, found in counts.items()}
    return f"treatment says {said['treatment']} tokens a step, control {said['control']}"
