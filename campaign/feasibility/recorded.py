"""What a ledger's lines say: the tokens a second of root and head, and the ceilings of a diagnosis. Rows are plain JSON
values, as the ledger's replay gives them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from campaign import units
from campaign.feasibility.found import Ceilings, FamilyCeiling, OpenIdea, Rate

Row = Mapping[str, Any]
JUDGED = ("accept", "reject", "inconclusive")  # verdicts over valid rounds
NOTHING = "nothing"  # what a null acts on
LEAST_CEILING = 1.0005  # below, 1.000x is shown


def rates(findings: Sequence[Row], decisions: Sequence[Row], stack: Sequence[Row]) -> tuple[list[Rate], list[str]]:
    """Root's rate, where it is known, then head's, by the newest headline or decision; and what to know of them.
    Both empty where nothing was measured. `stack` are the decisions that stand."""
    headline = next((one for one in reversed(findings) if _is_headline(one)), None)
    decision = next((one for one in reversed(decisions) if _is_measured(one)), None)
    if headline is not None and (decision is None or headline["line"] > decision["line"]):
        return _of_headline(headline, stack)
    return _of_decision(decision, stack) if decision is not None else ([], [])


def _is_headline(row: Row) -> bool:
    return row["finding"]["kind"] == "headline" and _has_rates(row["finding"]["effect"])


def _is_measured(row: Row) -> bool:
    verdict = row["verdict"]
    return verdict["verdict"] in JUDGED and _has_rates(verdict["effect"]) and not row["revoked"]


def _has_rates(effect: Row | None) -> bool:
    """Whether there is an effect, of steps that have tokens."""
    return effect is not None and effect["control_tokens_per_second"] > 0 < effect["treatment_tokens_per_second"]


def _of_headline(row: Row, stack: Sequence[Row]) -> tuple[list[Rate], list[str]]:
    effect, source = row["finding"]["effect"], f"finding {row['sequence']} ({row['id']})"
    found = [
        Rate("root", effect["control_tokens_per_second"], effect["clock"], source),
        Rate("head", effect["treatment_tokens_per_second"], effect["clock"], source),
    ]
    return found, _notes(effect["clock"], row["stack"], stack, source)


def _of_decision(row: Row, stack: Sequence[Row]) -> tuple[list[Rate], list[str]]:
    verdict, source = row["verdict"], f"decision {row['sequence']} ({row['hypothesis']})"
    effect, beside = verdict["effect"], verdict.get("beside")
    if effect["clock"] != "wall" and beside and beside["clock"] == "wall":
        effect = beside  # days are of the wall's
    control, treatment = effect["control_tokens_per_second"], effect["treatment_tokens_per_second"]
    stands = any(one["id"] == row["id"] for one in stack)
    found = []
    if not row["stack"]:
        found.append(Rate("root", control, effect["clock"], source))
    elif combined := verdict.get("combined"):
        found.append(Rate("root", treatment / combined["cumulative"]["ratio"], effect["clock"], source))
    if stands or row["stack"]:
        found.append(Rate("head", treatment if stands else control, effect["clock"], source))
    else:
        found.append(Rate("head", control, effect["clock"], f"{source}: no edit stood"))
    measured_on = [*row["stack"], *([row["hypothesis"]] if stands else [])]
    return found, _notes(effect["clock"], measured_on, stack, source)


def _notes(clock: str, measured_on: Sequence[str], stack: Sequence[Row], source: str) -> list[str]:
    said = []
    if clock == "cpu":
        said.append(
            "the rates are tokens a second of CPU time; the wall takes at least as long, so the days are too few"
        )
    if list(measured_on) != [one["hypothesis"] for one in stack]:
        said.append(f"the stack moved since {source}: campaign revalidate measures root against head again")
    return said


def ceilings(row: Row, decisions: Sequence[Row], stack: Sequence[Row], gap: float) -> Ceilings:
    """What the diagnosis of `row` bounds, and which of its ideas are still open. `gap` is the ratio that is wanted."""
    found = row["diagnosis"]
    families, whole = found.get("families") or {}, _whole(found)
    shares: Sequence[Row] = families.get("shares", ())
    titles = {one["family"]: one["title"] for one in shares}
    charged = {one["family"]: one["charged_ns"] / whole for one in shares} if whole else {}
    bounds = found.get("ceilings") or {}
    each = tuple(
        FamilyCeiling(
            family=one["family"],
            title=titles.get(one["family"], one["family"]),
            charged_share=charged.get(one["family"], 0.0),
            share_of_range=one["share_of_range"],
            removed=one["removed"],
        )
        for one in bounds.get("each", ())
    )
    ideas, left_out = _ideas(found.get("ideas", ()), decisions, [one["hypothesis"] for one in stack])
    busy = families.get("busy_ns")
    return Ceilings(
        diagnosis=row["id"],
        trace=(row.get("trace") or {}).get("file", ""),
        workload=row.get("workload", ""),
        stack=tuple(row.get("stack", ())),
        families=each,
        families_needed=_needed(sorted(charged.values(), reverse=True), gap),
        all_halved=bounds.get("all_halved"),
        best_kernels=whole / (busy / 2) if whole and busy else None,
        ideas=ideas,
        left_out=left_out,
        claimed=math.prod(one.counted for one in ideas),
        allowed=allowed(ideas, charged),
    )


def allowed(ideas: Sequence[OpenIdea], charged: Mapping[str, float]) -> float | None:
    """The most that these ideas can give together, if all that they act on cost nothing; None for no bound.

    `charged` is each family's part of the range, an instant shared by several families in equal parts. So the sum over
    a set is at least the time in which only the set ran, which is what removing it saves: an upper bound, and exact
    where families never run beside each other. An idea that the profile does not bound counts for its prediction.
    """
    parts: dict[str, float] = {}
    free = 1.0
    for one in ideas:
        if one.ceiling is None:
            free *= one.counted
        elif one.matched and all(name in charged for name in one.matched):
            parts |= {name: charged[name] for name in one.matched}
        else:  # idle time, or kernels by their names
            parts[one.acts_on] = 1 - 1 / one.ceiling
    left = 1 - math.fsum(parts.values())
    return free / left if left > 1e-9 else None


def _whole(found: Row) -> float:
    return float((found.get("families") or {}).get("range_ns") or 0)


def _needed(largest_first: Sequence[float], gap: float) -> int | None:
    """The fewest families whose whole time is at least what `gap` needs gone; 0 for a gap of at most 1."""
    wanted, saved = 1 - 1 / gap, 0.0
    for count, one in enumerate((0.0, *largest_first)):
        saved += one
        if saved >= wanted:
            return count
    return None


def _ideas(
    found: Sequence[Row], decisions: Sequence[Row], stack: Sequence[str]
) -> tuple[tuple[OpenIdea, ...], tuple[str, ...]]:
    """The open ideas, those that count for most first, and why the others are left out."""
    last = {one["hypothesis"]: one for one in decisions if not one["revoked"]}
    ideas, left_out = [], []
    for one in found:
        name, most, predicted = one["hypothesis"], one["ceiling"], one["predicted"]
        if one["acts_on"] == NOTHING:
            continue
        decided = last.get(name)
        if name in stack:
            left_out.append(f"{name}: in the stack")
        elif decided is not None and (decided["ruling"] or decided["verdict"]["verdict"]) == "reject":
            left_out.append(f"{name}: rejected by decision {decided['sequence']}")
        elif one["struck"]:
            left_out.append(f"{name}: {one['why']}")
        elif most is not None and most < LEAST_CEILING:
            left_out.append(f"{name}: its ceiling is {units.ratio(most)}")
        elif predicted <= 1:
            left_out.append(f"{name}: predicts no speedup")
        else:
            counted = predicted if most is None else min(predicted, most)
            ideas.append(OpenIdea(name, one["acts_on"], tuple(one["matched"]), predicted, most, counted))
    ideas.sort(key=lambda one: (-one.counted, one.hypothesis))
    return tuple(ideas), tuple(left_out)
