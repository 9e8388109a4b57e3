"""Static evidence of two arms: what compilers say of the kernels that each selects, asked in a fresh process per arm.

No workload is built and no device is touched, so kernels of a GPU that is not here can be looked at too. What comes
back explains and predicts; it is never timed and no effect comes from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from campaign.copies import Checkout
from campaign.errors import BadInput, Unavailable
from campaign.executor import TrialProcess
from campaign.occupancy import ARCHITECTURES, theoretical
from campaign.records import Arm

Row = dict[str, Any]


def rows_of(
    arms: Sequence[Arm],
    root: Path,
    logs: Path,
    deadline_seconds: float,
    places: Mapping[str, Checkout] | None = None,
) -> dict[str, list[Row]]:
    """The rows of each arm by its role, each with its `occupancy`, of the code in `root` or where `places` says. Their
    processes' output goes to `logs`/ROLE.log.

    Raises Unavailable for a workload that offers no static evidence, TrialFailed where asking for it failed.
    """
    where = places or {}
    with ExitStack() as stack:
        processes = [
            stack.enter_context(TrialProcess(arm, logs / f"{arm.role}.log", where.get(arm.role))) for arm in arms
        ]
        for arm, process in zip(arms, processes, strict=True):
            inside = where[arm.role].root if arm.role in where else root
            process.send("static", root=str(inside), target=arm.target, config=arm.config)
        replies = [process.receive("static", deadline_seconds) for process in processes]
    found = {}
    for arm, reply in zip(arms, replies, strict=True):
        if not reply["offered"]:
            raise Unavailable(
                f"{arm.target} offers no static evidence: it has no static(config)",
                remedy=f"give {arm.target} a classmethod static(config) that lists the rows of its kernels",
            )
        found[arm.role] = [{**row, "occupancy": occupancy(row)} for row in reply["rows"]]
    return found


def occupancy(row: Mapping[str, Any]) -> Row | None:
    """Theoretical occupancy of a row, recomputed from its registers, threads and shared memory: the fields of
    `occupancy.Occupancy`. None for a CPU, an architecture without known limits, and a row without numbers."""
    numbers = [row.get(name) for name in ("registers", "threads", "shared_bytes")]
    if row.get("target") not in ARCHITECTURES or not all(isinstance(number, int) for number in numbers):
        return None
    registers, threads, shared_bytes = (int(number) for number in numbers if number is not None)
    try:
        found = theoretical(str(row["target"]), registers=registers, threads=threads, shared_bytes=shared_bytes)
    except BadInput:
        return None  # numbers that no kernel has: the row shows them as they are
    return {**asdict(found), "limited_by": list(found.limited_by)}
