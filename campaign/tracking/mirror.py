"""Writing decisions, findings and profiles to MLflow, so often as one likes: the same ledger always ends as the same
runs.

A decision is a parent run whose nested runs are its trials (one per round and arm); a finding is one run, and so are
a profile and a diagnosis, without metrics. The tag
`campaign.mirror` turns to `whole` as the very last write; a run without it is the half of a mirror that died, and is
deleted and written anew.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.destination import EMBEDDED, again, is_server
from campaign.errors import LedgerDamaged, UnknownName
from campaign.records import Decision, Evidence, Found, Round, StudyEvidence, Trial
from campaign.tracking import finding_note, found, inputs, mapping, note, owner, profiles, runs, shared, trials, words
from campaign.tracking.attachments import lay_out, lay_out_finding
from campaign.tracking.decided import AS_DECIDED, Decided, Standing, standings
from campaign.tracking.scoreboard import Board, scoreboard
from campaign.tracking.store import failures, open_client, writing

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient


def sync(
    ledger: Decided,
    ids: Collection[str] | None = None,
    destination: str = EMBEDDED,
    said: Callable[[str], None] = lambda name: None,
) -> list[str]:
    """Mirror the decisions, findings and profiles (default: all) that MLflow lacks; returns their ids in that order.

    `destination` is the project's own store or a server's address; `said` gets the name of each when it is whole.
    Decisions that were revoked or ruled on since are marked so, and the scoreboard is rewritten. Raises TrackingFailed
    with the cause and `campaign sync`, UnknownName for an id that the ledger does not have, and LedgerDamaged for one
    whose evidence cannot be trusted, after the others are mirrored. The ledger is only read.
    """
    decisions, findings = list(ledger.decisions()), list(ledger.findings())
    everything: list[Decision | Found] = [*decisions, *findings]
    wanted = [one for one in everything if ids is None or one.id in ids]
    traced = [row for row in ledger.profile_rows() if ids is None or row["id"] in ids]
    if ids is not None and (missing := set(ids) - {one.id for one in wanted} - {row["id"] for row in traced}):
        known_ids = [one.id for one in everything]
        raise UnknownName("decision or finding", min(missing), known_ids, remedy="campaign ledger")
    if not wanted and not traced:
        return []
    root, remedy = ledger.folder.parent.parent, again(ledger.folder.name, destination)
    standing = standings(ledger)
    moved = [id for id, one in standing.items() if one != AS_DECIDED]
    with writing(root, remedy=remedy), failures(destination, remedy):
        client = open_client(root, destination)
        if is_server(destination):
            experiment = shared.experiment_of(client, root, ledger.folder)
        else:
            experiment = runs.experiment_of(client, root, ledger.folder.name)
        runs.reconcile(client, experiment)
        of_decisions = [*(one.id for one in wanted if isinstance(one, Decision)), *moved]
        known = runs.mirrored(client, experiment, "decision", of_decisions)
        known |= runs.mirrored(client, experiment, "finding", [one.id for one in wanted if isinstance(one, Found)])
        written: list[str] = []
        damage: LedgerDamaged | None = None
        for one in wanted:
            there = known.get(one.id, [])
            if any(runs.is_whole(run) for run in there):
                continue
            try:
                evidence = _evidence(ledger, one)
            except LedgerDamaged as error:
                damage = damage or error
                continue
            for half in there:
                runs.delete(client, experiment, half)
            if isinstance(one, Decision) and isinstance(evidence, Evidence):
                _write(client, experiment, ledger, one, evidence, standing[one.id])
            elif isinstance(one, Found) and isinstance(evidence, StudyEvidence):
                _write_finding(client, experiment, ledger, one, evidence, decisions)
            written.append(one.id)
            said(one.id)
        written += _write_profiles(client, experiment, ledger, traced)
        changed = _mark(client, decisions, known, standing)
        if written or changed:
            runs.describe(client, experiment, scoreboard(Board.of(ledger)))
    if damage is not None:
        raise damage
    return written


def _evidence(ledger: Decided, one: Decision | Found) -> Evidence | StudyEvidence:
    return ledger.evidence(one.plan_id) if isinstance(one, Decision) else ledger.study_evidence(one.study_id)


def _mark(
    client: MlflowClient,
    decisions: Sequence[Decision],
    known: Mapping[str, list[Run]],
    standing: Mapping[str, Standing],
) -> bool:
    """Retag the mirrors of decisions that were taken back or ruled on after they had been written."""
    changed = False
    for decision in decisions:
        for run in known.get(decision.id, []):
            tags = mapping.standing_tags(decision, standing[decision.id])
            if not runs.is_whole(run) or tags.items() <= run.data.tags.items():
                continue
            tags["mlflow.note.content"] = note.run_note(decision, standing[decision.id])
            tags["mlflow.runName"] = words.run_name(decision, standing[decision.id])
            runs.log(client, run.info.run_id, tags=tags)
            changed = True
    return changed


def _begin(client: MlflowClient, experiment: str, name: str, start: int, tags: dict[str, str]) -> str:
    """A new run that a search finds as the half of a mirror until it is whole; its id."""
    tags = {**tags, owner.TAG: owner.current()}
    return str(client.create_run(experiment, start_time=start, tags=tags, run_name=name).info.run_id)


def _write(
    client: MlflowClient, experiment: str, ledger: Decided, decision: Decision, evidence: Evidence, standing: Standing
) -> None:
    """The parent first, so that a search finds what a crash left; the tag that says `whole` last."""
    end = runs.milliseconds(decision.decided_at)
    tags = mapping.decision_tags(decision, evidence.plan, standing)
    tags |= {"mlflow.note.content": note.run_note(decision, standing)}
    tags |= {"campaign.decision_id": decision.id, runs.MIRROR_TAG: "half"}
    start = end - round(1e3 * max(decision.wall_seconds, 0.0))
    run_id = _begin(client, experiment, words.run_name(decision, standing), start, tags)
    points = [(key, value, end, 0) for key, value in mapping.decision_metrics(decision).items()]
    runs.log(client, run_id, metrics=points, params=mapping.decision_params(decision, evidence.plan))
    runs.log_input(client, run_id, inputs.dataset(evidence.plan, evidence.rounds), inputs.CONTEXT)
    with tempfile.TemporaryDirectory(prefix="campaign-mirror-") as folder:
        lay_out(Path(folder), ledger, decision, evidence, standing)
        client.log_artifacts(run_id, folder)
    windows = trials.trial_windows(evidence, end)
    for round_ in evidence.rounds:
        for trial in round_.trials:
            _write_trial(client, experiment, run_id, round_, trial, windows[round_.id])
    client.set_terminated(run_id, words.run_status(decision), end_time=end)
    client.set_tag(run_id, runs.MIRROR_TAG, runs.WHOLE)


def _write_trial(
    client: MlflowClient, experiment: str, parent: str, round_: Round, trial: Trial, window: tuple[int, int]
) -> None:
    start, end = window
    tags = trials.trial_tags(round_, trial) | {"mlflow.parentRunId": parent}
    run_id = _begin(client, experiment, trials.trial_name(round_, trial.arm), start, tags)
    points = [(key, value, end, 0) for key, value in trials.trial_metrics(round_, trial).items()]
    for key, series in trials.trial_series(round_, trial).items():
        points += [(key, value, start + step, step) for step, value in series]
    runs.log(client, run_id, metrics=points)
    client.set_terminated(run_id, words.trial_status(trial), end_time=end)


def _write_finding(
    client: MlflowClient,
    experiment: str,
    ledger: Decided,
    one: Found,
    evidence: StudyEvidence,
    decisions: Sequence[Decision],
) -> None:
    """A finding is one run: its arms may be dozens, and its rounds stand in a table."""
    end = runs.milliseconds(one.decided_at)
    recorded = next((decision for decision in decisions if decision.id == evidence.study.of), None)
    tags = found.finding_tags(one, evidence.study)
    tags |= {"mlflow.note.content": finding_note.run_note(one, recorded)}
    tags |= {"campaign.finding_id": one.id, runs.MIRROR_TAG: "half"}
    start = end - round(1e3 * max(one.wall_seconds, 0.0))
    run_id = _begin(client, experiment, words.finding_name(one), start, tags)
    points = [(key, value, end, 0) for key, value in found.finding_metrics(one).items()]
    runs.log(client, run_id, metrics=points, params=found.finding_params(one, evidence.study))
    runs.log_input(client, run_id, inputs.dataset(evidence.study, evidence.rounds), inputs.CONTEXT)
    with tempfile.TemporaryDirectory(prefix="campaign-mirror-") as folder:
        lay_out_finding(Path(folder), ledger, one, evidence, recorded)
        client.log_artifacts(run_id, folder)
    client.set_terminated(run_id, words.finding_status(one), end_time=end)
    client.set_tag(run_id, runs.MIRROR_TAG, runs.WHOLE)


def _write_profiles(
    client: MlflowClient, experiment: str, ledger: Decided, rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Each profile and diagnosis that has no whole run yet as a run of its own; their ids."""
    known = runs.mirrored(client, experiment, profiles.KIND, [row["id"] for row in rows]) if rows else {}
    written = []
    for row in rows:
        there = known.get(row["id"], [])
        if any(runs.is_whole(run) for run in there):
            continue
        for half in there:
            runs.delete(client, experiment, half)
        end = runs.milliseconds(row["time"])
        tags = {**profiles.tags(row), "campaign.profile_id": row["id"], runs.MIRROR_TAG: "half"}
        run_id = _begin(client, experiment, profiles.name(row), end, tags)
        with tempfile.TemporaryDirectory(prefix="campaign-mirror-") as folder:
            profiles.lay_out(Path(folder), ledger, row)
            client.log_artifacts(run_id, folder)
        client.set_terminated(run_id, "FINISHED", end_time=end)
        client.set_tag(run_id, runs.MIRROR_TAG, runs.WHOLE)
        written.append(row["id"])
    return written
