"""`campaign doctor`: is this machine fit to measure, what blurs it, and how to mend that."""

from __future__ import annotations

import sys

from campaign.discovery import DEFAULT_CAMPAIGN, project_root
from campaign.errors import EXIT_DECIDED, EXIT_DOUBTFUL, EXIT_NO_DECISION, BadInput, NotAProject

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse

    from campaign.run.doctor import Examined

SUMMARY = "is this machine fit to measure? checks, a short A/A floor, and how to mend each finding"
MORE = """\
Looks at machine, GPU, software and project for about a second, then measures equal arms of the campaign's workload in
three quick A/A rounds: the smallest effect that can be resolved. Nothing is changed. In a project the answer is a line
of the ledger, and campaign show names it beside the decisions that it precedes. Outside a project: the checks alone.

examples:
  campaign doctor
  campaign doctor --no-floor                 at once
  campaign doctor --full                     the A/A null itself, whose floor counts for seven days
  campaign doctor workload=reference_1b      for another workload, before its campaign begins

Exit codes: 0 fit; 5 doubtful, measurements go on and are blurred; 3 unfit; 2 bad input."""
CODES = {"fit": EXIT_DECIDED, "doubtful": EXIT_DOUBTFUL, "unfit": EXIT_NO_DECISION}


def doctor_arguments(parser: argparse.ArgumentParser) -> None:
    """Which floor, and the overrides of a run."""
    parser.add_argument(
        "overrides", nargs="*", metavar="OVERRIDE", help="as for a run: workload=NAME, protocol.pairs=20"
    )
    parser.add_argument("--full", action="store_true", help="the A/A null, whose floor counts (minutes)")
    parser.add_argument("--no-floor", action="store_true", help="the checks alone")


def doctor(given: argparse.Namespace) -> int:
    """Examine, record, answer; the exit code. Raises CampaignError."""
    if given.full and given.no_floor:
        raise BadInput("--full and --no-floor: which of the two?", remedy="campaign doctor --full")
    try:
        root = project_root()
    except NotAProject:
        if given.full or given.overrides or given.campaign != DEFAULT_CAMPAIGN:
            raise
        root = None
    from campaign.run.doctor import FULL, NONE, SHORT, examine, examine_machine

    if root is None:
        return _answer(given, examine_machine())
    import gc
    import shlex

    from campaign.cli.running import terminated_like_interrupted

    if not given.no_floor:
        gc.enable()  # a verb starts without, which is for answers that take no time
    floor = FULL if given.full else NONE if given.no_floor else SHORT
    options = ["--full"] * given.full + ["--no-floor"] * given.no_floor
    options += [] if given.campaign == DEFAULT_CAMPAIGN else ["--campaign", given.campaign]
    command = shlex.join(["campaign", "doctor", *given.overrides, *options])
    with terminated_like_interrupted():
        return _answer(given, examine(root, given.campaign, given.overrides, floor, command, _aside))


def _answer(given: argparse.Namespace, found: Examined) -> int:
    from campaign.report.doctor_text import doctor_json, doctor_text

    code = CODES[found.fitness]
    print(doctor_json(found, code) if given.json else doctor_text(found, terminal=sys.stdout.isatty()), flush=True)
    return code


def _aside(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
