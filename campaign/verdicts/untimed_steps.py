"""The steps before a block, which no effect sees, cost what the timed ones do: an edit must not put its work into them.
Otherwise invalid, `untimed_steps`.

Per pair the log of (seconds a step before the block / seconds a step inside it), treatment's less control's; per round
its median; over at least three valid rounds a Student-t interval. Invalid where the one-sided lower bound at
`gate_alpha` is above 0 and the mean above 10 %. Cold caches make these steps dearer in both arms, by 5 to 7 % of this
repository's CPU workload, and not by exactly the same.
"""

from __future__ import annotations

import math
import statistics

from campaign.effects import interval
from campaign.records import INVALID, Block, Round, Verdict
from campaign.verdicts._case import Case
from campaign.verdicts._timed import blocks_of

ORDER = 55
LEAST_ROUNDS = 3
LIMIT = 0.10
TICK_SECONDS = 1e-9  # a step that waits without computing may take no CPU time at all


def rule(case: Case) -> Verdict | None:
    rounds = [one for one in case.sorted.valid() if all(block.lead_steps for block in one.blocks)]
    if len(rounds) < LEAST_ROUNDS:
        return None
    dearer = [_dearer(one, case.protocol.clock) for one in rounds]
    found = interval(dearer, case.protocol.gate_alpha, case.protocol.gate_alpha)
    if not (found.decision_low > 0 and found.mean > math.log1p(LIMIT)):
        return None
    return case.verdict(
        INVALID,
        "untimed_steps",
        f"treatment's steps before its blocks, which are not in the effect, cost {math.expm1(found.mean):.1%} more"
        f" beside its timed ones than control's do, over {len(rounds)} rounds; the limit is {LIMIT:.0%}",
        "let every step do its own work, whoever looks at the clock",
    )


def _dearer(one: Round, clock: str) -> float:
    pairs = zip(blocks_of(one, "control"), blocks_of(one, "treatment"), strict=True)
    return statistics.median(_before(treatment, clock) - _before(control, clock) for control, treatment in pairs)


def _before(block: Block, clock: str) -> float:
    lead = getattr(block, f"lead_{clock}_seconds") / block.lead_steps
    return math.log(max(lead, TICK_SECONDS) * block.steps / getattr(block, f"{clock}_seconds"))
