"""What light verbs share: the ledger of `--campaign` opened, and an answer printed or written to a file."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path

from campaign.discovery import campaign_folder, project_root
from campaign.errors import BadInput, UnknownName

TYPE_CHECKING = False  # the name that type checkers know; `typing` would cost a light verb its start
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from campaign.ledger import Ledger


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


def write(answer: str | bytes, out: str | None) -> None:
    """Print `answer`, or write it whole to the file `out`. Text ends with a newline; bytes go as they are."""
    if isinstance(answer, str):
        answer = (answer if answer.endswith("\n") else f"{answer}\n").encode()
    if out is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
        return
    try:
        Path(out).write_bytes(answer)
    except OSError as error:
        raise BadInput(f"cannot write {out}: {error.strerror}", remedy="--out FILE in a folder that exists") from error
    print(f"written: {out}", file=sys.stderr)
