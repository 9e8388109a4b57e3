"""The ledger: an append-only journal of what was declared, measured and decided, and what it adds up to.

Read in this order: `entry` (one line), `journal` (the file), `standing` (the replay), `state` (all of it together).
`store` is the protocol that a shared database would fulfil.
"""

from __future__ import annotations

import os
from pathlib import Path

from campaign.discovery import DEFAULT_CAMPAIGN, campaign_folder
from campaign.errors import UnknownName
from campaign.ledger.entry import Entry, Stamp, now
from campaign.ledger.journal import Journal
from campaign.ledger.raw import RawDamaged
from campaign.ledger.state import LEDGER_FILE, Ledger

__all__ = ["LEDGER_FILE", "Entry", "Journal", "Ledger", "RawDamaged", "Stamp", "campaigns", "now", "open_ledger"]


def campaigns(root: Path) -> list[str]:
    """The names of the campaigns under `runs/` that have a ledger."""
    return sorted(path.parent.name for path in (root / "runs").glob(f"*/{LEDGER_FILE}"))


def open_ledger(root: Path, campaign: str, *, writable: bool, stamp: Stamp | None = None) -> Ledger:
    """The ledger of `runs/<campaign>`, to use as a context manager.

    Writable, it has cut a torn tail (see `Ledger.notices`), and is made by the first append where there is none;
    several processes may have it so at once. For reading, nothing is created; a campaign that does not exist while
    others do is an UnknownName; before the first run, `default` is an empty ledger. Raises LedgerUnwritable,
    LedgerDamaged.
    """
    folder = campaign_folder(root, campaign)
    journal = Journal(folder / LEDGER_FILE)
    if writable:
        return Ledger(folder, journal, writable=True, stamp=stamp or Stamp(host=os.uname().nodename))
    known = campaigns(root)
    if not journal.path.exists() and (known or (campaign != DEFAULT_CAMPAIGN and not folder.is_dir())):
        remedy = "campaign ledger --campaign NAME" if known else f"campaign campaign.name={campaign}, which begins it"
        raise UnknownName("campaign", campaign, known, remedy=remedy)
    return Ledger(folder, journal)
