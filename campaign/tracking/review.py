"""The runs table as a reviewer should meet it: decisions and findings, and the columns that answer what was tried,
what won, by how much, how sure, and what it does together.

MLflow's own default shows no metric and no tag. A shared view state is an experiment tag with JSON in it and a URL
parameter that names it. It is a format of MLflow's front end (read from the 3.17 bundle), so nothing depends on it:
where a later version ignores it, the table falls back to its default.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from campaign.destination import again
from campaign.errors import BadInput
from campaign.tracking.store import REMEDY, database

VIEW_KEY = "campaign"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW_KEY}"
# Column ids of the table in its order, and widths in pixels. The first ones are MLflow's own and always shown. The
# ratio is on the clock in the column beside it; tokens a second are on the wall clock, or missing.
_FIXED = {"attributes.`Run Name`": 300, "runDateAndNestInfo": 115}
COLUMNS = {
    "tags.`verdict`": 105,
    "tags.`speed`": 155,
    "tags.`memory`": 150,
    "tags.`floor`": 125,
    "metrics.`ratio`": 75,
    "tags.`clock`": 70,
    "metrics.`isolated`": 85,
    "metrics.`cumulative`": 100,
    "metrics.`interaction`": 100,
    "tags.`word`": 170,
    "metrics.`tokens_per_second/control`": 185,
    "metrics.`tokens_per_second/treatment`": 205,
    "metrics.`peak_memory_mib/control`": 180,
    "metrics.`peak_memory_mib/treatment`": 200,
    "metrics.`rounds`": 75,
    "tags.`hypothesis`": 180,
    "tags.`reason`": 150,
    "attributes.`Description`": 420,
}

CHARTS = ("ratio", "tokens_per_second/treatment", "peak_memory_mib/treatment", "step_ms/treatment")


def view_state() -> str:
    """The JSON of the shared view: newest decision first, trials hidden."""
    return json.dumps(
        {
            "searchFilter": "tags.`campaign.kind` != 'trial'",
            "orderByKey": "attributes.`Created`",
            "orderByAsc": False,
            "selectedColumns": list(COLUMNS),
            "columnOrder": [*_FIXED, *COLUMNS],
            "columnWidths": _FIXED | COLUMNS,
            "runsHiddenMode": "FIRST_20_RUNS",
            "isAccordionReordered": True,  # sections as they stand here, not by their names
            "compareRunSections": [{"uuid": VIEW_KEY, "name": "The campaign", "display": True, "isReordered": False}],
            "compareRunCharts": [*_charts()],
        }
    )


def _charts() -> Iterator[dict[str, object]]:
    """The charts above those that MLflow makes of every other metric; a chart's title is its metric, unit included."""
    alike = {"metricSectionId": VIEW_KEY, "runsCountToCompare": 20, "deleted": False, "isGenerated": True}
    for key in CHARTS:
        yield {"type": "BAR", "uuid": f"{VIEW_KEY}-{key}", "metricKey": key, **alike}
    x, y = "peak_memory_mib/treatment", "tokens_per_second/treatment"
    yield {
        "type": "SCATTER",
        "uuid": f"{VIEW_KEY}-trade",
        "xaxis": {"key": x, "type": "METRIC"},
        "yaxis": {"key": y, "type": "METRIC"},
        **alike,
    }


def ui_url(root: Path, campaign: str, host: str = "127.0.0.1", port: int = 5000) -> str:
    """The address of the campaign's runs table. Raises BadInput when nothing of it is mirrored."""
    experiment = _experiment_id(database(root), campaign)
    if experiment is None:
        named = "" if campaign == "default" else f" --campaign {campaign}"
        raise BadInput(
            f"MLflow has nothing of campaign {campaign!r} yet", remedy=f"{again(campaign)}, then campaign ui{named}"
        )
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/{place(experiment)}"


def place(experiment: str) -> str:
    """Where a server shows an experiment's runs, in the view of `view_state`."""
    return f"#/experiments/{experiment}/runs?workflowType=machine_learning&viewStateShareKey={VIEW_KEY}"


def _experiment_id(path: Path, campaign: str) -> str | None:
    """Read with sqlite3: importing MLflow for one number costs seconds."""
    if not path.is_file():
        return None
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=20)) as connection:
            row = connection.execute(
                "SELECT experiment_id FROM experiments WHERE name = ? AND lifecycle_stage = 'active'", (campaign,)
            ).fetchone()
    except sqlite3.Error as error:
        raise BadInput(f"{path} cannot be read as MLflow's database: {error}", remedy=REMEDY) from error
    return None if row is None else str(row[0])
