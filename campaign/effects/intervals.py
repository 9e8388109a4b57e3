"""The Student-t interval over rounds, and what a number of rounds can find. Values are natural logs of ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import nctdtr, stdtr, stdtrit

SMALLEST_SD = 0.0002  # of a round's log ratio: ties on a coarse timer must not claim certainty
CONFIDENCE = 0.95  # of `low` and `high`, two-sided
RESOLVE_ALPHA, RESOLVE_POWER = 0.01, 0.95  # what `Floor.resolves` promises
LARGEST_LOG = 700.0  # exp of it is still finite
MOST_ROUNDS = 1000

Array = NDArray[numpy.float64]


@dataclass(frozen=True)
class Interval:
    """A mean of per-round logs with its bounds. `sd` is the scatter used, at least `SMALLEST_SD`. `low` and `high`
    are two-sided 95 %; `decision_low` and `decision_high` one-sided at the look's alpha and beta."""

    mean: float
    sd: float
    rounds: int
    low: float
    high: float
    decision_low: float
    decision_high: float


def interval(values: Array | Sequence[float], alpha: float, beta: float) -> Interval:
    """Student t over rounds: mean +- t(1 - alpha, R - 1) s / sqrt(R), s = max(sd, 0.0002) (measurement 5.1).

    `values`: shape [rounds], natural logs. Raises ValueError for fewer than two rounds.
    """
    logs = numpy.asarray(values, dtype=float)
    count = int(logs.size)
    if count < 2:
        raise ValueError(f"an interval over rounds needs at least 2 rounds, got {count}")
    mean = float(logs.mean())
    sd = max(float(logs.std(ddof=1)), SMALLEST_SD)
    shown, lower, upper = (
        sd / math.sqrt(count) * t_quantile(1 - tail, count - 1) for tail in ((1 - CONFIDENCE) / 2, alpha, beta)
    )
    return Interval(mean, sd, count, mean - shown, mean + shown, mean - lower, mean + upper)


def ratio_of(log: float) -> float:
    """exp(log), kept finite so that it can be written as JSON."""
    return math.exp(min(LARGEST_LOG, max(-LARGEST_LOG, log)))


def t_quantile(share: float, degrees: int) -> float:
    """The value below which `share` of Student's t with `degrees` degrees of freedom lies."""
    return float(stdtrit(degrees, share))


def t_share(value: float, degrees: int) -> float:
    """The share of Student's t with `degrees` degrees of freedom that lies below `value`."""
    return float(stdtr(degrees, value))


def detectable_sds(rounds: int, alpha: float, power: float) -> float:
    """The effect, in between-round sds, that a one-sided t test at `alpha` over `rounds` rounds finds with `power`.

    Solves P(T' > t(1 - alpha, R - 1)) = power for the noncentral t with noncentrality q sqrt(R); at alpha .01 and
    power .9 it is the table q(R) of measurement 5.2 (6.2 for 3 rounds, 1.2 for 12). Raises ValueError below 2 rounds.
    """
    if rounds < 2:
        raise ValueError(f"no effect can be detected from {rounds} rounds; at least 2")
    critical = t_quantile(1 - alpha, rounds - 1)

    def excess(sds: float) -> float:
        return float(1 - nctdtr(rounds - 1, sds * math.sqrt(rounds), critical)) - power

    high = 1.0
    while excess(high) < 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-6))


def resolves(sd: float, rounds: int, alpha: float = RESOLVE_ALPHA, power: float = RESOLVE_POWER) -> float:
    """The smallest effect, as a fraction (0.03 is 3 % faster), that `rounds` rounds of scatter `sd` (log) find with
    `power` at one-sided `alpha`: exp(q sd) - 1."""
    return math.expm1(min(detectable_sds(rounds, alpha, power) * max(sd, SMALLEST_SD), LARGEST_LOG))


def rounds_needed(mean: float, sd: float, threshold: float, alpha: float, beta: float) -> int | None:
    """The rounds after which a lasting `mean` and `sd` (logs) would be decided, by one last look at `alpha` and
    `beta`; None above `MOST_ROUNDS`.

    At or above log(1 + threshold) only an accept can come (lower bound above 0), below it only a reject (upper bound
    below log(1 + threshold)).
    """
    limit = math.log1p(threshold)
    gap, tail = (mean, alpha) if mean >= limit else (limit - mean, beta)
    spread = max(sd, SMALLEST_SD)
    for count in range(2, MOST_ROUNDS + 1):
        if gap > t_quantile(1 - tail, count - 1) * spread / math.sqrt(count):
            return count
    return None
