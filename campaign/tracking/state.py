"""What MLflow's store has of a campaign, asked without importing MLflow, and without waiting for long."""

from __future__ import annotations

import contextlib
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Collection
from pathlib import Path

from campaign.tracking.store import database

SECONDS = 2.0
_WHOLE = """
SELECT ids.value FROM tags AS ids
JOIN tags AS ends ON ends.run_uuid = ids.run_uuid AND ends.key = 'campaign.mirror' AND ends.value = 'whole'
JOIN runs ON runs.run_uuid = ids.run_uuid AND runs.lifecycle_stage = 'active'
JOIN experiments ON experiments.experiment_id = runs.experiment_id AND experiments.name = ?
WHERE ids.key = 'campaign.decision_id'
"""


def mirror_state(root: Path, campaign: str, ids: Collection[str]) -> tuple[str, int]:
    """('none' without a store yet, 'ok', or what is wrong with it; how many of these decisions it does not have
    whole)."""
    path = database(root)
    if not path.is_file():
        return "none", len(ids)
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=SECONDS)) as connection:
            whole = {str(row[0]) for row in connection.execute(_WHOLE, (campaign,))}
    except sqlite3.Error as error:
        return f"{path} cannot be read as MLflow's database: {error}", len(ids)
    return "ok", len(set(ids) - whole)


def server_state(address: str) -> str:
    """'ok' where an MLflow server at `address` says that it is well (its /health), else what went wrong."""
    try:
        with urllib.request.urlopen(f"{address.rstrip('/')}/health", timeout=SECONDS) as answer:
            return "ok" if answer.status == 200 else f"{address} answered {answer.status}"
    except (OSError, ValueError) as error:  # urllib's errors are OSErrors
        return f"{address} does not answer: {getattr(error, 'reason', error)}"
