"""`campaign doctor`: is this machine fit to measure? Checks, then an A/A floor, then a line in the ledger.

Outside a project the checks alone. The line is a note of the machine's state: no verdict, effect or finding looks at
it; `campaign show` names it beside a decision that it precedes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign import lease, machine, provenance
from campaign.discovery import campaign_folder
from campaign.errors import BadInput
from campaign.ledger import LEDGER_FILE, Ledger, Stamp, now, open_ledger
from campaign.machine import checks, gpu
from campaign.machine.checks import FIT, Finding, Project, fitness, gather
from campaign.machine.host import HERE

if TYPE_CHECKING:
    from campaign.config import Job

NONE, SHORT, FULL = "none", "short", "full"
OUTSIDE = ("machine", "GPU", "software")


@dataclass(frozen=True)
class Examined:
    """What the doctor found. `floor` is the line's own account of the A/A rounds, None without. `id` and `ledger` say
    where it is recorded, both empty outside a project."""

    at: str
    device: str
    workload: str
    machine: str
    fingerprint: str
    findings: tuple[Finding, ...]
    floor: dict[str, Any] | None = None
    campaign: str = ""
    ledger: str = ""
    id: str = ""

    @property
    def fitness(self) -> str:
        return fitness(self.findings)


def examine_machine() -> Examined:
    """The checks alone, of the GPU too where nvidia-smi has one."""
    try:
        gpu.query(HERE, "cuda:0", ("name",))
        device = "cuda:0"
    except gpu.NoAnswer:
        device = "cpu"
    facts = machine.fingerprint(device)
    look = gather(device)
    found = checks.findings(look, OUTSIDE)
    return Examined(now(), device, "", machine.describe(facts), machine.fingerprint_hash(facts), found)


def examine(
    root: Path, campaign: str, overrides: Sequence[str], floor: str, command: str, say: Callable[[str], None]
) -> Examined:
    """Check the machine for a campaign's workload, measure a floor (`NONE`, `SHORT` or `FULL`), write the line.

    Without a floor and overrides, and with a plan in the ledger to go by, nothing heavy is imported. Raises BadInput or
    UnknownName for overrides that a run would refuse, LeaseHeld where a floor is asked for while another campaign
    measures, LedgerUnwritable.
    """
    begun = (campaign_folder(root, campaign) / LEDGER_FILE).exists()
    job = _job(root, campaign, overrides, begun=begun) if floor != NONE or overrides or not begun else None
    with ExitStack() as stack:
        if job is not None and floor != NONE:
            stack.enter_context(lease.hold(job.device, job.lease_wait_seconds, say, holder=campaign))
        ledger = stack.enter_context(open_ledger(root, campaign, writable=True))
        for notice in ledger.notices:
            say(notice)
        asked = job or _job_of_plan(ledger) or _job(root, campaign, overrides, begun=begun)
        subject = _planned(asked, _mirrored(root, ledger)) if isinstance(asked, dict) else _subject_of(asked)
        snapshot = provenance.snapshot(root)
        say("looking at the machine")
        look = gather(
            subject.device,
            threads=subject.threads,
            folders={"runs": root / "runs"},
            project=lambda: _project(root, campaign, ledger, snapshot.source, subject.tracking),
        )
        facts = machine.fingerprint(subject.device)
        found, body = list(checks.findings(look)), None
        if job is not None and floor != NONE:
            more, body = _floor(job, ledger, facts, floor, say)
            found += more
        examined = Examined(
            at=now(),
            device=subject.device,
            workload=subject.workload,
            machine=machine.describe(facts),
            fingerprint=machine.fingerprint_hash(facts),
            findings=tuple(found),
            floor=body,
            campaign=campaign,
            ledger=str(ledger.file),
        )
        return _written(ledger, examined, snapshot, command)


@dataclass(frozen=True)
class _Subject:
    """What would be measured. `threads` is how many cores its rounds are pinned to."""

    workload: str
    device: str
    threads: int
    tracking: str


def _job(root: Path, campaign: str, overrides: Sequence[str], *, begun: bool) -> Job:
    """The job that the campaign measures by, under `overrides`. One that has no ledger yet measures by its config."""
    from campaign.config import load
    from campaign.run.context import plain, study_job

    if begun:
        return study_job(root, campaign, overrides)
    return plain(load(root, [*overrides, f"campaign.name={campaign}"]))


def _job_of_plan(ledger: Ledger) -> dict[str, Any] | None:
    """The newest plan as JSON values; None before the first."""
    plans = [entry.body for entry in ledger.store.entries({"registered"}, verify=False)]
    return plans[-1] if plans else None


def _mirrored(root: Path, ledger: Ledger) -> str:
    """Where the campaign is mirrored. A config that only Hydra can read is composed for it."""
    from campaign.tracking.address import of_campaign

    try:
        return of_campaign(root, ledger)
    except BadInput:
        return _job(root, ledger.folder.name, (), begun=True).tracking


def _planned(plan: dict[str, Any], tracking: str) -> _Subject:
    return _Subject(plan["workload"], plan["device"], _whole(plan["control"]["config"].get("threads", 1)), tracking)


def _subject_of(job: Job) -> _Subject:
    threads = job.arm("control", "root", []).config.get("threads", 1)
    return _Subject(job.workload, job.device, _whole(threads), job.tracking)


def _whole(threads: Any) -> int:
    return threads if isinstance(threads, int) else 1


def _project(root: Path, campaign: str, ledger: Ledger, source: dict[str, Any], tracking: str) -> Project:
    from campaign.tracking.state import mirror_state, server_state

    ids = [row["id"] for row in ledger.decision_rows()]
    if "://" in tracking:
        return Project(source, tracking, server_state(tracking), len(ids))
    store, missing = mirror_state(root, campaign, ids) if tracking != "none" else ("none", 0)
    return Project(source, tracking, store, len(ids), missing)


def _floor(
    job: Job, ledger: Ledger, facts: dict[str, Any], floor: str, say: Callable[[str], None]
) -> tuple[tuple[Finding, ...], dict[str, Any]]:
    """What the A/A rounds say, as findings and as the line's own account."""
    from campaign.run.declare import compose_arms, floor_for
    from campaign.run.floor import full_floor, short_floor
    from campaign.run.judged_floor import floor_body, floor_findings

    standing = floor_for(job, ledger, compose_arms(job, ledger).control, facts)
    measured = full_floor(job, ledger) if floor == FULL else short_floor(job, ledger, facts, say)
    return (
        floor_findings(measured, job.protocol, standing, ledger.folder.name),
        floor_body(measured, job.protocol),
    )


def _written(ledger: Ledger, examined: Examined, snapshot: provenance.Snapshot, command: str) -> Examined:
    """The line, with what is not fit in full and of the rest the names; then what was found with its id."""
    if snapshot.patch:
        ledger.keep(snapshot.patch, ".patch")
    ledger.stamp = Stamp(
        host=ledger.stamp.host,
        fingerprint=examined.fingerprint,
        commit=str(snapshot.source.get("commit") or ""),
        patch=str(snapshot.source.get("patch_sha256") or ""),
    )
    id = f"doctor-{time.strftime('%Y%m%dT%H%M%S')}-{uuid.uuid4().hex[:4]}"
    body = {
        "fitness": examined.fitness,
        "workload": examined.workload,
        "device": examined.device,
        "machine": examined.machine,
        "fingerprint": examined.fingerprint,
        "findings": [one._asdict() for one in examined.findings if one.level != FIT],
        "fit": [one.check for one in examined.findings if one.level == FIT],
        "floor": examined.floor,
        "command": command,
    }
    ledger.append("doctor", id, body)
    return replace(examined, id=id)
