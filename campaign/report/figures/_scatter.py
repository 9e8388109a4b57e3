"""What the floor and the power are made of: the scatter of this machine's rounds, and the declared levels."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from campaign.records import Floor, Protocol
from campaign.report.figures._climb import measured, row_name
from campaign.report.reported import Reported, Reports

MOST = 30  # of the newest decisions, where there is no A/A floor


@dataclass(frozen=True)
class Scatter:
    """`sd` is that of a round's log ratio. `floor` is the A/A measurement that it is from, None where it is the middle
    one of the decisions' own. `alpha` and `threshold` (d, a fraction) are the newest decisive plan's, `protocol` too.
    """

    sd: float
    floor: Floor | None
    rows: tuple[str, ...]
    alpha: float
    threshold: float
    protocol: Protocol
    plan_row: str

    @property
    def last(self) -> int:
        """The rounds of the last declared look, at least the 2 that have a scatter."""
        return max(self.protocol.looks[-1], 2)


def scatter(reports: Reports) -> Scatter | None:
    """The newest A/A floor, else the median scatter of the newest decisions; None where no round has been compared."""
    plans = [row for row in reports.rows if row.plan.protocol.decisive and not row.null] or [
        row for row in reports.rows if row.plan.protocol.decisive
    ]
    plan_row = plans[-1] if plans else (reports.rows[-1] if reports.rows else None)
    if plan_row is None:
        return None
    plan = plan_row.plan
    declared = (plan.alpha, plan.threshold, plan.protocol, row_name(plan_row))
    nulls = [row for row in nulls_of(reports) if row.decision.verdict.floor]
    if nulls:
        floor = nulls[-1].decision.verdict.floor
        assert floor is not None
        return Scatter(floor.between_rounds_sd, floor, (row_name(nulls[-1]),), *declared)
    own = [
        (effect.sd_log, row_name(row))
        for row in reports.rows[-MOST:]
        if (effect := row.decision.verdict.effect) and measured(effect) and math.isfinite(effect.sd_log)
        and effect.sd_log > 0
    ]  # fmt: skip
    if not own:
        return None
    return Scatter(statistics.median(sd for sd, _ in own), None, tuple(row for _, row in own), *declared)


def nulls_of(reports: Reports) -> list[Reported]:
    """The A/A nulls with a ratio, oldest first."""
    return [row for row in reports.rows if row.null and measured(row.decision.verdict.effect)]
