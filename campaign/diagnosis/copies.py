"""Copies against kernels that only move or convert data: which of the two a step pays for.

A step may hold one device copy and still spend a quarter of its time on moving data, in kernels that read a tensor,
change its format, layout or values, and write it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from campaign import units
from campaign.diagnosis.busy import Busy
from campaign.diagnosis.found import Copies, Direction, KernelFinding, Mover
from campaign.diagnosis.kernels.facts import LATENCY_BOUND_PERCENT, ROOF_PERCENT
from campaign.diagnosis.names import normal
from campaign.traces.timeline import Timeline

COPYING = ("memcpy", "memset")
MOVING = ("quantization", "pointwise", "reduction", "layout")
STREAMING, CONVERSION, NEITHER, NO_COUNTERS = "streaming at roof", "compute-heavy conversion", "neither", "no counters"
MATTERS = 0.01  # of the busy time
PASSES = "repeated read/transform/write kernel passes, not memory copies"
_DIRECTION = re.compile(r"\b([HDAP]to[HDAP])\b|(Host|Device)To(Host|Device)")
_WITHIN = frozenset({"DtoD", "PtoP", "AtoA", "AtoD", "DtoA"})  # read and written


def find_copies(
    busy: Busy, timeline: Timeline, findings: Iterable[KernelFinding] = (), steps: int | None = None
) -> Copies:
    """The copies of all devices by direction, and the kernels that only move or convert, the longest first, each called
    by the counters of its finding. `steps` are the whole steps of the range, by default its graph launches."""
    copies = _charged(busy, COPYING)
    moving = _charged(busy, MOVING)
    directions = _directions(busy, timeline)
    movers = _movers(busy, timeline.names, findings)
    count = steps or len(timeline.graph_launches) or None
    return Copies(
        directions=directions,
        copy_share=sum(copies.values()),
        moving_share=sum(moving.values()),
        movers=movers,
        sentence=_sentence(copies, moving, directions, count),
    )


def _charged(busy: Busy, wanted: Iterable[str]) -> dict[str, float]:
    """Each family's share of the busy time, an instant shared by several in equal parts."""
    found = dict.fromkeys((name for name in wanted if name in busy.families), 0.0)
    for mask, nanoseconds in busy.masks_ns.items():
        together = [name for place, name in enumerate(busy.families) if mask >> place & 1]
        for name in together:
            if name in found:
                found[name] += nanoseconds / len(together)
    return {name: value / busy.busy_ns if busy.busy_ns else 0.0 for name, value in found.items()}


def _directions(busy: Busy, timeline: Timeline) -> tuple[Direction, ...]:
    counts: dict[str, list[int]] = {}
    for place in busy.names():
        family = busy.families[busy.family[place]]
        if family in COPYING:
            one = counts.setdefault(_direction(timeline.names[place], family), [0, 0, 0])
            for part, column in enumerate((busy.launches, busy.bytes, busy.summed_ns)):
                one[part] += int(column[place])
    roofs = {one.dram_bytes_per_second for one in timeline.devices if one.dram_bytes_per_second}
    roof = roofs.pop() if len(roofs) == 1 else None
    found = [_made(name, *one, roof=roof) for name, one in counts.items()]
    return tuple(sorted(found, key=lambda one: -one.summed_ns))


def _made(name: str, count: int, moved: int, summed_ns: int, *, roof: float | None) -> Direction:
    rate = moved / (summed_ns * 1e-9) if moved and summed_ns else None
    passes = 2 if name in _WITHIN else 1
    within = name in _WITHIN or name == "memset"
    return Direction(name, count, moved, summed_ns, rate, passes * rate / roof if rate and roof and within else None)


def _direction(name: str, family: str) -> str:
    if family == "memset":
        return "memset"
    found = _DIRECTION.search(name)
    if found is None:
        return "by kernels" if not name.startswith("Memcpy") else "unknown direction"
    return found[1] or f"{found[2][0]}to{found[3][0]}"


def _movers(busy: Busy, names: list[str], findings: Iterable[KernelFinding]) -> tuple[Mover, ...]:
    counted: dict[str, KernelFinding] = {}
    for one in findings:
        if one.counters.profiled:
            counted.setdefault(normal(one.name), one)
    found = []
    for place in busy.names():
        family = busy.families[busy.family[place]]
        if family not in MOVING:
            continue
        name, summed = names[place], int(busy.summed_ns[place])
        known = counted.get(normal(name))
        dram = known.counters.dram_percent if known else None
        sm = known.counters.sm_percent if known else None
        share = summed / busy.busy_ns if busy.busy_ns else 0.0
        found.append(Mover(name, family, int(busy.launches[place]), summed, share, dram, sm, *_called(dram, sm)))
    return tuple(found)


def _called(dram: float | None, sm: float | None) -> tuple[str, str]:
    said = [f"{words} {value:.1f} %" for words, value in (("DRAM", dram), ("SM", sm)) if value is not None]
    numbers = ", ".join(said)
    if dram is not None and dram >= ROOF_PERCENT:
        return (
            STREAMING,
            f"{numbers}: at the DRAM roof; fuse, reuse or drop the pass, the kernel alone has no ceiling left",
        )
    if sm is not None and dram is not None and sm >= LATENCY_BOUND_PERCENT > dram:
        return CONVERSION, f"{numbers}: compute-heavy format conversion, not copy traffic"
    if dram is not None:
        return NEITHER, f"{numbers}: neither DRAM (from {ROOF_PERCENT:.0f} %) nor compute is what it waits for"
    return (
        NO_COUNTERS,
        f"{numbers}; DRAM was not collected" if numbers else "give a kernel report (ncu --csv) beside the trace",
    )


def _sentence(
    copies: dict[str, float], moving: dict[str, float], directions: tuple[Direction, ...], steps: int | None
) -> str:
    copied, moved = sum(copies.values()), sum(moving.values())
    parts = ", ".join(f"{name} {units.share(value)}" for name, value in sorted(moving.items(), key=lambda one: -one[1]))
    passes = f"kernels that only move or convert take {units.share(moved)} of the busy time"
    passes += f" ({parts})" if len(moving) > 1 else ""
    said = f"{passes}, copies and sets {units.share(copied)}{_within(directions, steps)}"
    if max(copied, moved) < MATTERS:
        return f"neither copies nor passes over data matter: {said}"
    if moved >= 2 * copied:
        return f"{PASSES}: {said}"
    if copied >= 2 * moved:
        return f"memory copies, more than kernel passes: {said}"
    return f"memory copies and kernel passes alike: {said}"


def _within(directions: tuple[Direction, ...], steps: int | None) -> str:
    count = sum(one.count for one in directions if one.name in _WITHIN)
    if not count:
        return " (no device copy)"
    if steps:
        return f" ({units.many(count / steps)} device {'copy' if count == steps else 'copies'} a step)"
    return f" ({units.many(count)} device {'copy' if count == 1 else 'copies'})"
