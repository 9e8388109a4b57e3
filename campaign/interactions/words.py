"""The words that intervals earn. Standard library alone: listings use them.

`d` is the smallest effect worth having and resolvable here, as a fraction (`Plan.threshold`). Every comparison is with
1 + d or its inverse, since ratios are judged on the log scale.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from campaign.records import Contrast

SYNERGY = "synergy"
REDUNDANCY = "redundancy"
ADDITIVE = "additive within the floor"
MASKED = "masked"  # worth it only alone
ENABLED = "enabled"  # worth it only on the stack
UNRESOLVED = "unresolved"
OPTIMISTIC = "optimistic"
PESSIMISTIC = "pessimistic"
CONSISTENT = "consistent"
FASTER, SLOWER, WITHIN = "faster", "slower", "within the floor"
PAYS = "pays"
PAYS_FOR_MEMORY = "pays for memory"
NO_LONGER_PAYS = "no longer pays"
STACK_KINDS = ("isolated", "marginal", "leave_one_out")

EXPLAINED = {
    SYNERGY: "together they win more than the product of what each wins alone",
    REDUNDANCY: "together they win less than the product of what each wins alone",
    ADDITIVE: "together they win the product of what each wins alone, within what can be resolved here",
    MASKED: "worth it only alone: the stack takes the gain away",
    ENABLED: "worth it only on the stack",
    UNRESOLVED: "the interval says neither; more rounds would",
    OPTIMISTIC: "the recorded gains promise more than was measured: winner's curse, or drift since",
    PESSIMISTIC: "the recorded gains promise less than was measured: drift since",
    CONSISTENT: "the recorded gains and the measured whole agree, within what can be resolved here",
}


def interaction_word(interaction: Contrast, d: float) -> str:
    """What an interaction earns by itself: `synergy` above 1 (lower bound above 1, estimate at least 1 + d),
    `redundancy` below it in the same way, `additive within the floor` when the whole interval lies in
    [1 / (1 + d), 1 + d], else `unresolved`."""
    return _side(interaction.ratio, interaction.low, interaction.high, d, (SYNERGY, REDUNDANCY, ADDITIVE))


def word(marginal: Contrast, isolated: Contrast, interaction: Contrast, d: float) -> str:
    """What an edit's interaction with the stack earns: `interaction_word`, sharpened where the edit is worth it on one
    of the two alone. Worth it: lower bound above 1 and estimate at least 1 + d; not worth it: upper bound below 1 + d.

    `masked` is a redundancy that is worth it on root and not on the stack, `enabled` a synergy the other way round.
    """
    found = interaction_word(interaction, d)
    if found == REDUNDANCY and _worth(isolated, d) and marginal.high < 1 + d:
        return MASKED
    if found == SYNERGY and _worth(marginal, d) and isolated.high < 1 + d:
        return ENABLED
    return found


def effect_word(effect: Contrast, d: float) -> str:
    """`faster`, `slower`, `within the floor` or `unresolved`, by the same rule as `interaction_word`."""
    return _side(effect.ratio, effect.low, effect.high, d, (FASTER, SLOWER, WITHIN))


def stack_word(total: Contrast | float, product: float, kind: str, d: float) -> str:
    """What the product of the parts' ratios beside the measured `total` earns. The interval is `total`'s, where it has
    one; `departure_word` also takes that of the product into account.

    `kind` says how the parts were measured, one of `STACK_KINDS`. isolated: each alone on root, so a total above the
    product is synergy. leave_one_out: what each adds to all the others. Of A and B that is a + I and b + I where the
    total is a + b + I (logs): the product exceeds the total by I, so a product above the total is synergy. marginal:
    each on the stack of its day, which telescope to the total: a product above it is `optimistic` (winner's curse or
    drift), below it `pessimistic`, else `consistent`. Raises ValueError for another kind or a ratio not above 0.
    """
    if kind not in STACK_KINDS:
        raise ValueError(f"there is no kind of part {kind!r} (there is: {', '.join(STACK_KINDS)})")
    value, low, high = (total,) * 3 if isinstance(total, float | int) else (total.ratio, total.low, total.high)
    if min(value, low, product) <= 0 or not math.isfinite(product):
        raise ValueError(f"ratios are above 0, got a total of {value:g} and a product of {product:g}")
    if kind == "isolated":
        return _side(value / product, low / product, high / product, d, (SYNERGY, REDUNDANCY, ADDITIVE))
    found = (OPTIMISTIC, PESSIMISTIC, CONSISTENT) if kind == "marginal" else (SYNERGY, REDUNDANCY, ADDITIVE)
    return _side(product / value, product / high, product / low, d, found)


def departure_word(departure: Contrast, d: float) -> str:
    """The same from the interaction's side: `departure` is total over product for isolated parts and product over total
    for leave-one-out gains, taken round by round, so that its interval is that of both."""
    return interaction_word(departure, d)


def _worth(effect: Contrast, d: float) -> bool:
    return effect.low > 1 and effect.ratio >= 1 + d


def _side(ratio: float, low: float, high: float, d: float, found: tuple[str, str, str]) -> str:
    above, below, within = found
    if low > 1 and ratio >= 1 + d:
        return above
    if high < 1 and ratio <= 1 / (1 + d):
        return below
    return within if low >= 1 / (1 + d) and high <= 1 + d else UNRESOLVED
