"""How many steps a captured range of graph launches holds: one launch a step, or one row of launches again and again.

Each launch is known by how many device events it made. Launches that differ, and do not repeat, are pieces of a step,
and how many pieces make one is nothing that a trace says.
"""

from __future__ import annotations

import numpy as np

from campaign import units
from campaign.diagnosis.busy import Busy
from campaign.diagnosis.found import Steps
from campaign.traces.timeline import Call, Timeline, Work

SOURCE = "graph launches"
LEAST_IN_GRAPHS = 0.5  # of the device's launches: less, and graph launches are not the steps
GIVE = "give --steps N"


def replayed_steps(timeline: Timeline, busy: Busy) -> Steps | None:
    """The steps by graph launches; None where the trace's work is not in graphs, or there are none."""
    whole = _whole_graphs(busy)
    if whole is not None:
        return whole
    order = launch_order(timeline, busy.window)
    if not len(order):
        return None
    if not busy.in_graph:
        text = (
            f"{units.counted(len(order), 'graph launch')} and no device event of them: what they ran was not traced, "
            "so idle time is unknown. Trace every node: nsys profile --cuda-graph-trace=node"
        )
        return Steps(None, SOURCE, text, attributable=False)
    share = busy.in_graph / max(sum(one.events for one in busy.devices), 1)
    if share < LEAST_IN_GRAPHS:
        return None
    counts = node_counts(timeline, busy, order)
    if counts is None:
        text = (
            f"{units.counted(len(order), 'graph launch')} share correlation ids, and their events do not divide evenly"
        )
        return Steps(None, "", f"unattributable: {text}: {GIVE}", attributable=False)
    counts = counts[counts > 0]
    row = period(counts)
    if row is None:
        text = (
            f"{units.counted(len(counts), 'graph launch')} of {counts.min():,} to {counts.max():,} device events do "
            f"not repeat as whole steps: {GIVE}"
        )
        return Steps(None, "", f"unattributable: {text}", attributable=False)
    devices = max(sum(one.in_graph > 0 for one in busy.devices), 1)
    steps, rest = divmod(len(counts) // row, devices)
    if rest:
        text = f"{len(counts)} graph launches on {devices} devices do not divide evenly: {GIVE}"
        return Steps(None, "", f"unattributable: {text}", attributable=False)
    text = f"{units.counted(len(counts), 'graph launch')}, {units.share(share)} of the device's launches"
    text += f", {row} a step" if row > 1 else ""
    text += f", on {devices} devices" if devices > 1 else ""
    lost = len(order) - len(counts)
    return Steps(steps, SOURCE, text + (f"; {lost} more made no device event" if lost > 0 else ""))


def launch_order(timeline: Timeline, window: tuple[int, int] | None) -> np.ndarray:
    """The correlation of every graph launch, in the order of the calls: many may share one."""
    found = [np.empty(0, np.int64)]
    for calls in timeline.calls.batches():
        rows = calls[calls["kind"] == Call.GRAPH_LAUNCH]
        if window is not None:
            rows = rows[(rows["start"] >= window[0]) & (rows["start"] < window[1])]
        found.append(rows["correlation"])
    return np.concatenate(found)


def shared(timeline: Timeline) -> bool:
    """Whether several graph launches carry one correlation, so that their events cannot be told apart by it."""
    order = launch_order(timeline, None)
    return len(np.unique(order)) < len(order)


def node_counts(timeline: Timeline, busy: Busy, order: np.ndarray) -> np.ndarray | None:
    """The device events of each launch in `order`. Those that share a correlation share its events equally; None where
    these do not divide."""
    known, inverse, times = np.unique(order, return_inverse=True, return_counts=True)
    places = np.searchsorted(timeline.graph_launches, known)
    places = np.minimum(places, len(timeline.graph_launches) - 1)
    events = np.where(timeline.graph_launches[places] == known, busy.replays[places], 0)
    if (events % times).any():
        return None
    found: np.ndarray = (events // times)[inverse]
    return found


def period(counts: np.ndarray) -> int | None:
    """The shortest row of launches that, repeated whole, gives all of them: 1 where all are alike, None where nothing
    repeats."""
    for length in range(1, len(counts) // 2 + 1):
        if len(counts) % length == 0 and (counts[length:] == counts[:-length]).all():
            return length
    return 1 if len(counts) == 1 else None


def _whole_graphs(busy: Busy) -> Steps | None:
    """Graphs traced as a whole: each is one row of the device."""
    ids = [one for one in busy.names() if busy.kind[one] == Work.GRAPH]
    if not ids:
        return None
    times = {int(busy.launches[one]) for one in ids}
    launches = int(busy.launches[ids].sum())
    text = f"{units.counted(launches, 'graph launch')}, traced as a whole"
    devices = len(busy.devices)
    if len(times) > 1 or devices > 1:
        told = "of several graphs, not equally often" if len(times) > 1 else f"on {devices} devices"
        return Steps(None, "", f"unattributable: {text}, {told}: {GIVE}", attributable=False)
    return Steps(times.pop(), SOURCE, text + (f", {len(ids)} a step" if len(ids) > 1 else ""))
