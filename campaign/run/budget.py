"""What a campaign's next step costs, from what the steps before it took, and whether a budget has the time for it."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from campaign import units
from campaign.errors import BadInput
from campaign.ledger import Ledger
from campaign.reading import NULL_REASONS
from campaign.records import Protocol

Row = Mapping[str, Any]
MOST_ARMS = 8  # of a round of a study
SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}


def seconds_of(budget: str) -> float:
    """'2h', '1h30m', '90s', '0.5h' or plain seconds as seconds. Raises BadInput."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([hms]?)", budget)
    if not parts or "".join(number + unit for number, unit in parts) != budget:
        raise BadInput(f"--budget {budget!r}: a time is hours, minutes or seconds", remedy="--budget 1h30m")
    seconds = sum(float(number) * SECONDS[unit] for number, unit in parts)
    if seconds <= 0:
        raise BadInput(f"--budget {budget!r}: nothing can be measured in no time", remedy="--budget 1h30m")
    return seconds


def too_late(
    budget: float, spent: float, cost: float | None, protocol: Protocol, *, edits: int, each_arm: float | None
) -> str:
    """Why a step of `cost` seconds does not leave the time to revalidate a stack of `edits`; empty where it does.

    While nothing was measured `cost` is None, and only what `protocol` asks for at least is known. All in seconds.
    """
    least = least_seconds(protocol)
    kept = revalidation_seconds(protocol, edits, each_arm)
    if spent + (least if cost is None else cost) + kept <= budget:
        return ""
    if cost is None:
        takes = f"what a try takes is not known yet, by its protocol {units.seconds(least)} at least"
    else:
        takes = f"a try takes about {units.seconds(cost)}"
    kept_back = f"{units.seconds(kept)} are kept back to revalidate" if kept else "nothing is to be revalidated yet"
    return f"the budget of {units.seconds(budget)} is spent: {units.seconds(spent)} so far, {takes}, and {kept_back}"


def arm_seconds(ledger: Ledger) -> float | None:
    """The mean seconds that a round took for each of its arms; None before the first round."""
    rounds = ledger.store.entries({"blocks"}, verify=False)
    found = [entry.body["wall_seconds"] / len(entry.body["trial_ids"]) for entry in rounds if entry.body["trial_ids"]]
    return statistics.fmean(found) if found else None


def spent_seconds(ledger: Ledger, begun: int) -> float:
    """What probes and rounds took since line `begun`, in whatever processes."""
    entries = ledger.store.entries({"blocks", "probe"}, verify=False)
    return sum(entry.body["wall_seconds"] for entry in entries if entry.line > begun)


def try_seconds(rows: Sequence[Row], protocol: Protocol, each_arm: float | None) -> float | None:
    """What a try takes: the mean of those that were timed so far, before the first two arms at every look of
    `protocol`; None before the first round."""
    tests = [
        row["wall_seconds"]
        for row in rows
        if row["verdict"]["look"] > 0 and row["verdict"]["reason"] not in NULL_REASONS
    ]
    if tests:
        return statistics.fmean(tests)
    return None if each_arm is None else floor_seconds(protocol, each_arm)


def floor_seconds(protocol: Protocol, each_arm: float) -> float:
    """What the rounds of two arms take until the last look."""
    return 2 * each_arm * protocol.looks[-1]


def least_seconds(protocol: Protocol) -> float:
    """What a try takes at least, by its protocol alone: its blocks until the first look."""
    return 2 * protocol.pairs * protocol.block_minimum_seconds * protocol.looks[0]


def revalidation_seconds(protocol: Protocol, edits: int, each_arm: float | None) -> float:
    """What revalidating a stack of `edits` takes: head, root, and head without each in rounds of at most eight arms,
    then root against head."""
    if not edits or each_arm is None:
        return 0.0
    others = edits + 1 if edits > 1 else 1
    groups = math.ceil(others / (MOST_ARMS - 1))
    return each_arm * ((others + groups) * protocol.confirm_rounds + 2 * protocol.looks[-1])
