"""The floor: what a machine can resolve on a workload, from A/A rounds (measurement 5.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy
from scipy.special import gammaincinv

from campaign.effects.intervals import RESOLVE_ALPHA, interval, resolves
from campaign.effects.speed import pair_logs
from campaign.records import Floor, Protocol, Round

FLOOR_ROUNDS = (2, 3, 4, 5, 6, 8, 10, 12)


def floor(rounds: Sequence[Round], protocol: Protocol, control: str = "control", treatment: str = "treatment") -> Floor:
    """What A/A rounds say about this machine, on the protocol's clock. At least two rounds.

    `between_rounds_sd` is the sd of the per-round medians (sigma_s of measurement 5.2), which decides what can be
    resolved; `within_round_sd` the root of the mean variance of the pairs' logs (sigma_e). `resolves` has the usual
    numbers of rounds and the protocol's own.
    """
    pairs = [pair_logs(one, protocol.clock, control, treatment) for one in rounds]
    between = interval([float(numpy.median(logs)) for logs in pairs], RESOLVE_ALPHA, RESOLVE_ALPHA).sd
    within = math.sqrt(float(numpy.mean([logs.var(ddof=1) if logs.size > 1 else 0.0 for logs in pairs])))
    peaks = [trial.memory.live_peak_bytes for one in rounds for trial in one.trials if trial.memory is not None]
    counts = sorted({*FLOOR_ROUNDS, *protocol.looks, protocol.confirm_rounds} - {0, 1})
    return Floor(
        clock=protocol.clock,
        rounds=len(rounds),
        between_rounds_sd=between,
        within_round_sd=within,
        resolves={str(count): resolves(between, count) for count in counts},
        memory_range_bytes=max(peaks) - min(peaks) if peaks else 0,
    )


def scatter_bounds(sd: float, rounds: int, share: float = 0.9) -> tuple[float, float]:
    """One-sided bounds of a between-round sd that `rounds` rounds showed, each right with probability `share`:
    sd sqrt((R - 1) / chi2), chi2 with R - 1 degrees of freedom (measurement 5.2: 1.47 sd above, for 10 rounds).
    """
    degrees = rounds - 1
    low, high = (2 * float(gammaincinv(degrees / 2, one)) for one in (share, 1 - share))
    return sd * math.sqrt(degrees / low), sd * math.sqrt(degrees / high)


def threshold(protocol: Protocol, measured: Floor | None) -> float:
    """d: the larger of the protocol's `min_effect` and what the machine resolves by its measured floor.

    What it resolves is a property of the machine: taken at the protocol's last look or at the rounds of the floor,
    whichever is more, so that a first look of two rounds does not raise d to what two rounds can tell.
    """
    if measured is None:
        return protocol.min_effect
    return max(protocol.min_effect, resolves(measured.between_rounds_sd, max(protocol.looks[-1], measured.rounds)))
