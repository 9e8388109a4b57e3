"""The sweep against a count instant by instant: union, sets of families, time alone, gaps, for any events."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from campaign.diagnosis import busy as sweeping
from campaign.diagnosis.busy import Busy, sweep
from campaign.traces.spool import Spool
from campaign.traces.timeline import CALL, EVENT, Device, Source, Timeline, Work

NAMES = tuple(f"k{place}" for place in range(5))
Row = tuple[int, int, int, int]  # start, length, name, device


def family(name: str, kind: Work) -> str:
    """Names 0 and 3, 1 and 4, and 2 are three families."""
    return f"family {int(name[1:]) % 3}"


def swept(rows: list[Row], in_memory: int, window: tuple[int, int] | None = None) -> Busy:
    events = Spool(EVENT, in_memory)
    table = np.zeros(len(rows), EVENT)
    for place, (start, length, name, device) in enumerate(rows):
        table[place] = (start, start + length, -1, 0, name, 0, 1, device, Work.KERNEL, 0)
    for first in range(0, len(table), max(1, in_memory // 2)):
        events.append(table[first : first + max(1, in_memory // 2)])
    timeline = Timeline(
        source=Source("trace", "test"),
        names=list(NAMES),
        devices=[Device(0), Device(1)],
        streams=[],
        threads=[],
        events=events,
        calls=Spool(CALL),
        marks=Spool(CALL),
    )
    return sweep(timeline, family, window)


rows_of = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from([0, 0, 1, 2, 5, 17]), st.integers(0, 4), st.integers(0, 1)),
    min_size=1,
    max_size=25,
)


@given(rows_of, st.sampled_from([2, 5, 100]), st.sampled_from([1, 3, 1000]))
@settings(max_examples=200, deadline=None)
def test_every_instant_is_charged_to_exactly_what_ran_in_it(rows, in_memory, slice_rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeping, "SLICE", slice_rows)
        found = swept(rows, in_memory)
    sets: Counter[frozenset[str]] = Counter()
    alone: Counter[int] = Counter()
    for device in (0, 1):
        mine = [row for row in rows if row[3] == device]
        busy = 0
        for instant in range(60):
            running = [row[2] for row in mine if row[0] <= instant < row[0] + row[1]]
            if running:
                busy += 1
                sets[frozenset(family(NAMES[name], Work.KERNEL) for name in running)] += 1
                if len(set(running)) == 1:
                    alone[running[0]] += 1
        if mine:
            use = next(one for one in found.devices if one.device == device)
            assert (use.busy_ns, use.start_ns) == (busy, min(row[0] for row in mine))
            assert use.end_ns == max(row[0] + row[1] for row in mine)
            assert (use.events, use.summed_ns) == (len(mine), sum(row[1] for row in mine))
    assert {
        frozenset(name for place, name in enumerate(found.families) if mask >> place & 1): nanoseconds
        for mask, nanoseconds in found.masks_ns.items()
    } == sets
    assert {name: int(found.alone_ns[name]) for name in range(5) if found.alone_ns[name]} == alone
    assert found.gaps_ns == found.idle_ns == int((found.gaps["end"] - found.gaps["start"]).sum())


@given(rows_of, st.integers(0, 50), st.integers(1, 30), st.sampled_from([2, 100]))
@settings(max_examples=200, deadline=None)
def test_a_window_holds_exactly_what_ran_in_it(rows, first, length, in_memory):
    last = first + length
    found = swept(rows, in_memory, window=(first, last))
    for device in (0, 1):
        mine = [row for row in rows if row[3] == device]
        busy = sum(any(row[0] <= instant < row[0] + row[1] for row in mine) for instant in range(first, last))
        began = sum(first <= row[0] < last for row in mine)
        use = next((one for one in found.devices if one.device == device), None)
        if use is None:
            assert (busy, began) == (0, 0)
        else:
            assert (use.busy_ns, use.events, use.span_ns) == (busy, began, length)
    assert sum(found.masks_ns.values()) == found.busy_ns
    assert found.gaps_ns == found.idle_ns == int((found.gaps["end"] - found.gaps["start"]).sum())


def test_removing_a_family_saves_only_the_time_in_which_nothing_else_ran():
    # Family 0 runs from 0 to 10, family 1 from 4 to 6 beside it and from 12 to 15 alone: of 15, 3 is family 1's own.
    found = swept([(0, 10, 0, 0), (4, 2, 1, 0), (12, 3, 4, 0)], 100)
    assert found.range_ns == 15
    assert found.idle_ns == 2
    assert found.removed_ns({"family 1"}) == 3
    assert found.removed_ns({"family 0"}) == 8
    assert found.removed_ns({"family 0", "family 1"}) == 13


def test_a_window_clips_what_runs_over_its_edges_and_counts_what_starts_in_it():
    found = swept([(0, 10, 0, 0), (12, 3, 1, 0), (20, 5, 2, 0)], 100, window=(5, 22))
    (use,) = found.devices
    assert use.span_ns == 17
    assert use.busy_ns == 5 + 3 + 2
    assert use.events == 2  # the first began before the window


def test_events_that_touch_neither_overlap_nor_leave_a_gap():
    found = swept([(0, 5, 0, 0), (5, 5, 1, 0), (10, 0, 2, 0), (10, 5, 0, 0)], 100)
    assert (found.busy_ns, found.idle_ns, found.gaps_count) == (15, 0, 0)
    assert found.launches.tolist() == [2, 1, 1, 0, 0]
