"""Both arms train on equally many tokens a step: parity compares the same step on the same data, so an arm that says
another number counts tokens that it has not trained on, and time a token would be a number about nothing. Invalid,
`tokens`.

Where steps differ in their tokens (batches of different lengths), block is compared with block of the same pair, of
arms that have taken equally many steps; of others (whole processes alternated) nothing can be said.
"""

from __future__ import annotations

from campaign.records import INVALID, Round, Verdict
from campaign.verdicts._case import Case
from campaign.verdicts._timed import blocks_of, first_wrong, steps_taken

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
    sides = {arm: blocks_of(one, arm) for arm in ("control", "treatment")}
    counts = {arm: {block.tokens / block.steps for block in blocks} for arm, blocks in sides.items()}
    if all(len(found) == 1 for found in counts.values()):
        if counts["control"] == counts["treatment"]:
            return ""
        said = {arm: f"{found.pop():g}" for arm, found in counts.items()}
        return f"treatment says {said['treatment']} tokens a step, control {said['control']}"
    if steps_taken(one, "control") != steps_taken(one, "treatment"):
        return ""
    pairs = zip(sides["control"], sides["treatment"], strict=True)
    apart = [(a, b) for a, b in pairs if a.steps == b.steps and a.tokens != b.tokens]
    if not apart:
        return ""
    control, treatment = apart[0]
    return (
        f"treatment says {treatment.tokens / treatment.steps:g} tokens a step in pair {control.pair + 1}, control"
        f" {control.tokens / control.steps:g}"
    )
