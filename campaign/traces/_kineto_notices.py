"""What the reader of a diagnosis must know of a Kineto file's own faults, in sentences."""

from __future__ import annotations

import numpy as np

from campaign.traces._interned import MOST
from campaign.traces._kineto_columns import Columns
from campaign.traces.spool import Spool
from campaign.traces.timeline import LONGEST_NAME, Notice

COARSE_NS = 100  # a clock that steps by no more is fine enough to say nothing
FEWEST = 8  # device events: with fewer, round times may be chance


def notices_of(columns: Columns) -> list[Notice]:
    """What was odd in the events."""
    found = []
    bad = columns.bad
    if bad["ts"]:
        found.append(Notice("bad_times", f"{bad['ts']:,} events have no usable `ts` and are left out", True))
    if bad["dur"]:
        text = "events have no usable `dur` (missing, negative or too large): they count as launches without time"
        found.append(Notice("bad_durations", f"{bad['dur']:,} {text}", True))
    if bad["inexact"]:
        found.append(Notice("inexact", f"the times of {bad['inexact']:,} events are doubles, and inexact", True))
    if bad["begin/end"]:
        found.append(Notice("begin_end", f"{bad['begin/end']:,} events of phase B or E are not read, only whole ones"))
    if columns.names.cut:
        found.append(Notice("long_names", f"{columns.names.cut:,} names of over {LONGEST_NAME:,} characters are cut"))
    if columns.names.crowded:
        text = f"the file has too many different names: {columns.names.crowded:,} events are shown under one name"
        found.append(Notice("many_names", text, True))
    crowded = columns.threads.crowded + columns.streams.labels.crowded + columns.streams.devices.crowded
    if crowded:
        text = f"the file has more than {MOST:,} threads, streams or devices: those beyond are taken together"
        found.append(Notice("many_streams", text, True))
    if columns.long:
        text = f"{columns.long:,} device events are longer than 1 s: counted as they are; see whether they are real"
        found.append(Notice("long_events", text, lowers_confidence=True))
    if columns.resolution_ns > COARSE_NS and len(columns.events) >= FEWEST:
        text = f"the file's clock steps by {columns.resolution_ns:,} ns: each start and gap may be off by that much"
        found.append(Notice("coarse_clock", text))
    count, nanoseconds = overlaps(columns.events)
    if count:
        text = (
            f"{count:,} device events overlap the next one of their own stream by more than half, by "
            f"{nanoseconds / 1e6:,.3f} ms together: counted as they are, each instant of a device once"
        )
        found.append(Notice("overlaps_in_stream", text))
    return found


def overlaps(events: Spool) -> tuple[int, int]:
    """How many events overlap the next one of their stream by more than half of the shorter one, and by how many
    nanoseconds all together. Streams run their work in order, but graphs and dependent launches need not."""
    count = nanoseconds = 0
    held = np.empty((3, 0), np.int64)  # start, end and stream of the last event of each stream
    for batch in events.batches():
        rows = np.concatenate([held, [batch["start"], batch["end"], batch["stream"]]], axis=1)
        start, end, stream = rows = rows[:, np.argsort(rows[2].astype(np.uint16), kind="stable")]
        same = stream[1:] == stream[:-1]
        over = np.minimum(end[:-1], end[1:]) - start[1:]
        places = np.flatnonzero(same & (over > 0))
        shorter = np.minimum(end - start, np.roll(end - start, -1))[places]
        far = 2 * over[places] > shorter
        count += int(far.sum())
        nanoseconds += int(over[places][far].sum())
        held = rows[:, np.append(~same, True)]
    return count, nanoseconds
