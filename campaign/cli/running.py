"""One run, or a sweep of runs one after another."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from campaign.cli import show_error
from campaign.config import Job, jobs, read_line
from campaign.discovery import project_root
from campaign.errors import EXIT_DECIDED, EXIT_INTERRUPTED, EXIT_SWEEP_FAILED, CampaignError

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
    """Run every job in order: 0 when each got its decision, 4 when some did not, 130 at once on an interrupt."""
    failed: list[str] = []
    for place, job in enumerate(found, 1):
        name = job.hypothesis.name
        print(f"[{place}/{len(found)}] {name}", file=sys.stderr)
        try:
            code = main(job)
        except CampaignError as error:
            show_error(error, as_json=job.json)
            # A warning (exit code 0) is no failure of the hypothesis.
            code = error.exit_code
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else EXIT_SWEEP_FAILED
        except FAULTS:
            traceback.print_exc()
            code = EXIT_SWEEP_FAILED
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
        if code == EXIT_INTERRUPTED:
            rest = len(found) - place
            print(f"interrupted in {name}, number {place} of {len(found)}; {rest} were not started", file=sys.stderr)
            return EXIT_INTERRUPTED
        if code != EXIT_DECIDED:
            failed.append(f"{name} (exit {code})")
    if not failed:
        return EXIT_DECIDED
    print(
        f"{len(found) - len(failed)} of {len(found)} decided; without a decision: {', '.join(failed)}", file=sys.stderr
    )
    return EXIT_SWEEP_FAILED
