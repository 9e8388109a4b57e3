"""Metrics that somebody else's training logs to MLflow, as a watched command's steps."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

SQLITE = "sqlite:///"


def store(uri: str | None, folder: Path) -> str:
    """Where a command that runs in `folder` keeps its runs, by the URI that it was given: that of the environment, or
    MLflow's default, where it was given none."""
    uri = uri or os.environ.get("MLFLOW_TRACKING_URI")
    if not uri:
        kept = folder / "mlruns"
        uri = str(kept) if kept.is_dir() and any(kept.iterdir()) else f"{SQLITE}mlflow.db"
    if uri.startswith(SQLITE):
        return f"{SQLITE}{folder.resolve() / uri.removeprefix(SQLITE)}"
    return uri if ":" in uri or uri == "databricks" else str(folder.resolve() / uri)


def history(uri: str, experiment: str | None, metric: str, since: float) -> list[tuple[float, int, float]]:
    """(seconds of `time.time`, step, value) of `metric`, in order of steps, of the newest run in `experiment` (default:
    any) at `uri` (see `store`) that was started after `since` seconds; none where there is no such run yet.
    """
    if uri.startswith(SQLITE) and not _has_run(Path(uri.removeprefix(SQLITE)), since):
        return []
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    client = MlflowClient(tracking_uri=uri)
    try:
        found = client.search_experiments()
        ids = [one.experiment_id for one in found if experiment in (None, one.name)]
        newest = client.search_runs(
            ids, f"attributes.start_time >= {int(since * 1000)}", order_by=["attributes.start_time DESC"], max_results=1
        )
        points = client.get_metric_history(newest[0].info.run_id, metric) if newest else []
    except MlflowException:
        return []  # a store that the command is still making; what never comes ends at the trial's deadline
    return sorted((one.timestamp / 1000, one.step, one.value) for one in points)


def _has_run(path: Path, since: float) -> bool:
    """Whether a run was started there. Asked before MLflow is, which would make the tables that are missing: while the
    command makes them, one of the two would fail."""
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as kept,
    ):
        return kept.execute("SELECT 1 FROM runs WHERE start_time >= ?", (int(since * 1000),)).fetchone() is not None
    return False
