"""Whether the stack still holds: leave-one-out of every accepted edit, rows worth another try, and the headline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from campaign import reading, stack, units
from campaign.config import Job
from campaign.errors import CampaignError, StackMoved
from campaign.ledger import Ledger
from campaign.records import ACCEPT, INCONCLUSIVE, REJECT, Decision, Found, Study, Term
from campaign.report.finding_text import finding_text
from campaign.report.progress import Progress
from campaign.report.revalidation import changed
from campaign.run import MOST_STALE, decide, mirror, write_stack
from campaign.run.conduct import conduct
from campaign.run.context import hypothesis_job, own_words, plain
from campaign.run.declare import check_place
from campaign.run.studies import headline, leave_one_out, parts, whole_sets


@dataclass(frozen=True)
class Changed:
    """A decision whose edit is not in the stack and whose neighbours are no longer those that it was measured with.
    `name` is the hypothesis with its parameters."""

    decision_id: str
    sequence: int
    hypothesis: str
    name: str
    verdict: str
    reason: str
    change: str
    command: str


@dataclass(frozen=True)
class Retried:
    """What trying a row again came to: the decision, or why there is none."""

    changed: Changed
    decision: Decision | None = None
    why: str = ""


@dataclass(frozen=True)
class Revalidated:
    """What `revalidate` did, in its order. `proposed` are edits that no longer pay and are still in the stack,
    `revoked` those that were taken out; `left_out` is the last leave-one-out, of the stack that was left then."""

    left_out: Found | None = None
    proposed: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()
    apart: tuple[Found, ...] = ()
    changed: tuple[Changed, ...] = ()
    retried: tuple[Retried, ...] = ()
    headline: Found | None = None


def revalidate(
    job: Job,
    ledger: Ledger,
    progress: Progress,
    *,
    apply: bool = False,
    retry: bool = False,
    rounds: int | None = None,
) -> Revalidated:
    """Measure the stack again and say what no longer holds, on the workload and under the protocol of `job`, whatever
    its hypothesis. The device's lease is the caller's.

    `apply` takes edits that no longer pay out of the stack, the weakest first, and measures the rest again after each;
    one that a person ruled in is only proposed. `retry` decides anew on rows whose neighbours changed, once each.
    `rounds` valid ones are taken of each comparison, in place of the protocol's.

    Leave-one-out and headline are of one stack, that at the end: where another process moves it meanwhile, nothing is
    taken out by what was found, and it is measured again. Raises StackMoved where that happens each time, and
    CampaignError.
    """
    check_place(job, ledger)
    work = _Work(plain(job), ledger, progress, apply, rounds)
    for _ in range(MOST_STALE):
        try:
            return work.once(retry)
        except _Moved as moved:
            progress.notice(f"{moved}: it says nothing of the present stack, which nothing is taken out of by it")
    work.end()
    raise StackMoved(
        f"the stack moved in each of {MOST_STALE} measurements of it: what they found is of stacks that are gone",
        remedy="campaign revalidate, once nobody else decides or reverts in this campaign",
    )


class _Moved(Exception):
    """The stack is not the one that a study was declared on."""


@dataclass
class _Work:
    """One revalidation, which begins again where the stack moves under it; what was done to the stack stays done."""

    job: Job
    ledger: Ledger
    progress: Progress
    apply: bool
    rounds: int | None
    revoked: list[str] = field(default_factory=list)
    apart: list[Found] = field(default_factory=list)
    changed: tuple[Changed, ...] = ()
    retried: list[Retried] = field(default_factory=list)
    studies: list[str] = field(default_factory=list)

    def once(self, retry: bool) -> Revalidated:
        """All of it on one stack. Raises _Moved where another process moved that meanwhile."""
        left_out = self._leave_out()
        self._take_apart()
        if not self.retried:
            self.changed = changed_rows(self.ledger)
            for one in self.changed:
                self.progress.notice(changed(one))
            for one in self.changed if retry else ():
                self.retried.append(retried(self.job, self.ledger, self.progress, one))
            if joined := [one.changed.name for one in self.retried if one.decision and _accepts(one.decision)]:
                self.progress.notice(f"{', '.join(joined)} joined: what the edits add is measured again beside")
                left_out = self._leave_out()
                self._take_apart()
        study = headline(self.job, self.ledger, self.rounds)
        whole = self._found(study) if study else None
        for found in (left_out, whole):
            if found is not None:
                self._check(found)
        if (left_out is None) != (whole is None):
            raise _Moved("the stack moved between leave-one-out and headline")
        self.end()
        return Revalidated(
            left_out=left_out,
            proposed=tuple(left_out.finding.retire) if left_out else (),
            revoked=tuple(self.revoked),
            apart=tuple(self.apart),
            changed=self.changed,
            retried=tuple(self.retried),
            headline=whole,
        )

    def end(self) -> None:
        """Its work is done: asked again, each study is measured anew."""
        for id in self.studies:
            self.ledger.let_go(id)

    def _found(self, study: Study) -> Found:
        """The finding of one step, shown. Until the last step has ended it is there for the same command."""
        found = conduct(self.job, self.ledger, study, self.progress)
        self.ledger.keep_claim(found.study_id)
        self.studies.append(found.study_id)
        self.progress.finding(finding_text(found, self.ledger.file))
        return found

    def _check(self, found: Found) -> None:
        if self.ledger.moved_since(self.ledger.study(found.study_id)):
            was, head = ("+".join(("root", *names)) for names in (found.stack, self._names()))
            raise _Moved(f"the stack moved since {found.study_id} was declared on {was}, and head is {head}")

    def _names(self) -> list[str]:
        return [row["hypothesis"] for row in self.ledger.stack_rows()]

    def _leave_out(self) -> Found | None:
        """The last leave-one-out, after what no longer pays was taken out where that is asked for."""
        while study := leave_one_out(self.job, self.ledger, self.rounds):
            found = self._found(study)
            self._check(found)
            weakest = _weakest(self.ledger, found) if self.apply else None
            if weakest is None:
                return found
            self._revoke(found, *weakest)
        return None

    def _revoke(self, found: Found, term: Term, decision: Decision) -> None:
        effect = f"{units.ratio(term.effect.ratio)} {units.interval(term.effect.low, term.effect.high)}"
        why = f"no longer pays: adds {effect} to the others (finding {found.sequence}, {found.id})"
        with self.ledger.transaction():
            self._check(found)
            self.ledger.revoke(decision.id, why)
            write_stack(self.ledger)
        self.revoked.append(decision.hypothesis)
        self.progress.notice(f"{decision.hypothesis} is taken out of the stack: {why}")
        mirror(self.job, self.ledger, [decision.id], self.progress)

    def _take_apart(self) -> None:
        """The parts of every accepted set that was not taken apart yet, as where its run was killed after the
        decision."""
        for decision in whole_sets(self.ledger):
            self.apart.append(self._found(parts(self.job, self.ledger, decision, self.rounds)))


def _accepts(decision: Decision) -> bool:
    return decision.verdict.verdict == ACCEPT


def _weakest(ledger: Ledger, found: Found) -> tuple[Term, Decision] | None:
    """The edit that pays least of those that no longer pay, with its decision; None where there is none that may be
    taken out without a person."""
    ruled = {row["hypothesis"] for row in ledger.stack_rows() if row["ruling"] == ACCEPT}
    standing = {one.hypothesis: one for one in ledger.stack()}
    terms = {term.name: term for term in found.finding.terms}
    retired = [terms[name] for name in found.finding.retire if name in standing and name not in ruled]
    weakest = min(retired, key=lambda term: term.effect.ratio, default=None)
    return None if weakest is None else (weakest, standing[weakest.name])


def changed_rows(ledger: Ledger) -> tuple[Changed, ...]:
    """The newest decision of each edit that was rejected or left open, is not in the stack, and has other neighbours
    now than when it was measured. A/A nulls and a person's rejections are left alone."""
    standing = [row["hypothesis"] for row in ledger.stack_rows()]
    newest = {}
    for row in ledger.decision_rows():
        newest[reading.label(row["hypothesis"], row["command"])] = row
    found = []
    for name, row in newest.items():
        verdict = row["verdict"]
        left = verdict["verdict"] in (REJECT, INCONCLUSIVE) and verdict["reason"] not in reading.NULL_REASONS
        if left and not row["ruling"] and row["hypothesis"] not in standing:
            if change := stack.neighbours_changed(row, standing):
                found.append(_changed(name, row, change))
    return tuple(found)


def _changed(name: str, row: Mapping[str, Any], change: str) -> Changed:
    return Changed(
        decision_id=row["id"],
        sequence=row["sequence"],
        hypothesis=row["hypothesis"],
        name=name,
        verdict=row["verdict"]["verdict"],
        reason=row["verdict"]["reason"],
        change=change,
        command=row["command"],
    )


def retried(job: Job, ledger: Ledger, progress: Progress, one: Changed) -> Retried:
    """Decide on a row's edit anew; what ends it alone, ends it alone."""
    progress.notice(f"again: {one.name}")
    try:
        again = hypothesis_job(replace(job, json=False), one.hypothesis, own_words(one.command, one.hypothesis))
        return Retried(one, decide(again, ledger, progress))
    except CampaignError as error:
        progress.notice(f"{one.name}: {error}")
        return Retried(one, why=error.message)
