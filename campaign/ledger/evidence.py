"""The evidence of one plan or study, put together from its lines and raw files. Not imported by a listing."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from campaign.errors import LedgerDamaged
from campaign.ledger.entry import Entry
from campaign.ledger.raw import RawDamaged, RawFiles
from campaign.ledger.store import Store
from campaign.records import Block, Evidence, Plan, Probe, Round, Study, StudyEvidence, Trial, from_json


def gather(store: Store, raw: RawFiles, plan_id: str) -> Evidence | None:
    """The plan, its newest probe and its rounds in order with their blocks; None for a plan that is not registered.

    Raises LedgerDamaged, RawDamaged.
    """
    mine = list(store.entries({"registered", "probe", "trial", "blocks"}, verify=True, plan=plan_id))
    registered = next((entry for entry in mine if entry.kind == "registered"), None)
    if registered is None:
        return None
    probes = [entry for entry in mine if entry.kind == "probe"]
    return Evidence(
        plan=record(Plan, registered, store.place),
        probe=record(Probe, probes[-1], store.place) if probes else None,
        rounds=_rounds(mine, raw, store.place),
    )


def gather_study(store: Store, raw: RawFiles, study_id: str) -> StudyEvidence | None:
    """The study and its rounds in order with their blocks; None for one that is not declared. Raises LedgerDamaged,
    RawDamaged."""
    mine = list(store.entries({"study", "trial", "blocks"}, verify=True, plan=study_id))
    declared = next((entry for entry in mine if entry.kind == "study"), None)
    if declared is None:
        return None
    return StudyEvidence(record(Study, declared, store.place), _rounds(mine, raw, store.place))


def _rounds(entries: Sequence[Entry], raw: RawFiles, place: str) -> tuple[Round, ...]:
    trials = {(entry.body.get("round_id"), entry.body.get("id")): entry for entry in entries if entry.kind == "trial"}
    return tuple(_round(entry, trials, raw, place) for entry in entries if entry.kind == "blocks")


def _round(entry: Entry, trials: Mapping[tuple[Any, Any], Entry], raw: RawFiles, place: str) -> Round:
    body = entry.body
    names = [(body.get("id"), id) for id in body.get("trial_ids", ())]
    missing = [str(id) for round_id, id in names if (round_id, id) not in trials]
    if missing:
        raise LedgerDamaged(
            place, entry.line, f"round {body.get('id')} names trials that no line holds: {', '.join(missing)}"
        )
    bare = record(Round, entry._replace(body={**body, "trials": [], "blocks": []}), place)
    return dataclasses.replace(
        bare,
        trials=tuple(record(Trial, trials[name], place) for name in names),
        blocks=tuple(_blocks(bare.blocks_file, raw, place, entry.line)) if bare.blocks_file else (),
    )


def _blocks(relative: str, raw: RawFiles, place: str, line: int) -> list[Block]:
    blocks = []
    for number, row in enumerate(raw.load(relative, place, line).splitlines(), 1):
        try:
            blocks.append(from_json(Block, json.loads(row)))
        except ValueError as error:
            why = f"has a row {number} that is no block: {error}"
            raise RawDamaged(place, line, raw.path(relative), why) from error
    return blocks


def record(kind: Any, entry: Entry, place: str) -> Any:
    """The record of class `kind` in an entry's body. Raises LedgerDamaged with the entry's line."""
    try:
        return from_json(kind, entry.body)
    except ValueError as error:
        raise LedgerDamaged(place, entry.line, str(error)) from error
