"""`campaign report`: a campaign as one HTML page with its figures, for whoever reviews it."""

from __future__ import annotations

import sys
from pathlib import Path

from campaign.cli.answer import opened
from campaign.errors import EXIT_DECIDED, BadInput

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse

SUMMARY = "one self-contained page for reviewers: headline, figures, every decision in a table that sorts"
MORE = """\
examples:
  campaign report                       runs/default/report/index.html, and figures/*.svg and *.png
  campaign report --open                the same, shown in the browser
  campaign report --campaign NAME --out DIR

What is there already is replaced only where this verb made it. Nothing is measured and nothing is asked for over a
network, neither by the verb nor by the page."""
FOLDER = "report"


def report_arguments(parser: argparse.ArgumentParser) -> None:
    """Where it goes."""
    parser.add_argument("--out", metavar="DIR", help="the folder (default: runs/<campaign>/report)")
    parser.add_argument("--open", action="store_true", help="show it in the browser")


def report(given: argparse.Namespace) -> int:
    """Write the page and its figures; the exit code. Raises CampaignError."""
    from campaign.report.review import review

    with opened(given) as book:
        if not book.file.is_file():
            raise BadInput(
                f"campaign {given.campaign} has no ledger yet, so there is nothing to report",
                remedy="campaign hypothesis=aa_null, which begins it",
            )
        made = review(book, Path(given.out) if given.out else book.folder / FOLDER)
    print(made.as_json() if given.json else made.text())
    if given.open:
        _show(made.page.resolve().as_uri())
    return EXIT_DECIDED


def _show(address: str) -> None:
    """Open a browser there, or say where to."""
    import webbrowser

    sys.stdout.flush()
    if not webbrowser.open(address):
        print(f"no browser was found here; open {address}", file=sys.stderr)
