"""How far apart two measured ratios are, and what several multiply to, with the intervals of all of them.

Standard library alone: listings use it. Ratios that were measured in different rounds are independent, so on the log
scale their variances add, and the degrees of freedom of the sum are Welch and Satterthwaite's (Welch 1947).
"""

from __future__ import annotations

import math
from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

LARGEST_LOG = 700.0  # exp of it is still finite
Z = 1.959963984540054  # the normal distribution's .975 quantile
# Student's t at .975 for 1, 2, ... degrees of freedom; beyond these the expansion below is exact to 1e-5.
T = (
    *(12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139),
    *(2.200985, 2.178813, 2.160369),
)


class Interval(namedtuple("Interval", ("ratio", "low", "high", "rounds"))):
    """A ratio with its two-sided 95 % interval. `rounds` is one more than the degrees of freedom; of several ratios it
    need not be whole, and is infinite for a number that is exact."""

    __slots__ = ()


def exact(ratio: float) -> Interval:
    """A ratio without uncertainty."""
    return Interval(ratio, ratio, ratio, math.inf)


def product_of(ratios: Iterable[Any]) -> Interval:
    """What ratios of different rounds multiply to. Each has `ratio`, `low`, `high` and `rounds`, as `Interval`,
    `Contrast` and `Effect` do. Raises ValueError for a bound that is not above 0 or not finite."""
    return _combined([(one, 1) for one in ratios])


def between(one: Any, other: Any) -> Interval:
    """`one` over `other`, which were measured in different rounds. Raises as `product_of`."""
    return _combined([(one, 1), (other, -1)])


def t975(degrees: float) -> float:
    """Student's t at .975, for at least one degree of freedom; within the table a fraction is interpolated in
    1 / degrees, which widens a little. Beyond it the Cornish-Fisher expansion (Abramowitz and Stegun 1964, 26.7.5)."""
    if degrees < len(T):
        degrees = max(1.0, degrees)
        whole = int(degrees)
        onward = (1 / whole - 1 / degrees) / (1 / whole - 1 / (whole + 1))
        return T[whole - 1] + onward * (T[whole] - T[whole - 1])
    v, z = degrees, Z
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * v**4)
    )


def _combined(signed: list[tuple[Any, int]]) -> Interval:
    log = variance = spread = 0.0
    for one, sign in signed:
        if not all(math.isfinite(value) and value > 0 for value in (one.ratio, one.low, one.high)):
            raise ValueError(f"ratios are above 0, got {one.ratio:g} [{one.low:g}, {one.high:g}]")
        degrees = one.rounds - 1
        own = ((math.log(one.high) - math.log(one.low)) / (2 * t975(degrees))) ** 2
        log += sign * math.log(one.ratio)
        variance += own
        spread += own**2 / degrees
    degrees = variance**2 / spread if spread else math.inf
    half = t975(degrees) * math.sqrt(variance) if variance else 0.0
    ratio, low, high = (math.exp(max(-LARGEST_LOG, min(LARGEST_LOG, log + side))) for side in (0.0, -half, half))
    return Interval(ratio, low, high, degrees + 1)
