"""One pass over a trace's device events: the union, who was busy in each instant, and the gaps.

Every figure of a diagnosis that is a time comes from here. Each instant is charged to the *set* of families that ran in
it, so that the union, the time in which a family ran alone, and what the removal of any set of families leaves are
exact, however streams overlap. Integers throughout; memory holds a batch, the open events and tables by name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np

from campaign.diagnosis.found import DeviceUse
from campaign.diagnosis.idle import Gaps
from campaign.diagnosis.instants import Instants, covered
from campaign.traces.timeline import Timeline, Work

SLICE = 1 << 15  # rows of one boundary sweep
MOST_FAMILIES = 62  # bits of a set that fits an int64
Rows = np.ndarray
Family = Callable[[str, Work], str]


@dataclass(frozen=True)
class Busy:
    """What the sweep counted. Arrays are indexed by name id; `families` gives the bits of `masks_ns`' keys in order.

    `launches`, `summed_ns`, `alone_ns` (no other kernel name on that device in the instant) and `bytes` are int64,
    `family` the place in `families` of each name (-1 for names that are no device event), `kind` its Work. `replays`
    has the device events of each graph launch by its correlation, in the order of Timeline.graph_launches.
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
    gaps: Rows  # dtype GAP, the longest first
    gaps_count: int
    gaps_ns: int  # all gaps, kept or not
    replay_idle_ns: int  # gaps inside graph launches
    replays: Rows = field(default_factory=lambda: np.empty(0, np.int64))
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

    @property
    def in_graph(self) -> int:
        return sum(one.in_graph for one in self.devices)

    def names(self) -> Rows:
        """The ids of the names that are device events, the longest first."""
        ids = np.flatnonzero(self.family >= 0)
        found: Rows = ids[np.argsort(-self.summed_ns[ids], kind="stable")]
        return found

    def removed_ns(self, families: Collection[str]) -> int:
        """Busy time in which only these families ran: what is saved where they cost nothing."""
        bits = sum(1 << place for place, name in enumerate(self.families) if name in families)
        return sum(nanoseconds for mask, nanoseconds in self.masks_ns.items() if not mask & ~bits)

    def ran_ns(self, families: Collection[str]) -> int:
        """Busy time in which any of these families ran, alone or beside others."""
        bits = sum(1 << place for place, name in enumerate(self.families) if name in families)
        return sum(nanoseconds for mask, nanoseconds in self.masks_ns.items() if mask & bits)


class _Device:
    """What one device has seen so far."""

    def __init__(self) -> None:
        self.start: int | None = None
        self.end = self.kernel_end = 0
        self.busy = self.kernel_busy = self.summed = 0
        self.events = self.kernels = self.copies = self.sets = 0
        self.in_graph = 0
        self.streams: set[int] = set()
        self.last: Rows | None = None  # the event that ends last

    def take(self, rows: Rows) -> None:
        start, end, kind, counts = rows["start"], rows["end"], rows["kind"], rows["count"]
        if self.start is None:
            self.start = self.end = self.kernel_end = int(start[0])
        self.busy += covered(start, end, self.end)
        kernels = kind == Work.KERNEL
        if kernels.any():
            self.kernel_busy += covered(start[kernels], end[kernels], self.kernel_end)
            self.kernel_end = max(self.kernel_end, int(end[kernels].max()))
        latest = int(np.argmax(end))
        if self.last is None or end[latest] >= self.end:
            self.last = rows[latest : latest + 1].copy()
        self.end = max(self.end, int(end[latest]))
        self.summed += int((end - start).sum())
        self.events += int(counts.sum())
        self.in_graph += int(counts[rows["in_graph"] > 0].sum())
        self.kernels += int(counts[kernels | (kind == Work.OPERATOR)].sum())
        self.copies += int(counts[kind == Work.MEMCPY].sum())
        self.sets += int(counts[kind == Work.MEMSET].sum())
        self.streams |= set(np.unique(rows["stream"]).tolist())


