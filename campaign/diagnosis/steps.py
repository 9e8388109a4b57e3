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
from campaign.diagnosis.replays import replayed_steps
from campaign.traces.spool import Spool
from campaign.traces.timeline import Call, Timeline, named

PROFILER_STEP = re.compile(r"ProfilerStep\s*#?\s*\d+")
STEP_NAME = re.compile(
    r"(^|[^a-z])(micro_?step|train(ing)?_?step|step|iter(ation)?|microbatch)s?([^a-z]|$)", re.IGNORECASE
)
NOT_A_STEP = re.compile(r"optimizer|optim|lr_?scheduler|zero_grad|scheduler", re.IGNORECASE)
MOST_OUTSIDE = 0.05  # of the device time: more, and the marked steps are not what the device did
LARGEST_LOOKUP = 1 << 18  # events after the last step whose launch is looked up; more are taken as outside
MOST_MARKS = 1 << 20
LONGEST_STEP_NAME = 80
_NUMBER = re.compile(r"\s*[#:]?\s*\d+$")
_LAUNCHES = (Call.LAUNCH, Call.GRAPH_LAUNCH, Call.COPY)


@dataclass(frozen=True)
class Marked:
    """Step marks of one kind in order of start, on the host's clock or, where the range is one of the streams', on
    theirs. `even` is False where the threads that made them made different numbers of them."""

    source: str
    starts: np.ndarray
    ends: np.ndarray
    on_stream: bool = False
    even: bool = True

    @property
    def count(self) -> int:
        return len(self.starts)

    @property
    def start_ns(self) -> int:
        return int(self.starts[0])

    @property
    def end_ns(self) -> int:
        return int(self.ends.max())


def find_steps(timeline: Timeline, busy: Busy, given: int | None, window: str | None = None) -> Steps:
    """The steps of the range. `given` is what the person said, `window` the named range that was asked for, if any.

    A marked step in which nothing was launched is not counted. Steps are not attributable where more than 5 % of the
    device time was launched outside of all marked steps.
    """
    if not busy.devices:
        return Steps(None, "", "no device work to divide into steps", attributable=False)
    if given is not None:
        return Steps(given, "--steps", f"{units.counted(given, 'step')}, as given")
    for marked in _marks(timeline, busy, window):
        return _checked(timeline, busy, marked)
    found = replayed_steps(timeline, busy)
    if found is not None:
        return found
    why = "nothing in the trace marks steps: give --steps N, or profile with prof.step() or an NVTX range a step"
    return Steps(None, "", why, attributable=False)


def _checked(timeline: Timeline, busy: Busy, marked: Marked) -> Steps:
    count = marked.count
    if not marked.even:
        why = f"threads mark different numbers of steps by {marked.source}: give --steps N"
        return Steps(None, marked.source, why, attributable=False)
    outside = _outside(timeline, busy, marked)
    if outside > MOST_OUTSIDE:
        why = (
            f"{units.share(outside)} of the device time was launched outside of the {units.counted(count, 'step')} "
            f"that {marked.source} marks: give --steps N if the range holds whole steps, or --range NAME"
        )
        return Steps(count, marked.source, why, attributable=False)
    empty = _empty(timeline, busy, marked)
    text = f"{units.counted(count - empty, 'step')} by {marked.source}"
    if empty:
        text += f" ({empty} more launched nothing)"
    return Steps(count - empty, marked.source, text + (f", {units.share(outside)} outside" if outside else ""))


def _marks(timeline: Timeline, busy: Busy, window: str | None) -> Iterator[Marked]:
    """Step marks, the most trusted first."""
    profiler = {place for place, name in enumerate(timeline.names) if PROFILER_STEP.fullmatch(name)}
    if found := _collected(timeline, busy, profiler, "ProfilerStep#"):
        yield found
        return
    if window is not None:
        wanted = {place for place, name in enumerate(timeline.names) if name == window}
        if (found := _collected(timeline, busy, wanted, f"range {window}")) and found.count > 1:
            yield found
    by_kind: dict[str, set[int]] = {}
    for place, name in enumerate(timeline.names):
        # First the length: looking for a number at the end of a long row of blanks or digits takes its cube.
        if len(name) >= LONGEST_STEP_NAME or "::" in name or "(" in name:
            continue
        kind = _NUMBER.sub("", name)
        if STEP_NAME.search(kind) and not NOT_A_STEP.search(kind):
            by_kind.setdefault(kind, set()).add(place)
    several = [
        one
        for kind, ids in by_kind.items()
        if (one := _collected(timeline, busy, ids, f"range {kind}")) and one.count > 1
    ]
    # Of several levels of ranges the outermost that repeats covers the most.
    if several:
        yield max(several, key=lambda one: (one.end_ns - one.start_ns, -one.count))


