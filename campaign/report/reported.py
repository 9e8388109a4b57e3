"""A campaign's decisions with their plans, and its findings with their studies, as every export form needs them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from campaign import reading
from campaign.reading import is_test
from campaign.records import ACCEPT, INCONCLUSIVE, REJECT, Combined, Decision, Found, Plan, Study, to_json
from campaign.report.listing import row as listed
from campaign.report.listing import stacks_of_studies

if TYPE_CHECKING:
    from campaign.ledger import Ledger
    from campaign.report.filters import Filters


@dataclass(frozen=True)
class Reported:
    """One decision as it stands today. `superseded_by` is the sequence number of a newer decision on the same edit,
    workload and device that says as much; None for the newest, and for an edit that is in the stack. `fingerprint` is
    the hash that the plan's line was stamped with. `ruling` is what a person ruled last, empty for nothing."""

    decision: Decision
    plan: Plan
    fingerprint: str
    revoked: bool
    revoked_why: str
    superseded_by: int | None
    in_stack: bool = False
    ruling: str = ""
    ruled_why: str = ""

    @property
    def sequence(self) -> int:
        return self.decision.sequence

    @property
    def is_test(self) -> bool:
        return is_test(self.decision.verdict, self.plan)

    @property
    def null(self) -> bool:
        return self.plan.hypothesis.null

    @property
    def taken_out(self) -> bool:
        """Whether it was accepted and is no longer in the stack."""
        return self.decision.verdict.verdict == ACCEPT and not self.in_stack

    @property
    def combined(self) -> Combined | None:
        return self.decision.verdict.combined

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

    @property
    def place(self) -> tuple[str, ...]:
        """What rows of one table must share, so that their ratios may stand side by side."""
        plan = self.plan
        return (plan.workload, plan.device, self.fingerprint, plan.machine_line, plan.protocol.clock)


@dataclass(frozen=True)
class Studied:
    """One finding with what was declared for it. `present` says whether the stack is still the one that it was declared
    on: the same decisions in the same order. `fingerprint` as in `Reported`."""

    found: Found
    study: Study
    fingerprint: str
    present: bool

    @property
    def sequence(self) -> int:
        return self.found.sequence

    @property
    def name(self) -> str:
        """'finding 3 (study headline-20261201T120000-ab12)'."""
        return f"finding {self.sequence} (study {self.study.id})"


@dataclass(frozen=True)
class Reports:
    """Everything a page about a campaign says. `rows` are the decisions that are shown and `findings` the findings,
    `every` all decisions, `stack` those that make it up, in order. `filtered` says what was left out, empty where
    nothing was. `unfinished` are plans and studies that were registered and came to no end. `ledger` is where they come
    from, for what only a figure reads: raw block times and profiles."""

    campaign: str
    rows: tuple[Reported, ...]
    unfinished: tuple[str, ...]
    every: tuple[Reported, ...] = ()
    stack: tuple[Reported, ...] = ()
    findings: tuple[Studied, ...] = ()
    filtered: str = ""
    ledger: Ledger | None = field(default=None, repr=False, compare=False)

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the edits in the stack, in order."""
        return tuple(row.decision.hypothesis for row in self.stack)

    @property
    def alpha_spent(self) -> float:
        return sum(row.decision.verdict.alpha_spent for row in self.every)

    @property
    def predictions(self) -> str:
        """How the predicted ratios turned out over the campaign, in a sentence; empty where none was measured."""
        return reading.outcomes_text(row.prediction for row in self.every)

    def of_kind(self, kind: str) -> list[Studied]:
        """The findings of one kind of study, oldest first."""
        return [one for one in self.findings if one.study.kind == kind]

    def newest(self, kind: str) -> Studied | None:
        """The newest finding of one kind that came to a number; one about the present stack before any other."""
        told = [one for one in self.of_kind(kind) if one.found.finding.terms or one.found.finding.total]
        return next((one for one in reversed(told) if one.present), told[-1] if told else None)


def gather(ledger: Ledger, filters: Filters | None = None) -> Reports:
    """Replay the ledger into rows. Raises LedgerDamaged, and UnknownName for a filter that names what is not there."""
    plans = {plan.id: plan for plan in ledger.plans()}
    standing = ledger.standing()
    whys = {
        entry.body["decision_id"]: str(entry.body.get("why", ""))
        for entry in ledger.store.entries({"revoked"}, verify=False)
    }
    pairs = [(decision, plans[decision.plan_id]) for decision in ledger.decisions()]
    stamps = {
        entry.id: entry.stamp.fingerprint for entry in ledger.store.entries({"registered", "study"}, verify=False)
    }
    rows = []
    for place, (decision, plan) in enumerate(pairs):
        facts = standing.rows[decision.id]
        row = Reported(
            decision=decision,
            plan=plan,
            fingerprint=stamps[plan.id],
            revoked=facts["revoked"],
            revoked_why=whys.get(decision.id, "") if facts["revoked"] else "",
            superseded_by=_superseded_by(place, pairs, standing.stack),
            in_stack=decision.id in standing.stack,
            ruling=facts["ruling"],
            ruled_why=facts["ruled_why"],
        )
        rows.append(row)
    by_id = {row.decision.id: row for row in rows}
    studies = {study.id: study for study in ledger.studies()}
    on = stacks_of_studies(ledger)
    findings = tuple(
        Studied(found, studies[found.study_id], stamps[found.study_id], on[found.study_id] == standing.stack)
        for found in ledger.findings()
    )
    every = tuple(rows)
    reports = Reports(
        campaign=ledger.folder.name,
        rows=every,
        unfinished=(*ledger.unfinished(), *ledger.unfinished_studies()),
        every=every,
        stack=tuple(by_id[id] for id in standing.stack),
        findings=findings,
        ledger=ledger,
    )
    return _filtered(reports, filters) if filters else reports


def _filtered(reports: Reports, filters: Filters) -> Reports:
    wanted = {row["id"] for row in filters.keep([listed(to_json(one.decision), False) for one in reports.every])}
    shown = tuple(one for one in reports.every if one.decision.id in wanted)
    return replace(reports, rows=shown, filtered=filters.said(len(shown), len(reports.every)))


def _superseded_by(place: int, pairs: Sequence[tuple[Decision, Plan]], stack: Collection[str]) -> int | None:
    own, plan = pairs[place]
    if own.id in stack:
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


def numbered(items: Iterable[Reported | Studied]) -> str:
    """'decision 3', 'decisions 1-3 and 5', 'decision 2 and findings 1 and 4'. No '#': GitHub would link it to an
    issue."""
    numbers: dict[str, list[int]] = {}
    for one in items:
        numbers.setdefault("decision" if isinstance(one, Reported) else "finding", []).append(one.sequence)
    return " and ".join(f"{word}{'s' if len(found) > 1 else ''} {_runs(found)}" for word, found in numbers.items())


def _runs(numbers: list[int]) -> str:
    """'1-3, 5 and 7': three or more in a row as one."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    said = [text for run in runs for text in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))]
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"


def counted(count: int, what: str) -> str:
    """'no first look', '1 first look', '2 first looks'."""
    return f"{count or 'no'} {what}{'s' if count > 1 else ''}"


T = TypeVar("T", Reported, Studied, "Reported | Studied")


def shared(items: Sequence[T], value: Callable[[T], str]) -> str:
    """The value that all items have, or each value with the decisions and findings that have it."""
    found: dict[str, list[T]] = {}
    for one in items:
        found.setdefault(value(one), []).append(one)
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{said} ({numbered(having)})" for said, having in found.items())
