"""The memory comparison: peak bytes of treatment against control, over rounds (DESIGN 5, measurement 5.6)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy

from campaign.effects.intervals import interval, ratio_of
from campaign.records import MemoryChange, Protocol, Round

EXACT_ROUNDS = 3  # fewer repeats prove no exactness


def memory_change(
    rounds: Sequence[Round],
    protocol: Protocol,
    alpha: float,
    control: str = "control",
    treatment: str = "treatment",
    *,
    least_bytes: int = 0,
) -> MemoryChange | None:
    """Treatment's deciding peak (`live_peak_bytes`) against control's; None where a trial did not measure it or there
    are fewer than two rounds.

    Exact when each arm showed one value in all of at least three rounds: the two are then simply subtracted.
    Otherwise the t rule on log(treatment / control) of each round: a change counts when its one-sided bound at
    `alpha` is beyond 0 and its estimate beyond the threshold, which is the largest of `memory_min_effect` (a share of
    control), `memory_min_bytes`, and `least_bytes` (the range that A/A rounds showed). Bytes shown are medians over
    rounds.
    """
    if len(rounds) < 2:
        return None
    left, right = _peaks(rounds, control), _peaks(rounds, treatment)
    if left is None or right is None:
        return None
    before, after = round(statistics.median(left)), round(statistics.median(right))
    least = max(protocol.memory_min_effect, protocol.memory_min_bytes / before, least_bytes / before)
    if len(rounds) >= EXACT_ROUNDS and len(set(left)) == 1 and len(set(right)) == 1:
        ratio = after / before
        return MemoryChange(before, after, ratio, ratio, ratio, True, ratio <= 1 - least, ratio >= 1 + least)
    found = interval(numpy.log(right) - numpy.log(left), alpha, alpha)
    saved = found.decision_high < 0 and math.exp(found.mean) <= 1 - least
    grown = found.decision_low > 0 and math.exp(found.mean) >= 1 + least
    return MemoryChange(
        control_bytes=before,
        treatment_bytes=after,
        ratio=ratio_of(found.mean),
        low=ratio_of(found.low),
        high=ratio_of(found.high),
        exact=False,
        saved=saved,
        grown=grown,
    )


def _peaks(rounds: Sequence[Round], arm: str) -> list[int] | None:
    peaks = [one.trial(arm).memory for one in rounds]
    values = [memory.live_peak_bytes for memory in peaks if memory is not None and memory.live_peak_bytes > 0]
    return values if len(values) == len(rounds) else None
