"""One quantity as a cell of a page's tables: ratios with their interval, bytes beside them, predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from campaign import units
from campaign.interactions.words import EXPLAINED
from campaign.records import ByteChange, Combined, Contrast, Effect, MemoryChange
from campaign.report.markup import prose
from campaign.report.reported import Reported

NONE = "-"


def ratio(effect: Effect | Contrast | None, *, bold: bool = False) -> str:
    """'**1.105x** [1.085, 1.126]'; 'none' where nothing was measured."""
    if effect is None:
        return "none"
    said = f"**{units.ratio(effect.ratio)}**" if bold else units.ratio(effect.ratio)
    return f"{said} {units.interval(effect.low, effect.high)}" if math.isfinite(effect.low) else said


def bytes_change(change: ByteChange | None) -> str:
    """'-145.5 KiB' where it is exact, '+1.4 MiB [1.2 MiB, 1.6 MiB]' where it is an estimate."""
    if change is None:
        return ""
    said = units.signed_size(change.bytes)
    return said if change.exact else f"{said} [{units.signed_size(change.low)}, {units.signed_size(change.high)}]"


def both(effect: Contrast | None, change: ByteChange | None, *, bold: bool = False) -> str:
    """A ratio with its bytes: '1.146x [1.128, 1.164], +1.4 MiB'."""
    return (
        ", ".join(part for part in (ratio(effect, bold=bold) if effect else "", bytes_change(change)) if part) or NONE
    )


def joint(row: Reported) -> tuple[str, str, str, str]:
    """How an edit does alone and with the stack: isolated, cumulative, interaction, word. On an empty stack the three
    are the same measurement; where root was not timed beside control nothing is known."""
    found = row.combined
    if found is None:
        if not row.decision.stack:
            return ("the same", "the same", NONE, "first on root")
        return ("not timed", "not timed", NONE, prose(row.plan.two_arms or "root was not timed beside it"))
    return (
        both(found.isolated, found.isolated_bytes),
        both(found.cumulative, found.cumulative_bytes),
        both(found.interaction, found.interaction_bytes),
        f"**{found.word}**",
    )


def joint_line(found: Combined) -> str:
    """'alone 1.080x [..], with the stack against root 1.210x [..], interaction 0.980x [..]: redundancy (...)' in plain
    text."""
    parts = (
        f"alone {both(found.isolated, found.isolated_bytes)}",
        f"with the stack against root {both(found.cumulative, found.cumulative_bytes)}",
        f"interaction {both(found.interaction, found.interaction_bytes)}: {found.word}",
    )
    meant = EXPLAINED.get(found.word)
    return "; ".join(parts) + (f" ({meant})" if meant else "")


def memory(change: MemoryChange | None) -> str:
    if change is None:
        return "not compared"
    said = f"{units.signed_size(change.treatment_bytes - change.control_bytes)} ({units.size(change.control_bytes)} to "
    return f"{said}{units.size(change.treatment_bytes)})" + (
        ", saved" if change.saved else ", grown" if change.grown else ""
    )


def predicted(row: Reported) -> str:
    """'1.030x optimistic; counts 2 of 2'."""
    said = f"{units.ratio(row.decision.predicted_ratio)} {row.prediction}".rstrip()
    return said + (f"; counts {row.counts}" if row.counts else "")


def rounds(row: Reported) -> str:
    """'8', '8, 1 invalid'."""
    verdict = row.decision.verdict
    return str(verdict.valid_rounds) + (f", {verdict.invalid_rounds} invalid" if verdict.invalid_rounds else "")


def product(ratios: Sequence[float | None]) -> float | None:
    """What the ratios multiply to; None for no ratio or one that is missing."""
    known = [value for value in ratios if value is not None]
    return math.prod(known) if known and len(known) == len(ratios) else None


def total_gain(ratios: Sequence[float | None]) -> float | None:
    """1 + the sum of the gains; None as for `product`."""
    known = [value for value in ratios if value is not None]
    return 1 + sum(value - 1 for value in known) if known and len(known) == len(ratios) else None
