"""After the last look, what is neither accepted nor rejected is inconclusive, `unresolved`, with the rounds that it
would take if estimate and scatter stay as they are (DESIGN 5). The repeat is another
attempt: its alpha is half of this one's."""

from __future__ import annotations

import math

from campaign import units
from campaign.effects import rounds_needed
from campaign.records import INCONCLUSIVE, Verdict
from campaign.verdicts._case import Case

ORDER = 160


def rule(case: Case) -> Verdict | None:
    if not case.is_last_look:
        return None
    found, last = case.screen.effect, case.screen
    needed = rounds_needed(math.log(found.ratio), found.sd_log, case.d, last.alpha / 2, last.beta)
    repeat = f"attempt {case.plan.attempt + 1}, with half the alpha"
    if needed is None:
        remedy = (
            f"no number of rounds up to 1,000 would decide it at a scatter of {found.sd_log:.1%}: a quieter machine may"
        )
    else:
        looks = ",".join(str(look) for look in (*case.protocol.looks[:-1], max(needed, case.wanted + 1)))
        remedy = (
            f"about {needed} rounds would decide it if estimate and scatter stay ({repeat}):"
            f" {case.plan.command} 'protocol.looks=[{looks}]'"
        )
    return case.verdict(
        INCONCLUSIVE,
        "unresolved",
        f"{units.ratio(found.ratio)} {units.interval(found.low, found.high)} over {found.rounds} rounds: the lower"
        f" bound {found.decision_low:.3f} against 1 and the upper bound {found.decision_high:.3f} against"
        f" 1 + d = {1 + case.d:.3f} leave it open",
        remedy,
        published=case.screen,
    )
