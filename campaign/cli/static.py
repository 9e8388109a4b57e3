"""`campaign static OVERRIDES`: what compilers say of control's and treatment's kernels, written in the ledger.

It takes the overrides of a run and composes the arms as a run does; nothing is timed, and no GPU is needed. The lease
is held all the same, because compilers at work would disturb whoever is timing on this machine.
"""

from __future__ import annotations

import sys

from campaign.discovery import DEFAULT_CAMPAIGN, project_root
from campaign.errors import EXIT_DECIDED, EXIT_NO_DECISION, BadInput, TrialFailed

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from campaign.config import Job
    from campaign.ledger import Ledger
    from campaign.records import Arm

SUMMARY = "registers, spills and occupancy of both arms' kernels, compiled without a GPU"
MORE = """\
examples:
  campaign static hypothesis=register_cap
  campaign static hypothesis=register_cap workload=reference_1b
  campaign static -m hypothesis=register_cap,phase_split

Exit codes: 0 something was compiled and read; 2 bad input; 3 nothing could be (see the reasons); 4 a sweep with a 3."""


def static_arguments(parser: argparse.ArgumentParser) -> None:
    """The overrides of a run, and its sweeps."""
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="as for a run: hypothesis=NAME, workload=NAME")
    parser.add_argument("-m", "--multirun", action="store_true", help="a sweep: several, one after another")


def static(given: argparse.Namespace) -> int:
    """Look at every job that was asked for; the exit code. Raises CampaignError."""
    from campaign.cli.running import sweep

    found = asked_for(given)
    return sweep(found, lambda job, _: look(job)) if given.multirun else look(found[0])


def asked_for(given: argparse.Namespace) -> list[Job]:
    """The jobs that a verb's overrides and options name, composed and checked. Raises BadInput, UnknownName."""
    from campaign.config import jobs

    words = list(given.overrides)
    if given.campaign != DEFAULT_CAMPAIGN:
        if any(word.startswith("campaign.name=") for word in words):
            raise BadInput("--campaign and campaign.name= say the same thing twice", remedy="leave one of them out")
        words.append(f"campaign.name={given.campaign}")
    words += ["--json"] * given.json + ["-m"] * given.multirun
    return jobs(project_root(), words)


def look(job: Job) -> int:
    """Ask both arms of one job, write the answer in the ledger and print it; the exit code. Raises CampaignError."""
    from campaign import lease
    from campaign.ledger import open_ledger
    from campaign.report.static_table import static_json, static_text
    from campaign.run.declare import compose_arms

    def say(text: str) -> None:
        print(text, file=sys.stderr)

    with (
        lease.hold(job.device, job.lease_wait_seconds, say, holder=job.campaign),
        open_ledger(job.root, job.campaign, writable=True) as ledger,
    ):
        for notice in ledger.notices:
            say(notice)
        arms = compose_arms(job, ledger)
        stack, control, treatment = arms.stack, arms.control, arms.treatment
        say(f"compiling the kernels of {control.name} and of {treatment.name}")
        rows = _asked(job, ledger, control, treatment)
        body: dict[str, Any] = {
            "evidence": "static",
            "hypothesis": job.hypothesis.name,
            "workload": job.workload,
            "device": job.device,
            "stack": list(stack),
            "command": _command(job),
        }
        for arm in (control, treatment):
            body[arm.role] = {"name": arm.name, "hash": arm.hash, "rows": rows[arm.role]}
        _write(job, ledger, body)
        print(static_json(body, str(ledger.file)) if job.json else static_text(body, str(ledger.file)))
    read = any(row["status"] == "ok" for arm in rows.values() for row in arm)
    return EXIT_DECIDED if read else EXIT_NO_DECISION


def _asked(job: Job, ledger: Ledger, control: Arm, treatment: Arm) -> dict[str, list[dict[str, Any]]]:
    """The rows of both arms. A process that failed leaves its log beside the ledger."""
    import tempfile
    from pathlib import Path

    from campaign.run.trees import places
    from campaign.static import rows_of

    arms, deadline = (control, treatment), job.protocol.start_deadline_seconds
    with tempfile.TemporaryDirectory(prefix="campaign-static-") as logs, places(job.root, ledger, arms) as where:
        try:
            return rows_of(arms, job.root, Path(logs), deadline, where)
        except TrialFailed as failure:
            log = Path(failure.log).read_bytes() if failure.log else b""
            kept = ledger.path(ledger.keep(log, ".log")) if log else ""
            message = f"static evidence of {failure.arm}: {failure.message}" + (f" (log: {kept})" if kept else "")
            raise TrialFailed(
                failure.reason, message, arm=failure.arm, log=str(kept), remedy=failure.remedy or "see the log"
            ) from failure


def _write(job: Job, ledger: Ledger, body: dict[str, Any]) -> None:
    from campaign.run.recorded import append, stamp_here

    ledger.stamp = stamp_here(job.root, job.device, ledger)
    append(ledger, "static", job.hypothesis.name, body)


def _command(job: Job) -> str:
    """The command that asks for this evidence again."""
    return job.command.replace("python -m campaign", "python -m campaign static", 1)