def _collected(timeline: Timeline, busy: Busy, ids: set[int], source: str) -> Marked | None:
    """The marks of these names; in a range that was asked for, those whose middle lies in it."""
    if not ids:
        return None
    if busy.window is None:
        return _read(timeline.calls, ids, source, None, on_stream=False)
    # A range is on the streams' clock where the profiler projected it on them: then so are its steps.
    return _read(timeline.marks, ids, source, busy.window, on_stream=True) or _read(
        timeline.calls, ids, source, busy.window, on_stream=False
    )


def _read(
    spool: Spool, ids: set[int], source: str, window: tuple[int, int] | None, *, on_stream: bool
) -> Marked | None:
    kept: list[np.ndarray] = []
    count = 0
    for rows in named(spool, ids):
        rows = rows[rows["kind"] == Call.ANNOTATION]
        if window is not None:
            middles = rows["start"] + (rows["end"] - rows["start"]) // 2
            rows = rows[(middles >= window[0]) & (middles < window[1])]
        count += len(rows)
        if len(rows) and count <= MOST_MARKS:
            kept.append(rows[["start", "end", "thread"]])
    if not kept:
        return None
    rows = np.concatenate(kept)
    # Every process, thread or stream marks each step for itself: one of them counts.
    threads, times = np.unique(rows["thread"], return_counts=True)
    even = bool((times == times[0]).all()) or on_stream
    mine = rows[rows["thread"] == threads[int(np.argmax(times))]]
    return Marked(source, mine["start"], mine["end"], on_stream, even)


def _outside(timeline: Timeline, busy: Busy, marked: Marked) -> float:
    """The share of device time (durations) that the marked steps did not launch: what began before the first, and of
    what began after the last ended, what was launched after it ended or by nobody knows whom."""
    total = outside = held = 0
    late: list[np.ndarray] = []
    for rows in timeline.events.batches():
        if busy.window is not None:
            rows = rows[(rows["start"] >= busy.window[0]) & (rows["start"] < busy.window[1])]
        lengths = rows["end"] - rows["start"]
        total += int(lengths.sum())
        outside += int(lengths[rows["start"] < marked.start_ns].sum())
        after = rows["start"] >= marked.end_ns
        looked_up = after if held < LARGEST_LOOKUP and not marked.on_stream else np.zeros(len(rows), bool)
        outside += int(lengths[after & ~looked_up].sum())
        if looked_up.any():
            late.append(rows[looked_up][["correlation", "start", "end"]])
            held += len(late[-1])
    if late:
        rows = np.concatenate(late)
        inside = _launched_before(timeline, rows["correlation"], marked.end_ns)
        outside += int((rows["end"] - rows["start"])[~inside].sum())
    return outside / total if total else 0.0


def _launched_before(timeline: Timeline, correlations: np.ndarray, end_ns: int) -> np.ndarray:
    launched: list[np.ndarray] = []
    for calls in timeline.calls.batches():
        early = calls[(calls["start"] < end_ns) & (calls["correlation"] >= 0)]
        launched.append(early["correlation"][np.isin(early["correlation"], correlations)])
    return np.isin(correlations, np.concatenate(launched)) if launched else np.zeros(len(correlations), bool)


def _empty(timeline: Timeline, busy: Busy, marked: Marked) -> int:
    """How many of the marked steps launched nothing; 0 where the trace has no launches to tell by."""
    launched = np.zeros(marked.count, np.int64)
    cpu = all(one.is_cpu for one in timeline.devices)
    for rows in (timeline.events if cpu or marked.on_stream else timeline.calls).batches():
        starts = rows["start"] if cpu or marked.on_stream else rows["start"][np.isin(rows["kind"], _LAUNCHES)]
        places = np.searchsorted(marked.starts, starts, side="right") - 1
        inside = (places >= 0) & (starts < marked.ends[places])
        np.add.at(launched, places[inside], 1)
    return int((launched == 0).sum()) if launched.any() else 0
