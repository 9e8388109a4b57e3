"""The front door. The first word decides: a verb, or overrides for a run.

Read in this order: here (what the first word means, and how an error ends), `usage` (help), `verbs` (the light
verbs), `running` (one run, a sweep or a search), `autopilot` (a whole campaign). Everything heavy is imported inside
functions: a light verb answers at once.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Sequence

import campaign
from campaign.cli.usage import usage
from campaign.cli.verbs import VERBS, run_verb
from campaign.errors import EXIT_DECIDED, EXIT_INTERRUPTED, EXIT_NO_DECISION, CampaignError, UnknownName

HELP = ("--help", "-h")
VERSION = ("--version", "-V")


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line asks and return the exit code (the table is in `campaign.errors`).

    Every error meant for the person goes to stderr with what to type next, and as JSON on stdout when asked for.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in words or "json=true" in words
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        return code
    except CampaignError as error:
        from campaign.cli.remedies import next_step

        error.remedy = next_step(error, words)
        show_error(error, as_json=as_json)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted; what was measured is in the ledger", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has seen enough. Nothing may be flushed into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_DECIDED
    except OSError as error:
        # A full or failing disk, under runs/, the temporary folder or a redirected output.
        place = f"{error.filename}: " if error.filename else ""
        remedy = "df -h, make room, then the same command again: it goes on from what the ledger has"
        print(f"campaign: {place}{error.strerror or error}\n  try: {remedy}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_NO_DECISION


def entry() -> None:
    """The `campaign` command: `main`, then an end without a last collection of what the end drops anyway."""
    code = main()
    gc.freeze()
    sys.exit(code)


def _dispatch(words: list[str]) -> int:
    if words and words[0] == "--json":
        words = [*words[1:], "--json"]
    first = words[0] if words else ""
    if first in HELP:
        print(usage())
        return EXIT_DECIDED
    if first in VERSION:
        print(f"campaign {campaign.__version__}")
        return EXIT_DECIDED
    if first in VERBS:
        return run_verb(first, words[1:])
    if first == "run":
        words = words[1:]
    elif first and "=" not in first and first[0] not in "-+~":
        raise _unknown_verb(first)
    if "--all" in words:
        from campaign.cli.autopilot import run_all

        return run_all(words)
    from campaign.cli.running import run

    return run(words)


def _unknown_verb(word: str) -> UnknownName:
    from campaign.cli.usage import options

    remedy = f"campaign hypothesis={word}" if word in options("hypothesis") else "campaign --help"
    return UnknownName("verb", word, ("run", *VERBS), remedy=remedy)


def show_error(error: CampaignError, *, as_json: bool) -> None:
    """The message and its remedy on stderr; the same as one JSON object on stdout when JSON was asked for."""
    print(f"campaign: {error}", file=sys.stderr)
    if as_json:
        said = {
            "error": type(error).__name__,
            "message": error.message,
            "remedy": error.remedy,
            "exit_code": error.exit_code,
        }
        print(json.dumps(said), flush=True)
