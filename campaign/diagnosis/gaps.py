"""Why the device had nothing to do: each large gap against what the host did before and in it.

The work after a gap was launched by a host call with the same correlation. Called before the gap began, the work was
`queued` and something on the device held it up; later, the device waited for the `host`; and where the host was itself
waiting in a synchronising call (or a copy or allocation that blocked) when the device ran dry, it is the `sync`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from campaign.diagnosis import replays
from campaign.diagnosis.busy import Busy
from campaign.diagnosis.found import Gap
from campaign.traces.timeline import Call, Timeline

SYNC, HOST, QUEUED, UNKNOWN, SMALL = "sync", "host", "queued", "unknown", "small"
CAUSES = (SYNC, HOST, QUEUED, UNKNOWN, SMALL)
SHOWN = 10
LAUNCH_NS = 10_000  # the most that it takes a device to begin what is queued and may begin
SHORTEST_WAIT_NS = 20_000  # an asynchronous copy is called in less
BLOCKING = (Call.SYNC, Call.COPY, Call.ALLOCATION)
LAUNCHES = (Call.LAUNCH, Call.GRAPH_LAUNCH, Call.COPY)


@dataclass(frozen=True)
class Explained:
    """The idle time by its cause in ns (all gaps; `small` holds those not looked up), and the largest gaps in words.

    Launching could explain what the host was late for, what the trace does not explain, the small gaps, and of a gap
    before queued work what a launch takes; not the wait in a sync, nor what lies inside a graph launch."""

    by_cause_ns: dict[str, int]
    largest: tuple[Gap, ...]
    launching_ns: int  # what launching could explain at most
    replay_ns: int | None  # inside graph launches; None without graphs, and where launches share a correlation


def explain(timeline: Timeline, busy: Busy) -> Explained:
    """Look the kept gaps up in what the host did, in one pass over the calls."""
    gaps = busy.gaps
    launched = np.full(len(gaps), -1, np.int64)  # when the work after the gap was launched
    blocked = np.zeros(len(gaps), bool)
    host: list[Counter[str]] = [Counter() for _ in range(min(SHOWN, len(gaps)))]
    by_correlation = np.argsort(gaps["correlation"], kind="stable")
    wanted = gaps["correlation"][by_correlation]
    by_start = np.argsort(gaps["start"], kind="stable")
    starts = gaps["start"][by_start]
    for calls in timeline.calls.batches():
        launches = calls[np.isin(calls["kind"], LAUNCHES) & (calls["correlation"] >= 0)]
        first = np.searchsorted(wanted, launches["correlation"], "left")
        last = np.searchsorted(wanted, launches["correlation"], "right")
        for found in np.flatnonzero(last > first):
            places = by_correlation[first[found] : last[found]]
            # Several launches may share a correlation: the last one before the work began made it.
            launched[places[gaps["end"][places] >= launches["start"][found]]] = launches["start"][found]
        syncs = calls[calls["kind"] == Call.SYNC]
        # Waiting when the device ran dry: began before the gap, and had not returned.
        steps = np.zeros(len(gaps) + 1, np.int64)
        np.add.at(steps, np.searchsorted(starts, syncs["start"]), 1)
        np.add.at(steps, np.searchsorted(starts, syncs["end"]), -1)
        blocked[by_start] |= np.cumsum(steps)[:-1] > 0
        _block_in_other_calls(calls, gaps, starts, by_start, blocked)
        for place, doing in enumerate(host):
            _did(timeline, calls, gaps[place], doing)
    cause = np.where(
        launched < 0,
        UNKNOWN,
        np.where(launched < gaps["start"], QUEUED, np.where(blocked, SYNC, HOST)),
    )
    cause = np.where((cause == UNKNOWN) & blocked, SYNC, cause)
    told_apart = busy.in_graph > 0 and not replays.shared(timeline)
    if told_apart:
        cause = np.where(gaps["replay"] > 0, QUEUED, cause)
    lengths = gaps["end"] - gaps["start"]
    totals = {one: int(lengths[cause == one].sum()) for one in CAUSES if one != SMALL}
    totals[SMALL] = busy.gaps_ns - int(lengths.sum())
    outside = (cause == QUEUED) & ~((gaps["replay"] > 0) & told_apart)
    launching = totals[HOST] + totals[UNKNOWN] + totals[SMALL] + int(np.minimum(lengths[outside], LAUNCH_NS).sum())
    if told_apart:  # of the small gaps, those inside graph launches
        launching -= busy.replay_idle_ns - int(lengths[gaps["replay"] > 0].sum())
    names = timeline.names
    largest = tuple(
        Gap(
            device=timeline.devices[gap["device"]].ordinal,
            start_ns=int(gap["start"]),
            end_ns=int(gap["end"]),
            before=names[gap["before"]] if gap["before"] >= 0 else "the beginning of the range",
            after=names[gap["after"]] if gap["after"] >= 0 else "the end of the range",
            cause=str(cause[place]),
            host=_words(host[place], int(gap["end"] - gap["start"])),
        )
        for place, gap in enumerate(gaps[:SHOWN])
    )
    return Explained(totals, largest, launching, busy.replay_idle_ns if told_apart else None)


def _block_in_other_calls(
    calls: np.ndarray, gaps: np.ndarray, starts: np.ndarray, by_start: np.ndarray, blocked: np.ndarray
) -> None:
    """A copy or an allocation may wait like a synchronisation: it did where it lasted for most of the gap."""
    lengths = calls["end"] - calls["start"]
    slow = calls[np.isin(calls["kind"], BLOCKING) & (lengths >= SHORTEST_WAIT_NS)]
    devices = len(np.unique(gaps["device"]))
    for call in slow:
        low, high = np.searchsorted(starts, (call["start"], call["end"]))
        within = by_start[max(low - devices, 0) : high]  # each device may have a gap that began before the call
        covered = np.minimum(gaps["end"][within], call["end"]) - np.maximum(gaps["start"][within], call["start"])
        blocked[within[2 * covered >= gaps["end"][within] - gaps["start"][within]]] = True


def _did(timeline: Timeline, calls: np.ndarray, gap: np.void, doing: Counter[str]) -> None:
    """Add how long each call, operator and annotation lay in the gap."""
    if calls["start"][0] >= gap["end"]:
        return
    inside = calls[(calls["start"] < gap["end"]) & (calls["end"] > gap["start"])]
    if not len(inside):
        return
    overlap = np.minimum(inside["end"], gap["end"]) - np.maximum(inside["start"], gap["start"])
    for row, nanoseconds in zip(inside, overlap, strict=True):
        doing[f"{int(row['kind'])} {timeline.names[row['name']]}"] += int(nanoseconds)


def _words(doing: Counter[str], length: int) -> str:
    """'cudaStreamSynchronize 98 %; in aten::item, train_step': the runtime call that took most of it, then the
    operators and ranges around it, the shortest that cover half of the gap first."""
    if not doing:
        return "nothing that was traced"
    runtime: list[tuple[int, str]] = []
    around: list[tuple[int, str]] = []
    for key, nanoseconds in doing.items():
        kind, name = key.split(" ", 1)
        (around if int(kind) in (Call.OPERATOR, Call.ANNOTATION) else runtime).append((nanoseconds, name))
    parts = []
    if runtime:
        nanoseconds, name = max(runtime)
        parts.append(f"{name} {min(100.0 * nanoseconds / length, 100.0):.0f} %")
    covering = sorted(((nanoseconds, name) for nanoseconds, name in around if 2 * nanoseconds >= length))
    longest = covering[:2] or sorted(around, reverse=True)[:2]
    if longest:
        parts.append("in " + ", ".join(name for _, name in longest))
    return "; ".join(parts)
