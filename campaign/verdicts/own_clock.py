"""A trial's clock must tell the time that its parent sees pass: a block's whole turn, from the command to the answer,
is measured by the parent's clock as well. What lies outside the block's own time is the hand-over, which is the same
for both arms. Where treatment's is longer, time was left out, by a clock that runs slow or by waiting before it starts:
invalid, `own_clock`.

In each valid round of at least 8 blocks an arm, the median time outside treatment's blocks may exceed that outside
control's by 1 ms and 2 % of treatment's median block. Beyond that it is told when the ranks of the two samples differ
too (Mann and Whitney, one-sided, p below 0.0001): on a busy machine every hand-over waits for a core, in both arms
alike (medians of 0.6 to 8.8 ms were measured, up to 3.2 ms apart in a round).

A command that is only watched has no turns: its block begins where the one before ended, whenever it is asked for, and
its own time is the parent's, which stamps each step as it is told. It is not looked at.
"""

from __future__ import annotations

import statistics

from scipy.stats import mannwhitneyu

from campaign import units
from campaign.records import INVALID, Round, Verdict
from campaign.traits import watched
from campaign.verdicts._case import Case
from campaign.verdicts._timed import blocks_of, first_wrong

ORDER = 53
LEAST_BLOCKS = 8
UNEQUAL_SECONDS, UNEQUAL_SHARE = 1e-3, 0.02
ALPHA = 1e-4


def rule(case: Case) -> Verdict | None:
    said = first_wrong(case, _of_round)
    if not said:
        return None
    return case.verdict(
        INVALID,
        "own_clock",
        said,
        "let the workload leave the clocks alone, and wait for nothing outside `step`",
    )


def _of_round(one: Round) -> str:
    if any(map(watched, one.trials)):
        return ""
    outside = {arm: _outside(one, arm) for arm in ("control", "treatment")}
    if min(map(len, outside.values())) < LEAST_BLOCKS:
        return ""
    control, treatment = (statistics.median(outside[arm]) for arm in ("control", "treatment"))
    block = statistics.median(found.wall_seconds for found in blocks_of(one, "treatment"))
    limit = control + UNEQUAL_SECONDS + UNEQUAL_SHARE * block
    if treatment <= limit:
        return ""
    if not mannwhitneyu(outside["treatment"], outside["control"], alternative="greater").pvalue < ALPHA:
        return ""
    return (
        f"the median turn of treatment took {units.seconds(treatment)} longer than its own clock says of its block"
        f" ({units.seconds(block)}), that of control {units.seconds(control)}; the limit is {units.seconds(limit)}"
    )


def _outside(one: Round, arm: str) -> list[float]:
    return [
        block.turn_seconds - block.wall_seconds - block.lead_wall_seconds
        for block in blocks_of(one, arm)
        if block.turn_seconds is not None
    ]
