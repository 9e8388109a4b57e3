"""`campaign ui` and `campaign sync`: MLflow's view of a campaign."""

from __future__ import annotations

from campaign.cli.answer import opened
from campaign.discovery import campaign_folder, project_root
from campaign.errors import EXIT_DECIDED, TrackingFailed, Unavailable

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse


def ui_arguments(parser: argparse.ArgumentParser) -> None:
    uri_argument(parser)
    parser.add_argument("--host", default="127.0.0.1", help="loopback only (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=5000, help="default: 5000")
    parser.add_argument("--print-command", action="store_true", help="print the server's command and do not start it")


def uri_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--uri", metavar="ADDRESS", help="an MLflow server, or `mlflow` (default: the newest run's, or the config's)"
    )


def ui(given: argparse.Namespace) -> int:
    import json
    import shlex

    from campaign import tracking
    from campaign.destination import is_server
    from campaign.ledger import open_ledger

    root = project_root()
    folder = campaign_folder(root, given.campaign)
    with open_ledger(root, given.campaign, writable=False) as ledger:
        destination = tracking.chosen(root, ledger, given.uri)
    if is_server(destination):
        try:
            url = tracking.page(root, folder, destination)
        except TrackingFailed as failure:
            raise _asked_for(failure) from failure
        print(json.dumps({"schema": 1, "command": [], "url": url}) if given.json else url)
        return EXIT_DECIDED
    if given.print_command or given.json:
        switches = [f"{name}={value}" for name, value in tracking.SWITCHES.items()]
        command = ["env", *switches, *tracking.ui_command(root, given.campaign, given.host, given.port)]
        url = tracking.ui_url(root, given.campaign, given.host, given.port)
        print(json.dumps({"schema": 1, "command": command, "url": url}) if given.json else shlex.join(command))
        return EXIT_DECIDED
    try:
        return tracking.serve(root, given.campaign, given.host, given.port)
    except TrackingFailed as failure:
        raise _asked_for(failure) from failure


def sync_arguments(parser: argparse.ArgumentParser) -> None:
    uri_argument(parser)


def sync(given: argparse.Namespace) -> int:
    import sys

    from campaign import tracking

    def said(id: str) -> None:
        print(f"mirrored {id}", file=sys.stderr, flush=True)

    with opened(given) as ledger:
        destination = tracking.chosen(project_root(), ledger, given.uri)
        try:
            mirrored = tracking.sync(ledger, None, destination, said)
        except TrackingFailed as failure:
            raise _asked_for(failure) from failure
        if given.json:
            import json

            print(json.dumps({"schema": 1, "mirrored": mirrored, "destination": destination}))
        elif mirrored:
            print(f"{len(mirrored)} decisions, findings and profiles mirrored to MLflow")
        else:
            print("MLflow has every decision, finding and profile already")
    return EXIT_DECIDED


def _asked_for(failure: TrackingFailed) -> Unavailable:
    """MLflow's failing is a warning beside a decision, and a failure where MLflow is what was asked for."""
    return Unavailable(failure.message, remedy=failure.remedy)
