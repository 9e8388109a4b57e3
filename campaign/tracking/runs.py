"""Experiments and runs in MLflow's own terms: found, written in batches, deleted, closed for a writer that died.

A run that a mirror began and did not end has no tag `campaign.mirror` = `whole`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from campaign.destination import again
from campaign.errors import TrackingFailed
from campaign.tracking import owner, review
from campaign.tracking.store import artifact_uri

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

T = TypeVar("T")

MIRROR_TAG = "campaign.mirror"
WHOLE = "whole"
_METRICS_A_BATCH, _PARAMS_A_BATCH, _TAGS_A_BATCH = 1000, 100, 100
_FEW = 20


def experiment_of(client: MlflowClient, root: Path, campaign: str) -> str:
    """The id of the campaign's experiment, created or restored. Its artifacts must lie in this project."""
    found = client.get_experiment_by_name(campaign)
    location = f"{artifact_uri(root)}/{campaign}"
    if found is None:
        tags = {"mlflow.experimentKind": "custom_model_development", review.VIEW_TAG: review.view_state()}
        return str(client.create_experiment(campaign, artifact_location=location, tags=tags))
    if found.artifact_location != location:
        raise TrackingFailed(
            f"runs/mlflow.db keeps the artifacts of {campaign!r} in {found.artifact_location}, not in this project",
            remedy=f"mv runs/mlflow.db runs/mlflow.db.old, then {again(campaign)} (it rebuilds the view)",
        )
    if found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    return str(found.experiment_id)


def describe(client: MlflowClient, experiment: str, text: str) -> None:
    """Set the experiment's note, and the view that its table opens with."""
    client.set_experiment_tag(experiment, "mlflow.note.content", text)
    client.set_experiment_tag(experiment, review.VIEW_TAG, review.view_state())


def search(client: MlflowClient, experiment: str, condition: str) -> Iterator[Run]:
    """Every run that is not deleted and meets the condition."""
    token: str | None = None
    while True:
        page = client.search_runs([experiment], filter_string=condition, max_results=1000, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def mirrored(client: MlflowClient, experiment: str, kind: str, ids: Sequence[str]) -> dict[str, list[Run]]:
    """The live runs of these decisions or findings (`kind`), by their ledger ids. A run deleted by hand in the UI is
    not live, and is written again."""
    conditions: Iterable[str] = [f"tags.`campaign.kind` = '{kind}'"]
    if len(ids) <= _FEW:
        conditions = [f"tags.`campaign.{kind}_id` = '{id}'" for id in dict.fromkeys(ids)]
    found: dict[str, list[Run]] = {}
    for condition in conditions:
        for run in search(client, experiment, condition):
            found.setdefault(run.data.tags[f"campaign.{kind}_id"], []).append(run)
    return found


def is_whole(run: Run) -> bool:
    """Whether the mirror that wrote the run came to its end."""
    return run.data.tags.get(MIRROR_TAG) == WHOLE


def delete(client: MlflowClient, experiment: str, run: Run) -> None:
    """Delete a run and those nested in it."""
    for child in search(client, experiment, f"tags.`mlflow.parentRunId` = '{run.info.run_id}'"):
        client.delete_run(child.info.run_id)
    client.delete_run(run.info.run_id)


def log(
    client: MlflowClient,
    run_id: str,
    metrics: Sequence[tuple[str, float, int, int]] = (),
    params: dict[str, str] | None = None,
    tags: dict[str, str] | None = None,
) -> None:
    """Metrics as (key, value, time in ms, step), params and tags, in as few batches as a server would accept."""
    from mlflow.entities import Metric, Param, RunTag

    batches = itertools.zip_longest(
        _chunks([Metric(*point) for point in metrics], _METRICS_A_BATCH),
        _chunks([Param(key, value) for key, value in (params or {}).items()], _PARAMS_A_BATCH),
        _chunks([RunTag(key, value) for key, value in (tags or {}).items()], _TAGS_A_BATCH),
        fillvalue=(),
    )
    for some_metrics, some_params, some_tags in batches:
        client.log_batch(run_id, metrics=some_metrics, params=some_params, tags=some_tags)


def log_input(client: MlflowClient, run_id: str, dataset: dict[str, str], tags: dict[str, str]) -> None:
    """What the run was measured on. `dataset` are the fields of MLflow's Dataset."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    said = [InputTag(key, value) for key, value in tags.items()]
    client.log_inputs(run_id, datasets=[DatasetInput(Dataset(**dataset), said)])


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def milliseconds(moment: str) -> int:
    """An ISO time as ms since 1970. Raises ValueError."""
    parsed = datetime.fromisoformat(moment)
    return round(1e3 * (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp())


def reconcile(client: MlflowClient, experiment: str) -> list[str]:
    """Close runs that say RUNNING although the process that wrote them is gone from this machine; returns their ids.

    MLflow never does: a killed writer's run reads RUNNING for ever.
    """
    closed = []
    for run in search(client, experiment, "attributes.status = 'RUNNING'"):
        if owner.is_gone(run.data.tags.get(owner.TAG, "")):
            client.set_tag(run.info.run_id, "campaign.reconciled", "its writer died; closed by a later mirror")
            client.set_terminated(run.info.run_id, "KILLED")
            closed.append(run.info.run_id)
    return closed
