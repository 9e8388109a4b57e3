"""Whether the stack still holds: leave-one-out of every accepted edit, rows worth another try, and the headline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from campaign import reading, stack, units
from campaign.config import Job
from campaign.errors import CampaignError
from campaign.ledger import Ledger
from campaign.records import ACCEPT, INCONCLUSIVE, REJECT, Decision, Found, Term
from campaign.report.finding_text import finding_text
from campaign.report.progress import Progress
from campaign.report.revalidation import changed
from campaign.run import decide, mirror, write_stack
from campaign.run.context import hypothesis_job, own_words, plain
from campaign.run.declare import check_place
from campaign.run.studies import conduct, headline, leave_one_out, parts, whole_sets


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
    one that a person ruled in is only proposed. `retry` decides anew on rows whose neighbours changed. `rounds` valid
    ones are taken of each comparison, in place of the protocol's. Raises CampaignError.
    """
    check_place(job, ledger)
    job = plain(job)
    left_out, revoked = _leave_out(job, ledger, progress, apply, rounds)
    proposed = tuple(left_out.finding.retire) if left_out else ()
    done = Revalidated(left_out, proposed, revoked, _take_apart(job, ledger, progress, rounds), changed_rows(ledger))
    for one in done.changed:
        progress.notice(changed(one))
    if retry:
        done = replace(done, retried=tuple(retried(job, ledger, progress, one) for one in done.changed))
    study = headline(job, ledger, rounds)
    if study is not None:
        found = conduct(job, ledger, study, progress)
        progress.finding(finding_text(found, ledger.file))
        done = replace(done, headline=found)
    return done


def _leave_out(
    job: Job, ledger: Ledger, progress: Progress, apply: bool, rounds: int | None
) -> tuple[Found | None, tuple[str, ...]]:
    """The last leave-one-out, and the edits that were taken out on the way to it."""
    revoked: list[str] = []
    while True:
        study = leave_one_out(job, ledger, rounds)
        if study is None:
            return None, tuple(revoked)
        found = conduct(job, ledger, study, progress)
        progress.finding(finding_text(found, ledger.file))
        weakest = _weakest(ledger, found) if apply else None
        if weakest is None:
            return found, tuple(revoked)
        term, decision = weakest
        _revoke(job, ledger, found, term, decision, progress)
        revoked.append(decision.hypothesis)


def _weakest(ledger: Ledger, found: Found) -> tuple[Term, Decision] | None:
    """The edit that pays least of those that no longer pay, with its decision; None where there is none that may be
    taken out without a person."""
    ruled = {row["hypothesis"] for row in ledger.stack_rows() if row["ruling"] == ACCEPT}
    standing = {one.hypothesis: one for one in ledger.stack()}
    terms = {term.name: term for term in found.finding.terms}
    retired = [terms[name] for name in found.finding.retire if name in standing and name not in ruled]
    weakest = min(retired, key=lambda term: term.effect.ratio, default=None)
    return None if weakest is None else (weakest, standing[weakest.name])


def _revoke(job: Job, ledger: Ledger, found: Found, term: Term, decision: Decision, progress: Progress) -> None:
    effect = f"{units.ratio(term.effect.ratio)} {units.interval(term.effect.low, term.effect.high)}"
    why = f"no longer pays: adds {effect} to the others (finding {found.sequence}, {found.id})"
    with ledger.transaction():
        ledger.revoke(decision.id, why)
        write_stack(ledger)
    progress.notice(f"{decision.hypothesis} is taken out of the stack: {why}")
    mirror(job, ledger, [decision.id], progress)


def _take_apart(job: Job, ledger: Ledger, progress: Progress, rounds: int | None) -> tuple[Found, ...]:
    """The parts of every accepted set that was not taken apart yet, as where its run was killed after the decision."""
    found = []
    for decision in whole_sets(ledger):
        found.append(conduct(job, ledger, parts(job, ledger, decision, rounds), progress))
        progress.finding(finding_text(found[-1], ledger.file))
    return tuple(found)


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
