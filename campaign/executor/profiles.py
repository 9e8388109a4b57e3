"""One arm under torch.profiler, in a fresh process. What comes back is a trace and never a time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.copies import Checkout
from campaign.errors import TrialFailed, Unavailable
from campaign.executor.process import TrialProcess, build_request
from campaign.records import Arm, Protocol

SECONDS_A_STEP_LONGER = 5.0  # of the deadline: a profiled step is slower, and its events are written out at the end


@dataclass(frozen=True)
class Profiled:
    """`trace` is a Chrome trace of `steps` whole steps. `activities` are what the profiler watched: CPU, CUDA."""

    trace: Path
    steps: int
    torch: str
    activities: tuple[str, ...]
    low_precision: str
    facts: dict[str, Any]


def run_profile(
    arm: Arm,
    variables: Mapping[str, str],
    root: Path,
    folder: Path,
    protocol: Protocol,
    steps: int,
    *,
    warmup: int,
    place: Checkout | None = None,
) -> Profiled:
    """Build `arm`, warm it up untimed, and trace `steps` whole steps into `folder`, where its log goes too.
    `variables` are those that the edits of any arm set. An arm with code of its own runs in `place`. On a CPU it runs
    on the cores that a round would give it.

    Raises Unavailable for a workload that runs nothing of torch, and for an arm that cannot run here; TrialFailed.
    """
    trace = folder / f"{arm.role}.json.gz"
    with TrialProcess(arm, folder / f"{arm.role}.log", place) as process:
        try:
            request = build_request(arm, place.root if place else root, "", variables)
            built = process.ask("build", protocol.start_deadline_seconds, **request)
            if built["device"] == "cpu":
                cores = sorted(os.sched_getaffinity(0))[-max(1, int(built["facts"].get("threads", 1))) :]
                process.ask("pin", protocol.reply_deadline_seconds, cores=cores)
            deadline = protocol.reply_deadline_seconds + SECONDS_A_STEP_LONGER * (steps + warmup)
            reply = process.ask("profile", deadline, steps=steps, warmup=warmup, file=str(trace))
            process.check_copies(protocol.reply_deadline_seconds)
            process.ask("exit", protocol.reply_deadline_seconds)
        except TrialFailed as failure:
            if failure.reason == "unavailable":
                raise Unavailable(f"{arm.role}: {failure.message}", remedy=failure.remedy) from failure
            raise
    if not reply["offered"]:
        raise Unavailable(
            f"{arm.role}: {arm.target} never imported torch, and torch.profiler sees nothing but torch's work",
            remedy="campaign diagnose FILE, on what another profiler wrote (Nsight Systems)",
        )
    return Profiled(
        trace,
        int(reply["steps"]),
        str(reply["torch"]),
        tuple(reply["activities"]),
        str(built["low_precision"]),
        dict(reply["facts"]),
    )
