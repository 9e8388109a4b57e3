"""A sweep in the ledger: which jobs were asked for together, so that the same command goes on where it was killed.

A sweep that began and did not end, whose process is gone, is gone on with by the next sweep of the same jobs: what it
decided on this machine by this code stands, and the rest is measured. One that ended is done again from the start when
it is asked for again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from campaign import machine, verdicts
from campaign.config import Job
from campaign.ledger import Ledger, open_ledger
from campaign.run.declare import code_of, new_id
from campaign.run.trees import moved

BEGUN, MADE, ENDED = "begun", "made", "ended"
JOBS, SEARCH, AUTOPILOT = "jobs", "search", "autopilot"  # what a sweep is of; only `jobs` are known beforehand


@dataclass(frozen=True)
class Recalled:
    """What became of a job before an interruption: its decision after those that came too late, none where it is still
    to be made; `other` says how what decided it differed from what would now."""

    rows: Sequence[Mapping[str, Any]] = ()
    other: str = ""


@dataclass
class Sweep:
    """One sweep in one campaign's ledger. `line` is where it began; `resumed` says that an earlier process did.
    `outdated` are its decisions that are made again."""

    id: str
    line: int
    resumed: bool
    ledger: Ledger
    outdated: set[str] = field(default_factory=set)
    _taken: set[str] = field(default_factory=set)

    def recall(self, job: Job) -> Recalled:
        """What became of the next job with this command before the sweep was interrupted: its first decision that no
        job was given yet and that this code on this machine would make. Another one stands only while its edit is in
        the stack, where the edit cannot be measured again."""
        if not self.resumed:
            return Recalled()
        mine = {body["decision_id"] for body in self.ledger.sweeps() if body["state"] == MADE and self._is_of(body)}
        rows = [row for row in self.ledger.decision_rows() if row["id"] in mine and row["command"] == job.command]
        rows = [row for row in rows if row["id"] not in self._taken]
        stacked = {row["id"] for row in self.ledger.stack_rows()}
        start, other = 0, ""
        for stop, row in enumerate(rows, 1):
            if row["verdict"]["reason"] == verdicts.STALE:
                continue
            found, start = rows[start:stop], stop
            self.take(found)
            other = self._differs(job, row["plan_id"])
            if not other or row["id"] in stacked:
                return Recalled(found, other)
            self.outdated.update(one["id"] for one in found)
        return Recalled((), other)

    def _is_of(self, body: Mapping[str, Any]) -> bool:
        return bool(body["sweep_id"] == self.id)

    def _differs(self, job: Job, plan_id: str) -> str:
        """How a plan differs from the one that this job would be now; empty where it does not."""
        plan = self.ledger.plan(plan_id)
        if plan.fingerprint != machine.fingerprint(job.device):
            return "on another machine, or with another version of its software"
        if plan.code != code_of(job, plan.control, plan.treatment) or plan.hypothesis.edit != job.hypothesis.edit:
            return "by other code"
        if moved(job, self.ledger, plan):
            return "by other code"
        return ""

    def made(self, decision_id: str) -> None:
        """One of its jobs came to this decision; others may decide on the same job meanwhile."""
        body = {"sweep_id": self.id, "state": MADE, "decision_id": decision_id}
        self.ledger.append("sweep", f"{self.id}-{decision_id}", body)

    def take(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """These decisions are those of one job."""
        self._taken.update(row["id"] for row in rows)

    def end(self) -> None:
        """Every job was gone through."""
        self.ledger.append("sweep", f"{self.id}-{ENDED}", {"sweep_id": self.id, "state": ENDED})


@contextmanager
def begun(kind: str, jobs: Sequence[Job], words: Sequence[str]) -> Iterator[dict[str, Sweep]]:
    """The sweep of `jobs`, by the campaign that each part of it is written to: an interrupted one of the same kind
    that no live process works on, else one that begins here. `words` are the command line; a search and an autopilot
    are the same where it is. Call `Sweep.end` at the end."""
    with ExitStack() as stack:
        found = {}
        for name in dict.fromkeys(job.campaign for job in jobs):
            here = [job for job in jobs if job.campaign == name]
            ledger = stack.enter_context(open_ledger(here[0].root, name, writable=True))
            commands = [job.command for job in here] if kind == JOBS else []
            found[name] = _interrupted(ledger, kind, commands, words) or _new(ledger, kind, commands, words)
        yield found


def _new(ledger: Ledger, kind: str, commands: list[str], words: Sequence[str]) -> Sweep:
    id = new_id("sweep")
    ledger.claim(id)
    body = {"sweep_id": id, "state": BEGUN, "kind": kind, "jobs": commands, "words": list(words)}
    return Sweep(id, ledger.append("sweep", id, body).line, False, ledger)


def _interrupted(ledger: Ledger, kind: str, commands: list[str], words: Sequence[str]) -> Sweep | None:
    """The newest sweep of the same, unless it ended or a live process works on it."""
    bodies = ledger.sweeps()
    ended = {body["sweep_id"] for body in bodies if body["state"] == ENDED}
    for body in reversed(bodies):
        same = body["state"] == BEGUN and body["kind"] == kind and body["jobs"] == commands
        if not same or (kind != JOBS and body["words"] != list(words)):
            continue
        if body["sweep_id"] in ended:
            return None
        if ledger.claim(body["sweep_id"]):
            return Sweep(body["sweep_id"], body["line"], True, ledger)
    return None
