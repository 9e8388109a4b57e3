"""Where a run stands between its rounds: what a round came out at, what the last look saw, and how much is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from campaign import units
from campaign.records import Evidence, Plan, Round, Study

NOT_YET = "not yet decided"


@dataclass(frozen=True)
class Standing:
    """What may be said of a plan that is not decided. Between the declared looks nobody looks, so until the first one
    there is no ratio, and after it the ratio and interval (95 %) of that look, whatever rounds came since.

    `looked` is the rounds of the last look, 0 before the first; `next` those of the next one, 0 while a gain is
    being confirmed.
    """

    looked: int
    next: int
    ratio: float | None = None
    low: float | None = None
    high: float | None = None

    def text(self) -> str:
        if self.ratio is None or self.low is None or self.high is None:
            return f"{NOT_YET} (first look after {units.counted(self.next, 'round')})"
        seen = f"{units.ratio(self.ratio)} {units.interval(self.low, self.high)} at the look after {self.looked} rounds"
        return f"{NOT_YET}: {seen}" + (f", next after {self.next}" if self.next else ", being confirmed")


def standing(evidence: Evidence, faults: Mapping[str, Sequence[str]]) -> Standing:
    """Where a plan stands that goes on; `faults` are the codes of the gates that each round fails, by its id. A plan
    that can accept nothing is looked at once, at its end."""
    from campaign.effects import effect

    plan = evidence.plan
    protocol = plan.protocol
    looks = protocol.looks if protocol.decisive and not plan.hypothesis.null else protocol.looks[-1:]
    screened = [one for one in evidence.rounds if one.stage == "screen" and not faults[one.id]]
    looked = max((look for look in looks if look <= len(screened)), default=0)
    later = [look for look in looks if look > len(screened)]
    confirming = any(one.stage != "screen" for one in evidence.rounds)
    if not looked:
        return Standing(0, looks[0])
    seen = effect(screened[:looked], protocol.clock, plan.alpha, protocol.beta)
    return Standing(looked, later[0] if later and not confirming else 0, seen.ratio, seen.low, seen.high)


def rounds_left(evidence: Evidence, valid: Mapping[str, int]) -> int:
    """Rounds still needed if every look is taken and the gain is confirmed: a bound from above, not a forecast.
    A second confirmation counts once it has begun: few gains are suspect."""
    protocol = evidence.plan.protocol
    if valid["reconfirm"]:
        return max(0, protocol.confirm_rounds - valid["reconfirm"])
    screen = 0 if valid["confirm"] else max(0, protocol.looks[-1] - valid["screen"])
    confirms = protocol.decisive and not evidence.plan.hypothesis.null
    return screen + (max(0, protocol.confirm_rounds - valid["confirm"]) if confirms else 0)


def outcome(measured: Round, plan: Plan, faults: Sequence[str]) -> str:
    """'1.042x', the round's median paired ratio on the deciding clock, and which gates it failed."""
    from campaign.effects import ratio_of, round_logs

    if faults:
        return _not_counted(faults)
    log = round_logs([measured], plan.protocol.clock)["treatment"][0]
    return units.ratio(ratio_of(float(log)))


def study_outcome(measured: Round, study: Study, faults: Sequence[str]) -> str:
    """The same of a study's round: a ratio where it compares two arms, else only whether it counts."""
    from campaign.effects import ratio_of, round_logs

    if faults:
        return _not_counted(faults)
    others = [trial.arm for trial in measured.trials if trial.arm != study.base]
    if len(study.arms) != 2 or len(others) != 1:
        return f"counted, {len(measured.trials)} arms"
    return units.ratio(ratio_of(float(round_logs([measured], study.protocol.clock, study.base)[others[0]][0])))


def rounds_text(sizes: Sequence[int], rounds: int) -> str:
    """What `rounds` rounds of each group take; `sizes` are the arms of each: '6 rounds of 5 arms', '12 rounds: 6 of 8
    arms and 6 of 4'."""
    total = units.counted(rounds * len(sizes), "round")
    if len(set(sizes)) == 1:
        return f"{total} of {sizes[0]} arms"
    counts = sorted(Counter(sizes).items(), reverse=True)
    first, *rest = [f"{rounds * count} of {size}" for size, count in counts]
    return f"{total}: {' and '.join([f'{first} arms', *rest])}"


def _not_counted(faults: Sequence[str]) -> str:
    return f"not counted ({', '.join(faults)})"
