"""One pass over a trace's device events: the union, who was busy in each instant, and the gaps.

Every figure of a diagnosis that is a time comes from here. Each instant is charged to the *set* of families that ran in
it, so that the union, the time in which a family ran alone, and what the removal of any set of families leaves are
exact, however streams overlap. Integers throughout; memory holds a batch, the open events and tables by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from campaign.diagnosis.found import DeviceUse
from campaign.traces.timeline import EVENT, Timeline, Work

GAPS_KEPT = 1 << 14  # the largest ones; what they leave is reported as small
SLICE = 1 << 15  # rows of one boundary sweep
MOST_FAMILIES = 62  # bits of a set that fits an int64

GAP = np.dtype(
    [
        ("start", "<i8"),
        ("end", "<i8"),
        ("correlation", "<i8"),  # of the event after it
        ("before", "<i4"),  # name ids
        ("after", "<i4"),
        ("device", "<i2"),
        ("replay", "u1"),  # both sides are of one graph launch
    ]
)
Rows = np.ndarray


@dataclass(frozen=True)
class Busy:
    """What the sweep counted. Arrays are indexed by name id; `families` gives the bits of `masks_ns`' keys in order.

    `launches`, `summed_ns`, `alone_ns` (no other kernel name on that device in the instant) and `bytes` are int64,
    `family` the place in `families` of each name (-1 for names that are no device event), `kind` its Work.
    """

    devices: tuple[DeviceUse, ...]
    families: tuple[str, ...]
    masks_ns: dict[int, int]
    launches: Rows
    summed_ns: Rows
    alone_ns: Rows
    bytes: Rows
    family: Rows
    kind: Rows
    gaps: Rows  # dtype GAP, the largest first
    gaps_count: int
    gaps_ns: int  # all gaps, kept or not
    replay_idle_ns: int  # gaps inside graph launches
    in_graph: int  # device events launched by graphs
    window: tuple[int, int] | None = None

    @property
    def busy_ns(self) -> int:
        return sum(one.busy_ns for one in self.devices)

    @property
    def range_ns(self) -> int:
        return sum(one.span_ns for one in self.devices)

    @property
    def idle_ns(self) -> int:
        return self.range_ns - self.busy_ns

    def names(self) -> Rows:
        """The ids of the names that are device events, the longest first."""
        ids = np.flatnonzero(self.family >= 0)
        found: Rows = ids[np.argsort(-self.summed_ns[ids], kind="stable")]
        return found

    def removed_ns(self, families: set[str]) -> int:
        """Busy time in which only these families ran: what is saved where they cost nothing."""
        bits = sum(1 << place for place, name in enumerate(self.families) if name in families)
        return sum(nanoseconds for mask, nanoseconds in self.masks_ns.items() if not mask & ~bits)


class _Device:
    """What one device has seen so far."""

    def __init__(self) -> None:
        self.start: int | None = None
        self.end = self.kernel_end = 0
        self.busy = self.kernel_busy = self.summed = 0
        self.events = self.kernels = self.copies = self.sets = 0
        self.streams: set[int] = set()
        self.last: Rows | None = None  # the event that ends last
        self.open = np.empty(0, EVENT)  # events that may overlap what comes next


class _Sweep:
    def __init__(self, timeline: Timeline, family_of: Callable[[str, Work], str]) -> None:
        self.names = timeline.names
        self.family_of = family_of
        self.families: dict[str, int] = {}
        count = len(timeline.names)
        self.family = np.full(count, -1, np.int64)
        self.kind = np.zeros(count, np.uint8)
        self.launches, self.summed, self.alone, self.moved = (np.zeros(count, np.int64) for _ in range(4))
        self.masks: dict[int, int] = {}
        self.devices: dict[int, _Device] = {}
        self.gaps = np.empty(0, GAP)
        self.smallest = 0  # gaps no longer than this are counted and not kept
        self.gaps_count = self.gaps_ns = self.replay_idle = self.in_graph = 0

    def take(self, rows: Rows) -> None:
        """Rows in order of start, as they follow each other."""
        self._classify(rows)
        np.add.at(self.launches, rows["name"], rows["count"].astype(np.int64))
        np.add.at(self.summed, rows["name"], rows["end"] - rows["start"])
        np.add.at(self.moved, rows["name"], rows["bytes"])
        self.in_graph += int(rows["count"][rows["in_graph"] > 0].sum())
        present = np.unique(rows["device"])
        for ordinal in present:
            mine = rows if len(present) == 1 else rows[rows["device"] == ordinal]
            for first in range(0, len(mine), SLICE):
                part = mine[first : first + SLICE]
                device = self.devices.setdefault(int(ordinal), _Device())
                self._union(device, part)
                self._charge(device, part, int(part["start"][-1]))

    def finish(self) -> None:
        for device in self.devices.values():
            self._charge(device, np.empty(0, EVENT), np.iinfo(np.int64).max)

    def _classify(self, rows: Rows) -> None:
        ids, first = np.unique(rows["name"], return_index=True)
        for name, place in zip(ids, first, strict=True):
            if self.family[name] < 0:
                kind = Work(int(rows["kind"][place]))
                found = self.family_of(self.names[name], kind)
                self.family[name] = self.families.setdefault(found, len(self.families))
                self.kind[name] = kind
        if len(self.families) > MOST_FAMILIES:
            raise ValueError(f"{len(self.families)} families: a sweep tells at most {MOST_FAMILIES} apart")

    def _union(self, device: _Device, rows: Rows) -> None:
        start, end, kind = rows["start"], rows["end"], rows["kind"]
        self._gaps(device, rows)
        if device.start is None:
            device.start = device.end = device.kernel_end = int(start[0])
        device.busy += _covered(start, end, device.end)
        kernels = kind == Work.KERNEL
        if kernels.any():
            device.kernel_busy += _covered(start[kernels], end[kernels], device.kernel_end)
            device.kernel_end = max(device.kernel_end, int(end[kernels].max()))
        latest = int(np.argmax(end))
        if device.last is None or end[latest] >= device.end:
            device.last = rows[latest : latest + 1].copy()
        device.end = max(device.end, int(end[latest]))
        device.summed += int((end - start).sum())
        counts = rows["count"]
        device.events += int(counts.sum())
        device.kernels += int(counts[(kind == Work.KERNEL) | (kind == Work.OPERATOR)].sum())
        device.copies += int(counts[kind == Work.MEMCPY].sum())
        device.sets += int(counts[kind == Work.MEMSET].sum())
        device.streams |= set(np.unique(rows["stream"]).tolist())

    def _gaps(self, device: _Device, rows: Rows) -> None:
        """Stretches before a row in which nothing that began earlier still ran."""
        if device.last is not None:
            rows = np.concatenate([device.last, rows])
        end = np.ascontiguousarray(rows["end"])
        latest = np.maximum.accumulate(end)
        lengths = rows["start"][1:] - latest[:-1]
        places = np.flatnonzero(lengths > 0)
        lengths = lengths[places]
        self.gaps_count += len(places)
        self.gaps_ns += int(lengths.sum())
        graphs = rows["in_graph"].any()
        if not graphs:  # the small ones need no look
            places = places[lengths > self.smallest]
        if not len(places):
            return
        rising = np.maximum.accumulate(np.where(end >= latest, np.arange(len(rows)), 0))
        before, after = rows[rising[places]], rows[places + 1]
        found = np.empty(len(places), GAP)
        found["start"], found["end"] = latest[places], after["start"]
        found["correlation"], found["device"] = after["correlation"], after["device"]
        found["before"], found["after"] = before["name"], after["name"]
        same = (before["correlation"] == after["correlation"]) & (after["correlation"] >= 0)
        found["replay"] = same & (before["in_graph"] > 0) & (after["in_graph"] > 0)
        inside = found[found["replay"] > 0]
        self.replay_idle += int((inside["end"] - inside["start"]).sum())
        self.gaps = np.concatenate([self.gaps, found])
        if len(self.gaps) > 4 * GAPS_KEPT:
            self.gaps = _largest(self.gaps, GAPS_KEPT)
            self.smallest = int(self.gaps["end"][-1] - self.gaps["start"][-1])

    def _charge(self, device: _Device, rows: Rows, horizon: int) -> None:
        """Charge every instant before `horizon`, in which all events that will ever start there are known."""
        whole = np.concatenate([device.open, rows]) if len(device.open) else rows
        if not len(whole):
            return
        later = whole["end"] > horizon
        device.open = whole[later]
        if len(device.open):
            device.open["start"] = np.maximum(device.open["start"], horizon)
            whole = whole.copy()
            np.minimum(whole["end"], horizon, out=whole["end"])
        whole = whole[whole["end"] > whole["start"]]
        if not len(whole):
            return
        start, end = whole["start"], whole["end"]
        latest = np.maximum.accumulate(end)
        serial = np.ones(len(whole), bool)
        overlaps = start[1:] < latest[:-1]
        serial[1:] &= ~overlaps
        serial[:-1] &= ~overlaps
        alone = whole[serial]
        lengths = alone["end"] - alone["start"]
        np.add.at(self.alone, alone["name"], lengths)
        for place, nanoseconds in _summed(self.family[alone["name"]], lengths):
            self._add(1 << place, nanoseconds)
        if len(alone) < len(whole):
            self._crowd(whole[~serial])

    def _crowd(self, rows: Rows) -> None:
        """Sweep over the boundaries of events that overlap."""
        times = np.concatenate([rows["start"], rows["end"]])
        order = np.argsort(times, kind="stable")
        step = np.concatenate([np.ones(len(rows), np.int64), np.full(len(rows), -1, np.int64)])[order]
        widths = np.diff(times[order])
        active = np.cumsum(step)[:-1]
        families = np.concatenate([self.family[rows["name"]]] * 2)[order]
        masks = np.zeros(len(widths), np.int64)
        for place in np.unique(families):
            running = np.cumsum(np.where(families == place, step, 0))[:-1] > 0
            masks |= running.astype(np.int64) << int(place)
        for mask, nanoseconds in _summed(masks, widths):
            if mask and nanoseconds:
                self._add(mask, nanoseconds)
        # One name ran alone where all active ids are equal: their sum squared is their number times their squares' sum.
        known, local = np.unique(rows["name"], return_inverse=True)
        local = np.concatenate([local + 1] * 2)[order] * step
        total = np.cumsum(local)[:-1]
        squares = np.cumsum(np.abs(local) * local)[:-1]
        single = (active > 0) & (widths > 0) & (active * squares == total * total)
        ids = known[total[single] // active[single] - 1]
        np.add.at(self.alone, ids, widths[single])

    def _add(self, mask: int, nanoseconds: int) -> None:
        self.masks[mask] = self.masks.get(mask, 0) + nanoseconds


def sweep(timeline: Timeline, family_of: Callable[[str, Work], str], window: tuple[int, int] | None = None) -> Busy:
    """Count everything in one pass. `family_of(name, kind)` is asked once for each name.

    Without a `window` (start and end in ns) a device's range is from the start of its first event to the end of its
    last. With one the range is the window: events are clipped to it, and a launch counts where it starts in it.
    """
    found = _Sweep(timeline, family_of)
    for batch in timeline.events.batches():
        rows = batch if window is None else _clipped(batch, *window)
        if len(timeline.graph_launches):
            rows = rows.copy()
            rows["in_graph"] |= np.isin(rows["correlation"], timeline.graph_launches)
        if len(rows):
            found.take(rows)
    found.finish()
    devices = []
    for ordinal, one in sorted(found.devices.items()):
        start, end = (one.start or 0, one.end) if window is None else window
        label = timeline.devices[ordinal].name or f"device {timeline.devices[ordinal].ordinal}"
        devices.append(
            DeviceUse(
                timeline.devices[ordinal].ordinal,
                label,
                start,
                end,
                one.busy,
                one.kernel_busy,
                one.summed,
                one.events,
                one.kernels,
                one.copies,
                one.sets,
                len(one.streams),
            )
        )
    gaps = _largest(found.gaps, GAPS_KEPT)
    return Busy(
        devices=tuple(devices),
        families=tuple(found.families),
        masks_ns=found.masks,
        launches=found.launches,
        summed_ns=found.summed,
        alone_ns=found.alone,
        bytes=found.moved,
        family=found.family,
        kind=found.kind,
        gaps=gaps,
        gaps_count=found.gaps_count,
        gaps_ns=found.gaps_ns,
        replay_idle_ns=found.replay_idle,
        in_graph=found.in_graph,
        window=window,
    )


def _covered(start: Rows, end: Rows, already: int) -> int:
    """How much of the union lies beyond what earlier events, which end at `already` at the latest, have covered."""
    latest = np.maximum.accumulate(end)
    before = np.concatenate([[already], np.maximum(latest[:-1], already)])
    return int(np.maximum(end - np.maximum(start, before), 0).sum())


def _summed(keys: Rows, values: Rows) -> list[tuple[int, int]]:
    """The exact sum of the values of each key."""
    if not len(keys):
        return []
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    firsts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sums = np.add.reduceat(values[order], firsts)
    return [(int(key), int(value)) for key, value in zip(ordered[firsts], sums, strict=True)]


def _largest(gaps: Rows, count: int) -> Rows:
    kept: Rows = gaps[np.argsort(gaps["start"] - gaps["end"], kind="stable")][:count]
    return kept


def _clipped(rows: Rows, first: int, last: int) -> Rows:
    inside = rows[(rows["start"] < last) & ((rows["end"] > first) | (rows["start"] >= first))].copy()
    inside["count"][inside["start"] < first] = 0
    np.maximum(inside["start"], first, out=inside["start"])
    np.minimum(inside["end"], last, out=inside["end"])
    return inside
