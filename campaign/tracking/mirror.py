"""Writing decisions to MLflow, so often as one likes: the same ledger always ends as the same runs.

A parent run is the decision, its nested runs are the trials (one per round and arm). The tag `campaign.mirror` turns to
`whole` as the very last write; a run without it is the half of a mirror that died, and is deleted and written anew.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from campaign.errors import LedgerDamaged, TrackingFailed, UnknownName
from campaign.records import Decision, Evidence, Round, Trial
from campaign.tracking import mapping, note, owner, review, words
from campaign.tracking.attachments import lay_out
from campaign.tracking.decided import Decided
from campaign.tracking.store import artifact_uri, failures, open_client, writing

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

T = TypeVar("T")

MIRROR_TAG = "campaign.mirror"
WHOLE = "whole"
_METRICS_A_BATCH, _PARAMS_A_BATCH, _TAGS_A_BATCH = 1000, 100, 100
_FEW = 20


def sync(ledger: Decided, decision_ids: Collection[str] | None = None) -> list[str]:
    """Mirror the decisions (default: all) that MLflow lacks; returns their ids, oldest first.

    Decisions that were revoked since are marked so, and the scoreboard is rewritten. Raises TrackingFailed with the
    cause and `campaign sync`, UnknownName for an id that the ledger does not have, and LedgerDamaged for a decision
    whose evidence cannot be trusted, after the others are mirrored. The ledger is only read.
    """
    decisions = list(ledger.decisions())
    wanted = [d for d in decisions if decision_ids is None or d.id in decision_ids]
    if decision_ids is not None and (missing := set(decision_ids) - {d.id for d in wanted}):
        raise UnknownName("decision", min(missing), (d.id for d in decisions), remedy="campaign ledger")
    if not wanted:
        return []
    root, campaign = ledger.folder.parent.parent, ledger.folder.name
    revoked = set(ledger.revoked())
    with writing(root), failures():
        client = open_client(root)
        experiment = _experiment(client, root, campaign)
        reconcile(client, experiment)
        known = _mirrored(client, experiment, [*(d.id for d in wanted), *revoked])
        written, damage = [], None
        for decision in wanted:
            found = known.get(decision.id, [])
            if any(_is_whole(run) for run in found):
                continue
            try:
                evidence = ledger.evidence(decision.plan_id)
            except LedgerDamaged as error:
                damage = damage or error
                continue
            for half in found:
                _delete(client, experiment, half)
            _write(client, experiment, ledger, decision, evidence, decision.id in revoked)
            written.append(decision.id)
        changed = _mark_revoked(client, decisions, known, revoked)
        if written or changed:
            plans = {plan.id: plan for plan in ledger.plans()}
            _describe(client, experiment, note.scoreboard(campaign, decisions, plans, revoked))
    if damage is not None:
        raise damage
    return written


def _experiment(client: MlflowClient, root: Path, campaign: str) -> str:
    """The id of the campaign's experiment, created or restored. Its artifacts must lie in this project."""
    found = client.get_experiment_by_name(campaign)
    location = f"{artifact_uri(root)}/{campaign}"
    if found is None:
        tags = {"mlflow.experimentKind": "custom_model_development", review.VIEW_TAG: review.view_state()}
        return str(client.create_experiment(campaign, artifact_location=location, tags=tags))
    if found.artifact_location != location:
        raise TrackingFailed(
            f"runs/mlflow.db keeps the artifacts of {campaign!r} in {found.artifact_location}, not in this project",
            remedy="mv runs/mlflow.db runs/mlflow.db.old, then campaign sync (it rebuilds the view from the ledger)",
        )
    if found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    return str(found.experiment_id)


def _describe(client: MlflowClient, experiment: str, text: str) -> None:
    client.set_experiment_tag(experiment, "mlflow.note.content", text)
    client.set_experiment_tag(experiment, review.VIEW_TAG, review.view_state())


