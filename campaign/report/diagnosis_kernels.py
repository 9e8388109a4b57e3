"""The kernels of a diagnosis: what the counters say of each, beside the verdict that follows from them."""

from __future__ import annotations

from collections.abc import Sequence

from campaign import units
from campaign.diagnosis.found import Diagnosis, KernelFinding
from campaign.report.kernel_names import shown
from campaign.report.sections import Facts, Named, Part, Said, Section, grid, parts
from campaign.traces.counters import KernelCounters

NONE = "-"
STALLS = 4  # reasons that are named
NAMED = 8  # counters
LONGEST_VERDICT = 72
NAME_ROOM = 80


def section(found: Diagnosis, top: int) -> Section:
    """Every kernel in one table, then the first `top` with all their counters."""
    lines = [
        (one.name, units.share(one.share) if one.share is not None else NONE,
         units.ratio(one.ceiling) if one.ceiling is not None else NONE, _short(one.verdict))
        for one in found.kernels[: 4 * top]
    ]  # fmt: skip
    more = len(found.kernels) - len(lines)
    made: list[Part | None] = [
        grid(("kernel", "share", "ceiling", "verdict"), lines, names="kernel", folding=("verdict",)),
        Said(f"{more} more are in --json, or with --top N." if more > 0 else ""),
        Said(_unjoined(found)),
    ]
    for one in found.kernels[:top]:
        made += [Named(one.name, _beside(one)), Said(one.verdict, strong=True), _facts(one)]
    return Section("Kernels", parts(*made))


def _short(verdict: str) -> str:
    """The verdict as it fits a table; all of it stands with the kernel."""
    return verdict if len(verdict) <= LONGEST_VERDICT else verdict.partition(":")[0]


def _unjoined(found: Diagnosis) -> str:
    if not (found.unjoined and found.dispatch):
        return ""
    names = ", ".join(shown(name, NAME_ROOM) for name in found.unjoined[:3])
    more = f" and {len(found.unjoined) - 3} more" if len(found.unjoined) > 3 else ""
    return f"Not in the trace, so without share and ceiling: {names}{more}."


def _beside(one: KernelFinding) -> str:
    said = [
        f"{units.share(one.share)} of the busy time" if one.share is not None else "",
        f"ceiling {units.ratio(one.ceiling)}" if one.ceiling is not None else "",
        f"{units.counted(one.launches_profiled, 'launch')} profiled",
        f"{units.many(one.launches_traced)} traced" if one.launches_traced is not None else "",
    ]
    return ", ".join(part for part in said if part)


def _facts(one: KernelFinding) -> Facts:
    counters = one.counters
    return Facts(
        (
            ("launch", _launch(one)),
            ("registers", _registers(one)),
            ("spills", _spills(one)),
            ("occupancy", _occupancy(one)),
            ("issue", _listed(
                (counters.eligible_warps, "{} eligible warps a scheduler"),
                (_percent(counters.no_eligible_percent), "no eligible warp in {} of the cycles"),
            )),
            ("stalls", ", ".join(f"{name} {_percent(value)}" for name, value in sorted(
                counters.stalls_percent.items(), key=lambda item: -item[1])[:STALLS])),
            ("use", _listed(
                (_percent(counters.sm_percent), "SM {}"),
                (_percent(counters.memory_percent), "memory {}"),
                (_percent(counters.dram_percent), "DRAM {}"),
                (_percent(counters.l2_percent), "L2 {}"),
                (_percent(counters.l1_percent), "L1 {}"),
            )),
            ("pipes", ", ".join(f"{name} {_percent(value)}" for name, value in sorted(
                counters.pipes_percent.items(), key=lambda item: -item[1]))),
            ("waves", _listed(
                (counters.waves, "{} a multiprocessor"), (_whole(one.wave_efficiency), "efficiency {}"),
            )),
            ("because", "; ".join(one.numbers)),
            ("try", "; ".join(one.next)),
            ("do not try", one.avoid),
            ("lacking", _some(one.missing)),
            ("not collected", _some([name for name in counters.failed if name not in one.missing])),
        )
    )  # fmt: skip


def _launch(one: KernelFinding) -> str:
    counters = one.counters
    return _listed(
        (_blocks(counters), "{}"),
        (counters.cluster_blocks if (counters.cluster_blocks or 1) > 1 else None, "clusters of {}"),
        (counters.multiprocessors, "{} multiprocessors"),
        (counters.architecture or None, "{}"),
        (units.nanoseconds(counters.duration_seconds * 1e9) if counters.duration_seconds is not None else None, "{}"),
    )


def _blocks(counters: KernelCounters) -> str | None:
    """'1,320 blocks of 128 threads'."""
    said = [
        f"{counters.grid_blocks:,} blocks" if counters.grid_blocks is not None else "",
        f"of {counters.threads_per_block:,} threads" if counters.threads_per_block is not None else "",
    ]
    return " ".join(part for part in said if part) or None


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _registers(one: KernelFinding) -> str:
    counters = one.counters
    shared = [value for value in (counters.static_shared_bytes, counters.dynamic_shared_bytes) if value is not None]
    return _listed(
        (counters.registers_per_thread, "{} a thread"),
        (units.size(sum(shared)) if shared else None, "shared memory {} a block"),
    )


def _spills(one: KernelFinding) -> str:
    counters = one.counters
    return _listed(
        (counters.spill_requests, "{} requests" + (f" ({counters.spill_counter})" if counters.spill_counter else "")),
        (counters.local_requests, "{} requests to local memory as a whole, which is more than spills"),
    )


def _occupancy(one: KernelFinding) -> str:
    counters = one.counters
    limits = f" (limited by {' and '.join(one.recomputed_limits)})" if one.recomputed_limits else ""
    return _listed(
        (_percent(one.recomputed_occupancy_percent), f"recomputed {{}}{limits}"),
        (_percent(counters.theoretical_occupancy_percent), "the tool says {} theoretical"),
        (_percent(counters.achieved_occupancy_percent), "{} achieved"),
        (counters.active_warps, "{} warps active on a multiprocessor"),
    )


def _listed(*found: tuple[float | str | None, str]) -> str:
    """Values that are known, each put in the place of {} in its words."""
    known = ((units.many(value) if isinstance(value, int | float) else value, words) for value, words in found)
    return ", ".join(words.replace("{}", value, 1) for value, words in known if value is not None)


def _percent(value: float | None) -> str | None:
    return units.share(value / 100) if value is not None else None


def _whole(fraction: float | None) -> str | None:
    return units.share(fraction) if fraction is not None else None
