"""Nsight Systems exports: exact against plain SQL, and every way in which they mislead."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaign.diagnosis.busy import Busy, sweep
from campaign.traces import nsys
from campaign.traces.timeline import Call, Notice, Shape, Timeline, Work
from tests.traces import brute
from tests.traces.nsys_files import (
    LARGEST_INT32,
    Gpu,
    GraphTrace,
    Kernel,
    Memcpy,
    Memset,
    Nvtx,
    Runtime,
    Sample,
    write_nsys,
)

WITH_WORK = (
    "nsysai_h100_2gpu_1s",
    "nsysai_healthy_1pct",
    "nsysai_mfu_2gpu_after",
    "nsysai_mfu_2gpu_before",
    "nsysai_mock",
    "pipit_cloverleaf",
    "pipit_saxpy_mpi",
)
SCHEMAS = ("2.9.1", "3.0.0", "3.13.2", "3.24.14", "3.25.0", None)


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


@pytest.mark.parametrize("name", WITH_WORK)
def test_real_export_agrees_to_the_nanosecond_with_plain_sql(real_traces: Path, name: str) -> None:
    path = real_traces / f"{name}.sqlite"
    truth = brute.nsys(path)
    timeline = nsys.read(path)
    devices = swept(timeline).devices
    assert {one.device for one in devices} == set(truth)
    for one in devices:
        found = brute.Counted(one.kernels + one.copies + one.sets, one.kernels, one.busy_ns, one.span_ns)
        assert found == truth[one.device]
        assert one.idle_ns == truth[one.device].idle


def test_published_truths_of_exports(real_traces: Path) -> None:
    with (real_traces / "truth.tsv").open() as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if ".sqlite" in row["file"]]
    assert len(rows) == 3
    for row in rows:
        device = swept(nsys.read(real_traces / row["file"].split(" ")[0])).devices[0]
        assert (round(device.idle_ns / 1000), round(device.span_ns / 1000)) == (
            int(row["idle_us"]),
            int(row["span_us"]),
        )


@pytest.mark.parametrize("name", ["centerformer_poolformer", "lighttransport_gemm_profile"])
def test_export_without_kernels_says_which_tables_are_missing_and_how_to_get_them(real_traces: Path, name: str) -> None:
    timeline = nsys.read(real_traces / f"{name}.sqlite")
    assert len(timeline.events) == 0
    assert swept(timeline).devices == ()
    text = notices(timeline)["no_device_work"].text
    assert "CUPTI_ACTIVITY_KIND_KERNEL" in text
    assert "nsys profile -t cuda,nvtx --cuda-graph-trace=node" in text


def test_real_versions_are_read_from_either_table(real_traces: Path) -> None:
    tools = {name: nsys.read(real_traces / f"{name}.sqlite").source.tool for name in ("pipit_saxpy_mpi", "nsysai_mock")}
    assert tools == {
        "pipit_saxpy_mpi": "Nsight Systems 2022.2.1.31, schema 2.9.1",
        "nsysai_mock": "Nsight Systems 2026.1.1.204, schema 3.24.14",
    }


def test_real_device_facts_come_from_the_export(real_traces: Path) -> None:
    (device,) = nsys.read(real_traces / "pipit_cloverleaf.sqlite").devices
    assert (device.name, device.architecture, device.multiprocessors) == ("NVIDIA A100-SXM4-80GB", "sm_80", 108)
    assert device.dram_bytes_per_second == 2_039_040_000_000.0


def test_backtrace_rows_of_a_call_are_not_counted_again(real_traces: Path) -> None:
    timeline = nsys.read(real_traces / "pipit_saxpy_mpi.sqlite")
    assert calls_of(timeline, Call.LAUNCH) == ["cudaLaunchKernel"] * 5
    assert notices(timeline)["backtraces"].text.startswith("38 rows")


def test_lost_events_that_nsys_admits_lower_confidence(real_traces: Path) -> None:
    timeline = nsys.read(real_traces / "lighttransport_gemm_profile.sqlite")
    lost = [one.text for one in timeline.notices if one.lowers_confidence]
    assert any("Not all CUDA events might have been collected" in text for text in lost)
    assert any("Some CUPTI events might be missing" in text for text in lost)


def test_operators_that_emit_nvtx_wrote_lose_their_numbers(real_traces: Path) -> None:
    timeline = nsys.read(real_traces / "nsysai_h100_2gpu_1s.sqlite")
    operators = calls_of(timeline, Call.OPERATOR)
    assert len(operators) == 16_782
    assert {"aten::view", "aten::permute"} <= set(operators)
    assert not any("op_id" in name for name in operators)


def test_projected_ranges_of_a_real_export_agree_with_a_plain_loop(real_traces: Path) -> None:
    path = real_traces / "pipit_saxpy_mpi.sqlite"
    truth = brute.nsys_marks(path, {"saxpy", "MPI_Send", "MPI_Recv", "MPI_Init"})
    assert len(truth) == 5
    found = {(start, end) for name, start, end, _ in marks_of(nsys.read(path)) if name == "saxpy"}
    assert found == set(truth.values())


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_schema_generation_gives_the_same_events(tmp_path: Path, schema: str | None) -> None:
    path = write_nsys(
        tmp_path / "a.sqlite",
        kernels=[Kernel("gemm<float>", 100, 200, 1, registers=64, static_shared=16, dynamic_shared=32)],
        memcpys=[Memcpy(210, 220, 4096, 1, correlation=2)],
        memsets=[Memset(220, 221, 64, correlation=3)],
        runtime=[Runtime("cudaLaunchKernel_v7000", 10, 20, 1), Runtime("cudaMemcpyAsync_v3020", 20, 30, 2)],
        schema=schema,
    )
    timeline = nsys.read(path)
    (device,) = swept(timeline).devices
    assert (device.busy_ns, device.idle_ns, device.span_ns) == (111, 10, 121)
    assert (device.kernels, device.copies, device.sets) == (1, 1, 1)
    expected = Shape(registers=64, threads=256, blocks=128, shared_bytes=48, local_bytes_per_thread=0)
    assert timeline.shapes == {timeline.names.index("gemm<float>"): expected}
    assert timeline.source.tool == f"Nsight Systems{f' 2026.2.1.210, schema {schema}' if schema else ''}"
    assert calls_of(timeline, Call.LAUNCH) == ["cudaLaunchKernel"]
    assert calls_of(timeline, Call.COPY) == ["cudaMemcpyAsync"]


def test_batched_copy_counts_as_many(tmp_path: Path) -> None:
    path = write_nsys(tmp_path / "a.sqlite", memcpys=[Memcpy(0, 8, 100, count=5), Memcpy(8, 9, 1)])
    busy = swept(nsys.read(path))
    assert busy.devices[0].copies == 6
    assert "Memcpy DtoD" in nsys.read(path).names


def test_copies_are_named_as_kineto_names_them(real_traces: Path) -> None:
    names = nsys.read(real_traces / "nsysai_mfu_2gpu_before.sqlite").names
    assert "Memcpy DtoD (Device -> Device)" in names
    assert "Memcpy HtoD (Pageable -> Device)" in nsys.read(real_traces / "pipit_saxpy_mpi.sqlite").names


def test_graph_traced_whole_is_busy_time_without_families(tmp_path: Path) -> None:
    launches = [Runtime("cudaGraphLaunch_v10000", 100 * n, 100 * n + 5, n + 1) for n in range(4)]
    graphs = [GraphTrace(100 * n + 20, 100 * n + 110, n + 1) for n in range(4)]
    path = write_nsys(tmp_path / "a.sqlite", [Kernel("k", 5, 15, 9)], runtime=launches, graph_trace=graphs)
    timeline = nsys.read(path)
    (device,) = swept(timeline).devices
    assert (device.busy_ns, device.idle_ns) == (10 + 4 * 90, 5 + 3 * 10)
    assert timeline.names.count("CUDA graph 1") == 1
    text = notices(timeline)["graphs_whole"].text
    assert text.startswith("4 graph launches were traced as a whole")
    assert "97.3 %" in text  # 360 of 370 ns
    assert "--cuda-graph-trace=node" in text
    assert calls_of(timeline, Call.GRAPH_LAUNCH) == ["cudaGraphLaunch"] * 4


def test_graph_row_of_times_zero_was_not_collected(tmp_path: Path) -> None:
    path = write_nsys(tmp_path / "a.sqlite", [Kernel("k", 50, 60)], graph_trace=[GraphTrace(0, 0, 1)])
    timeline = nsys.read(path)
    assert swept(timeline).devices[0].span_ns == 10
    assert notices(timeline)["not_collected"].lowers_confidence


def test_graph_that_begins_on_the_host_belongs_to_the_only_device(tmp_path: Path) -> None:
    graph = GraphTrace(10, 20, 1, device=LARGEST_INT32, context=LARGEST_INT32)
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", [Kernel("k", 0, 5)], graph_trace=[graph]))
    assert [one.ordinal for one in timeline.devices] == [0]
    assert swept(timeline).devices[0].busy_ns == 15
    assert "1 events name no real device" in notices(timeline)["stray_device"].text


def test_graph_that_begins_on_the_host_gets_a_device_of_its_own_among_several(tmp_path: Path) -> None:
    kernels = [Kernel("k", 0, 5), Kernel("k", 0, 5, device=1)]
    graph = GraphTrace(10, 20, 1, device=LARGEST_INT32)
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", kernels, graph_trace=[graph]))
    assert [(one.ordinal, one.name) for one in timeline.devices][2] == (-1, "unknown device")


def test_nodes_of_replays_carry_in_graph_and_say_what_tracing_costs(tmp_path: Path) -> None:
    nodes = [Kernel("k", 100 * n + 10, 100 * n + 90, n + 1, graph_node=7) for n in range(3)]
    launches = [Runtime("cudaGraphLaunch_v10000", 100 * n, 100 * n + 5, n + 1) for n in range(3)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", nodes, runtime=launches))
    assert swept(timeline).in_graph == 3
    assert timeline.graph_launches.tolist() == [1, 2, 3]
    assert "upper bound" in notices(timeline)["graph_nodes"].text
    assert not {"graphs_missing", "graphs_incomplete", "graph_correlations"} & set(notices(timeline))


def test_kernel_of_a_graph_launch_is_in_the_graph_without_a_node_number(tmp_path: Path) -> None:
    kernels = [Kernel("k", 10, 20, 1), Kernel("k", 30, 40, 2)]
    launches = [Runtime("cudaGraphLaunch", 0, 1, 1), Runtime("cudaLaunchKernel", 2, 3, 2)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", kernels, runtime=launches))
    assert [int(row["in_graph"]) for batch in timeline.events.batches() for row in batch] == [1, 0]
    assert not {"graphs_missing", "graph_nodes"} & set(notices(timeline))


def test_forty_launches_that_share_one_correlation_id_are_forty(tmp_path: Path) -> None:
    launches = [Runtime("cudaGraphLaunch_v10000", 100 * n, 100 * n + 5, 77) for n in range(40)]
    nodes = [Kernel("k", 100 * n + 10, 100 * n + 90, 77, graph_node=1) for n in range(40)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", nodes, runtime=launches))
    assert len(calls_of(timeline, Call.GRAPH_LAUNCH)) == 40
    assert notices(timeline)["graph_correlations"].text.startswith("40 graph launches carry 1 correlation ids")


def test_graph_launches_without_any_device_work_name_the_flag(tmp_path: Path) -> None:
    launches = [Runtime("cudaGraphLaunch_v10000", 100 * n, 100 * n + 5, n + 10) for n in range(3)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", [Kernel("k", 0, 5, 1)], runtime=launches))
    found = notices(timeline)["graphs_missing"]
    assert found.lowers_confidence
    assert "--cuda-graph-trace=node" in found.text


def test_graph_launches_of_which_some_lost_their_kernels_are_counted(tmp_path: Path) -> None:
    launches = [Runtime("cudaGraphLaunch_v10000", 100 * n, 100 * n + 5, n + 1) for n in range(5)]
    nodes = [Kernel("k", 100 * n + 10, 100 * n + 90, n + 1, graph_node=1) for n in range(3)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", nodes, runtime=launches))
    assert notices(timeline)["graphs_incomplete"].text.startswith("2 of 5 graph launches")


def test_graph_whose_nodes_were_traced_too_is_counted_once(tmp_path: Path) -> None:
    nodes = [Kernel("k", 10, 90, 1, graph_node=1)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", nodes, graph_trace=[GraphTrace(5, 95, 1)]))
    assert swept(timeline).devices[0].busy_ns == 80
    assert "graph_rows" in notices(timeline)


def test_devices_and_streams_are_kept_apart(tmp_path: Path) -> None:
    kernels = [
        Kernel("k", 0, 100, stream=7),
        Kernel("k", 50, 150, stream=8),
        Kernel("k", 0, 40, device=3, stream=7),
        Kernel("k", 60, 90, device=3, stream=7),
    ]
    gpus = [Gpu(0), Gpu(3, "NVIDIA A100", 108, major=8)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", kernels, gpus=gpus))
    found = {one.device: (one.busy_ns, one.summed_ns, one.span_ns, one.streams) for one in swept(timeline).devices}
    assert found == {0: (150, 200, 150, 2), 3: (70, 70, 90, 1)}
    assert [(one.ordinal, one.architecture) for one in timeline.devices] == [(0, "sm_90"), (3, "sm_80")]


def test_processes_that_see_other_gpus_under_one_number_are_two_devices(tmp_path: Path) -> None:
    kernels = [Kernel("k", 0, 100, pid=11), Kernel("k", 50, 150, pid=12)]
    path = write_nsys(tmp_path / "a.sqlite", kernels, cuda_devices=[(4, 0, 11), (5, 0, 12)])
    assert [(one.device, one.busy_ns) for one in swept(nsys.read(path)).devices] == [(4, 100), (5, 100)]


def test_processes_on_one_device_without_a_table_of_devices_are_mentioned(tmp_path: Path) -> None:
    kernels = [Kernel("k", 0, 100, pid=11), Kernel("k", 50, 150, pid=12)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", kernels))
    assert [(one.device, one.busy_ns) for one in swept(timeline).devices] == [(0, 150)]
    assert "CUDA_VISIBLE_DEVICES" in notices(timeline)["shared_device"].text
    assert len({one.label for one in timeline.streams}) == 2


def test_correlation_ids_of_two_processes_do_not_meet(tmp_path: Path) -> None:
    path = write_nsys(
        tmp_path / "a.sqlite",
        kernels=[Kernel("a", 100, 110, 5, pid=11), Kernel("b", 200, 210, 5, pid=12, device=1)],
        runtime=[Runtime("cudaLaunchKernel", 0, 1, 5, 11, 11), Runtime("cudaLaunchKernel", 2, 3, 5, 12, 12)],
        nvtx=[Nvtx("mine", 0, 2, 11, 11), Nvtx("yours", 1, 4, 12, 12)],
    )
    assert marks_of(nsys.read(path)) == [("mine", 100, 110, "7"), ("yours", 200, 210, "7")]


def test_nvtx_ranges_become_annotations_whatever_way_they_are_written(tmp_path: Path) -> None:
    path = write_nsys(
        tmp_path / "a.sqlite",
        kernels=[Kernel("k", 100, 200, 1)],
        runtime=[Runtime("cudaLaunchKernel", 10, 12, 1)],
        nvtx=[
            Nvtx("step", 0, 20),
            Nvtx("registered", 5, 20, registered=True),
            Nvtx("started", 0, 30, kind=60),
            Nvtx("a mark", 3, None, kind=34),
            Nvtx("never closed", 8, None),
            Nvtx("NCCL", 0, None, kind=75, domain=2),
            Nvtx("ncclAllReduce", 9, 11, domain=2),
            Nvtx("aten::mm, seq = 12, op_id = 345, sizes = [[2, 2]]", 9, 11),
        ],
    )
    timeline = nsys.read(path)
    names = ["step", "started", "registered", "never closed", "NCCL:ncclAllReduce"]
    assert calls_of(timeline, Call.ANNOTATION) == names
    assert calls_of(timeline, Call.OPERATOR) == ["aten::mm"]
    assert {name for name, *_ in marks_of(timeline)} == set(names)
    ends = {timeline.names[row["name"]]: int(row["end"]) for batch in timeline.calls.batches() for row in batch}
    assert ends["never closed"] == 200  # the end of the capture
    assert "1 NVTX ranges were never closed" in notices(timeline)["open_ranges"].text


def test_range_is_projected_on_each_stream_that_its_calls_reach(tmp_path: Path) -> None:
    path = write_nsys(
        tmp_path / "a.sqlite",
        kernels=[Kernel("k", 100, 200, 1), Kernel("k", 150, 260, 2, stream=8), Kernel("k", 300, 310, 3)],
        runtime=[
            Runtime("cudaLaunchKernel", 10, 12, 1),
            Runtime("cudaLaunchKernel", 20, 22, 2),
            Runtime("cudaLaunchKernel", 30, 32, 3),
            Runtime("cudaLaunchKernel", 15, 16, 4, tid=99),
        ],
        nvtx=[Nvtx("step", 10, 30), Nvtx("outer", 0, 40), Nvtx("elsewhere", 0, 40, tid=98)],
    )
    assert marks_of(nsys.read(path)) == [
        ("outer", 100, 310, "7"),
        ("outer", 150, 260, "8"),
        ("step", 100, 200, "7"),  # closed-open: the call at 30 is not in it
        ("step", 150, 260, "8"),
    ]


def test_range_that_another_thread_ends_is_not_projected(tmp_path: Path) -> None:
    path = write_nsys(
        tmp_path / "a.sqlite",
        kernels=[Kernel("k", 100, 200, 1)],
        runtime=[Runtime("cudaLaunchKernel", 10, 12, 1)],
        nvtx=[Nvtx("mine", 0, 20, kind=60, end_tid=4242), Nvtx("handed over", 0, 20, kind=60, end_tid=7)],
    )
    timeline = nsys.read(path)
    assert calls_of(timeline, Call.ANNOTATION) == ["mine", "handed over"]
    assert [name for name, *_ in marks_of(timeline)] == ["mine"]


def test_gpu_metrics_are_summed_up_by_device_since_the_capture_began(tmp_path: Path) -> None:
    samples = [Sample(-5, "SMs Active", 100), Sample(1, "SMs Active", 20), Sample(2, "SMs Active", 40)]
    samples += [Sample(1, "DRAM Read", 7, type_id=0x5_0000_0001)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", [Kernel("k", 0, 5)], metrics=samples))
    found = sorted((one.device, one.name, one.samples, one.mean, one.largest) for one in timeline.metrics)
    assert found == [(0, "SMs Active", 2, 30.0, 40.0), (1, "DRAM Read", 1, 7.0, 7.0)]


def test_profiler_overhead_in_the_range_stands_beside_idle(tmp_path: Path) -> None:
    overheads = [(0, 1_000), (999_000, 1_001_000), (1_900_000, 2_500_000)]  # before the range, and partly in it
    kernels = [Kernel("k", 1_000_000, 1_100_000), Kernel("k", 1_900_000, 2_000_000)]
    found = notices(nsys.read(write_nsys(tmp_path / "a.sqlite", kernels, overheads=overheads)))["profiler_overhead"]
    assert "took 0.101 ms" in found.text and "10.10 %" in found.text
    assert found.lowers_confidence


def test_whole_microsecond_clock_is_said(tmp_path: Path) -> None:
    kernels = [Kernel("k", 1_000 * n, 1_000 * n + 1_000 * (n % 2)) for n in range(1, 9)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", kernels))
    assert timeline.source.resolution_ns == 1_000
    assert "1,000 ns" in notices(timeline)["coarse_clock"].text


def test_kernel_without_time_is_a_launch_all_the_same(tmp_path: Path) -> None:
    kernels = [Kernel("k", 10, 20), Kernel("never ended", 30, None), Kernel("backwards", 40, 35), Kernel("k", 50, 61)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", kernels))
    (device,) = swept(timeline).devices
    assert (device.kernels, device.busy_ns, device.span_ns) == (4, 21, 51)
    assert notices(timeline)["bad_durations"].text.startswith("2 rows of CUPTI_ACTIVITY_KIND_KERNEL")


def test_nothing_is_made_beside_the_file(tmp_path: Path) -> None:
    path = write_nsys(tmp_path / "a.sqlite", [Kernel("k", 10, 20)])
    before = path.read_bytes()
    nsys.read(path).close()
    assert [one.name for one in tmp_path.iterdir()] == ["a.sqlite"]
    assert path.read_bytes() == before


def test_rows_beyond_one_block_are_all_there(tmp_path: Path) -> None:
    kernels = [Kernel(f"k{n % 7}", 10 * n, 10 * n + 6, n + 1) for n in range(60_000)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", reversed(kernels)))
    (device,) = swept(timeline).devices
    assert (device.kernels, device.busy_ns, device.idle_ns) == (60_000, 360_000, 59_999 * 4)


TIMES = st.integers(-(2**40), 2**40)
WORKS = st.lists(
    st.tuples(TIMES, st.integers(0, 2**33), st.sampled_from("abc"), st.sampled_from((0, 1, 5)), st.integers(1, 3)),
    min_size=1,
    max_size=30,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(works=WORKS)
def test_any_events_agree_with_the_plain_loop(tmp_path: Path, works: list[tuple[int, int, str, int, int]]) -> None:
    kernels, copies = [], []
    for place, (start, length, name, device, stream) in enumerate(works):
        start += start == 0 and length == 0  # both zero says that times were not collected
        if place % 3:
            kernels.append(Kernel(name, start, start + length, place, device, stream))
        else:
            copies.append(Memcpy(start, start + length, 8, 8, place, device, stream))
    path = write_nsys(tmp_path / "a.sqlite", kernels, copies)
    truth = brute.nsys(path)
    for one in swept(nsys.read(path)).devices:
        assert (one.busy_ns, one.span_ns, one.idle_ns) == (
            truth[one.device].busy,
            truth[one.device].span,
            truth[one.device].idle,
        )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_ranges_are_projected_as_the_plain_loop_does_it(tmp_path: Path, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 25))
    small = st.integers(0, 60)
    runtime, kernels = [], []
    for place in range(1, count + 1):
        at, thread = data.draw(small), data.draw(st.sampled_from((1, 2)))
        runtime.append(Runtime("cudaLaunchKernel_v7000", at, at + 1, place, tid=thread))
        for _ in range(data.draw(st.integers(0, 3))):
            start = 100 + data.draw(small)
            stream = data.draw(st.integers(7, 9))
            kernels.append(Kernel("k", start, start + data.draw(small), place, stream=stream))
    lines = data.draw(st.lists(st.tuples(small, small, st.sampled_from((1, 2))), max_size=12))
    nvtx = [Nvtx(f"r{n}", start, start + length, tid=thread) for n, (start, length, thread) in enumerate(lines)]
    if not kernels or not nvtx:
        return
    path = write_nsys(tmp_path / "a.sqlite", kernels, runtime=runtime, nvtx=nvtx)
    truth = brute.nsys_marks(path, {one.text for one in nvtx})
    expected = sorted((name, low, high, str(stream)) for (name, _, stream), (low, high) in truth.items())
    assert marks_of(nsys.read(path)) == expected


def test_projection_joins_and_merges_across_spilled_batches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from campaign.traces import _nsys_file, spool

    count = 6_000
    runtime = [Runtime("cudaLaunchKernel", 10 * n, 10 * n + 1, n + 1) for n in range(count)]
    kernels = [Kernel("k", 10 * n + 5, 10 * n + 9, n + 1, stream=7 + n % 2) for n in range(count)]
    nvtx = [Nvtx("whole", 0, 10 * count), Nvtx("half", 0, 5 * count)]
    nvtx += [Nvtx(f"step {n}", 1000 * n, 1000 * n + 1000) for n in range(count // 100)]
    path = write_nsys(tmp_path / "a.sqlite", kernels, runtime=runtime, nvtx=nvtx)
    whole = marks_of(nsys.read(path))
    monkeypatch.setattr(spool.Spool.__init__, "__defaults__", (1_500,))
    monkeypatch.setattr(spool, "SMALLEST_BLOCK", 16)
    monkeypatch.setattr(_nsys_file, "ROWS_ASIDE", 300)
    spilled = marks_of(nsys.read(path))
    assert spilled == whole
    assert ("whole", 5, 10 * count - 11, "7") in whole and ("whole", 15, 10 * count - 1, "8") in whole
    assert ("step 3", 3005, 3989, "7") in whole and ("step 3", 3015, 3999, "8") in whole
    assert len(whole) == 2 * len(nvtx)


def test_calls_nested_in_each_other_are_one_and_calls_apart_are_none(tmp_path: Path) -> None:
    path = write_nsys(
        tmp_path / "a.sqlite",
        kernels=[Kernel("k", 100, 110, 1), Kernel("k", 120, 130, 2)],
        runtime=[
            Runtime("cudaLaunchKernel", 10, 20, 1),
            Runtime("cuLaunchKernel", 12, 18, 1),
            Runtime("cudaGraphLaunch", 30, 32, 2),
            Runtime("cudaGraphLaunch", 40, 42, 2),
        ],
        nvtx=[Nvtx("wrapped", 9, 11), Nvtx("inner", 12, 13), Nvtx("replay", 29, 35)],
    )
    timeline = nsys.read(path)
    assert marks_of(timeline) == [("wrapped", 100, 110, "7")]
    assert notices(timeline)["shared_correlation"].text.startswith("1 correlation ids")


def test_events_come_in_order_whatever_the_order_of_tables(tmp_path: Path) -> None:
    kernels = [Kernel("k", start, start + 1) for start in (30, 10, 20)]
    path = write_nsys(tmp_path / "a.sqlite", kernels, [Memcpy(15, 16, 1)], [Memset(25, 26, 1)])
    starts = np.concatenate([batch["start"] for batch in nsys.read(path).events.batches()])
    assert starts.tolist() == [10, 15, 20, 25, 30]
    kinds = [int(row["kind"]) for batch in nsys.read(path).events.batches() for row in batch]
    assert kinds == [Work.KERNEL, Work.MEMCPY, Work.KERNEL, Work.MEMSET, Work.KERNEL]
