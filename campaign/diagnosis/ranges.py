"""The range that was asked for by name, as a window of the trace's clock."""

from __future__ import annotations

from campaign.errors import UnknownName
from campaign.traces.spool import Spool
from campaign.traces.timeline import Call, Notice, Timeline, named


def window_of(timeline: Timeline, name: str | None) -> tuple[tuple[int, int] | None, list[Notice]]:
    """From the first start to the last end of the annotations of that name: as projected on the streams where the trace
    has that, else on the host's clock. None, and no notice, where none was asked for.

    Raises UnknownName, with the nearest, for a name that is no annotation of the trace.
    """
    if name is None:
        return None, []
    ids = {place for place, one in enumerate(timeline.names) if one == name}
    for spool, clock in (
        (timeline.marks, "as projected on the streams"),
        (timeline.calls, "on the host"),
    ):
        found = _spanned(spool, ids)
        if found is not None:
            start, end, count = found
            text = (
                f"the range is {name}, {count} times, from its first start to its last end {clock}: events are clipped "
                "to it, and a launch counts where it starts in it"
            )
            return (start, end), [Notice("range", text)]
    known = {timeline.names[one] for ids in _annotated(timeline) for one in ids}
    raise UnknownName("range in the trace", name, known, remedy="campaign diagnose FILE, without --range")


def _spanned(spool: Spool, ids: set[int]) -> tuple[int, int, int] | None:
    count, start, end = 0, 0, 0
    for rows in named(spool, ids) if ids else ():
        rows = rows[rows["kind"] == Call.ANNOTATION]
        if len(rows):
            start = int(rows["start"][0]) if not count else start
            end = max(end, int(rows["end"].max()))
            count += len(rows)
    return (start, end, count) if count and end > start else None


def _annotated(timeline: Timeline) -> list[set[int]]:
    return [
        set(rows["name"][rows["kind"] == Call.ANNOTATION].tolist())
        for spool in (timeline.calls, timeline.marks)
        for rows in spool.batches()
    ]
