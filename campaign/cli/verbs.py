"""The light verbs. Each is one function; what it needs is imported when it is called."""

from __future__ import annotations

import argparse
import gc
import sys
from collections import namedtuple
from contextlib import contextmanager
from pathlib import Path

from campaign.cli.static import MORE, SUMMARY, static, static_arguments
from campaign.discovery import DEFAULT_CAMPAIGN, campaign_folder, project_root
from campaign.errors import EXIT_DECIDED, BadInput, TrackingFailed, Unavailable, UnknownName

TYPE_CHECKING = False  # the name that type checkers know; `typing` and `dataclasses` would cost 20 ms a start
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import NoReturn

    from campaign.ledger import Ledger


class Verb(namedtuple("Verb", ("summary", "arguments", "act", "more"))):
    """A word of the command line: `summary` one line of help, `arguments(parser)` adds its own, `act(given)` does it
    and returns the exit code, `more` is the help's end."""

    __slots__ = ()


class Parser(argparse.ArgumentParser):
    """Argparse whose errors are this program's own."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{self.prog}: {message}", remedy=f"{self.prog} --help")


def run_verb(name: str, words: Sequence[str]) -> int:
    """Do what the verb and its arguments say; the exit code. Raises CampaignError."""
    gc.disable()  # a listing makes many small objects and no cycles: collecting them is a tenth of its time
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
    given, left = parser.parse_known_intermixed_args(words)  # options may stand between overrides
    if given.help:
        print(parser.format_help().rstrip())
        return EXIT_DECIDED
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


@contextmanager
def opened(given: argparse.Namespace, *, writable: bool = False) -> Iterator[Ledger]:
    """The ledger of `--campaign`, its notices shown at the end. Raises UnknownName, BadInput, LedgerDamaged."""
    from campaign.ledger import campaigns, open_ledger

    root = project_root()
    campaign_folder(root, given.campaign)
    if writable and given.campaign not in campaigns(root):
        raise UnknownName("campaign", given.campaign, campaigns(root), remedy="campaign stack --campaign NAME")
    with open_ledger(root, given.campaign, writable=writable) as ledger:
        yield ledger
        for notice in ledger.notices:
            print(notice, file=sys.stderr)


def _write(text: str, out: str | None) -> None:
    """Print `text`, or write it whole to the file `out`."""
    if out is None:
        print(text.rstrip("\n"))
        return
    try:
        Path(out).write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8", newline="")
    except OSError as error:
        raise BadInput(f"cannot write {out}: {error.strerror}", remedy="--out FILE in a folder that exists") from error
    print(f"written: {out}", file=sys.stderr)


def _ledger_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--export", choices=("md", "csv", "json"), help="the whole campaign in this format")
    parser.add_argument("--out", metavar="FILE", help="write it to a file instead of stdout")
    parser.add_argument("--check", action="store_true", help="replay the file and judge every decision again")


def _ledger(given: argparse.Namespace) -> int:
    from campaign.report import listing

    if given.check and given.export:
        raise BadInput("--check and --export are two questions", remedy="campaign ledger --check")
    if given.out and not given.export and not given.json:
        raise BadInput("--out needs a format", remedy=f"campaign ledger --export md --out {given.out}")
    with opened(given) as ledger:
        if given.check:
            from campaign.report.check import check

            result = check(ledger)
            print(result.as_json() if given.json else result.text())
        elif given.export:
            from campaign.report.export import export

            _write(export(ledger, given.export), given.out)
        elif given.json:
            _write(listing.as_json(listing.rows(ledger)), given.out)
        else:
            print(listing.table(listing.rows(ledger), terminal=sys.stdout.isatty()))
    return EXIT_DECIDED


def _stack_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--revert", metavar="HYPOTHESIS", help="take an accepted edit out of the stack again")
    parser.add_argument("--why", metavar="TEXT", help="the reason, kept in the ledger (needed with --revert)")


def _stack(given: argparse.Namespace) -> int:
    if (given.revert is None) != (given.why is None) or (given.why is not None and not given.why.strip()):
        raise BadInput(
            "--revert and --why go together: a stack changes for a reason that is written down",
            remedy="campaign stack --revert HYPOTHESIS --why 'the reason'",
        )
    with opened(given, writable=given.revert is not None) as ledger:
        if given.revert is not None:
            _revert(ledger, given.revert, given.why)
        from campaign.report import stack

        print(stack.stack_json(ledger) if given.json else stack.stack_text(ledger))
    return EXIT_DECIDED


def _revert(ledger: Ledger, name: str, why: str) -> None:
    """Revoke the accepted decision on `name` and record the stack that is left."""
    accepted = {decision.hypothesis: decision for decision in ledger.stack()}
    if name not in accepted:
        raise UnknownName("hypothesis in the accepted stack", name, accepted, remedy="campaign stack")
    needing = [other for other, one in accepted.items() if name in ledger.plan(one.plan_id).hypothesis.requires]
    if needing:
        raise BadInput(
            f"{', '.join(needing)} in the stack requires {name}",
            remedy=f"campaign stack --campaign {ledger.folder.name} --revert {needing[-1]} --why '...' first",
        )
    from campaign.run import write_stack

    ledger.revoke(accepted[name].id, why.strip())
    write_stack(ledger)


def _ui_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="loopback only (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=5000, help="default: 5000")
    parser.add_argument("--print-command", action="store_true", help="print the server's command and do not start it")


def _ui(given: argparse.Namespace) -> int:
    import json
    import shlex

    from campaign import tracking

    root = project_root()
    campaign_folder(root, given.campaign)
    if given.print_command or given.json:
        switches = [f"{name}={value}" for name, value in tracking.SWITCHES.items()]
        command = ["env", *switches, *tracking.ui_command(root, given.campaign, given.host, given.port)]
        url = tracking.ui_url(root, given.campaign, given.host, given.port)
        print(json.dumps({"command": command, "url": url}) if given.json else shlex.join(command))
        return EXIT_DECIDED
    try:
        return tracking.serve(root, given.campaign, given.host, given.port)
    except TrackingFailed as failure:
        raise _asked_for(failure) from failure


def _sync_arguments(parser: argparse.ArgumentParser) -> None:
    pass  # --campaign and --json are every verb's


def _sync(given: argparse.Namespace) -> int:
    from campaign import tracking

    with opened(given) as ledger:
        try:
            mirrored = tracking.sync(ledger)
        except TrackingFailed as failure:
            raise _asked_for(failure) from failure
        if given.json:
            import json

            print(json.dumps({"mirrored": mirrored}))
        else:
            print(f"{len(mirrored)} decisions mirrored to MLflow" if mirrored else "MLflow has every decision already")
    return EXIT_DECIDED


def _asked_for(failure: TrackingFailed) -> Unavailable:
    """MLflow's failing is a warning beside a decision, and a failure where MLflow is what was asked for."""
    return Unavailable(failure.message, remedy=failure.remedy)


VERBS = {
    "static": Verb(SUMMARY, static_arguments, static, MORE),
    "ledger": Verb(
        "the decisions of a campaign: as a table, exported, or checked",
        _ledger_arguments,
        _ledger,
        "examples:\n  campaign ledger\n  campaign ledger --export md --out decisions.md\n  campaign ledger --check",
    ),
    "stack": Verb(
        "the accepted edits in order; revert one",
        _stack_arguments,
        _stack,
        "examples:\n  campaign stack\n  campaign stack --revert prenorm_fusion --why 'breaks resume'",
    ),
    "ui": Verb(
        "MLflow on loopback, opened at the campaign's decisions",
        _ui_arguments,
        _ui,
        "Stop it (Ctrl-C) before measuring on a small machine.",
    ),
    "sync": Verb(
        "write to MLflow what it does not have yet of the ledger",
        _sync_arguments,
        _sync,
        "The ledger is the source; MLflow's copy can be deleted and rebuilt with this at any time.",
    ),
}
