"""How many steps a captured range holds, from what says so best: the person, the profiler's own step marks, a repeated
NVTX range, or graph launches. Where the device's work does not fit the steps, that is said and nothing is divided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from campaign import units
from campaign.diagnosis.busy import Busy
from campaign.diagnosis.found import Steps
from campaign.traces.timeline import Call, Timeline, named

PROFILER_STEP = re.compile(r"ProfilerStep\s*#?\s*\d+")
STEP_NAME = re.compile(
    r"(^|[^a-z])(micro_?step|train(ing)?_?step|step|iter(ation)?|microbatch)s?([^a-z]|$)", re.IGNORECASE
)
NOT_A_STEP = re.compile(r"optimizer|lr_?scheduler|zero_grad|scheduler", re.IGNORECASE)
MOST_OUTSIDE = 0.05  # of the device time: more, and the marked steps are not what the device did
LEAST_IN_GRAPHS = 0.5  # of the launches: less, and graph launches are not the steps
LARGEST_LOOKUP = 1 << 20  # correlations that are looked up at once
LONGEST_STEP_NAME = 80
_NUMBER = re.compile(r"\s*#?\d+$")


@dataclass(frozen=True)
class Marked:
    """Step marks of one kind, on the host's clock: how many, from the first's start to the last's end."""

    source: str
    count: int
    start_ns: int
    end_ns: int


def find_steps(timeline: Timeline, busy: Busy, given: int | None, window: str | None = None) -> Steps:
    """The steps of the range. `given` is what the person said, `window` the named range that was asked for, if any.

    Steps are not attributable where more than 5 % of the device time was launched outside of all marked steps.
    """
    if not busy.devices:
        return Steps(None, "", "no device work to divide into steps", attributable=False)
    if given is not None:
        return Steps(given, "--steps", f"{units.counted(given, 'step')}, as given")
    for marked in _marks(timeline, window):
        outside = _outside(timeline, busy, marked)
        if outside > MOST_OUTSIDE:
            why = (
                f"{units.share(outside)} of the device time was launched outside of the "
                f"{units.counted(marked.count, 'step')} that {marked.source} marks: give --steps N if the range holds "
                "whole steps, or --range NAME"
            )
            return Steps(marked.count, marked.source, why, attributable=False)
        text = f"{units.counted(marked.count, 'step')} by {marked.source}"
        return Steps(marked.count, marked.source, text + (f", {units.share(outside)} outside" if outside else ""))
    launches = len(_graph_calls(timeline, busy.window))
    share = busy.in_graph / max(sum(one.events for one in busy.devices), 1)
    if launches and share >= LEAST_IN_GRAPHS:
        text = f"{units.counted(launches, 'graph launch')}, which hold {units.share(share)} of the device's launches"
        return Steps(launches, "graph launches", text.replace("launchs", "launches"))
    if launches and not busy.in_graph and _whole_graphs(busy):
        return Steps(launches, "graph launches", f"{launches} graph launches, traced as a whole")
    why = "nothing in the trace marks steps: give --steps N, or profile with prof.step() or an NVTX range a step"
    return Steps(None, "", why, attributable=False)


def _whole_graphs(busy: Busy) -> bool:
    from campaign.traces.timeline import Work

    return bool((busy.kind[busy.names()] == Work.GRAPH).any())


def _marks(timeline: Timeline, window: str | None) -> Iterator[Marked]:
    """Step marks, the most trusted first."""
    profiler = {place for place, name in enumerate(timeline.names) if PROFILER_STEP.fullmatch(name)}
    found = _spanned(timeline, profiler, "ProfilerStep#")
    if found:
        yield found
        return
    if window is not None:
        wanted = {place for place, name in enumerate(timeline.names) if name == window}
        if (found := _spanned(timeline, wanted, f"range {window}")) and found.count > 1:
            yield found
    by_base: dict[str, set[int]] = {}
    for place, name in enumerate(timeline.names):
        base = _NUMBER.sub("", name)
        plain = len(name) < LONGEST_STEP_NAME and "::" not in name and "(" not in name
        if plain and STEP_NAME.search(base) and not NOT_A_STEP.search(base):
            by_base.setdefault(base, set()).add(place)
    several = [
        one for base, ids in by_base.items() if (one := _spanned(timeline, ids, f"range {base}")) and one.count > 1
    ]
    # Of several levels of ranges the outermost that repeats covers the most.
    if several:
        yield max(several, key=lambda one: (one.end_ns - one.start_ns, -one.count))


def _spanned(timeline: Timeline, ids: set[int], source: str) -> Marked | None:
    if not ids:
        return None
    count, start, end = 0, 0, 0
    for rows in named(timeline.calls, ids):
        rows = rows[rows["kind"] == Call.ANNOTATION]
        if len(rows):
            start = int(rows["start"][0]) if not count else start
            end = max(end, int(rows["end"].max()))
            count += len(rows)
    return Marked(source, count, start, end) if count else None


def _outside(timeline: Timeline, busy: Busy, marked: Marked) -> float:
    """The share of device time (durations) that the marked steps did not launch: what began before the first, and of
    what began after the last ended, what was launched after it ended or by nobody knows whom."""
    total = outside = 0
    late: list[np.ndarray] = []
    for rows in timeline.events.batches():
        if busy.window is not None:
            rows = rows[(rows["start"] >= busy.window[0]) & (rows["start"] < busy.window[1])]
        lengths = rows["end"] - rows["start"]
        total += int(lengths.sum())
        outside += int(lengths[rows["start"] < marked.start_ns].sum())
        after = rows["start"] >= marked.end_ns
        if after.any():
            late.append(rows[after][["correlation", "start", "end"]])
    if late:
        rows = np.concatenate(late)[:LARGEST_LOOKUP]
        inside = _launched_before(timeline, rows["correlation"], marked.end_ns)
        outside += int((rows["end"] - rows["start"])[~inside].sum())
        outside += sum(int((one["end"] - one["start"]).sum()) for one in [np.concatenate(late)[LARGEST_LOOKUP:]])
    return outside / total if total else 0.0


def _launched_before(timeline: Timeline, correlations: np.ndarray, end_ns: int) -> np.ndarray:
    launched: list[np.ndarray] = []
    for calls in timeline.calls.batches():
        early = calls[(calls["start"] < end_ns) & (calls["correlation"] >= 0)]
        launched.append(early["correlation"][np.isin(early["correlation"], correlations)])
    return np.isin(correlations, np.concatenate(launched)) if launched else np.zeros(len(correlations), bool)


def _graph_calls(timeline: Timeline, window: tuple[int, int] | None) -> np.ndarray:
    """The starts of graph launches: by calls, since many launches may share one correlation id."""
    found = [np.empty(0, np.int64)]
    for calls in timeline.calls.batches():
        starts = calls["start"][calls["kind"] == Call.GRAPH_LAUNCH]
        found.append(starts if window is None else starts[(starts >= window[0]) & (starts < window[1])])
    return np.concatenate(found)
