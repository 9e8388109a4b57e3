"""What the rules look at: the evidence sorted into valid and invalid rounds, as it stood at one look."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from campaign.effects import effect, memory_change, readable
from campaign.interactions import four_arms
from campaign.records import Combined, Effect, Evidence, Floor, MemoryChange, Plan, Protocol, Round, Verdict
from campaign.stability import Fault, most_invalid, round_faults
from campaign.verdicts._warnings import warnings

ACCEPTS, REJECTS, SLOWER, UNDECIDED = "accepts", "rejects", "slower", "undecided"


@dataclass(frozen=True)
class Sorted:
    """The evidence's rounds with their faults, in the order in which they were recorded."""

    rounds: tuple[tuple[Round, tuple[Fault, ...]], ...]

    @classmethod
    def of(cls, evidence: Evidence) -> Sorted:
        return cls(tuple((one, round_faults(one, evidence.plan)) for one in evidence.rounds))

    def valid(self, stage: str | None = None) -> list[Round]:
        return [one for one, faults in self.rounds if not faults and stage in (None, one.stage)]

    def invalid(self, stage: str | None = None) -> list[tuple[Round, tuple[Fault, ...]]]:
        return [(one, faults) for one, faults in self.rounds if faults and stage in (None, one.stage)]

    def invalid_before(self, stage: str, count: int) -> int:
        """The invalid rounds recorded before the `count`-th valid one of `stage`."""
        seen = bad = 0
        for one, faults in self.rounds:
            if one.stage != stage or seen == count:
                continue
            seen, bad = (seen, bad + 1) if faults else (seen + 1, bad)
        return bad


@dataclass(frozen=True)
class Judged:
    """One set of rounds with its levels and what they say on the deciding clock and beside it."""

    plan: Plan
    rounds: tuple[Round, ...]
    alpha: float
    beta: float

    @cached_property
    def effect(self) -> Effect:
        return effect(self.rounds, self.plan.protocol.clock, self.alpha, self.beta)

    @cached_property
    def beside(self) -> Effect | None:
        """Wall where CPU time decides; event time (on a device) or CPU time where wall decides."""
        clock = self.beside_clock
        return effect(self.rounds, clock, self.alpha, self.beta) if readable(self.rounds, clock) else None

    @property
    def beside_clock(self) -> str:
        if self.plan.protocol.clock != "wall":
            return "wall"
        return "cpu" if self.plan.device == "cpu" else "device"

    @cached_property
    def memory(self) -> MemoryChange | None:
        return memory_change(self.rounds, self.plan.protocol, self.alpha, least_bytes=self.plan.memory_floor_bytes)


