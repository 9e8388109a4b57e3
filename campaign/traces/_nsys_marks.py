"""NVTX ranges projected on the streams: from the start of the first to the end of the last event whose call was made
in the range, on the range's thread.

    calls and events, each sorted by correlation -> merged -> sorted by the call's start
    ranges, sorted by start                      -> swept over them, batch by batch

Everything larger than a batch lies in a Spool. In a batch the extremes of many ranges are looked up in a sparse table
(Bender and Farach-Colton, The LCA Problem Revisited, 2000), of which one level at a time is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from campaign.traces._nsys_file import aside
from campaign.traces.spool import Spool
from campaign.traces.timeline import CALL, Call, Notice

MOST_MARKS = 1 << 22
# An event with the call that caused it: `start` is the call's.
CAUSED = np.dtype([("start", "<i8"), ("begin", "<i8"), ("end", "<i8"), ("thread", "<i4"), ("stream", "<i4")])
# What one batch says of a range: `start` is the range's number.
PART = np.dtype([("start", "<i8"), ("begin", "<i8"), ("end", "<i8"), ("name", "<i4"), ("stream", "<i4")])
NUMBERED = np.dtype([("start", "<i8"), ("end", "<i8"), ("number", "<i8"), ("name", "<i4"), ("thread", "<i4")])


def project(launches: Spool, work: Spool, ranges: Spool) -> tuple[Spool, list[Notice]]:
    """The ranges (CALL) on the streams, as CALL rows whose `thread` is a stream. `launches` (CALL) and `work` (EVENT)
    have correlation and start in each other's place, so that they iterate in order of correlation."""
    joined = _Join()
    caused = joined.caused(launches, work)
    parts, cut = _parts(caused, ranges)
    caused.close()
    notices = []
    if joined.ambiguous:
        text = (
            f"correlation ids that belong to several host calls: {joined.ambiguous:,}. Which of them caused an event "
            "is not known, so NVTX ranges are not projected on the streams by them"
        )
        notices.append(Notice("shared_correlation", text))
    if cut:
        notices.append(Notice("marks_cut", f"more than {MOST_MARKS:,} projected ranges: the rest is left out"))
    return _merged(parts), notices


class _Join:
    """Calls and events that carry the same correlation. Calls of one correlation that lie in each other are one (a
    wrapper and what it wraps); several apart cannot be told apart."""

    def __init__(self) -> None:
        self.ambiguous = 0

    def caused(self, launches: Spool, work: Spool) -> Spool:
        found, events = aside(CAUSED), _Reader(work)
        for calls in _whole_groups(launches):
            calls = self._first(calls)
            if not len(calls):
                continue
            keys = calls["start"]
            for rows in events.until(int(keys[-1])):
                place = np.minimum(np.searchsorted(keys, rows["start"]), len(keys) - 1)
                hit = keys[place] == rows["start"]
                call, rows = calls[place[hit]], rows[hit]
                joined = np.empty(len(rows), CAUSED)
                joined["start"], joined["thread"] = call["correlation"], call["thread"]
                joined["begin"], joined["end"], joined["stream"] = rows["correlation"], rows["end"], rows["stream"]
                found.append(joined)
        return found

    def _first(self, calls: np.ndarray) -> np.ndarray:
        """The outermost call of each correlation, where the others lie in it. `start` is the correlation here."""
        calls = calls[np.lexsort((-calls["end"], calls["correlation"], calls["start"]))]
        opens = np.ones(len(calls), bool)
        opens[1:] = calls["start"][1:] != calls["start"][:-1]
        if opens.all():
            return calls
        group = np.cumsum(opens) - 1
        outer = calls[opens]
        outside = (calls["end"] > outer["end"][group]) | (calls["thread"] != outer["thread"][group])
        apart = np.zeros(len(outer), bool)
        apart[group[outside]] = True
        self.ambiguous += int(apart.sum())
        return outer[~apart]


class _Reader:
    """Rows of a spool as far as they are wanted."""

    def __init__(self, spool: Spool) -> None:
        self._batches = spool.batches()
        self._held: np.ndarray | None = None

    def until(self, key: int) -> Iterator[np.ndarray]:
        """All rows not read yet whose `start` is at most `key`."""
        while True:
            if self._held is None or not len(self._held):
                self._held = next(self._batches, None)
                if self._held is None:
                    return
            count = int(np.searchsorted(self._held["start"], key, side="right"))
            if not count:
                return
            rows, self._held = self._held[:count], self._held[count:]
            yield rows


