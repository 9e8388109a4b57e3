"""Whether the device waits, for whom, and whether launching less could matter (case A)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from campaign import units
from campaign.diagnosis import found, gaps
from campaign.diagnosis.busy import Busy
from campaign.diagnosis.ceilings import ratio
from campaign.diagnosis.found import Dispatch, Pass, Steps
from campaign.traces.timeline import Call, Timeline

IDLE_MATTERS = 0.05  # of the range. Less idle is worth at most 1.053x if all of it went
MOST_OF = 0.5  # of the idle time: what one cause must explain to name the verdict
PASSES = 12
_NUMBERED = re.compile(r"#\d+$")  # ProfilerStep#12: all steps are one line


def dispatch(timeline: Timeline, busy: Busy, steps: Steps) -> Dispatch:
    """The first section of a diagnosis, from the sweep and one more pass over the calls."""
    why = gaps.explain(timeline, busy)
    launches, graphs = _launches(timeline, busy.window)
    ceiling = _aggregation(busy, why)
    verdict, sentence = _verdict(timeline, busy, steps, why.by_cause_ns, ceiling)
    return Dispatch(
        devices=busy.devices,
        steps=steps,
        host_launches=launches,
        graph_launches=graphs,
        idle_by_cause_ns=why.by_cause_ns,
        gaps=why.largest,
        passes=_passes(timeline),
        metrics=timeline.metrics,
        verdict=verdict,
        sentence=sentence,
        aggregation_ceiling=ceiling,
        replay_idle_ns=why.replay_ns,
    )


def _aggregation(busy: Busy, why: gaps.Explained) -> float | None:
    """Amdahl's law for all idle time that launching could explain."""
    return ratio(busy.range_ns, why.launching_ns) if busy.range_ns else None


def _verdict(
    timeline: Timeline, busy: Busy, steps: Steps, causes: dict[str, int], ceiling: float | None
) -> tuple[str, str]:
    if not busy.devices or not busy.range_ns:
        return found.NO_DEVICE_WORK, "no device work was traced: there is nothing to say about dispatch"
    idle = busy.idle_ns / busy.range_ns
    text = f"idle is {units.share(idle)} of the range"
    if steps.source and not steps.attributable:
        return found.UNATTRIBUTABLE, f"unattributable: {steps.why}"
    if all(one.is_cpu for one in timeline.devices):
        outside = f"{units.share(idle)} of the range is outside of every operator (Python, or what was not traced)"
        if idle < IDLE_MATTERS:
            return found.DEVICE_BOUND, f"a CPU run, bound by its operators: {outside}"
        return found.HOST_BOUND, f"a CPU run: {outside}; compiling or batching calls can matter"
    most = f"at most {units.ratio(ceiling)}" if ceiling else "an unknown amount"
    if idle < IDLE_MATTERS:
        lever = "copies" if _copied(busy) > MOST_OF else "kernels"
        return found.DEVICE_BOUND, f"device-bound: {text}; launch aggregation is not the lever ({most}), {lever} are"
    cause = max((gaps.HOST, gaps.SYNC, gaps.QUEUED, gaps.UNKNOWN), key=lambda one: causes[one])
    part = causes[cause] / busy.idle_ns if busy.idle_ns else 0.0
    share = f"{units.share(part)} of it"
    if part > MOST_OF and cause == gaps.HOST:
        return (
            found.HOST_BOUND,
            f"host-bound: {text}, and {share} began before the next work was launched; launch aggregation (graphs, "
            f"fusion, compilation) can matter: {most}",
        )
    if part > MOST_OF and cause == gaps.SYNC:
        return (
            found.SYNC_BOUND,
            f"sync-bound: {text}, and in {share} the host was blocked in a synchronising call when the device ran dry; "
            f"remove the wait first: launch aggregation alone gives {most}",
        )
    reason = {gaps.QUEUED: "lay before work that had been launched already", gaps.UNKNOWN: "has no launch in the trace"}
    told = f", and {share} {reason[cause]}" if part > MOST_OF and cause in reason else ""
    return found.MIXED, f"mixed: {text}{told}; no one cause explains it. Launch aggregation can give {most}"


def _copied(busy: Busy) -> float:
    """The share of the busy time in which nothing but copies and sets ran."""
    return busy.removed_ns({"memcpy", "memset"}) / busy.busy_ns if busy.busy_ns else 0.0


def _launches(timeline: Timeline, window: tuple[int, int] | None) -> tuple[int, int]:
    launches = graphs = 0
    for calls in timeline.calls.batches():
        if window is not None:
            calls = calls[(calls["start"] >= window[0]) & (calls["start"] < window[1])]
        launches += int((calls["kind"] == Call.LAUNCH).sum())
        graphs += int((calls["kind"] == Call.GRAPH_LAUNCH).sum())
    return launches, graphs


def _passes(timeline: Timeline) -> tuple[Pass, ...]:
    """Named ranges on both clocks, the longest first."""
    totals: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for place, spool in ((0, timeline.calls), (2, timeline.marks)):
        for rows in spool.batches():
            rows = rows[rows["kind"] == Call.ANNOTATION]
            ids, inverse = np.unique(rows["name"], return_inverse=True)
            lengths = np.zeros(len(ids), np.int64)
            np.add.at(lengths, inverse, rows["end"] - rows["start"])
            for name, count, length in zip(ids, np.bincount(inverse, minlength=len(ids)), lengths, strict=True):
                totals[int(name)][place] += int(count)
                totals[int(name)][place + 1] += int(length)
    steps: dict[str, list[int]] = {}
    for name, numbers in totals.items():
        held = steps.setdefault(_NUMBERED.sub("#", timeline.names[name]), [0, 0, 0, 0])
        held[:] = [one + other for one, other in zip(held, numbers, strict=True)]
    passes = [
        Pass(name, max(on_host, on_stream), host if on_host else None, stream if on_stream else None)
        for name, (on_host, host, on_stream, stream) in steps.items()
    ]
    return tuple(_longest(passes)[:PASSES])


def _longest(passes: Sequence[Pass]) -> list[Pass]:
    return sorted(passes, key=lambda one: -max(one.host_ns or 0, one.stream_ns or 0))
