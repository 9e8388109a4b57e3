"""`campaign ledger`: the decisions of a campaign as a table, exported, or checked. `campaign show`: one of them."""

from __future__ import annotations

import sys

from campaign.cli.answer import opened, write
from campaign.errors import EXIT_DECIDED, BadInput

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse

    from campaign.report.filters import Filters

SUMMARY = "the decisions of a campaign: as a table, exported, or checked"
MORE = """\
examples:
  campaign ledger
  campaign ledger --verdict accept,reject --since 3d
  campaign ledger show 7                          all evidence of one decision, as campaign show 7
  campaign ledger --export md --out campaign.md   the page for a pull request
  campaign ledger --export html --out campaign.html
  campaign ledger --check                         judge every decision and finding again from the raw block times"""
SHOW_SUMMARY = "everything that the ledger has about one decision"
SHOW_MORE = """\
examples:
  campaign show 7
  campaign show prenorm_fusion        its newest decision
  campaign show 7 --no-blocks         at once, without judging its rounds again
  campaign show 7 --json
  campaign show finding-3             a finding with its study, arms and rounds"""
FORMATS = ("md", "html", "csv", "parquet", "json")
FILTERS = ("verdict", "since", "hypothesis")


def ledger_arguments(parser: argparse.ArgumentParser) -> None:
    """How the decisions are shown, and which."""
    parser.add_argument("show", nargs="*", metavar="show DECISION", help="one decision: its number, id or hypothesis")
    parser.add_argument("--export", choices=FORMATS, help="the whole campaign in this format")
    parser.add_argument("--out", metavar="FILE", help="write it to a file instead of stdout")
    parser.add_argument("--check", action="store_true", help="replay the file and judge everything again")
    parser.add_argument("--verdict", metavar="V[,V]", help="only these: accept, reject, inconclusive, ...")
    parser.add_argument("--since", metavar="WHEN", help="only later ones: 2026-12-01 (UTC), or an age: 12h, 3d, 2w")
    parser.add_argument("--hypothesis", metavar="NAME[,NAME]", help="only decisions on these")
    parser.add_argument("--no-blocks", action="store_true", help="with show: without judging its rounds again")


def ledger(given: argparse.Namespace) -> int:
    """Answer in the way that was asked for; the exit code. Raises CampaignError."""
    wanted = _wanted(given)
    if given.show:
        return _show(given, given.show[1])
    with opened(given) as book:
        if given.check:
            from campaign.report.check import check

            result = check(book, _progress) if sys.stderr.isatty() else check(book)
            print(result.as_json() if given.json else result.text())
        elif given.export:
            from campaign.report.export import export_file

            write(export_file(book, given.export, wanted), given.out)
        else:
            from campaign.report import listing

            rows = listing.rows(book)
            shown = wanted.keep(rows) if wanted else rows
            if given.json:
                write(listing.as_json(shown), given.out)
            else:
                print(listing.table(shown, terminal=sys.stdout.isatty(), of=len(rows)))
    return EXIT_DECIDED


def _progress(done: int, of: int) -> None:
    """A line that counts, on a terminal."""
    print(f"\r{done} of {of} judged", end="\n" if done == of else "", file=sys.stderr, flush=True)


def _wanted(given: argparse.Namespace) -> Filters | None:
    """The filters that were asked for. Raises BadInput for options that do not go together."""
    filtered = [f"--{name}" for name in FILTERS if getattr(given, name) is not None]
    if given.show and (given.show[0] != "show" or len(given.show) != 2):
        word = given.show[0] if given.show[0] != "show" else " ".join(given.show)
        raise BadInput(
            f"campaign ledger takes no argument {word!r}", remedy="campaign show DECISION, or campaign ledger --help"
        )
    if given.show and (given.check or given.export or given.out or filtered):
        raise BadInput("show is one decision with all its evidence", remedy=f"campaign show {given.show[1]}")
    if given.check and given.export:
        raise BadInput("--check and --export are two questions", remedy="campaign ledger --check")
    if given.check and filtered:
        raise BadInput(
            f"--check is about the whole ledger, {filtered[0]} a part of it", remedy="campaign ledger --check"
        )
    if given.no_blocks and not given.show:
        raise BadInput("--no-blocks belongs to show", remedy="campaign show DECISION --no-blocks")
    if given.out and not given.export and not given.json:
        raise BadInput("--out needs a format", remedy=f"campaign ledger --export md --out {given.out}")
    if given.export == "parquet" and not given.out and sys.stdout.isatty():
        raise BadInput("Parquet is no text", remedy="campaign ledger --export parquet --out decisions.parquet")
    if not filtered:
        return None
    from campaign.report.filters import read

    return read(given.verdict, given.since, given.hypothesis)


def show_arguments(parser: argparse.ArgumentParser) -> None:
    """Which decision."""
    parser.add_argument(
        "decision", nargs="*", metavar="DECISION", help="its number, id or hypothesis (the newest); or finding-3"
    )
    parser.add_argument("--no-blocks", action="store_true", help="without judging its rounds again")


def show(given: argparse.Namespace) -> int:
    """Print one decision with all its evidence; the exit code. Raises CampaignError."""
    if len(given.decision) != 1:
        raise BadInput("campaign show takes one decision", remedy="campaign show 1, or campaign ledger")
    return _show(given, given.decision[0])


def _show(given: argparse.Namespace, asked: str) -> int:
    from campaign.report.evidence_text import Shown, found, shown_json, shown_text

    with opened(given) as book:
        from campaign.report.study_text import finding_of, study_shown

        finding = finding_of(book, asked)
        if finding is not None:
            print(study_shown(book, finding, blocks=not given.no_blocks, as_json=given.json))
            return EXIT_DECIDED
        shown = Shown(book, found(book, asked), blocks=not given.no_blocks)
        print(shown_json(shown) if given.json else shown_text(shown))
    return EXIT_DECIDED
