"""The stretches in which a device had nothing to do: all of them counted, the longest kept."""

from __future__ import annotations

import numpy as np

from campaign.traces.timeline import Work

GAPS_KEPT = 1 << 14  # the longest ones; what they leave is reported as small
NOTHING = -1  # for a name id: the edge of the range
GAP = np.dtype(
    [
        ("start", "<i8"),
        ("end", "<i8"),
        ("correlation", "<i8"),  # of the event after it
        ("before", "<i4"),  # name ids, or NOTHING
        ("after", "<i4"),
        ("device", "<i2"),
        ("replay", "u1"),  # both sides are of one graph launch
    ]
)
Rows = np.ndarray


class Gaps:
    """`count` and `total_ns` are of all gaps; `replay_ns` of those inside graph launches."""

    def __init__(self) -> None:
        self.count = self.total_ns = self.replay_ns = 0
        self._kept = np.empty(0, GAP)
        self._smallest = 0  # a gap no longer than this is counted and not kept

    def take(self, last: Rows | None, rows: Rows) -> None:
        """Rows of one device in order of start. `last` is, of those that came before, the one that ends last."""
        if last is not None:
            rows = np.concatenate([last, rows])
        end = np.ascontiguousarray(rows["end"])
        latest = np.maximum.accumulate(end)
        lengths = rows["start"][1:] - latest[:-1]
        places = np.flatnonzero(lengths > 0)
        lengths = lengths[places]
        self.count += len(places)
        self.total_ns += int(lengths.sum())
        if not rows["in_graph"].any():  # the small ones need no look
            places = places[lengths > self._smallest]
        if not len(places):
            return
        rising = np.maximum.accumulate(np.where(end >= latest, np.arange(len(rows)), 0))
        before, after = rows[rising[places]], rows[places + 1]
        found = np.empty(len(places), GAP)
        found["start"], found["end"] = latest[places], after["start"]
        found["correlation"], found["device"] = after["correlation"], after["device"]
        found["before"], found["after"] = before["name"], after["name"]
        same = (before["correlation"] == after["correlation"]) & (after["correlation"] >= 0)
        # A whole graph is one event: what lies between two of them is in neither.
        same &= (before["kind"] != Work.GRAPH) & (after["kind"] != Work.GRAPH)
        found["replay"] = same & (before["in_graph"] > 0) & (after["in_graph"] > 0)
        inside = found[found["replay"] > 0]
        self.replay_ns += int((inside["end"] - inside["start"]).sum())
        self._keep(found)

    def lead_in(self, first_ns: int, row: Rows) -> None:
        """The time from the beginning of the range asked for to the first event, a row."""
        self._edge(first_ns, int(row["start"]), int(row["correlation"]), NOTHING, int(row["name"]), int(row["device"]))

    def lead_out(self, last_ns: int, row: Rows) -> None:
        """The time from the end of what ended last, a row, to the end of the range asked for."""
        self._edge(int(row["end"]), last_ns, -1, int(row["name"]), NOTHING, int(row["device"]))

    def longest(self) -> Rows:
        """The kept gaps, the longest first: dtype GAP."""
        kept: Rows = self._kept[np.argsort(self._kept["start"] - self._kept["end"], kind="stable")][:GAPS_KEPT]
        return kept

    def _edge(self, start: int, end: int, correlation: int, before: int, after: int, device: int) -> None:
        if end > start:
            self.count += 1
            self.total_ns += end - start
            self._keep(np.array([(start, end, correlation, before, after, device, 0)], GAP))

    def _keep(self, found: Rows) -> None:
        self._kept = np.concatenate([self._kept, found])
        if len(self._kept) > 4 * GAPS_KEPT:
            self._kept = self.longest()
            self._smallest = int(self._kept["end"][-1] - self._kept["start"][-1])
