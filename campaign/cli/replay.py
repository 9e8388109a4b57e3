"""`campaign replay`: the exact arms of a recorded decision, measured again."""

from __future__ import annotations

from campaign.discovery import campaign_folder, project_root
from campaign.errors import BadInput, UnknownName

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse

SUMMARY = "measure the exact arms of a decision again, from its own commit and patch"
MORE = """\
The arms are those that the decision recorded. The code is checked out in a git worktree of its own in the temporary
folder, which is removed at the end, and is compared with the hash that was recorded: other code is refused.
What comes out is a finding beside the decision; it changes neither the decision nor the stack.

examples:
  campaign replay 7
  campaign replay prenorm_fusion              its newest decision
  campaign replay prenorm_fusion --rounds 8

Exit codes: 0 measured again; 2 bad input, or the code cannot be rebuilt exactly; 3 the rounds say nothing."""


def replay_arguments(parser: argparse.ArgumentParser) -> None:
    """Which decision, and how many rounds."""
    parser.add_argument("decision", nargs="*", metavar="DECISION", help="its number, id or hypothesis (the newest)")
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="valid rounds, at least 2 (default: as many as confirm)"
    )


def replay(given: argparse.Namespace) -> int:
    """Measure one decision again; the exit code. Raises CampaignError."""
    if len(given.decision) != 1:
        raise BadInput("campaign replay takes one decision", remedy="campaign ledger, then campaign replay NUMBER")
    if given.rounds is not None and given.rounds < 2:
        raise BadInput(f"--rounds {given.rounds}: one round has no scatter, so at least 2", remedy="--rounds 6")
    from campaign.ledger import campaigns

    root = project_root()
    campaign_folder(root, given.campaign)
    if given.campaign not in campaigns(root):
        raise UnknownName("campaign", given.campaign, campaigns(root), remedy="campaign replay N --campaign NAME")
    import gc

    from campaign.cli.running import terminated_like_interrupted
    from campaign.run.replay import replay as measure_again

    gc.enable()  # a verb starts without, which is for answers that take no time
    with terminated_like_interrupted():
        return measure_again(root, given.campaign, given.decision[0], given.rounds, as_json=given.json)
