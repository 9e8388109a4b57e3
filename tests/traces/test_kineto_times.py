"""Times of Kineto traces: exact to the nanosecond however they are written, and counted as they are."""

from __future__ import annotations

import json

import pytest

from campaign.traces import kineto
from tests.traces.kineto_files import codes, host, intervals, kernel, read_events, rows, said, swept, written


def test_times_are_whole_nanoseconds_however_they_are_written(tmp_path):
    events = [
        kernel("a", 1.001, 0.002),
        kernel("b", "7.003", "1"),
        kernel("c", 9, 0),
        kernel("d", 12345678901.009, 1.5),
    ]
    found = intervals(read_events(tmp_path, *events))
    assert found == [
        ("a", 1_001, 1_003),
        ("b", 7_003, 8_003),
        ("c", 9_000, 9_000),
        ("d", 12_345_678_901_009, 12_345_678_902_509),
    ]


def test_epoch_times_keep_the_nanoseconds_that_a_double_cannot_hold(tmp_path):
    # 1712195495519689.063 as a double is ...689.0: its step there is 0.25 us
    text = json.dumps({"traceEvents": [kernel("a", 0, 0.998), kernel("b", 1, 1)]})
    text = text.replace('"ts": 0', '"ts": 1712195495519689.063').replace('"ts": 1,', '"ts": 1712195495519690.061,')
    timeline = kineto.read(written(tmp_path, text))
    assert intervals(timeline) == [
        ("a", 1712195495519689063, 1712195495519690061),
        ("b", 1712195495519690061, 1712195495519691061),
    ]
    assert timeline.source.resolution_ns == 1
    assert swept(timeline).idle_ns == 0


def test_epoch_times_after_many_events_without_any_keep_their_nanoseconds(tmp_path):
    named = '{"ph":"M","name":"process_name","ts":0,"pid":1,"args":{"name":"python"}},'
    late = '{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":1712195495519689.063,"dur":1}'
    timeline = kineto.read(written(tmp_path, '{"traceEvents":[' + 200 * named + late + "]}"))
    assert intervals(timeline) == [("a", 1712195495519689063, 1712195495519690063)]


def test_epoch_times_that_were_doubles_have_the_step_of_a_double(tmp_path):
    # written with two decimals, quarters of a microsecond: 2^-2 us, the spacing of doubles between 2^50 and 2^51
    text = ",".join(
        '{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"dur":1,'
        f'"ts":16231430898610{place:02d}.{25 * (place % 4):02d}}}'
        for place in range(12)
    )
    timeline = kineto.read(written(tmp_path, f'{{"traceEvents":[{text}]}}'))
    assert timeline.source.resolution_ns == 250
    assert "250 ns" in said(timeline, "coarse_clock")


def test_whole_epoch_microseconds_are_exact(tmp_path):
    timeline = read_events(tmp_path, *(kernel("a", 1623143089861000 + 3 * place, 2) for place in range(9)))
    assert intervals(timeline)[8] == ("a", 1623143089861024000, 1623143089861026000)
    assert timeline.source.resolution_ns == 1000
    assert "1,000 ns" in said(timeline, "coarse_clock")


def test_kernels_that_touch_leave_no_gap_and_do_not_overlap(tmp_path):
    # HTA rounds starts up and ends down, about 1 us lost for each of them
    timeline = read_events(tmp_path, *(kernel("a", 10.75 + 2.4 * place, 2.4) for place in range(5)))
    (use,) = swept(timeline).devices
    assert (use.idle_ns, use.overlap_ns, use.span_ns) == (0, 0, 12_000)


def test_each_device_has_its_own_union(tmp_path):
    timeline = read_events(
        tmp_path,
        kernel("a", 0, 10),
        kernel("a", 5, 10, stream=8),
        kernel("a", 0, 4, device=1),
        kernel("a", 6, 4, device=1),
    )
    first, second = swept(timeline).devices
    assert (first.busy_ns, first.overlap_ns, first.idle_ns) == (15_000, 5_000, 0)
    assert (second.busy_ns, second.overlap_ns, second.idle_ns) == (8_000, 0, 2_000)


