"""The words that intervals earn. Standard library alone: listings use them.

`d` is the smallest effect worth having and resolvable here, as a fraction (`Plan.threshold`). Every comparison is with
1 + d or its inverse, since ratios are judged on the log scale.
"""

from __future__ import annotations

from campaign import units
from campaign.interactions.departure import between, exact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from campaign.interactions.departure import Interval
    from campaign.records import Contrast, Effect

    Ratio = Contrast | Effect | Interval | float

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
SAME, CANNOT_TELL = "the same", "cannot tell"
PAYS = "pays"
PAYS_FOR_MEMORY = "pays for memory"
NO_LONGER_PAYS = "no longer pays"
RATE = " tok/s"
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


def stack_word(total: Ratio, product: Ratio, kind: str, d: float) -> str:
    """What the product of the parts' ratios beside the measured `total` earns. Each is an interval (`Contrast`,
    `departure.product_of` the parts) or a float, which is taken as exact; the word is that of their ratio's interval.

    `kind` says how the parts were measured, one of `STACK_KINDS`. isolated: each alone on root, so a total above the
    product is synergy. leave_one_out: what each adds to all the others. Of A and B that is a + I and b + I where the
    total is a + b + I (logs): the product exceeds the total by I, so a product above the total is synergy. marginal:
    each on the stack of its day, which telescope to the total: a product above it is `optimistic` (winner's curse or
    drift), below it `pessimistic`, else `consistent`. Raises ValueError for another kind or a ratio not above 0.
    """
    if kind not in STACK_KINDS:
        raise ValueError(f"there is no kind of part {kind!r} (there is: {', '.join(STACK_KINDS)})")
    whole, parts = (exact(one) if isinstance(one, float | int) else one for one in (total, product))
    apart = between(whole, parts) if kind == "isolated" else between(parts, whole)
    found = (OPTIMISTIC, PESSIMISTIC, CONSISTENT) if kind == "marginal" else (SYNERGY, REDUNDANCY, ADDITIVE)
    return _side(apart.ratio, apart.low, apart.high, d, found)


def compared_word(again: Ratio, before: Ratio, d: float) -> str:
    """How a ratio measured again compares with the one before, by the interval of one over the other: `faster`,
    `slower`, `the same` (all of it within [1 / (1 + d), 1 + d]) or `cannot tell`. Raises ValueError as `stack_word`."""
    apart = between(again, before)
    word = _side(apart.ratio, apart.low, apart.high, d, (FASTER, SLOWER, SAME))
    return CANNOT_TELL if word == UNRESOLVED else word


def departure_word(departure: Contrast, d: float) -> str:
    """The same from the interaction's side: `departure` is total over product for isolated parts and product over total
    for leave-one-out gains, taken round by round, so that its interval is that of both."""
    return interaction_word(departure, d)


def headline_text(
    before_tps: float,
    after_tps: float,
    ratio: float,
    low: float,
    high: float,
    before_bytes: float | None,
    after_bytes: float | None,
    blocks: int,
    clock: str = "wall",
) -> str:
    """'13.65k -> 15.11k tokens/s, 1.107x [1.103, 1.111], memory 9.07 -> 12.06 GiB, 20 matched blocks'. On CPU time the
    rate is 'tokens/s of CPU time', since nobody gets that many tokens in a second."""
    rates = [units.rate(value).removesuffix(RATE) for value in (before_tps, after_tps)]
    said = [
        f"{rates[0]} -> {rates[1]} tokens/s" + (" of CPU time" if clock == "cpu" else ""),
        f"{units.ratio(ratio)} {units.interval(low, high)}",
    ]
    if before_bytes is not None and after_bytes is not None:
        said.append(f"memory {size_pair(before_bytes, after_bytes)}")
    return ", ".join([*said, units.counted(blocks, "matched block")])


def headline_of(finding: Mapping[str, Any]) -> str:
    """The same of a finding's JSON, made from its numbers; its own sentence where it came to none."""
    effect, memory = finding["effect"], finding["memory"] or {}
    if not effect:
        return str(finding["sentence"])
    return headline_text(
        effect["control_tokens_per_second"],
        effect["treatment_tokens_per_second"],
        effect["ratio"],
        effect["low"],
        effect["high"],
        memory.get("control_bytes"),
        memory.get("treatment_bytes"),
        finding["blocks"],
        clock=effect["clock"],
    )


def size_pair(before_bytes: float, after_bytes: float) -> str:
    """'9.07 -> 12.06 GiB': the unit once where both have the same."""
    before, after = units.size(before_bytes), units.size(after_bytes)
    number, _, unit = before.partition(" ")
    return f"{number if after.endswith(f' {unit}') else before} -> {after}"


def _worth(effect: Contrast, d: float) -> bool:
    return effect.low > 1 and effect.ratio >= 1 + d


def _side(ratio: float, low: float, high: float, d: float, found: tuple[str, str, str]) -> str:
    above, below, within = found
    if low > 1 and ratio >= 1 + d:
        return above
    if high < 1 and ratio <= 1 / (1 + d):
        return below
    return within if low >= 1 / (1 + d) and high <= 1 + d else UNRESOLVED
