"""`campaign profile OVERRIDES`: both arms under torch.profiler over whole steps, and what differs in their traces."""

from __future__ import annotations

import sys

from campaign.discovery import DEFAULT_CAMPAIGN
from campaign.errors import EXIT_DECIDED, BadInput

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse

    from campaign.config import Job
    from campaign.run.profile import Compared

SUMMARY = "both arms of a hypothesis under torch.profiler, and what the edit changed in their traces"
MORE = """\
Runs control and treatment one after the other, each in a process of its own: warmed up, then so many whole steps in a
trace (CPU operators, and kernels where the device is CUDA). The traces are kept beside the ledger, tagged as profile
evidence. Nothing of it is a measurement: what an edit wins is campaign hypothesis=NAME.

examples:
  campaign profile hypothesis=prenorm_fusion
  campaign profile hypothesis=graph_replay workload=reference_1b --steps 10
  campaign profile -m hypothesis=prenorm_fusion,compile

Exit codes: 0 there are two traces and their comparison; 2 bad input; 3 no trace (see why); 4 a sweep with a 3."""


def profile_arguments(parser: argparse.ArgumentParser) -> None:
    """The overrides of a run, its sweeps, and how many steps."""
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="as for a run: hypothesis=NAME, workload=NAME")
    parser.add_argument("-m", "--multirun", action="store_true", help="a sweep: several, one after another")
    parser.add_argument("--steps", type=int, metavar="N", help="whole steps in each trace (default: 5)")


def profile(given: argparse.Namespace) -> int:
    """Profile every job that was asked for; the exit code. Raises CampaignError."""
    if given.steps is not None and given.steps < 1:
        raise BadInput(f"--steps {given.steps}: a range holds at least 1 whole step", remedy="--steps 5")
    import gc

    from campaign.cli.running import sweep, terminated_like_interrupted
    from campaign.cli.static import asked_for

    gc.enable()  # a verb starts without, which is for answers that take no time
    found = asked_for(given)
    with terminated_like_interrupted():
        if given.multirun:
            return sweep(found, lambda job, _: traced(job, given.steps))
        return traced(found[0], given.steps)


def traced(job: Job, steps: int | None) -> int:
    """Profile one job, write it in the ledger and print what differs; the exit code. Raises CampaignError."""
    from campaign import lease
    from campaign.ledger import open_ledger
    from campaign.run.profile import STEPS
    from campaign.run.profile import profile as profiled

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    with (
        lease.hold(job.device, job.lease_wait_seconds, say, holder=job.campaign),
        open_ledger(job.root, job.campaign, writable=True) as ledger,
    ):
        for notice in ledger.notices:
            say(notice)
        found = profiled(job, ledger, STEPS if steps is None else steps, say)
        print(_json(found, str(ledger.file)) if job.json else _text(found, str(ledger.file)), flush=True)
    return EXIT_DECIDED


def _text(found: Compared, place: str) -> str:
    """The comparison, the files, and what to type next."""
    import os
    import shlex

    from campaign.report.comparison_text import comparison_text

    said = [comparison_text(found.comparison, terminal=sys.stdout.isatty()), ""]
    near = {role: shlex.quote(os.path.relpath(path)) for role, path in found.traces.items()}
    campaign = "" if found.campaign == DEFAULT_CAMPAIGN else f" --campaign {found.campaign}"
    said += [f"{role} trace: {path}" for role, path in near.items()]
    said += [f"written: {place} ({found.id})", "", "next:"]
    said += [f"  campaign diagnose {near['control']} --record{campaign}", f"  campaign diagnose {near['treatment']}"]
    return "\n".join([*said, f"  campaign compare {near['control']} {near['treatment']} --top 20"])


def _json(found: Compared, place: str) -> str:
    """`{"schema": 1, "ledger": path, "id": ..., "traces": {...}, ...the line, "comparison": {...}}`, one line."""
    from campaign.report.diagnosis_json import values
    from campaign.report.json_text import as_line

    traces = {role: str(path) for role, path in found.traces.items()}
    head = {"schema": 1, "ledger": place, "id": found.id, "traces": traces}
    return as_line({**head, **found.body, "comparison": values(found.comparison)})
