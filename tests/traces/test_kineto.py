"""What a Kineto trace can hold, and how each of it is read: times by hand, traps by name."""

from __future__ import annotations

import gzip
import json

import pytest

from campaign.traces import _json_chunks, kineto, open_profile
from campaign.traces.timeline import Call, Shape, Work
from tests.traces.kineto_files import codes, host, intervals, kernel, laid, read_events, rows, said, swept, written


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


def test_device_work_is_told_by_its_category_alone(tmp_path):
    other = {"device": 0, "stream": 7, "correlation": 9}
    timeline = read_events(
        tmp_path,
        kernel("a", 10, 5),
        host("gpu_memcpy", "Memcpy HtoD", 20, 1, device=0, stream=7, bytes=4096),
        host("gpu_memset", "Memset", 30, 1, device=0, stream=7, bytes=64),
        host("cuda_sync", "Stream Sync", 0, 100, **other),
        host("cpu_op", "triton_poi_fused_add_0", 0, 100, **other),
        host("gpu_user_annotation", "forward", 0, 100, **other),
        host("overhead", "Buffer Flush", 0, 100, **other),
        host("cuda_runtime", "cudaLaunchKernel", 0, 100, **other),
        host("python_function", "train.py(1): step", 0, 100, **other),
        {"ph": "s", "id": 9, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 10},
    )
    found = rows(timeline.events)
    assert found["kind"].tolist() == [Work.KERNEL, Work.MEMCPY, Work.MEMSET]
    assert found["bytes"].tolist() == [0, 4096, 64]
    (use,) = swept(timeline).devices
    assert (use.kernels, use.copies, use.sets, use.span_ns, use.busy_ns) == (1, 1, 1, 21_000, 7_000)


@pytest.mark.parametrize("kernel_category", ["kernel", "Kernel", "KERNEL"])
def test_categories_are_read_however_they_are_spelled(tmp_path, kernel_category):
    timeline = read_events(
        tmp_path,
        {**kernel("a", 1, 1), "cat": kernel_category},
        host("Memcpy", "Memcpy DtoH", 3, 1, device=0, stream=7),
        host("Memset", "Memset", 5, 1, device=0, stream=7),
        host("Runtime", "cudaLaunchKernel", 0, 1),
        host("Operator", "aten::add", 0, 1),
        host("Operator", "ProfilerStep#3", 0, 9),
    )
    assert rows(timeline.events)["kind"].tolist() == [Work.KERNEL, Work.MEMCPY, Work.MEMSET]
    kinds = {timeline.names[row["name"]]: row["kind"] for row in rows(timeline.calls)}
    assert kinds == {
        "cudaLaunchKernel": Call.LAUNCH,
        "aten::add": Call.OPERATOR,
        "ProfilerStep#3": Call.ANNOTATION,
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cudaLaunchKernel", Call.LAUNCH),
        ("cudaLaunchKernelExC", Call.LAUNCH),
        ("cuLaunchKernelEx", Call.LAUNCH),
        ("hipLaunchKernel", Call.LAUNCH),
        ("hipExtModuleLaunchKernel", Call.LAUNCH),
        ("cudaLaunchHostFunc", Call.OTHER),
        ("cudaGraphLaunch", Call.GRAPH_LAUNCH),
        ("hipGraphLaunch", Call.GRAPH_LAUNCH),
        ("cudaStreamSynchronize", Call.SYNC),
        ("hipDeviceSynchronize", Call.SYNC),
        ("cudaMemcpyAsync", Call.COPY),
        ("hipMemcpyWithStream", Call.COPY),
        ("cudaMemsetAsync", Call.COPY),
        ("cudaMalloc", Call.ALLOCATION),
        ("cudaFree", Call.ALLOCATION),
        ("cudaEventQuery", Call.OTHER),
        ("cudaStreamIsCapturing", Call.OTHER),
    ],
)
def test_runtime_calls_are_told_by_their_names(tmp_path, name, kind):
    timeline = read_events(tmp_path, kernel("a", 1, 1), host("cuda_runtime", name, 0, 1, correlation=4))
    (call,) = rows(timeline.calls)
    assert (call["kind"], call["correlation"]) == (kind, 4)


def test_a_stream_may_be_a_number_a_text_or_a_thread_and_as_long_as_64_bits(tmp_path):
    timeline = read_events(
        tmp_path,
        kernel("a", 1, 1, stream=7),
        kernel("b", 2, 1, stream="stream 7"),
        kernel("c", 3, 1, stream=2**63 + 5),
        {"ph": "X", "cat": "Kernel", "name": "d", "pid": 0, "tid": "stream 7", "ts": 4, "dur": 1, "args": {}},
        kernel("e", 5, 1, stream=7, device=1),
    )
    streams = [timeline.streams[row["stream"]] for row in rows(timeline.events)]
    assert [(one.device, one.label) for one in streams] == [
        (0, "7"), (0, "7"), (0, str(2**63 + 5)), (0, "7"), (1, "7")
    ]  # fmt: skip
    assert [device.ordinal for device in timeline.devices] == [0, 1]


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


def test_a_kernel_without_a_launch_counts(tmp_path):
    timeline = read_events(tmp_path, kernel("a", 0, 2, correlation=77), {**kernel("b", 4, 2), "args": {"stream": 7}})
    assert rows(timeline.events)["correlation"].tolist() == [77, -1]
    assert swept(timeline).devices[0].events == 2