def test_a_device_event_of_more_than_a_second_is_counted_and_said(tmp_path):
    timeline = read_events(tmp_path, kernel("a", 0, 2_500_000), kernel("b", 2_600_000, 1))
    assert swept(timeline).devices[0].busy_ns == 2_500_001_000
    assert said(timeline, "long_events").startswith("1 device events are longer than 1 s")


def test_events_that_overlap_the_next_of_their_stream_by_half_are_counted_and_said(tmp_path):
    timeline = read_events(
        tmp_path,
        kernel("a", 0, 10),  # overlaps the next by 8 of 10
        kernel("b", 2, 10),
        kernel("c", 11, 10),  # overlapped by 1 of 10: dependent launches do that
        kernel("d", 11, 10, stream=8),
    )
    assert said(timeline, "overlaps_in_stream").startswith(
        "1 device events overlap the next one of their own stream by more than half, by 0.008 ms"
    )
    assert swept(timeline).devices[0].busy_ns == 21_000


def test_a_trace_without_device_work_is_charged_to_the_innermost_operators(tmp_path):
    timeline = read_events(
        tmp_path,
        host("user_annotation", "ProfilerStep#1", 0, 100),
        host("cpu_op", "linear", 10, 50),
        host("cpu_op", "mm", 20, 10),
        host("cpu_op", "add", 40, 10),
        host("cpu_op", "view", 40, 0),  # no time of its own
        host("cpu_op", "backward", 5, 20, tid=6),
    )
    found = [
        (timeline.names[row["name"]], int(row["start"]) // 1000, int(row["end"]) // 1000, int(row["count"]))
        for row in rows(timeline.events)
    ]
    assert sorted(found) == sorted([
        ("backward", 5, 25, 1), ("linear", 10, 20, 1), ("mm", 20, 30, 1), ("linear", 30, 40, 0), ("add", 40, 40, 1),
        ("view", 40, 40, 1), ("add", 40, 50, 0), ("linear", 50, 60, 0),
    ])  # fmt: skip
    (device,) = timeline.devices
    assert device.is_cpu and device.name == "cpu"
    assert {timeline.streams[row["stream"]].label for row in rows(timeline.events)} == {"5 5", "5 6"}
    (use,) = swept(timeline).devices
    assert (use.kernels, use.busy_ns, use.summed_ns) == (5, 55_000, 70_000)


def test_operators_of_a_trace_with_marks_on_streams_but_no_work_have_a_device_of_their_own(tmp_path):
    timeline = read_events(
        tmp_path, host("gpu_user_annotation", "step", 0, 9, device=3, stream=7), host("cpu_op", "mm", 1, 2)
    )
    (row,) = rows(timeline.events)
    assert timeline.devices[row["device"]].is_cpu
    assert timeline.streams[row["stream"]].label == "5 5"
    assert timeline.streams[rows(timeline.marks)["thread"][0]].label == "7"


@pytest.mark.parametrize("huge", ["1e999999999", "-1e999999999", "1e400", "123456789e300"])
def test_a_number_beyond_any_clock_takes_no_time(tmp_path, huge):
    # As a whole number it would have a billion digits: the suite's own time limit is the test.
    text = (
        '{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","ts":1712195495519689.047,"dur":1},'
        f'{{"ph":"X","cat":"kernel","name":"k","ts":{huge},"dur":1}},'
        f'{{"ph":"X","cat":"kernel","name":"k","ts":1712195495519699.047,"dur":{huge}}}]}}'
    )
    timeline = kineto.read(written(tmp_path, text))
    assert len(timeline.events) == 2
    assert "bad_times" in codes(timeline)
