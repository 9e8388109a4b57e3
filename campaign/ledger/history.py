"""What earlier decisions mean for the next plan: the floor that was measured, and the attempts that were made."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from campaign.ledger.state import Ledger
from campaign.records import Floor, Plan, from_json
from campaign.stability import round_faults

FLOOR_LIFE_SECONDS = 7 * 24 * 3600


def floor(
    ledger: Ledger,
    fingerprint_hash: str,
    workload: str,
    clock: str,
    *,
    matches: Callable[[Plan], bool] = lambda plan: True,
    now: float | None = None,
) -> tuple[str, Floor] | None:
    """(decision id, floor) of the newest A/A measurement of `workload` on `clock` made under this fingerprint,
    if it is younger than seven days. `matches` says of its plan whether it measured what is wanted (the same root,
    blocks of the same length). `now` is in seconds since the epoch, the present when None.

    Only a decisive A/A that found no bias counts: other verdicts repeat the floor that they were judged by, and
    counting those would keep an old floor young.
    """
    moment = time.time() if now is None else now
    revoked = ledger.revoked()
    for entry in reversed(list(ledger.store.entries({"decision"}, verify=False))):
        body, kept = entry.body, entry.body["verdict"].get("floor")
        if entry.stamp.fingerprint != fingerprint_hash or body["workload"] != workload or not kept:
            continue
        if kept["clock"] != clock or body["id"] in revoked or body["verdict"]["reason"] == "biased":
            continue
        plan = ledger.plan(body["plan_id"])
        if not (plan.hypothesis.null and plan.protocol.decisive and matches(plan)):
            continue
        if moment - _seconds(entry.time) > FLOOR_LIFE_SECONDS:
            return None
        return body["id"], from_json(Floor, kept)
    return None


def attempts(ledger: Ledger, hypothesis: str, treatment_hash: str) -> int:
    """How often this hypothesis with this very treatment arm was already put to a decisive test, which spent its
    alpha: a plan of which a look was taken, whatever came of it. Revoked, invalid and interrupted ones count too, for
    their numbers were seen; quick looks and nulls do not."""
    verdicts = {row["plan_id"]: row["verdict"] for row in ledger.decision_rows()}
    found = 0
    for plan in ledger.plans():
        same = plan.hypothesis.name == hypothesis and plan.treatment.hash == treatment_hash
        if same and plan.protocol.decisive and not plan.hypothesis.null:
            verdict = verdicts.get(plan.id)
            found += _was_looked_at(ledger, plan) if verdict is None else verdict["look"] > 0
    return found


def _was_looked_at(ledger: Ledger, plan: Plan) -> bool:
    """Whether an undecided plan had the rounds of its first look."""
    rounds = [one for one in ledger.evidence(plan.id).rounds if one.stage == "screen"]
    return sum(not round_faults(one, plan) for one in rounds) >= plan.protocol.looks[0]


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
