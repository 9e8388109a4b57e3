"""A decision measured again, beside what is recorded: two ratios with their intervals, and what differs around them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign import units
from campaign.interactions.departure import Interval, between
from campaign.interactions.words import CANNOT_TELL, FASTER, SAME, SLOWER, compared_word
from campaign.records import Decision, Effect, Found
from campaign.report.finding_text import finding_text, found_values
from campaign.report.json_text import as_line
from campaign.report.plain import plain

SCHEMA = 1
SHOWN = 6
NOTHING = "nothing to compare"
MEANT = {
    SAME: "the same within {within}",
    FASTER: "faster than was recorded by more than {within}",
    SLOWER: "slower than was recorded by more than {within}",
    CANNOT_TELL: "cannot tell: neither the same within {within}, nor another ratio by more than that",
}


@dataclass(frozen=True)
class Replayed:
    """`machine` and `packages` have what is other than then, by name: (then, now). `place` is the worktree that the
    arms were imported from, `threshold` the d of the recorded plan, as a fraction."""

    decision: Decision
    found: Found
    machine: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    packages: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    place: str = ""
    threshold: float = 0.0

    @property
    def word(self) -> str:
        """How the two ratios compare: `the same` where the 95 % interval of one over the other lies within d, `faster`
        or `slower` where it excludes 1 and the estimate is beyond d, else `cannot tell`."""
        before, again = self._both
        return compared_word(again, before, self.threshold) if before and again else NOTHING

    @property
    def apart(self) -> Interval | None:
        """The ratio measured again over the recorded one; None without both."""
        before, again = self._both
        return between(again, before) if before and again else None

    @property
    def _both(self) -> tuple[Effect | None, Effect | None]:
        pair = self.decision.verdict.effect, self.found.finding.effect
        before, again = (one if one and math.isfinite(one.low) and math.isfinite(one.high) else None for one in pair)
        return before, again


def replayed_json(said: Replayed) -> str:
    """One object: the decision's number and recorded ratio, the finding, how they compare, and what differs."""
    before = said.decision.verdict.effect
    return as_line(
        {
            "schema": SCHEMA,
            "decision": {
                "id": said.decision.id,
                "sequence": said.decision.sequence,
                "hypothesis": said.decision.hypothesis,
                "verdict": said.decision.verdict.verdict,
                "recorded": _ratio(before),
            },
            "again": _ratio(said.found.finding.effect),
            "compared": said.word,
            "again_over_recorded": _bounds(said.apart),
            "threshold": said.threshold,
            "machine": {key: list(pair) for key, pair in said.machine.items()},
            "packages": {key: list(pair) for key, pair in said.packages.items()},
            "notices": list(said.notices),
            "imported_from": said.place,
            "finding": found_values(said.found),
        }
    )


def replayed_text(said: Replayed, ledger_file: Path | str | None = None) -> str:
    """The finding's own block, then what was recorded, how they compare, and what differs."""
    decision, before = said.decision, said.decision.verdict.effect
    recorded = f"decision {decision.sequence}, {decision.verdict.verdict}, {decision.decided_at[:10]}"
    facts = [
        ("recorded", f"{_shown(before)} ({recorded})" if before else f"no ratio ({recorded})"),
        ("again", _shown(said.found.finding.effect) if said.found.finding.effect else "no ratio"),
        ("compared", _compared(said)),
        ("machine", _differs(said.machine)),
        ("packages", _differs(said.packages)),
    ]
    if said.machine:
        facts.append(("", "another machine or day: a ratio may travel, seconds do not"))
    lines = [f"  {name:<10} {value}" for name, value in facts if value]
    return "\n".join(
        [finding_text(said.found, ledger_file), "", plain("\n".join(["beside what is recorded:", *lines]))]
    )


def compared_text(word: str, threshold: float) -> str:
    """'the same within 3 %'; empty where there is nothing to compare."""
    return MEANT.get(word, "").format(within=f"{100 * threshold:.3g} %")


def _compared(said: Replayed) -> str:
    apart = said.apart
    if apart is None:
        return ""
    meant = compared_text(said.word, said.threshold)
    return f"{meant} (again over recorded {units.ratio(apart.ratio)} {units.interval(apart.low, apart.high)})"


def _bounds(apart: Interval | None) -> dict[str, float] | None:
    return {name: getattr(apart, name) for name in ("ratio", "low", "high")} if apart else None


def _differs(changes: Mapping[str, tuple[Any, Any]]) -> str:
    """'torch 2.9.0 -> 2.13.0, numpy ...'."""
    told = [f"{name} {_value(then)} -> {_value(there)}" for name, (then, there) in list(changes.items())[:SHOWN]]
    return ", ".join(told) + (f" and {len(changes) - SHOWN} more" if len(changes) > SHOWN else "")


def _value(value: Any) -> str:
    return "none" if value is None else " ".join(str(value).split())[:60]


def _shown(effect: Effect) -> str:
    clock = " of CPU time" if effect.clock == "cpu" else ""
    interval = units.interval(effect.low, effect.high)
    return f"{units.ratio(effect.ratio)} {interval}{clock}, {units.counted(effect.rounds, 'round')}"


def _ratio(effect: Effect | None) -> dict[str, Any] | None:
    if effect is None:
        return None
    return {name: getattr(effect, name) for name in ("ratio", "low", "high", "rounds", "clock")}
