"""The mirror of a run's decisions, never in the way of the next measurement.

The project's own store is written at once. A server may be slow, or hang, so a process of its own writes to it
(`python -m campaign.tracking.sender ROOT CAMPAIGN ADDRESS ID...`), and is killed when its time is over: what it left
half-written is written anew by `campaign sync`. It ends before the run goes on, so nothing of it runs beside a round.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import campaign
from campaign.destination import NONE, again, is_server
from campaign.errors import CampaignError, TrackingFailed
from campaign.tracking.decided import Decided
from campaign.tracking.mirror import sync
from campaign.tracking.shared import flaw
from campaign.tracking.store import NOT_THERE, hidden

LIMIT_SECONDS = 60.0


def send(ledger: Decided, ids: Sequence[str], destination: str, limit_seconds: float = LIMIT_SECONDS) -> list[str]:
    """Write the decisions, findings or profiles with these ids to `destination` (`mlflow`, `none` or an address); the
    ids written. Raises TrackingFailed with the cause and the `campaign sync` that completes it; on a server that is at
    the latest `limit_seconds` after the first answer."""
    if destination == NONE:
        return []
    if not is_server(destination):
        return sync(ledger, ids)
    remedy = again(ledger.folder.name, destination)
    if why := flaw(destination):
        raise TrackingFailed(f"{NOT_THERE}: {destination} does not answer ({why})", remedy=remedy)
    answer = _answer(ledger, ids, destination, limit_seconds, remedy)
    if "error" in answer:
        raise TrackingFailed(str(answer["error"]), remedy=str(answer["remedy"]))
    return [str(id) for id in answer["mirrored"]]


def _answer(ledger: Decided, ids: Sequence[str], destination: str, limit_seconds: float, remedy: str) -> dict[str, Any]:
    root, name = ledger.folder.parent.parent, ledger.folder.name
    command = [sys.executable, "-P", "-m", __name__, str(root), name, destination, *ids]
    package = str(Path(campaign.__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            out, said = process.communicate(timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            raise TrackingFailed(
                f"{NOT_THERE}: {destination} took longer than {limit_seconds:.0f} s", remedy=remedy
            ) from None
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    try:
        found = json.loads(out)
    except ValueError:
        last = hidden((said.decode(errors="replace").strip().splitlines() or ["no message"])[-1])[:300]
        raise TrackingFailed(
            f"{NOT_THERE}: the writer to {destination} ended with code {process.returncode}: {last}", remedy=remedy
        ) from None
    return dict(found)


def main(words: Sequence[str]) -> None:
    """Mirror what `words` name (root, campaign, address, ids) and print what became of it as JSON."""
    from campaign.ledger import open_ledger

    root, name, destination, *ids = words
    try:
        with open_ledger(Path(root), name, writable=False) as ledger:
            print(json.dumps({"mirrored": sync(ledger, ids, destination)}))
    except CampaignError as error:
        print(json.dumps({"error": error.message, "remedy": error.remedy or again(name, destination)}))


if __name__ == "__main__":
    main(sys.argv[1:])