def test_forty_kernels_of_one_graph_launch_share_its_correlation_even_if_it_comes_later(tmp_path):
    replayed = [kernel("a", 10 + place, 1, correlation=5) for place in range(40)]
    timeline = read_events(
        tmp_path,
        *replayed,
        kernel("b", 60, 1, correlation=6),
        host("cuda_runtime", "cudaGraphLaunch", 0, 5, correlation=5),
    )
    assert timeline.graph_launches.tolist() == [5]
    assert swept(timeline).in_graph == 40


def test_a_graph_node_id_marks_an_event_as_launched_by_a_graph(tmp_path):
    timeline = read_events(
        tmp_path,
        kernel("a", 1, 1, **{"graph node id": 4294967299, "graph id": 1}),
        kernel("b", 3, 1, **{"graph node id": 0, "graph id": 0}),
        kernel("c", 5, 1),
    )
    assert rows(timeline.events)["in_graph"].tolist() == [1, 0, 0]


def test_a_kernel_has_the_shape_of_its_first_launch(tmp_path):
    timeline = read_events(
        tmp_path,
        kernel(
            "a", 1, 1, **{"registers per thread": 168, "shared memory": 49152, "grid": [132, 2, 1], "block": [64, 2, 1]}
        ),
        kernel("a", 3, 1, **{"registers per thread": 32, "shared memory": 0, "grid": [1, 1, 1], "block": [32, 1, 1]}),
        kernel("rocm", 5, 1, grid=[4, 1, 1]),
    )
    shapes = {timeline.names[name]: shape for name, shape in timeline.shapes.items()}
    assert shapes == {"a": Shape(168, 128, 264, 49152), "rocm": Shape(None, None, 4, None)}


def test_what_stands_before_and_after_the_events_is_read(tmp_path):
    properties = [{"id": 1, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "warpSize": 32, "numSms": 132}]
    event = json.dumps(kernel("a", 1, 1, device=1))
    long = json.dumps({"pg_config": [{"ranks": list(range(40_000))}] * 2})
    for text in (
        f'{{"schemaVersion":1,"distributedInfo":{long},"deviceProperties":{json.dumps(properties)},"traceEvents":[{event}],'
        '"baseTimeNanoseconds":1733011200000000000}',
        f'{{"baseTimeNanoseconds":1733011200000000000,"traceEvents":[{event}],"deviceProperties":{json.dumps(properties)},'
        f'"distributedInfo":{long},"schemaVersion":1}}',
    ):
        timeline = open_profile(written(tmp_path, text))
        (device,) = timeline.devices
        assert (device.ordinal, device.name, device.architecture) == (1, "NVIDIA H200", "sm_90")
        assert timeline.source.base_ns == 1733011200000000000
        assert timeline.source.tool == "torch.profiler schema 1"
        assert not timeline.notices


@pytest.mark.parametrize("text", ["[A]", "[\nA,\nB\n]\n", "\ufeff [A, B]"])
def test_a_bare_array_of_events_is_a_trace(tmp_path, text):
    for name, ts in (("A", 1), ("B", 3)):
        text = text.replace(name, json.dumps(kernel(name.lower(), ts, 1, grid=[1, 1, 1])))
    timeline = open_profile(written(tmp_path, text))
    assert [name for name, _, _ in intervals(timeline)] == ["a", "b"][: text.count("kernel")]
    assert not timeline.notices


def test_gzip_of_several_members_is_read_whole(tmp_path):
    text = laid(tmp_path, [kernel("a", 1, 1), kernel("b", 3, 1)]).read_bytes()
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(text[:100]) + gzip.compress(text[100:]))
    timeline = open_profile(path)
    assert [name for name, _, _ in intervals(timeline)] == ["a", "b"]
    assert not timeline.notices


def test_names_that_look_like_the_end_of_an_event_are_read_as_names(tmp_path, monkeypatch):
    monkeypatch.setattr(_json_chunks, "PIECE_BYTES", 700)
    names = ['},{"ph":"X"', "}]}", '"}, {"', "\\", '\\"},{', "}\n,\n{", "],", "\u2028 \U0001f600"] * 6
    events = [kernel(name, 2 * place, 1, objects=[{"a": 1}, {"b": [{}, {}]}]) for place, name in enumerate(names)]
    assert [name for name, _, _ in intervals(read_events(tmp_path, *events))] == names


def test_an_event_longer_than_a_piece_is_read(tmp_path):
    many = [{"value": place} for place in range(200_000)]  # 3.5 MB of what looks like ends of events
    timeline = read_events(tmp_path, kernel("a", 1, 1), kernel("b", 3, 1, many=many), kernel("c", 5, 1))
    assert [name for name, _, _ in intervals(timeline)] == ["a", "b", "c"]
    assert not timeline.notices


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


def test_a_trace_without_any_work_says_so(tmp_path):
    for events in ([], [host("python_function", "x", 0, 1)]):
        timeline = read_events(tmp_path, *events)
        assert codes(timeline) == ["no_device_work"]
        assert swept(timeline).devices == ()


@pytest.mark.parametrize(
    "text", ['{"rocprofiler-sdk-tool": [{"metadata": {}}]}', '{"a": 1}', "[1, 2]", "[]", "traceEvents", '{"x": "ph"}']
)
def test_other_json_is_not_recognised(tmp_path, text):
    assert not kineto.recognises(text.encode(), tmp_path / "trace.json")


def test_a_trace_is_recognised_by_its_content_not_its_name(tmp_path):
    path = laid(tmp_path, [kernel("a", 1, 1)]).rename(tmp_path / "profile.sqlite")
    assert open_profile(path).source.format == "kineto"
