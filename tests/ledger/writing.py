from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from campaign.ledger import Ledger
from campaign.records import Block, Round, to_json

Make = Callable[..., Any]


def register(ledger: Ledger, plan: Any) -> None:
    ledger.append("registered", plan.id, to_json(plan))


def decide(ledger: Ledger, decision: Any) -> None:
    ledger.append("decision", decision.id, to_json(decision))


def stream(ledger: Ledger, round_id: str, blocks: list[Block]) -> Path:
    path = ledger.inflight(round_id)
    path.write_text("".join(json.dumps(to_json(block)) + "\n" for block in blocks))
    return path


def write_round(ledger: Ledger, plan_id: str, made: tuple[Round, list[Block]], body: Make) -> str:
    measured, blocks = made
    stream(ledger, measured.id, blocks)
    raw = ledger.seal(measured.id)
    for trial in measured.trials:
        ledger.append("trial", trial.id, {"plan_id": plan_id, "round_id": measured.id, **to_json(trial)})
    ledger.append("blocks", measured.id, {**body(measured, plan_id), "blocks_file": raw})
    return raw
