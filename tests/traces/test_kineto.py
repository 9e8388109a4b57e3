"""What a Kineto trace can hold, and how each of it is read: times by hand, traps by name."""

from __future__ import annotations

import gzip
import json

import pytest

from campaign.traces import _json_chunks, kineto, open_profile
from campaign.traces.timeline import Call, Shape, Work
from tests.traces.kineto_files import codes, host, intervals, kernel, laid, read_events, rows, swept, written


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
