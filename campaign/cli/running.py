"""One run, or a sweep of runs one after another."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from campaign.cli import show_error
from campaign.config import Job, jobs, read_line
from campaign.discovery import project_root
from campaign.errors import EXIT_DECIDED, EXIT_INTERRUPTED, EXIT_SWEEP_FAILED, CampaignError
from campaign.ledger import open_ledger
from campaign.reading import label
from campaign.report.listing import row
from campaign.report.sweep import FAULT, INTERRUPTED, NONE, NOT_STARTED, REFUSED, Ended, summary, summary_json

# What a fault in our own code raises. In a sweep it is shown in full and the next hypothesis goes on, because one
# bug must not cost the rest of a night.
FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)


def run(argv: Sequence[str]) -> int:
    """Measure what the overrides ask for; the exit code. Every job is composed and checked before the first starts.

    Raises CampaignError.
    """
    found = jobs(project_root(), argv)
    if not found:
        return EXIT_DECIDED  # Hydra showed help or the config
    from campaign.run import main

    with _terminated_like_interrupted():
        return sweep(found, main) if read_line(argv).sweep else main(found[0])


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM (timeout, Slurm, systemd) ends a run as Ctrl-C does: trials killed, temporary folders removed."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def sweep(found: Sequence[Job], main: Callable[[Job], int]) -> int:
    """Run every job in order: 0 when each got its decision, 4 when some did not, 130 at once on an interrupt. Ends
    with a summary in which every job has its line, the refused and the not started ones too."""
    ended: list[Ended] = []
    for place, job in enumerate(found, 1):
        print(f"[{place}/{len(found)}] {_label(job)}", file=sys.stderr)
        ended.append(_ended(job, main))
        if ended[-1].code == EXIT_INTERRUPTED:
            break
    rest = [Ended(_label(job), None, ended=NOT_STARTED) for job in found[len(ended) :]]
    jobs = [*ended, *rest]
    as_json = any(job.json for job in found)
    print(f"\n{summary(jobs)}", file=sys.stderr if as_json else sys.stdout, flush=True)
    if as_json:
        print(summary_json(jobs), flush=True)
    if ended and ended[-1].code == EXIT_INTERRUPTED:
        name = ended[-1].label
        said = f"interrupted in {name}, number {len(ended)} of {len(found)}; {len(rest)} were not started"
        print(said, file=sys.stderr)
        return EXIT_INTERRUPTED
    return EXIT_DECIDED if all(job.code == EXIT_DECIDED for job in ended) else EXIT_SWEEP_FAILED


def _ended(job: Job, main: Callable[[Job], int]) -> Ended:
    """Run one job of a sweep; what ends it alone, ends it alone."""
    before, ended, why = len(_decisions(job)), "", ""
    try:
        code = main(job)
    except CampaignError as error:
        show_error(error, as_json=job.json)
        # A warning (exit code 0) is no failure of the hypothesis.
        code, ended, why = error.exit_code, REFUSED, error.message
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else EXIT_SWEEP_FAILED
        ended, why = FAULT, f"the run ended with SystemExit({left.code})"
    except FAULTS as fault:
        traceback.print_exc()
        code, ended, why = EXIT_SWEEP_FAILED, FAULT, f"{type(fault).__name__}: {fault}"
    except KeyboardInterrupt:
        code, ended = EXIT_INTERRUPTED, INTERRUPTED
    made = _decisions(job)[before:]
    if made:
        body = made[-1]
        return Ended(_label(job), code, row(body, body["revoked"]))
    return Ended(_label(job), code, ended=ended or (INTERRUPTED if code == EXIT_INTERRUPTED else NONE), why=why)


def _decisions(job: Job) -> list[dict[str, Any]]:
    """The decisions in the job's ledger; none where it cannot be read, which the run itself says with more words."""
    try:
        with open_ledger(job.root, job.campaign, writable=False) as ledger:
            return ledger.decision_rows()
    except CampaignError:
        return []


def _label(job: Job) -> str:
    """The hypothesis with its parameters: 'register_cap registers=8'."""
    return label(job.hypothesis.name, job.command)
