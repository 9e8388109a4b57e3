"""The verbs, and how one is read and done. Each is a function of another module; what it needs is imported when it is
called."""

from __future__ import annotations

import argparse
import gc
from collections import namedtuple

from campaign.cli import (
    compare,
    completion,
    decisions,
    diagnose,
    doctor,
    feasibility,
    init,
    mirror,
    profile,
    replay,
    report,
    stacking,
    static,
    studies,
    tries,
)
from campaign.discovery import DEFAULT_CAMPAIGN
from campaign.errors import EXIT_DECIDED, BadInput, UnknownName

TYPE_CHECKING = False  # the name that type checkers know; `typing` and `dataclasses` would cost 20 ms a start
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


class Verb(namedtuple("Verb", ("summary", "arguments", "act", "more"))):
    """A word of the command line: `summary` one line of help, `arguments(parser)` adds its own, `act(given)` does it
    and returns the exit code, `more` is the help's end."""

    __slots__ = ()


class Parser(argparse.ArgumentParser):
    """Argparse whose errors are this program's own."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{self.prog}: {message}", remedy=f"{self.prog} --help")


def parser_of(name: str) -> Parser:
    """The options of a verb, those that every verb has first."""
    verb = VERBS[name]
    parser = Parser(
        prog=f"campaign {name}",
        description=verb.summary[0].upper() + verb.summary[1:] + ".",
        epilog=verb.more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this and exit")
    parser.add_argument("--campaign", metavar="NAME", default=DEFAULT_CAMPAIGN, help="which ledger (default: default)")
    parser.add_argument("--json", action="store_true", help="answer as JSON on stdout")
    verb.arguments(parser)
    return parser


def run_verb(name: str, words: Sequence[str]) -> int:
    """Do what the verb and its arguments say; the exit code. Raises CampaignError."""
    gc.disable()  # a listing makes many small objects and no cycles: collecting them is a tenth of its time
    verb, parser = VERBS[name], parser_of(name)
    if "--help" in words or "-h" in words:  # before what is missing or wrong beside it
        print(parser.format_help().rstrip())
        return EXIT_DECIDED
    given, left = parser.parse_known_intermixed_args(words)  # options may stand between overrides
    if left:
        word = left[0].split("=", 1)[0]
        if not word.startswith("-"):
            raise BadInput(f"campaign {name} takes no argument {word!r}", remedy=f"campaign {name} --help")
        import re

        known = {"--help", *re.findall(r"--[a-z-]+", parser.format_help())}
        raise UnknownName(f"option of campaign {name}", word, known, remedy=f"campaign {name} --help")
    try:
        return verb.act(given)
    finally:
        gc.enable()


VERBS = {
    "init": Verb(init.SUMMARY, init.init_arguments, init.init, init.MORE),
    "doctor": Verb(doctor.SUMMARY, doctor.doctor_arguments, doctor.doctor, doctor.MORE),
    "diagnose": Verb(diagnose.SUMMARY, diagnose.diagnose_arguments, diagnose.diagnose, diagnose.MORE),
    "compare": Verb(compare.SUMMARY, compare.compare_arguments, compare.compare, compare.MORE),
    "profile": Verb(profile.SUMMARY, profile.profile_arguments, profile.profile, profile.MORE),
    "static": Verb(static.SUMMARY, static.static_arguments, static.static, static.MORE),
    "feasibility": Verb(
        feasibility.SUMMARY, feasibility.feasibility_arguments, feasibility.feasibility, feasibility.MORE
    ),
    "ledger": Verb(decisions.SUMMARY, decisions.ledger_arguments, decisions.ledger, decisions.MORE),
    "show": Verb(decisions.SHOW_SUMMARY, decisions.show_arguments, decisions.show, decisions.SHOW_MORE),
    "stack": Verb(stacking.SUMMARY, stacking.stack_arguments, stacking.stack, stacking.MORE),
    "revalidate": Verb(studies.REVALIDATE, studies.revalidate_arguments, studies.revalidate, studies.REVALIDATE_MORE),
    "interactions": Verb(
        studies.INTERACTIONS, studies.interactions_arguments, studies.interactions, studies.INTERACTIONS_MORE
    ),
    "replay": Verb(replay.SUMMARY, replay.replay_arguments, replay.replay, replay.MORE),
    "report": Verb(report.SUMMARY, report.report_arguments, report.report, report.MORE),
    "try": Verb(tries.SUMMARY, tries.try_arguments, tries.try_, tries.MORE),
    "ui": Verb(
        "MLflow on loopback, opened at the campaign's decisions",
        mirror.ui_arguments,
        mirror.ui,
        "Stop it (Ctrl-C) before measuring on a small machine.",
    ),
    "sync": Verb(
        "write to MLflow what it does not have yet of the ledger",
        mirror.sync_arguments,
        mirror.sync,
        "The ledger is the source; MLflow's copy can be deleted and rebuilt with this at any time.",
    ),
    "completion": Verb(completion.SUMMARY, completion.completion_arguments, completion.completion, completion.MORE),
}