class _Sweep:
    def __init__(self, timeline: Timeline, family_of: Family, window: tuple[int, int] | None) -> None:
        self.timeline, self.family_of, self.window = timeline, family_of, window
        self.families: dict[str, int] = {}
        count = len(timeline.names)
        self.family = np.full(count, -1, np.int64)
        self.kind = np.zeros(count, np.uint8)
        self.launches, self.summed, self.moved = (np.zeros(count, np.int64) for _ in range(3))
        self.replays = np.zeros(len(timeline.graph_launches), np.int64)
        self.devices: dict[int, _Device] = {}
        self.instants = Instants(count)
        self.gaps = Gaps()

    def take(self, rows: Rows) -> None:
        """Rows in order of start, as they follow each other."""
        self._classify(rows)
        np.add.at(self.launches, rows["name"], rows["count"].astype(np.int64))
        np.add.at(self.summed, rows["name"], rows["end"] - rows["start"])
        np.add.at(self.moved, rows["name"], rows["bytes"])
        present = np.unique(rows["device"])
        for ordinal in present:
            mine = rows if len(present) == 1 else rows[rows["device"] == ordinal]
            for first in range(0, len(mine), SLICE):
                self._take_slice(int(ordinal), mine[first : first + SLICE])

    def _take_slice(self, ordinal: int, rows: Rows) -> None:
        device = self.devices.get(ordinal)
        if device is None:
            device = self.devices[ordinal] = _Device()
            if self.window is not None:
                self.gaps.lead_in(self.window[0], rows[0])
        self.gaps.take(device.last, rows)
        device.take(rows)
        self.instants.take(ordinal, rows, self.family)

    def finish(self) -> None:
        self.instants.finish(self.family)
        for device in self.devices.values():
            if self.window is not None and device.last is not None:
                self.gaps.lead_out(self.window[1], device.last[0])

    def marked(self, rows: Rows) -> Rows:
        """The rows with `in_graph` also where their correlation is a graph launch's; counts each launch's events."""
        launches = self.timeline.graph_launches
        if not len(launches):
            return rows
        rows = rows.copy()
        places = np.minimum(np.searchsorted(launches, rows["correlation"]), len(launches) - 1)
        launched = launches[places] == rows["correlation"]
        rows["in_graph"] |= launched
        np.add.at(self.replays, places[launched], rows["count"][launched].astype(np.int64))
        return rows

    def used(self) -> tuple[DeviceUse, ...]:
        found = []
        for place, one in sorted(self.devices.items()):
            device = self.timeline.devices[place]
            start, end = self.window or (one.start or 0, one.end)
            found.append(
                DeviceUse(
                    device=device.ordinal,
                    label=device.name or f"device {device.ordinal}",
                    start_ns=start,
                    end_ns=end,
                    busy_ns=one.busy,
                    kernel_busy_ns=one.kernel_busy,
                    summed_ns=one.summed,
                    events=one.events,
                    kernels=one.kernels,
                    copies=one.copies,
                    sets=one.sets,
                    streams=len(one.streams),
                    in_graph=one.in_graph,
                )
            )
        return tuple(found)

    def _classify(self, rows: Rows) -> None:
        ids, first = np.unique(rows["name"], return_index=True)
        for name, place in zip(ids, first, strict=True):
            if self.family[name] < 0:
                kind = Work(int(rows["kind"][place]))
                found = self.family_of(self.timeline.names[name], kind)
                self.family[name] = self.families.setdefault(found, len(self.families))
                self.kind[name] = kind
        if len(self.families) > MOST_FAMILIES:
            raise ValueError(f"{len(self.families)} families: a sweep tells at most {MOST_FAMILIES} apart")


def sweep(timeline: Timeline, family_of: Family, window: tuple[int, int] | None = None) -> Busy:
    """Count everything in one pass. `family_of(name, kind)` is asked once for each name.

    Without a `window` (start and end in ns) a device's range is from the start of its first event, of whatever kind, to
    the end of its last. With one the range is the window: events are clipped to it, and a launch counts where it starts
    in it.
    """
    found = _Sweep(timeline, family_of, window)
    for batch in timeline.events.batches():
        rows = batch if window is None else _clipped(batch, *window)
        if len(rows):
            found.take(found.marked(rows))
    found.finish()
    return Busy(
        devices=found.used(),
        families=tuple(found.families),
        masks_ns=found.instants.masks,
        launches=found.launches,
        summed_ns=found.summed,
        alone_ns=found.instants.alone,
        bytes=found.moved,
        family=found.family,
        kind=found.kind,
        gaps=found.gaps.longest(),
        gaps_count=found.gaps.count,
        gaps_ns=found.gaps.total_ns,
        replay_idle_ns=found.gaps.replay_ns,
        replays=found.replays,
        window=window,
    )


def _clipped(rows: Rows, first: int, last: int) -> Rows:
    """What of the rows lies in the window. What only ends where it begins does not."""
    inside = rows[(rows["start"] < last) & ((rows["end"] > first) | (rows["start"] >= first))].copy()
    inside["count"][inside["start"] < first] = 0
    np.maximum(inside["start"], first, out=inside["start"])
    np.minimum(inside["end"], last, out=inside["end"])
    return inside
