"""The accepted stack as a set of edits: whose neighbours changed since they were measured, what its parts come to.

Pure functions of names and rows, standard library alone: listings use them.
"""

from __future__ import annotations

from campaign import units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

PRODUCT_OF = {
    "isolated": "each measured alone on root",
    "marginal": "each measured on the stack of its day",
    "leave_one_out": "each measured by leaving it out of the whole",
}


def neighbours_changed(row: Mapping[str, Any], stack: Sequence[str]) -> str:
    """What changed around a row's edit since it was measured, in words: edits that joined the stack or left it. Empty
    where its neighbours are the same. `stack` are the names now in the stack, `row["stack"]` those at its measuring."""
    own = row["hypothesis"]
    then, now = [name for name in row["stack"] if name != own], [name for name in stack if name != own]
    joined, left = [name for name in now if name not in then], [name for name in then if name not in now]
    said = [f"{verb} since: {', '.join(names)}" for verb, names in (("joined", joined), ("left", left)) if names]
    return "; ".join(said)


def parts_line(product: float, sum: float, total: float, word: str, kind: str = "leave_one_out") -> str:
    """'The parts, each measured by leaving it out of the whole, multiply to 1.635x and add to 1.520x; the whole was
    measured at 1.358x: synergy.' Raises KeyError for a kind not in `PRODUCT_OF`."""
    return (
        f"The parts, {PRODUCT_OF[kind]}, multiply to {units.ratio(product)} and add to {units.ratio(sum)}; the whole"
        f" was measured at {units.ratio(total)}: {word}."
    )
