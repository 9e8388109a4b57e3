"""A null hypothesis (A/A) is never accepted: after its last look it is inconclusive with reason `floor` and tells what
this machine resolves. When the two equal arms measure apart by more than d, with p below .01 two-sided, the harness
itself is biased here and the reason is `biased` (measurement 5.2, 5)."""

from __future__ import annotations

from campaign import effects, units
from campaign.effects import interval, ratio_of
from campaign.records import INCONCLUSIVE, Verdict
from campaign.verdicts._case import Case

ORDER = 80
BIAS_ALPHA = 0.01


def rule(case: Case) -> Verdict | None:
    if not case.plan.hypothesis.null:
        return None
    published, protocol = case.screen, case.protocol
    floor = effects.floor(published.rounds, protocol)
    logs = effects.round_logs(published.rounds, protocol.clock)["treatment"]
    found = interval(logs, BIAS_ALPHA / 2, BIAS_ALPHA / 2)
    ratio = published.effect.ratio
    shown = f"{units.ratio(ratio)} {units.interval(published.effect.low, published.effect.high)}"
    apart = found.decision_low > 0 or found.decision_high < 0
    if apart and max(ratio, 1 / ratio) > 1 + case.d:
        return case.verdict(
            INCONCLUSIVE,
            "biased",
            f"two equal arms measured {shown} over {found.rounds} rounds, beyond d = {case.d:.1%}"
            f" (99 %: {units.interval(ratio_of(found.decision_low), ratio_of(found.decision_high))}):"
            " no comparison on this machine can be trusted as it is",
            f"quieten the machine and measure again: {case.plan.command}",
            published=published,
            floor=floor,
        )
    resolved = effects.resolves(floor.between_rounds_sd, found.rounds)
    return case.verdict(
        INCONCLUSIVE,
        "floor",
        f"A/A on the {protocol.clock} clock: {shown}; rounds scatter by {floor.between_rounds_sd:.2%},"
        f" pairs within one by {floor.within_round_sd:.2%}; {found.rounds} rounds resolve {resolved:.1%}",
        "",
        published=published,
        floor=floor,
    )
