"""`campaign compare BEFORE AFTER`: launches and traced time of two bounded ranges, a step each."""

from __future__ import annotations

import sys

from campaign.cli import captures
from campaign.cli.answer import write
from campaign.errors import EXIT_DECIDED, BadInput

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse

    from campaign.diagnosis.found import Comparison
    from campaign.traces import Timeline

SUMMARY = "what an edit changed in a trace: launches and time of families and kernels, a step"
MORE = """\
Both files are traces of the same whole steps, before and after an edit. A difference in traced time is never called a
speedup: a profiler slows what it looks at, and both captures are one sample each. Launch counts are compared exactly.

examples:
  campaign compare before.json.gz after.json.gz
  campaign compare before.sqlite after.sqlite --steps 10
  campaign compare before.sqlite after.sqlite --before-steps 10 --after-steps 12 --range step

Exit codes: 0 there is a comparison; 2 a file cannot be read, or bad input."""


def compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Which two traces, and how many steps each holds."""
    parser.add_argument("files", nargs="*", metavar="BEFORE AFTER", help="two traces")
    parser.add_argument("--steps", type=int, metavar="N", help="how many whole steps each captured range holds")
    parser.add_argument("--before-steps", type=int, metavar="N", help="and where they differ: the first")
    parser.add_argument("--after-steps", type=int, metavar="N", help="and the second")
    captures.page_arguments(parser)


def compare(given: argparse.Namespace) -> int:
    """Read both traces, compare them, answer; the exit code. Raises CampaignError."""
    if len(given.files) != 2:
        raise BadInput(
            f"campaign compare takes two traces, not {len(given.files)}", remedy="campaign compare BEFORE AFTER"
        )
    captures.check_page(given)
    for option in ("steps", "before_steps", "after_steps"):
        captures.check_steps(getattr(given, option), f"--{option.replace('_', '-')}")
    if given.steps is not None and (given.before_steps is not None or given.after_steps is not None):
        raise BadInput("--steps is for both, --before-steps and --after-steps for one", remedy="leave one out")
    found = _compared(given)
    if given.json:
        from campaign.report.diagnosis_json import comparison_json

        write(comparison_json(found), given.out)
    elif given.export:
        from campaign.report.comparison_text import comparison_page

        write(comparison_page(found, given.export, captures.top(given)), given.out)
    else:
        from campaign.report.comparison_text import comparison_text

        write(comparison_text(found, terminal=sys.stdout.isatty(), top=captures.top(given)), None)
    return EXIT_DECIDED


def _compared(given: argparse.Namespace) -> Comparison:
    from dataclasses import replace

    from campaign.diagnosis.compare import compare as comparison_of

    asked = captures.question(given, steps=given.before_steps or given.steps)
    with captures.captures(given.files) as found:
        before, after = (_trace(one) for one in found)
        return comparison_of(before, after, asked, replace(asked, steps=given.after_steps or given.steps))


def _trace(one: object) -> Timeline:
    from campaign.traces import Timeline

    if isinstance(one, Timeline):
        return one
    source = getattr(one, "source", None)
    raise BadInput(
        f"{source.file if source else one}: a kernel report has no range to compare, only counters",
        remedy="campaign compare BEFORE AFTER, with two traces",
    )
