"""The ledger: an append-only journal of what was declared, measured and decided, and what it adds up to.

Read in this order: `entry` (one line), `journal` (the file), `state` (the replay). `store` is the protocol that a
shared database would fulfil.
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
from campaign.ledger.writer import WriterLock

__all__ = ["LEDGER_FILE", "Entry", "Journal", "Ledger", "RawDamaged", "Stamp", "campaigns", "now", "open_ledger"]


def campaigns(root: Path) -> list[str]:
    """The names of the campaigns under `runs/` that have a ledger."""
    return sorted(path.parent.name for path in (root / "runs").glob(f"*/{LEDGER_FILE}"))


def open_ledger(root: Path, campaign: str, *, writable: bool, stamp: Stamp | None = None) -> Ledger:
    """The ledger of `runs/<campaign>`, to use as a context manager.

    Writable, it is made where there is none, holds the campaign's writer lock until closed, and has cut a torn tail
    (see `Ledger.notices`). For reading, nothing is created or locked; a campaign that does not exist while others do
    is an UnknownName; before the first run, `default` is an empty ledger. Raises BadInput when another process writes.
    """
    folder = campaign_folder(root, campaign)
    journal = Journal(folder / LEDGER_FILE)
    if writable:
        return Ledger(folder, journal, lock=WriterLock(folder), stamp=stamp or Stamp(host=os.uname().nodename))
    known = campaigns(root)
    if not journal.path.exists() and (known or (campaign != DEFAULT_CAMPAIGN and not folder.is_dir())):
        remedy = "campaign ledger --campaign NAME" if known else f"campaign campaign.name={campaign}, which begins it"
        raise UnknownName("campaign", campaign, known, remedy=remedy)
    return Ledger(folder, journal)