def _whole_groups(spool: Spool) -> Iterator[np.ndarray]:
    """Batches in which no value of `start` goes on in the next."""
    carried = np.empty(0, spool.dtype)
    for batch in spool.batches():
        rows = np.concatenate([carried, batch])
        cut = int(np.searchsorted(rows["start"], rows["start"][-1]))
        if cut:
            yield rows[:cut]
        carried = rows[cut:]
    if len(carried):
        yield carried


def _parts(caused: Spool, ranges: Spool) -> tuple[Spool, bool]:
    """What each batch of events says of each range that was open in it."""
    found, reader = aside(PART), _Reader(ranges)
    active = np.empty(0, NUMBERED)
    counted = 0
    for batch in caused.batches():
        last = int(batch["start"][-1])
        for rows in reader.until(last):
            numbered = np.empty(len(rows), NUMBERED)
            for field in ("start", "end", "name", "thread"):
                numbered[field] = rows[field]
            numbered["number"] = np.arange(counted, counted + len(rows))
            counted += len(rows)
            # A range that ended before the batch encloses none of it.
            active = np.concatenate([active, numbered[numbered["end"] > int(batch["start"][0])]])
        for part in _extremes(batch, active):
            if len(found) + len(part) > MOST_MARKS:
                return found, True
            found.append(part)
        active = active[active["end"] > last]
    return found, False


def _extremes(batch: np.ndarray, ranges: np.ndarray) -> Iterator[np.ndarray]:
    """For each range and stream the first begin and the last end of the events in it. `batch` is sorted by start."""
    order = np.lexsort((batch["stream"], batch["thread"]))  # stable: by start within a group
    batch = batch[order]
    edges = (batch["thread"][1:] != batch["thread"][:-1]) | (batch["stream"][1:] != batch["stream"][:-1])
    firsts = np.concatenate([[0], np.flatnonzero(edges) + 1, [len(batch)]])
    ranges = ranges[np.argsort(ranges["thread"], kind="stable")]
    for first, end in pairwise(firsts):
        group = batch[first:end]
        thread = group["thread"][0]
        mine = ranges[slice(*np.searchsorted(ranges["thread"], [thread, thread + 1]))]
        low = np.searchsorted(group["start"], mine["start"])
        high = np.searchsorted(group["start"], mine["end"])
        inside = high > low
        if not inside.any():
            continue
        part = np.empty(int(inside.sum()), PART)
        part["start"], part["name"], part["stream"] = mine["number"][inside], mine["name"][inside], group["stream"][0]
        low, high = low[inside], high[inside]
        part["begin"] = _reduced(np.minimum, group["begin"], low, high)
        part["end"] = _reduced(np.maximum, group["end"], low, high)
        yield part


def _reduced(function: np.ufunc, values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """function.reduce(values[low:high]) for each pair; none is empty."""
    found = np.empty(len(low), np.int64)
    levels = np.frexp((high - low).astype(np.float64))[1] - 1  # of the largest power of two that fits
    level, table = 0, values
    while True:
        here = levels == level
        found[here] = function(table[low[here]], table[high[here] - (1 << level)])
        if not (levels > level).any():
            return found
        table = function(table[: -(1 << level)], table[1 << level :])
        level += 1


def _merged(parts: Spool) -> Spool:
    """One mark for each range and stream."""
    found = Spool(CALL)
    for rows in _whole_groups(parts):
        rows = rows[np.lexsort((rows["stream"], rows["start"]))]
        opens = np.ones(len(rows), bool)
        opens[1:] = (rows["start"][1:] != rows["start"][:-1]) | (rows["stream"][1:] != rows["stream"][:-1])
        firsts = np.flatnonzero(opens)
        marks = np.zeros(len(firsts), CALL)
        marks["start"] = np.minimum.reduceat(rows["begin"], firsts)
        marks["end"] = np.maximum.reduceat(rows["end"], firsts)
        marks["name"], marks["thread"] = rows["name"][firsts], rows["stream"][firsts]
        marks["correlation"], marks["kind"] = -1, Call.ANNOTATION
        found.append(marks)
    parts.close()
    return found