def _search(client: MlflowClient, experiment: str, condition: str) -> Iterator[Run]:
    token: str | None = None
    while True:
        page = client.search_runs([experiment], filter_string=condition, max_results=1000, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _mirrored(client: MlflowClient, experiment: str, ids: Sequence[str]) -> dict[str, list[Run]]:
    """The live runs of these decisions. A run deleted by hand in the UI is not live, and is written again."""
    conditions: Iterable[str] = ["tags.`campaign.kind` = 'decision'"]
    if len(ids) <= _FEW:
        conditions = [f"tags.`campaign.decision_id` = '{decision_id}'" for decision_id in dict.fromkeys(ids)]
    found: dict[str, list[Run]] = {}
    for condition in conditions:
        for run in _search(client, experiment, condition):
            found.setdefault(run.data.tags["campaign.decision_id"], []).append(run)
    return found


def _is_whole(run: Run) -> bool:
    return run.data.tags.get(MIRROR_TAG) == WHOLE


def _delete(client: MlflowClient, experiment: str, run: Run) -> None:
    for child in _search(client, experiment, f"tags.`mlflow.parentRunId` = '{run.info.run_id}'"):
        client.delete_run(child.info.run_id)
    client.delete_run(run.info.run_id)


def _mark_revoked(
    client: MlflowClient, decisions: Sequence[Decision], known: dict[str, list[Run]], revoked: Collection[str]
) -> bool:
    """Retag the mirrors of decisions that were taken back after they had been written."""
    changed = False
    for decision in decisions:
        if decision.id not in revoked:
            continue
        for run in known.get(decision.id, []):
            if not _is_whole(run) or run.data.tags.get("campaign.revoked") == "yes":
                continue
            tags = {
                "verdict": words.verdict_word(decision, revoked=True),
                "campaign.revoked": "yes",
                "mlflow.note.content": note.run_note(decision, revoked=True),
                "mlflow.runName": words.run_name(decision, revoked=True),
            }
            _log(client, run.info.run_id, tags=tags)
            changed = True
    return changed


def _write(
    client: MlflowClient, experiment: str, ledger: Decided, decision: Decision, evidence: Evidence, revoked: bool
) -> None:
    """The parent first, so that a search finds what a crash left; the tag that says `whole` last."""
    end = _milliseconds(decision.decided_at)
    name = words.run_name(decision, revoked)
    tags = mapping.decision_tags(decision, evidence.plan, revoked)
    tags |= {"mlflow.note.content": note.run_note(decision, revoked), owner.TAG: owner.current()}
    tags |= {"campaign.decision_id": decision.id, MIRROR_TAG: "half"}
    start = end - round(1e3 * max(decision.wall_seconds, 0.0))
    run_id = client.create_run(experiment, start_time=start, tags=tags, run_name=name).info.run_id
    _log(
        client,
        run_id,
        metrics=[(key, value, end, 0) for key, value in mapping.decision_metrics(decision).items()],
        params=mapping.decision_params(decision, evidence.plan),
    )
    with tempfile.TemporaryDirectory(prefix="campaign-mirror-") as folder:
        lay_out(Path(folder), ledger, decision, evidence, revoked)
        client.log_artifacts(run_id, folder)
    windows = mapping.trial_windows(evidence, end)
    for round_ in evidence.rounds:
        for trial in round_.trials:
            _write_trial(client, experiment, run_id, round_, trial, windows[round_.id])
    client.set_terminated(run_id, words.run_status(decision), end_time=end)
    client.set_tag(run_id, MIRROR_TAG, WHOLE)


def _write_trial(
    client: MlflowClient, experiment: str, parent: str, round_: Round, trial: Trial, window: tuple[int, int]
) -> None:
    start, end = window
    name = mapping.trial_name(round_, trial.arm)
    tags = mapping.trial_tags(round_, trial) | {"mlflow.parentRunId": parent, owner.TAG: owner.current()}
    run_id = client.create_run(experiment, start_time=start, tags=tags, run_name=name).info.run_id
    points = [(key, value, end, 0) for key, value in mapping.trial_metrics(round_, trial).items()]
    for key, series in mapping.trial_series(round_, trial).items():
        points += [(key, value, start + step, step) for step, value in series]
    _log(client, run_id, metrics=points)
    client.set_terminated(run_id, words.trial_status(trial), end_time=end)


def _log(
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


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _milliseconds(moment: str) -> int:
    """An ISO time as ms since 1970. Raises ValueError."""
    parsed = datetime.fromisoformat(moment)
    return round(1e3 * (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp())


def reconcile(client: MlflowClient, experiment: str) -> list[str]:
    """Close runs that say RUNNING although the process that wrote them is gone from this machine; returns their ids.

    MLflow never does: a killed writer's run reads RUNNING for ever.
    """
    closed = []
    for run in _search(client, experiment, "attributes.status = 'RUNNING'"):
        if owner.is_gone(run.data.tags.get(owner.TAG, "")):
            client.set_tag(run.info.run_id, "campaign.reconciled", "its writer died; closed by a later mirror")
            client.set_terminated(run.info.run_id, "KILLED")
            closed.append(run.info.run_id)
    return closed
