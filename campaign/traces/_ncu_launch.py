"""One profiled launch, from what a reader found of it: whatever the page, version or unit, the same KernelCounters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from campaign.traces import _ncu_metrics as metrics
from campaign.traces._ncu_metrics import Way
from campaign.traces._ncu_numbers import BYTES, PERCENT, Reading, scale
from campaign.traces.counters import KernelCounters
from campaign.traces.timeline import LONGEST_NAME

Readings = Mapping[str, Reading]
_LAUNCHED = frozenset(metrics.CAPABILITY) | {
    name
    for ways in (*(metrics.FIELDS[field] for field in metrics.STATIC), *metrics.LIMITS.values())
    for way in ways
    for name in way.names
}


def launch(
    name: str,
    source_row: int,
    readings: Readings,
    *,
    architecture: str = "",
    grid_blocks: int | None = None,
    threads_per_block: int | None = None,
) -> KernelCounters:
    """The counters of one launch. `readings` are by the tool's names of metrics or labels; a grid or block of 0 is that
    of a launch that failed.

    `profiled` is False, and nothing measured is kept, where the launch failed or where everything that was measured is
    not a number: zeros beside NaN are no measurements.
    """
    failed = {one for one, reading in readings.items() if reading.value is None or not math.isfinite(reading.value)}
    profiled = grid_blocks != 0 and threads_per_block != 0 and not _nothing_measured(readings, failed)
    usable = {one: reading for one, reading in readings.items() if one not in failed}
    found: dict[str, Any] = {}
    for field, ways in metrics.FIELDS.items():
        if profiled or field in metrics.STATIC:
            value, source = _first(ways, usable)
            found[field] = round(value) if value is not None and field in metrics.WHOLE else value
            if field == "spill_requests" and value is not None:
                found["spill_counter"] = source
    for field, known in (("grid_blocks", grid_blocks), ("threads_per_block", threads_per_block)):
        found[field] = known or found.get(field) or None
    return KernelCounters(
        name=name[:LONGEST_NAME],
        source_row=source_row,
        architecture=architecture or _architecture(usable),
        limits_blocks={
            limit: value
            for limit, ways in metrics.LIMITS.items()
            if (value := _first(ways, usable)[0]) is not None
        },
        stalls_percent=_stalls(usable) if profiled else {},
        pipes_percent=_pipes(usable) if profiled else {},
        failed=tuple(sorted(failed)),
        profiled=profiled,
        **found,
    )  # fmt: skip


def _nothing_measured(readings: Readings, failed: set[str]) -> bool:
    measured = [name for name in readings if name not in _LAUNCHED]
    return any(name in failed for name in measured) and not any(
        name not in failed and readings[name].value for name in measured
    )


def _first(ways: tuple[Way, ...], readings: Readings) -> tuple[float | None, str]:
    """The first way that is there whole, and the name of it."""
    for way in ways:
        parts = [_plain(readings[name], way.kind) for name in way.names if name in readings]
        known = [part for part in parts if part is not None]
        if len(known) == len(way.names):
            value = sum(known)
            turned = {"100 -": 100 - value, "1 -": 100 * (1 - value)}.get(way.turn, value)
            return turned, " + ".join(way.names)
    return None, ""


def _plain(reading: Reading, kind: str) -> float | None:
    """The value in plain units; None where its unit is not of this kind (`Memory Throughput` is a percentage in one
    section and bytes a second in another)."""
    measured, factor = scale(reading.unit)
    if reading.value is None or measured != (BYTES if kind == metrics.SIZE else kind):
        return None
    value = reading.value * factor
    return _likely(value, reading.step * factor / 2) if kind == metrics.SIZE else value


def _likely(value: float, error: float) -> float:
    """The roundest whole number of bytes that is printed as `value`: 8.19 Kbyte are 8,192 bytes. What compilers and
    launches ask for are multiples of powers of two, and 232,450 bytes would not fit where 232,448 do."""
    low, high = math.ceil(value - error), math.floor(value + error)
    if high <= low or low <= 0 or error < 1:
        return value
    step = 1 << (high.bit_length() - 1)
    while high // step * step < low:
        step >>= 1
    return float(high // step * step)


def _architecture(readings: Readings) -> str:
    parts = [readings[name].value for name in metrics.CAPABILITY if name in readings]
    return f"sm_{parts[0]:.0f}{parts[1]:.0f}" if len(parts) == 2 else ""


def _stalls(readings: Readings) -> dict[str, float]:
    """Each reason's percentage of a warp's time between two instructions."""
    ratios = _by_reason(readings, lambda name: _group(metrics.STALL_RATIO, name) or metrics.stall_label(name))
    latency = next((readings[name].value for name in metrics.LATENCY if name in readings), None)
    if ratios and latency:
        return {reason: 100 * cycles / latency for reason, cycles in ratios.items()}
    shares = _by_reason(readings, lambda name: _group(metrics.STALL_PERCENT, name))
    if shares:
        return shares
    samples = _by_reason(readings, lambda name: _group(metrics.STALL_SAMPLES, name))
    whole = readings[metrics.SAMPLES].value if metrics.SAMPLES in readings else sum(samples.values())
    if samples and whole:
        return {reason: 100 * count / whole for reason, count in samples.items()}
    return _by_reason(
        readings, lambda name: name.removeprefix(metrics.STALL_RULE) if metrics.STALL_RULE in name else None
    )


def _by_reason(readings: Readings, reason_of: Callable[[str], str | None]) -> dict[str, float]:
    named = ((reason_of(name), reading.value) for name, reading in readings.items())
    return {reason: value for reason, value in named if reason and value is not None}


def _group(pattern: Any, name: str) -> str | None:
    found = pattern.fullmatch(name)
    return found[1] if found else None


def _pipes(readings: Readings) -> dict[str, float]:
    """The busiest counter of each pipe, among those that count best."""
    best: dict[str, tuple[int, float]] = {}
    for name, reading in readings.items():
        found = metrics.pipe(name)
        value = _plain(reading, PERCENT)
        if found is None or value is None:
            continue
        which, rank = found
        known = best.get(which)
        if known is None or rank < known[0] or (rank == known[0] and value > known[1]):
            best[which] = rank, value
    return {which: value for which, (_, value) in best.items()}
