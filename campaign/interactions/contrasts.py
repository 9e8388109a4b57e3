"""Linear contrasts of per-round values with their intervals over rounds (measurement 6, order of operations).

Per round and arm there is one number, v = the median over pairs of log(base / arm) (`effects.round_logs`). What is
asked of several arms (an interaction, a leave-one-out gain, a Shapley share) is a weighted sum of those, taken round
by round, and then Student's t over rounds. A median of the contrast itself would break additivity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy

from campaign.effects import interval, ratio_of
from campaign.effects.intervals import MOST_ROUNDS, Array, t_quantile
from campaign.effects.memory import EXACT_ROUNDS
from campaign.records import ByteChange, Contrast, Round

TAIL = 0.025  # each side of a two-sided 95 % interval


def contrast(values: Array | Sequence[float]) -> Contrast:
    """The contrast of these per-round logs, shape [rounds]. Raises ValueError for fewer than two rounds."""
    found = interval(values, TAIL, TAIL)
    return Contrast(
        ratio=ratio_of(found.mean),
        low=ratio_of(found.low),
        high=ratio_of(found.high),
        rounds=found.rounds,
        sd_log=found.sd,
    )


def weighted(logs: Mapping[str, Array], weights: Mapping[str, float]) -> Array:
    """Shape [rounds]: the sum over arms of weight times per-round log. Arms with different numbers of rounds are taken
    to the shorter."""
    rounds = min(len(logs[role]) for role in weights)
    return numpy.sum([weight * logs[role][:rounds] for role, weight in weights.items()], axis=0)


def bounds(values: Array | Sequence[float], tail: float) -> tuple[float, float]:
    """The one-sided lower and upper bounds of the contrast's ratio, each at level 1 - `tail`."""
    found = interval(values, tail, tail)
    return ratio_of(found.decision_low), ratio_of(found.decision_high)


def byte_change(peaks: Iterable[tuple[int, Sequence[int]]]) -> ByteChange | None:
    """A contrast of peak bytes: pairs of a weight and one arm's peaks, shape [rounds].

    Exact when every arm showed one value in all of at least three rounds (`effects.memory`); else the mean over rounds
    with its t interval. None without at least two rounds of every arm.
    """
    arms = [(weight, list(values)) for weight, values in peaks]
    counts = {len(values) for _, values in arms}
    if len(counts) != 1 or min(counts) < 2:
        return None
    rounds = counts.pop()
    changes = [sum(weight * values[one] for weight, values in arms) for one in range(rounds)]
    if rounds >= EXACT_ROUNDS and all(len(set(values)) == 1 for _, values in arms):
        return ByteChange(changes[0], changes[0], changes[0], exact=True)
    mean = float(numpy.mean(changes))
    half = float(numpy.std(changes, ddof=1)) / rounds**0.5 * t_quantile(1 - TAIL, rounds - 1)
    return ByteChange(round(mean), round(mean - half), round(mean + half), exact=False)


def peaks_of(rounds: Sequence[Round], role: str) -> list[int]:
    """The deciding peak of `role` in each round; empty where a round did not measure it."""
    found = [one.trial(role).memory for one in rounds]
    peaks = [memory.live_peak_bytes for memory in found if memory is not None and memory.live_peak_bytes > 0]
    return peaks if len(peaks) == len(rounds) else []


def rounds_to_resolve(found: Contrast, d: float) -> int | None:
    """The rounds after which a contrast of this lasting estimate and scatter would earn a word: its 95 % interval clear
    of 1 where the estimate is at least d away from it, inside [1 / (1 + d), 1 + d] where it is nearer. None above
    `MOST_ROUNDS`."""
    away, limit = abs(math.log(found.ratio)), math.log1p(d)
    gap = away if away >= limit else limit - away
    for count in range(2, MOST_ROUNDS + 1):
        if gap > t_quantile(1 - TAIL, count - 1) * found.sd_log / math.sqrt(count):
            return count
    return None


def rounds_hint(found: Contrast, d: float) -> str:
    """What would resolve the contrast, in words."""
    count = rounds_to_resolve(found, d)
    return f"about {count} rounds like these would tell" if count else "no reasonable number of rounds would tell here"
