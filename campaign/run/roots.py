"""One root for the whole stack: overrides of the workload change what every accepted edit was measured on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from campaign.config import Job
from campaign.errors import BadInput
from campaign.ledger import Ledger
from campaign.records import ACCEPT, Arm

MOST_NAMED = 3


def check_roots(job: Job, ledger: Ledger) -> None:
    """Raises BadInput where an edit of the stack was measured on another root than `job` composes, naming the keys.

    A key that only one of the two has is no difference: the workload's files may gain knobs while a campaign goes on,
    and an override can neither add nor remove one. Which of several like devices it was is none either.
    """
    rows = ledger.stack_rows()
    if not rows:
        return
    here = job.arm("root", "root", [])
    decided = ledger.decision_rows()
    for row in rows:
        there = _measured_on(ledger, row, decided)
        differing = _differing(here, there) if there and there.hash != here.hash else []
        if differing:
            said = [f"{key} is {_text(ours)} here and {_text(theirs)}" for key, ours, theirs in differing[:MOST_NAMED]]
            more = f" ({len(differing) - MOST_NAMED} more keys differ)" if len(differing) > MOST_NAMED else ""
            words = [f"{key}={_text(theirs)}" for key, _, theirs in differing[:MOST_NAMED]]
            raise BadInput(
                f"{', '.join(said)} where {row['hypothesis']} was accepted{more}: an edit of another root is none of"
                " this one",
                remedy=f"{' '.join(words)}, as in campaign {job.campaign!r}, or campaign.name=OTHER",
            )


def _measured_on(ledger: Ledger, row: Mapping[str, Any], decided: Sequence[Mapping[str, Any]]) -> Arm | None:
    """The root that a decision was measured on. Where it was not timed it is that of the edit at the bottom of the
    stack of its day; None where the ledger does not say."""
    while True:
        plan = ledger.plan(row["plan_id"])
        if plan.root is not None or not plan.stack:
            return plan.root or plan.control
        earlier = [
            one
            for one in decided[: row["sequence"] - 1]
            if one["hypothesis"] == plan.stack[0] and ACCEPT in (one["verdict"]["verdict"], one["ruling"])
        ]
        if not earlier:
            return None
        row = earlier[-1]


def _differing(here: Arm, there: Arm) -> list[tuple[str, Any, Any]]:
    """(key, value here, value there) of what differs."""
    ours = dict(_flat("workload", {"_target_": here.target, **here.config}))
    theirs = dict(_flat("workload", {"_target_": there.target, **there.config}))
    both = sorted(ours.keys() & theirs.keys() - {"workload.device"})
    return [(key, ours[key], theirs[key]) for key in both if json.dumps(ours[key]) != json.dumps(theirs[key])]


def _flat(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(f"{key}.{name}", inner)
    else:
        yield key, value


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value)