@dataclass(frozen=True)
class Case:
    """Evidence at one look (0-based index into the protocol's looks). Rules read it and build verdicts with it.

    Its rounds hold control and treatment alone; `whole` has them by id with every arm that was timed.
    """

    evidence: Evidence
    look: int
    sorted: Sorted
    whole: Mapping[str, Round] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        return self.evidence.plan

    @property
    def protocol(self) -> Protocol:
        return self.plan.protocol

    @staticmethod
    def looks(plan: Plan) -> range:
        """The looks at which a verdict may fall: all, or only the last where nothing can be decided."""
        last = len(plan.protocol.looks) - 1
        return range(last + 1) if _can_decide(plan) else range(last, last + 1)

    @property
    def can_decide(self) -> bool:
        """Whether an accept or a reject is possible: a decisive protocol, and no null hypothesis."""
        return _can_decide(self.plan)

    @property
    def d(self) -> float:
        """The smallest effect worth having and resolvable here, as a fraction."""
        return self.plan.threshold

    @property
    def wanted(self) -> int:
        """The valid screening rounds that this look takes; never fewer than an interval needs."""
        return max(2, self.protocol.looks[self.look])

    @property
    def confirm_rounds(self) -> int:
        return max(2, self.protocol.confirm_rounds)

    @property
    def is_last_look(self) -> bool:
        return self.look == len(self.protocol.looks) - 1

    @cached_property
    def postponed(self) -> bool:
        """Whether this look may not decide and the next may: too many invalid rounds stand before it, or it is the
        first and whole processes alternated (DESIGN 5: with the later looks)."""
        mine = self.sorted.valid("screen")[: self.wanted]
        if self.look == 0 and not self.is_last_look and not all(one.together for one in mine):
            return True
        bad = self.sorted.invalid_before("screen", self.wanted)
        return not self.is_last_look and bad > most_invalid(self.wanted, self.protocol.invalid_share_limit)

    @cached_property
    def screened(self) -> bool:
        """Whether this look has its rounds."""
        return len(self.sorted.valid("screen")) >= self.wanted

    @cached_property
    def confirmed(self) -> bool:
        """Whether the confirmation has its rounds."""
        return len(self.sorted.valid("confirm")) >= self.confirm_rounds

    @cached_property
    def reconfirmed(self) -> bool:
        """Whether the second confirmation, which only a suspect gain takes, has its rounds."""
        return len(self.sorted.valid("reconfirm")) >= self.confirm_rounds

    @cached_property
    def screen(self) -> Judged:
        """The look's first `wanted` valid screening rounds; rounds beyond them belong to the next look."""
        alpha = self.plan.alpha * self.protocol.alpha_split[self.look]
        beta = self.protocol.beta * self.protocol.beta_split[self.look]
        return Judged(self.plan, tuple(self.sorted.valid("screen")[: self.wanted]), alpha, beta)

    @cached_property
    def confirm(self) -> Judged:
        """The first `confirm_rounds` valid confirmation rounds, at the confirmation's alpha."""
        return self._fresh("confirm")

    @cached_property
    def reconfirm(self) -> Judged:
        """The same of the second confirmation."""
        return self._fresh("reconfirm")

    def _fresh(self, stage: str) -> Judged:
        rounds = tuple(self.sorted.valid(stage)[: self.confirm_rounds])
        return Judged(self.plan, rounds, self.protocol.confirm_alpha, self.protocol.beta)

    def stages(self) -> tuple[Judged, ...]:
        """What can be judged now: the look, and each confirmation once it is whole."""
        found = [self.screen]
        found += [self.confirm] if self.confirmed else []
        found += [self.reconfirm] if self.reconfirmed else []
        return tuple(found)

    def standing(self, found: Effect) -> str:
        """What the two thresholds say of an effect: accept needs a lower bound above 1 and an estimate of at least
        1 + d, reject an upper bound below 1 + d; a slowdown is an upper bound below 1."""
        if found.decision_low > 1 and found.ratio >= 1 + self.d:
            return ACCEPTS
        if found.decision_high < 1:
            return SLOWER
        return REJECTS if found.decision_high < 1 + self.d else UNDECIDED

    def not_inferior(self, found: Effect) -> bool:
        """Whether the one-sided lower bound is above 1 / (1 + memory_noninferiority) (measurement 5.6)."""
        return math.log(found.decision_low) > -math.log1p(self.protocol.memory_noninferiority)

    def looks_taken(self) -> tuple[int, ...]:
        """The looks, up to this one, that had their rounds and could decide."""
        earlier = (replace(self, look=look) for look in self.looks(self.plan) if look <= self.look)
        return tuple(case.look for case in earlier if case.screened and not case.postponed)

    def verdict(
        self,
        verdict: str,
        reason: str,
        sentence: str,
        remedy: str = "",
        *,
        published: Judged | None = None,
        floor: Floor | None = None,
        suspect: str = "",
    ) -> Verdict:
        """A verdict with its counts, warnings and effects.

        `published` are the rounds whose effect is shown; the screening effect stands beside it when those are the
        confirmation's. Without them (an invalid result) every look that the rounds allowed counts as taken. A null
        and a quick look cannot accept and spend no alpha.
        """
        shown = published.effect if published else None
        together = self._combined(published)
        last = self.look if published else len(self.protocol.looks) - 1
        looks = replace(self, look=last).looks_taken()
        return Verdict(
            verdict=verdict,
            reason=reason,
            sentence=sentence,
            remedy=remedy,
            effect=shown,
            screening=self.screen.effect if published is not None and published is not self.screen else None,
            beside=published.beside if published else None,
            memory=published.memory if published else None,
            floor=floor,
            look=len(looks),
            alpha_spent=self.plan.alpha * sum(self.protocol.alpha_split[look] for look in looks)
            if self.can_decide
            else 0.0,
            valid_rounds=len(self.sorted.valid()),
            invalid_rounds=len(self.sorted.invalid()),
            warnings=(
                *warnings(self.plan, self.sorted.valid(), shown, self.evidence.probe),
                *four_arms.hints(together, self.d),
            ),
            suspect=suspect,
            combined=together,
        )

    def _combined(self, published: Judged | None) -> Combined | None:
        """The published rounds' edit alone and on the stack; None where they did not all hold root and solo."""
        rounds = [self.whole.get(one.id) for one in published.rounds] if published else []
        held = [one for one in rounds if one is not None]
        return four_arms.combined(held, self.plan) if len(held) == len(rounds) else None


def _can_decide(plan: Plan) -> bool:
    return plan.protocol.decisive and not plan.hypothesis.null
