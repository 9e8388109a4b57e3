"""What a test asks of a timeline."""

from __future__ import annotations

from campaign.diagnosis.busy import Busy, sweep
from campaign.traces.timeline import Call, Notice, Timeline


def swept(timeline: Timeline) -> Busy:
    return sweep(timeline, lambda name, kind: kind.name)


def notices(timeline: Timeline) -> dict[str, Notice]:
    return {one.code: one for one in timeline.notices}


def calls_of(timeline: Timeline, kind: Call) -> list[str]:
    rows = [row for batch in timeline.calls.batches() for row in batch if row["kind"] == kind]
    return [timeline.names[row["name"]] for row in rows]


def marks_of(timeline: Timeline) -> list[tuple[str, int, int, str]]:
    rows = [row for batch in timeline.marks.batches() for row in batch]
    named = [(timeline.names[row["name"]], timeline.streams[row["thread"]].label, row) for row in rows]
    return sorted((name, int(row["start"]), int(row["end"]), label) for name, label, row in named)
