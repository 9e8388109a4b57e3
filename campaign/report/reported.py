"""A campaign's decisions with their plans, as every export form needs them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from campaign import reading
from campaign.reading import is_test
from campaign.records import ACCEPT, INCONCLUSIVE, REJECT, Decision, Plan

if TYPE_CHECKING:
    from campaign.ledger import Ledger


@dataclass(frozen=True)
class Reported:
    """One decision as it stands today. `superseded_by` is the sequence number of a newer decision on the same edit,
    workload and device that says as much; None for the newest, and for an edit that is in the stack. `fingerprint` is
    the hash that the plan's line was stamped with."""

    decision: Decision
    plan: Plan
    fingerprint: str
    revoked: bool
    revoked_why: str
    superseded_by: int | None

    @property
    def sequence(self) -> int:
        return self.decision.sequence

    @property
    def in_stack(self) -> bool:
        return self.decision.verdict.verdict == ACCEPT and not self.revoked

    @property
    def is_test(self) -> bool:
        return is_test(self.decision.verdict, self.plan)

    @property
    def label(self) -> str:
        """The hypothesis with its parameters, 'register_cap registers=8'."""
        return reading.label(self.decision.hypothesis, self.decision.command)

    @property
    def prediction(self) -> str:
        """How the predicted ratio turned out, see `reading.prediction`; empty for a null and without an interval."""
        return reading.outcome(self.decision.verdict, self.decision.predicted_ratio)

    @property
    def counts(self) -> str:
        """How many predicted counts were counted so, see `reading.counts_text`."""
        return reading.counts_text(self.decision.engagement, self.decision.stack)

    @property
    def emulated(self) -> bool:
        """Whether its low precision was emulated."""
        return self.decision.low_precision == reading.EMULATED

    @property
    def clock(self) -> str:
        effect = self.decision.verdict.effect
        return effect.clock if effect else self.plan.protocol.clock


@dataclass(frozen=True)
class Reports:
    """Everything a page about a campaign says. `unfinished` are plans that were registered and never decided."""

    campaign: str
    rows: tuple[Reported, ...]
    unfinished: tuple[str, ...]

    @property
    def stack(self) -> list[Decision]:
        return [row.decision for row in self.rows if row.in_stack]

    @property
    def alpha_spent(self) -> float:
        return sum(row.decision.verdict.alpha_spent for row in self.rows)

    @property
    def predictions(self) -> str:
        """How the predicted ratios turned out over the campaign, in a sentence; empty where none was measured."""
        return reading.outcomes_text(row.prediction for row in self.rows)

    def groups(self) -> list[list[Reported]]:
        """Rows that may stand in one table: one workload, device, fingerprint and protocol."""
        found: dict[tuple[object, ...], list[Reported]] = {}
        for row in self.rows:
            plan = row.plan
            key = (plan.workload, plan.device, row.fingerprint, plan.machine_line, plan.protocol)
            found.setdefault(key, []).append(row)
        return list(found.values())


def gather(ledger: Ledger) -> Reports:
    """Replay the ledger into rows. Raises LedgerDamaged."""
    plans = {plan.id: plan for plan in ledger.plans()}
    decisions = sorted(ledger.decisions(), key=lambda decision: decision.sequence)
    whys = {
        entry.body["decision_id"]: str(entry.body.get("why", ""))
        for entry in ledger.store.entries({"revoked"}, verify=False)
    }
    pairs = [(decision, plans[decision.plan_id]) for decision in decisions]
    stamps = {entry.id: entry.stamp.fingerprint for entry in ledger.store.entries({"registered"}, verify=False)}
    rows = [
        Reported(
            decision=decision,
            plan=plan,
            fingerprint=stamps[plan.id],
            revoked=decision.id in whys,
            revoked_why=whys.get(decision.id, ""),
            superseded_by=_superseded_by(place, pairs, whys.keys()),
        )
        for place, (decision, plan) in enumerate(pairs)
    ]
    return Reports(ledger.folder.name, tuple(rows), tuple(ledger.unfinished()))


def _superseded_by(place: int, pairs: Sequence[tuple[Decision, Plan]], revoked: Collection[str]) -> int | None:
    own, plan = pairs[place]
    if own.verdict.verdict == ACCEPT and own.id not in revoked:
        return None
    newer = [
        later
        for later, other in pairs[place + 1 :]
        if (later.hypothesis, later.workload, later.device) == (own.hypothesis, own.workload, own.device)
        and other.hypothesis.edit == plan.hypothesis.edit
        and _says(later, other) >= _says(own, plan)
    ]
    return newer[-1].sequence if newer else None


def _says(decision: Decision, plan: Plan) -> int:
    """How much a decision says: nothing (invalid, unavailable), a first look, a decisive test."""
    if decision.verdict.verdict not in (ACCEPT, REJECT, INCONCLUSIVE):
        return 0
    return 2 if plan.protocol.decisive else 1


def numbered(rows: Iterable[Reported]) -> str:
    """'decision 3', 'decisions 1, 2 and 5'. No '#': GitHub would link it to an issue."""
    numbers = [str(row.sequence) for row in rows]
    if len(numbers) == 1:
        return f"decision {numbers[0]}"
    return f"decisions {', '.join(numbers[:-1])} and {numbers[-1]}"


def counted(count: int, what: str) -> str:
    """'no first look', '1 first look', '2 first looks'."""
    return f"{count or 'no'} {what}{'s' if count > 1 else ''}"


def shared(rows: Sequence[Reported], value: Callable[[Reported], str]) -> str:
    """The value that all rows have, or each value with the decisions that have it."""
    found: dict[str, list[Reported]] = {}
    for row in rows:
        found.setdefault(value(row), []).append(row)
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{said} ({numbered(having)})" for said, having in found.items())
