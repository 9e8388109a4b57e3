"""A decision measured again, beside what is recorded: two ratios with their intervals, and what differs around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign import units
from campaign.records import Decision, Effect, Found
from campaign.report.finding_text import finding_text, found_values
from campaign.report.json_text import as_line

SCHEMA = 1
SHOWN = 6
SAME, FASTER, SLOWER, NOTHING = "the same", "faster", "slower", "nothing to compare"
MEANT = {
    SAME: "the intervals overlap: the same ratio, as far as these rounds tell",
    FASTER: "the intervals do not overlap: more than was recorded",
    SLOWER: "the intervals do not overlap: less than was recorded",
    NOTHING: "",
}


@dataclass(frozen=True)
class Replayed:
    """`machine` and `packages` have what is other than then, by name: (then, now). `place` is the worktree that the
    arms were imported from."""

    decision: Decision
    found: Found
    machine: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    packages: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    place: str = ""

    @property
    def word(self) -> str:
        """How the two ratios compare: `the same` where their 95 % intervals overlap, else `faster` or `slower`."""
        before, again = self.decision.verdict.effect, self.found.finding.effect
        if before is None or again is None:
            return NOTHING
        if again.low > before.high:
            return FASTER
        return SLOWER if again.high < before.low else SAME


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
        ("compared", MEANT[said.word]),
        ("machine", _differs(said.machine)),
        ("packages", _differs(said.packages)),
    ]
    if said.machine:
        facts.append(("", "another machine or day: a ratio may travel, seconds do not"))
    lines = [f"  {name:<10} {value}" for name, value in facts if value]
    return "\n".join([finding_text(said.found, ledger_file), "", "beside what is recorded:", *lines])


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
