"""A study measured in matched rounds and written as a finding.

Registered, rounds until `interactions.find` has what it needs, the finding appended and mirrored. A study that asks the
same as an interrupted one goes on with it, or is that one's finding.
"""

from __future__ import annotations

from dataclasses import replace

from campaign import interactions
from campaign.config import Job
from campaign.ledger import Ledger, now
from campaign.records import Finding, Found, Need, Study, StudyEvidence, to_json
from campaign.records.study import REPLAY
from campaign.report.progress import Progress
from campaign.run import mirror
from campaign.run.declare import stamp_of
from campaign.run.measure import measure_round
from campaign.run.trees import places

# What may differ between a study asked for again and the interrupted one that it goes on with.
FREE = ("id", "source", "machine_line", "command", "registered_at", "threshold", "floor_id", "memory_floor_bytes")


def conduct(job: Job, ledger: Ledger, study: Study, progress: Progress) -> Found:
    """Measure `study` to its finding, going on with an interrupted one that asks the same on this machine and code.

    Where the process that asked it was killed after the finding, and before what the finding was for had ended, that
    finding is taken: see `Ledger.keep_claim`. The device's lease is the caller's. An interrupt ends every trial and
    goes through; what was measured stays.
    """
    for said in ledger.recover_inflight():
        progress.notice(said)
    evidence = _interrupted(ledger, study)
    if evidence is None and (left := _left_unsaid(ledger, study)):
        progress.notice(
            f"{left.study_id} had its finding at {left.decided_at}, and its process ended before its work was done:"
            " this is that finding"
        )
        mirror(job, ledger, [left.id], progress)
        return left
    if evidence is None:
        ledger.stamp = stamp_of(study)
        ledger.claim(study.id)
        ledger.append("study", study.id, to_json(study))
        evidence = StudyEvidence(study)
    else:
        study = evidence.study
        progress.notice(f"going on with {study.id}, interrupted after {len(evidence.rounds)} rounds")
    ledger.stamp = stamp_of(study)
    progress.study(study, study.source.get("warnings", ()))
    with places(job.root, ledger, study.arms) as where:
        while isinstance(answer := interactions.find(evidence), Need):
            roles = interactions.active_roles(evidence, answer.stage)
            arms = [arm for arm in study.arms if arm.role in roles]
            measured = measure_round(job, ledger, study, evidence.rounds, answer, arms, progress, where)
            evidence = replace(evidence, rounds=(*evidence.rounds, measured))
            progress.study_round_done(measured, evidence)
    found = _write(ledger, evidence, answer)
    mirror(job, ledger, [found.id], progress)
    return found


def says_something(found: Found) -> bool:
    """Whether a finding has numbers that answer its question."""
    finding = found.finding
    return bool(finding.terms or finding.effect) and not finding.sentence.startswith("no finding")


def _interrupted(ledger: Ledger, study: Study) -> StudyEvidence | None:
    """The evidence of the latest unfinished study that asks the same and that no live process works on."""
    for id in reversed(ledger.unfinished_studies()):
        if _same(study, ledger.study(id)) and ledger.claim(id):
            return ledger.study_evidence(id)
    return None


def _left_unsaid(ledger: Ledger, study: Study) -> Found | None:
    """The finding of the latest study that asks the same on the present stack, where its work was left in the middle;
    None for one that says nothing, which is worth another try."""
    found = {one.study_id: one for one in ledger.findings()}
    asked = [one for one in ledger.studies() if one.id in found and _same(study, one)]
    if not asked or not says_something(found[asked[-1].id]):
        return None
    latest = asked[-1]
    if latest.kind != REPLAY and ledger.moved_since(latest):  # a replay is of the stack of its day
        return None
    return found[latest.id] if ledger.take_over(latest.id) else None


def _same(study: Study, other: Study) -> bool:
    return replace(study, **{name: getattr(other, name) for name in FREE}) == other


def _write(ledger: Ledger, evidence: StudyEvidence, finding: Finding) -> Found:
    study = evidence.study
    with ledger.transaction():
        found = Found(
            id=f"{study.id}-finding",
            study_id=study.id,
            sequence=len(ledger.finding_rows()) + 1,
            finding=finding,
            stack=study.stack,
            workload=study.workload,
            device=study.device,
            machine_line=study.machine_line,
            command=study.command,
            decided_at=now(),
            wall_seconds=sum(one.wall_seconds for one in evidence.rounds),
            timed_seconds=sum(one.timed_seconds for one in evidence.rounds),
        )
        ledger.append("finding", found.id, to_json(found))
    return found
