"""CUDA graphs in Nsight Systems exports: traced whole, node by node, or not at all."""

from __future__ import annotations

from pathlib import Path

from campaign.traces import nsys
from campaign.traces.timeline import Call
from tests.traces.nsys_files import (
    LARGEST_INT32,
    GraphTrace,
    Kernel,
    Runtime,
    write_nsys,
)
from tests.traces.seen import calls_of, notices, swept


def test_graph_traced_whole_is_busy_time_without_families(tmp_path: Path) -> None:
    launches = [Runtime("cudaGraphLaunch_v10000", 100 * n, 100 * n + 5, n + 1) for n in range(4)]
    graphs = [GraphTrace(100 * n + 20, 100 * n + 110, n + 1) for n in range(4)]
    path = write_nsys(tmp_path / "a.sqlite", [Kernel("k", 5, 15, 9)], runtime=launches, graph_trace=graphs)
    timeline = nsys.read(path)
    (device,) = swept(timeline).devices
    assert (device.busy_ns, device.idle_ns) == (10 + 4 * 90, 5 + 3 * 10)  # of 370 ns busy, 360 in graphs
    assert timeline.names.count("CUDA graph 1") == 1
    text = notices(timeline)["graphs_whole"].text
    assert "as a whole, without the kernels in them: 4 (97.3 % of the summed time)" in text
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
    assert notices(timeline)["stray_device"].text.endswith("put on device 0: 1")


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
    assert notices(timeline)["graph_correlations"].text.startswith("40 graph launches share 1 correlation id:")


def test_idle_between_graphs_that_share_a_correlation_is_not_inside_one(tmp_path: Path) -> None:
    launches = [Runtime("cudaGraphLaunch_v10000", 100 * n, 100 * n + 5, 77) for n in range(40)]
    graphs = [GraphTrace(100 * n + 10, 100 * n + 90, 77) for n in range(40)]
    busy = swept(nsys.read(write_nsys(tmp_path / "a.sqlite", runtime=launches, graph_trace=graphs)))
    assert (busy.idle_ns, busy.replay_idle_ns) == (39 * 20, 0)


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
    assert notices(timeline)["graphs_incomplete"].text.endswith(": 2 of 5")


def test_graph_whose_nodes_were_traced_too_is_counted_once(tmp_path: Path) -> None:
    nodes = [Kernel("k", 10, 90, 1, graph_node=1)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", nodes, graph_trace=[GraphTrace(5, 95, 1)]))
    assert swept(timeline).devices[0].busy_ns == 80
    assert "graph_rows" in notices(timeline)
