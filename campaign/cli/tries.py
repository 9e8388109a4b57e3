"""`campaign try`: is what was just typed slower?"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from campaign.cli.answer import write
from campaign.errors import EXIT_NO_DECISION, BadInput, CampaignError

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse

SUMMARY = "is what you just typed slower? The working tree against HEAD, or a branch against its base"
MORE = """\
Both sides run in git worktrees of their own; your files, index and branches are not touched. The verdict is written to
runs/try and joins no stack. It goes on until it can tell, or the declared looks end.

examples:
  campaign try                              the working tree, untracked files among it, against HEAD
  campaign try --base main                  HEAD (and the working tree, where it is dirty) against the merge base
  campaign try --base origin/main --export md --out try.md      for a pull request
  campaign try workload.batch.tokens=384 protocol=quick

Exit codes: 0 not slower beyond d; 1 slower; 2 bad input, or nothing to measure; 3 can't tell, or no valid result."""


def try_arguments(parser: argparse.ArgumentParser) -> None:
    """What is compared with what, on which workload, and how it is shown."""
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="workload and protocol, as for a run")
    parser.add_argument("--base", metavar="REF", help="measure HEAD against its merge base with this branch")
    parser.add_argument("--workload", metavar="NAME", help="workload=NAME")
    parser.add_argument("--parity", metavar="KIND", default="loss", help="loss, bitwise, rounding, precision")
    parser.add_argument("--export", choices=("md",), help="print a table to paste")
    parser.add_argument("--out", metavar="FILE", help="write the answer to FILE")


def try_(given: argparse.Namespace) -> int:
    """Measure one try and show it; the exit code. Raises CampaignError."""
    if given.json and given.export:
        raise BadInput("--json and --export are two forms of one answer", remedy="leave one of them out")
    if given.base is not None and not given.base:
        raise BadInput("--base needs a branch, tag or commit", remedy="campaign try --base main")
    if given.out and not os.access(Path(given.out).absolute().parent, os.W_OK | os.X_OK):
        raise BadInput(f"cannot write {given.out}: no folder there to write into", remedy="--out FILE elsewhere")
    words = [*given.overrides, *([f"workload={given.workload}"] if given.workload else [])]
    import gc

    from campaign.cli.running import terminated_like_interrupted
    from campaign.discovery import project_root
    from campaign.report.progress import Progress
    from campaign.report.tried import Answer, answer_json, answer_markdown, answer_text
    from campaign.run.tries import tried

    gc.enable()  # a verb starts without, which is for answers that take no time
    aside = sys.stderr if given.export or given.out else None
    try:
        with terminated_like_interrupted():
            found = tried(
                project_root(), given.base or "", words, given.parity, Progress(json=given.json, output=aside)
            )
        sides = found.sides
        answer = Answer(
            before=sides.before_name,
            after=sides.after_name,
            files=sides.files,
            left_out=(*sides.left_out, *found.plan.source["edits"]["try"]["notes"]),
            decision=found.decision,
            plan=found.plan,
            ledger=str(found.file),
        )
        show = answer_json if given.json else answer_markdown if given.export else answer_text
        write(show(answer), given.out)
        return answer.exit_code
    except (OSError, CampaignError):
        raise  # what every verb says alike
    except Exception:  # whatever it is: Python would end with 1, which says slower to whoever reads exit codes
        import traceback

        traceback.print_exc()
        return EXIT_NO_DECISION
