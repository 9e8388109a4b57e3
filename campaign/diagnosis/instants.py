"""Who ran in each instant: busy time by the exact set of families, and by the name that was alone.

Serial stretches are added up at once; where events overlap, a sweep over their boundaries (de Berg et al.,
Computational Geometry, chapter 2) says which families each piece of time belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from campaign.traces.timeline import EVENT

Rows = np.ndarray


class Instants:
    """`masks` maps a set of families, as bits, to the ns in which exactly these ran on a device; `alone` has for each
    name id the ns in which no other name ran on its device."""

    def __init__(self, names: int) -> None:
        self.masks: dict[int, int] = {}
        self.alone = np.zeros(names, np.int64)
        self._open: dict[int, Rows] = {}  # by device: events that may overlap what comes next

    def take(self, device: int, rows: Rows, family: Rows) -> None:
        """Rows of one device in order of start. `family` is the place of each name's family."""
        self._charge(device, rows, family, int(rows["start"][-1]))

    def finish(self, family: Rows) -> None:
        """No more rows: charge what is still open."""
        for device in list(self._open):
            self._charge(device, np.empty(0, EVENT), family, np.iinfo(np.int64).max)

    def _charge(self, device: int, rows: Rows, family: Rows, horizon: int) -> None:
        """Charge every instant before `horizon`, in which all events that will ever start there are known."""
        held = self._open.get(device)
        whole = rows if held is None or not len(held) else np.concatenate([held, rows])
        later = whole["end"] > horizon
        if later.any():
            waiting = whole[later]
            np.maximum(waiting["start"], horizon, out=waiting["start"])
            self._open[device] = waiting
            whole = whole.copy()
            np.minimum(whole["end"], horizon, out=whole["end"])
        else:
            self._open.pop(device, None)
        whole = whole[whole["end"] > whole["start"]]
        if not len(whole):
            return
        latest = np.maximum.accumulate(whole["end"])
        overlaps = whole["start"][1:] < latest[:-1]
        serial = np.ones(len(whole), bool)
        serial[1:] &= ~overlaps
        serial[:-1] &= ~overlaps
        alone = whole[serial]
        lengths = alone["end"] - alone["start"]
        np.add.at(self.alone, alone["name"], lengths)
        self._add((1 << place, nanoseconds) for place, nanoseconds in summed(family[alone["name"]], lengths))
        if len(alone) < len(whole):
            self._crowd(whole[~serial], family)

    def _crowd(self, rows: Rows, family: Rows) -> None:
        """Sweep over the boundaries of events that overlap."""
        times = np.concatenate([rows["start"], rows["end"]])
        order = np.argsort(times, kind="stable")
        step = np.concatenate([np.ones(len(rows), np.int64), np.full(len(rows), -1, np.int64)])[order]
        widths = np.diff(times[order])
        active = np.cumsum(step)[:-1]
        families = np.concatenate([family[rows["name"]]] * 2)[order]
        masks = np.zeros(len(widths), np.int64)
        for place in np.unique(families):
            running = np.cumsum(np.where(families == place, step, 0))[:-1] > 0
            masks |= running.astype(np.int64) << int(place)
        self._add((mask, nanoseconds) for mask, nanoseconds in summed(masks, widths) if mask and nanoseconds)
        # One name ran alone where all active ids are equal: their sum squared is their number times their squares' sum
        # (equality in the inequality of Cauchy and Schwarz). Local ids keep the products small.
        known, local = np.unique(rows["name"], return_inverse=True)
        local = np.concatenate([local + 1] * 2)[order] * step
        total = np.cumsum(local)[:-1]
        squares = np.cumsum(np.abs(local) * local)[:-1]
        single = (active > 0) & (widths > 0) & (active * squares == total * total)
        ids = known[total[single] // active[single] - 1]
        np.add.at(self.alone, ids, widths[single])

    def _add(self, found: Iterable[tuple[int, int]]) -> None:
        for mask, nanoseconds in found:
            self.masks[mask] = self.masks.get(mask, 0) + nanoseconds


def covered(start: Rows, end: Rows, already: int) -> int:
    """How much of the union lies beyond what earlier events, which end at `already` at the latest, have covered."""
    latest = np.maximum.accumulate(end)
    before = np.concatenate([[already], np.maximum(latest[:-1], already)])
    return int(np.maximum(end - np.maximum(start, before), 0).sum())


def summed(keys: Rows, values: Rows) -> list[tuple[int, int]]:
    """The exact sum of the values of each key."""
    if not len(keys):
        return []
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    firsts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sums = np.add.reduceat(values[order], firsts)
    return [(int(key), int(value)) for key, value in zip(ordered[firsts], sums, strict=True)]
