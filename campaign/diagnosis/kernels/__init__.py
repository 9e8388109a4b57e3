"""What the counters of each kernel say: one verdict, by the first rule that speaks.

A rule is a module here with `ORDER` (its place; lower goes first) and `rule(facts) -> Found | None`. Its docstring is
the rule. Adding one is adding a file. `facts` has what a rule sees, its thresholds and their sources.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from types import ModuleType

from campaign import discovery
from campaign.diagnosis.families import Classifier
from campaign.diagnosis.found import KernelFinding
from campaign.diagnosis.kernels.facts import Facts, Found
from campaign.diagnosis.names import normal, symbol
from campaign.traces.counters import KernelCounters, KernelReport

__all__ = ["Facts", "Found", "Share", "find_kernels", "judge", "rules"]


@dataclass(frozen=True)
class Share:
    """A kernel's part of a trace: its launches, share of the busy time and Amdahl ceiling, None where the range holds
    nothing else."""

    launches: int
    share: float
    ceiling: float | None


@cache
def rules() -> tuple[ModuleType, ...]:
    """The rule modules in the order in which they are asked."""
    found = [module for module in discovery.modules(sys.modules[__name__]) if hasattr(module, "ORDER")]
    return tuple(sorted(found, key=lambda module: module.ORDER))


def judge(facts: Facts) -> tuple[str, Found]:
    """The name of the first rule that speaks, and what it says."""
    for module in rules():
        found: Found | None = module.rule(facts)
        if found is not None:
            return module.__name__.rpartition(".")[2], found
    raise ValueError(f"{facts.counters.name}: no rule spoke, not even the last")


def find_kernels(
    reports: Sequence[KernelReport],
    shares: Mapping[str, Share],
    family_of: Callable[[str], str] | None = None,
) -> tuple[tuple[KernelFinding, ...], tuple[str, ...]]:
    """One finding for each kernel and shape of launch (grid, block, architecture), the largest share of the trace
    first, then the longest total time; and the names that the trace does not have.

    `shares` is by normal name (names.normal). Several launches of one shape are judged by the one with the most
    counters, and among those by the one of median duration: its figures belong together, as means would not.
    `family_of(name)` gives a kernel's family, without one by the built-in rules.
    """
    family_of = family_of or Classifier().family
    groups: dict[tuple[object, ...], list[KernelCounters]] = {}
    for report in reports:
        for one in report.launches:
            shape = (one.architecture, one.grid_blocks, one.threads_per_block, one.profiled)
            groups.setdefault((normal(one.name), *shape), []).append(one)
    found: list[tuple[KernelFinding, float]] = []
    unjoined: dict[str, None] = {}
    for launches in groups.values():
        shown = _typical(launches)
        share = _joined(shown.name, shares)
        if share is None:
            unjoined[shown.name] = None
        found.append((_finding(shown, len(launches), share, family_of(shown.name)), _total(launches)))
    found.sort(key=lambda one: (-(one[0].share or 0.0), -one[1]))
    return tuple(one for one, _ in found), tuple(unjoined) if shares else ()


def _finding(one: KernelCounters, launches: int, share: Share | None, family: str) -> KernelFinding:
    facts = Facts(one, family, share.share if share else None)
    name, said = judge(facts)
    return KernelFinding(
        name=one.name,
        counters=one,
        launches_profiled=launches,
        launches_traced=share.launches if share else None,
        share=share.share if share else None,
        ceiling=share.ceiling if share else None,
        recomputed_occupancy_percent=100 * facts.occupancy.share if facts.occupancy else None,
        recomputed_limits=facts.occupancy.limited_by if facts.occupancy else (),
        wave_efficiency=facts.wave_efficiency,
        rule=name,
        verdict=said.verdict,
        numbers=said.numbers,
        next=said.next,
        avoid=said.avoid,
        missing=said.missing,
    )


def _joined(name: str, shares: Mapping[str, Share]) -> Share | None:
    """By the normal name; a bare function's name (ncu --print-kernel-base function) where one kernel alone has it."""
    plain = normal(name)
    if plain in shares:
        return shares[plain]
    if plain != symbol(name):
        return None
    alike = [share for full, share in shares.items() if symbol(full) == plain]
    return alike[0] if len(alike) == 1 else None


def _typical(launches: list[KernelCounters]) -> KernelCounters:
    known = [sum(getattr(one, field.name) not in (None, (), {}, "") for field in fields(one)) for one in launches]
    fullest = [one for one, count in zip(launches, known, strict=True) if count == max(known)]
    fullest.sort(key=lambda one: one.duration_seconds or 0.0)
    return fullest[(len(fullest) - 1) // 2]


def _total(launches: list[KernelCounters]) -> float:
    return sum(one.duration_seconds or 0.0 for one in launches)
