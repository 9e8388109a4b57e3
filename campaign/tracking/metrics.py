"""Metrics that somebody else's training logs to MLflow, as a watched command's steps."""

from __future__ import annotations


def history(uri: str | None, experiment: str | None, metric: str, since: float) -> list[tuple[float, int, float]]:
    """(seconds of `time.time`, step, value) of `metric`, in order of steps, of the newest run in `experiment` (default:
    any) at `uri` (default: MLflow's own) that was started after `since` seconds; none where there is no such run yet.
    """
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
