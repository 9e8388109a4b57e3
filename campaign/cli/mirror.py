"""`campaign ui` and `campaign sync`: MLflow's view of a campaign."""

from __future__ import annotations

from campaign.cli.answer import opened
from campaign.discovery import campaign_folder, project_root
from campaign.errors import EXIT_DECIDED, TrackingFailed, Unavailable

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse


def ui_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="loopback only (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=5000, help="default: 5000")
    parser.add_argument("--print-command", action="store_true", help="print the server's command and do not start it")


def ui(given: argparse.Namespace) -> int:
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


def sync_arguments(parser: argparse.ArgumentParser) -> None:
    pass  # --campaign and --json are every verb's


def sync(given: argparse.Namespace) -> int:
    from campaign import tracking

    with opened(given) as ledger:
        try:
            mirrored = tracking.sync(ledger)
        except TrackingFailed as failure:
            raise _asked_for(failure) from failure
        if given.json:
            import json

            print(json.dumps({"schema": 1, "mirrored": mirrored}))
        elif mirrored:
            print(f"{len(mirrored)} decisions, findings and profiles mirrored to MLflow")
        else:
            print("MLflow has every decision, finding and profile already")
    return EXIT_DECIDED


def _asked_for(failure: TrackingFailed) -> Unavailable:
    """MLflow's failing is a warning beside a decision, and a failure where MLflow is what was asked for."""
    return Unavailable(failure.message, remedy=failure.remedy)
