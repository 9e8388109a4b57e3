"""Who the device waits for, and how many steps a range holds: each verdict from a trace made for it."""

from __future__ import annotations

import pytest

from campaign.diagnosis.found import DEVICE_BOUND, HOST_BOUND, MIXED, NO_DEVICE_WORK, SYNC_BOUND, UNATTRIBUTABLE
from campaign.diagnosis.question import IdeaClaim, Question
from campaign.diagnosis.whole import diagnose
from campaign.errors import UnknownName
from tests.traces.kineto_files import host, kernel, read_events
from tests.traces.nsys_files import GraphTrace, Kernel, Runtime, write_nsys

K = "nvjet_tst_64x64"


def launched(number: int, called: float, start: float, length: float, name: str = K, **more) -> list[dict]:
    """A kernel and the call that launched it."""
    return [
        host("cuda_runtime", "cudaLaunchKernel", called, 1.0, correlation=number),
        kernel(name, start, length, correlation=number, **more),
    ]


def asked(folder, *events, **question):
    return diagnose(read_events(folder, *events), (), Question(**question))


def test_work_launched_after_the_device_ran_dry_is_host_bound(tmp_path):
    events = [event for n in range(10) for event in launched(n + 1, 100.0 * n + 90, 100.0 * n + 95, 50.0)]
    found = asked(tmp_path, *events).dispatch
    # Nine gaps of 50 us in a range of 950 us.
    assert found.verdict == HOST_BOUND
    assert found.idle_by_cause_ns["host"] == sum(found.idle_by_cause_ns.values()) == 450_000
    assert found.aggregation_ceiling == pytest.approx(950 / 500)


def test_a_wait_in_a_synchronising_call_is_sync_bound(tmp_path):
    events = [event for n in range(10) for event in launched(n + 1, 100.0 * n + 90, 100.0 * n + 95, 50.0)]
    events += [host("cuda_runtime", "cudaStreamSynchronize", 100.0 * n + 92, 70.0) for n in range(10)]
    found = asked(tmp_path, *events).dispatch
    assert found.verdict == SYNC_BOUND
    assert found.idle_by_cause_ns["sync"] == 450_000
    assert found.aggregation_ceiling == 1.0
    assert "cudaStreamSynchronize" in found.gaps[0].host


def test_a_blocking_copy_that_fills_the_gap_is_a_wait(tmp_path):
    events = [*launched(1, 0.0, 5.0, 10.0), *launched(2, 1005.0, 1010.0, 10.0)]
    events.append(host("cuda_runtime", "cudaMemcpy", 20.0, 980.0))
    assert asked(tmp_path, *events).dispatch.verdict == SYNC_BOUND


def test_work_that_was_queued_in_time_is_not_the_hosts_fault(tmp_path):
    events = [event for n in range(10) for event in launched(n + 1, 1.0 * n, 100.0 * n + 95, 50.0)]
    found = asked(tmp_path, *events).dispatch
    assert found.verdict == MIXED
    assert found.idle_by_cause_ns["queued"] == 450_000
    assert "launched already" in found.sentence
    # Of each of the nine gaps a launch explains 10 us at most.
    assert found.aggregation_ceiling == pytest.approx(950 / (950 - 90))


def test_gaps_without_a_launch_in_the_trace_are_unknown(tmp_path):
    found = asked(tmp_path, kernel(K, 0, 10, correlation=1), kernel(K, 100, 10, correlation=2)).dispatch
    assert found.gaps[0].cause == "unknown"
    assert found.verdict == MIXED


def test_little_idle_is_device_bound_whoever_caused_it(tmp_path):
    events = [event for n in range(10) for event in launched(n + 1, 100.0 * n + 1, 100.0 * n, 99.0)]
    found = asked(tmp_path, *events).dispatch
    assert found.verdict == DEVICE_BOUND
    assert found.sentence.endswith("kernels are")


def test_overlapping_streams_are_never_summed(tmp_path):
    found = asked(tmp_path, kernel(K, 0, 100, stream=7), kernel("ncclDevKernel_AllReduce", 50, 100, stream=9)).dispatch
    (device,) = found.devices
    assert (device.busy_ns, device.summed_ns, device.overlap_ns, device.streams) == (150_000, 200_000, 50_000, 2)


def test_devices_have_ranges_of_their_own(tmp_path):
    found = asked(tmp_path, kernel(K, 0, 10, device=0), kernel(K, 500, 20, device=1), kernel(K, 600, 20, device=1))
    assert [(one.device, one.span_ns, one.idle_ns) for one in found.dispatch.devices] == [
        (0, 10_000, 0),
        (1, 120_000, 80_000),
    ]


def test_the_range_begins_with_the_first_device_event_even_if_it_is_a_copy(tmp_path):
    copy = {**kernel("Memcpy HtoD (Pinned -> Device)", 0, 5), "cat": "gpu_memcpy"}
    (device,) = asked(tmp_path, copy, kernel(K, 10, 10)).dispatch.devices
    assert (device.start_ns, device.span_ns, device.idle_ns, device.kernel_busy_ns) == (0, 20_000, 5_000, 10_000)


def test_no_kernels_is_no_device_work(tmp_path):
    found = asked(tmp_path, host("cuda_runtime", "cudaMalloc", 0.0, 5.0, correlation=1))
    assert found.dispatch.verdict == NO_DEVICE_WORK
    assert found.dispatch.steps.count is None
    assert found.families is None


def test_the_last_profiler_step_is_counted(tmp_path):
    events = [event for n in range(3) for event in launched(n + 1, 100.0 * n, 100.0 * n + 5, 90.0)]
    events += [host("user_annotation", f"ProfilerStep#{n + 7}", 100.0 * n, 99.0) for n in range(3)]
    steps = asked(tmp_path, *events).dispatch.steps
    assert (steps.count, steps.source, steps.attributable) == (3, "ProfilerStep#", True)


def test_kernels_launched_in_the_last_step_count_though_they_run_after_it(tmp_path):
    events = [host("user_annotation", f"ProfilerStep#{n}", 10.0 * n, 10.0) for n in range(2)]
    events += [event for n in range(2) for event in launched(n + 1, 10.0 * n + 1, 100.0 * n + 20, 90.0)]
    assert asked(tmp_path, *events).dispatch.steps.attributable


def test_work_outside_of_the_marked_steps_makes_them_unattributable(tmp_path):
    events = [host("user_annotation", "ProfilerStep#1", 0.0, 100.0), *launched(1, 1.0, 5.0, 50.0)]
    events += launched(2, 200.0, 205.0, 50.0)
    found = asked(tmp_path, *events).dispatch
    assert found.verdict == UNATTRIBUTABLE
    assert "50.0 %" in found.steps.why
    assert "--steps" in found.steps.why
    assert asked(tmp_path, *events, steps=2).dispatch.steps.attributable  # the person knows better


def test_empty_steps_do_not_divide_by_nothing(tmp_path):
    found = asked(tmp_path, host("user_annotation", "ProfilerStep#1", 0.0, 100.0), host("cpu_op", "aten::mm", 1.0, 2.0))
    assert found.dispatch.steps.count == 1


def test_forty_graph_launches_that_share_one_correlation_are_forty_steps(tmp_path):
    path = tmp_path / "graphs.sqlite"
    kernels, runtime = [], []
    for replay in range(40):
        runtime.append(Runtime("cudaGraphLaunch_v10000", 1000 * replay, 1000 * replay + 50, correlation=5))
        kernels += [
            Kernel(K, 1000 * replay + 100 * node, 1000 * replay + 100 * node + 90, correlation=5, graph_node=node + 1)
            for node in range(1, 4)
        ]
    write_nsys(path, kernels=kernels, runtime=runtime)
    from campaign.traces import open_profile

    found = diagnose(open_profile(path), (), Question()).dispatch
    assert (found.steps.count, found.graph_launches, found.devices[0].kernels) == (40, 40, 120)


def test_graphs_traced_as_a_whole_say_which_flag_is_missing(tmp_path):
    path = tmp_path / "whole.sqlite"
    traces = [GraphTrace(1000 * n, 1000 * n + 900, correlation=n + 1) for n in range(4)]
    runtime = [Runtime("cudaGraphLaunch_v10000", 1000 * n - 50, 1000 * n - 10, correlation=n + 1) for n in range(4)]
    write_nsys(path, graph_trace=traces, runtime=runtime)
    from campaign.traces import open_profile

    found = diagnose(open_profile(path), (), Question())
    assert "--cuda-graph-trace=node" in " ".join(notice.text for notice in found.notices)
    (device,) = found.dispatch.devices
    assert (device.span_ns, device.busy_ns) == (3900, 3600)
    assert found.dispatch.steps.count == 4


def test_a_range_that_is_not_in_the_trace_is_refused_with_the_nearest(tmp_path):
    events = [host("user_annotation", "forward", 0.0, 10.0), kernel(K, 1, 2)]
    with pytest.raises(UnknownName, match="did you mean 'forward'"):
        asked(tmp_path, *events, window="forwrd")


@pytest.mark.parametrize("name", ["\x00 " * 2048, " " * 4096 + "x", "1" * 4096 + "x", "#" * 4096, "step " * 800])
def test_a_range_with_a_hostile_name_takes_no_time(tmp_path, name):
    # Backtracking over it would never end: the suite's own time limit is the test.
    found = asked(tmp_path, host("user_annotation", name, 0.0, 10.0), kernel(K, 1, 2), kernel(name, 3, 4))
    assert found.dispatch.steps.count is None


def ideas(folder, *claims: tuple[str, str, float], floor=None):
    events = [kernel("void layer_norm_kernel(int)", 0, 10), kernel(K, 10, 90)]
    found = asked(folder, *events, ideas=[IdeaClaim(*claim) for claim in claims], floor=floor).ideas
    return {one.hypothesis: one for one in found}, [one.hypothesis for one in found]


def test_ideas_are_ranked_by_the_ceiling_of_what_they_act_on(tmp_path):
    found, order = ideas(tmp_path, ("fuse", "norm", 1.05), ("products", "gemm", 1.5), ("one", "kernel:nvjet.*", 2.0))
    assert order == ["one", "products", "fuse"]
    assert found["fuse"].ceiling == pytest.approx(100 / 90)
    assert found["products"].ceiling == pytest.approx(100 / 10)
    assert found["fuse"].share == pytest.approx(0.1)


def test_an_idea_below_the_floor_is_struck_with_the_figure(tmp_path):
    found, _ = ideas(tmp_path, ("fuse", "norm", 1.05), ("products", "gemm", 1.5), floor=0.15)
    assert (found["fuse"].struck, found["products"].struck) == (True, False)
    assert "1.150x" in found["fuse"].why


@pytest.mark.parametrize("acts_on", ["recompute", "nothing", "quantization"])
def test_what_a_profile_does_not_show_has_no_bound_and_is_not_struck(tmp_path, acts_on):
    found, _ = ideas(tmp_path, ("it", acts_on, 1.1), floor=0.5)
    assert (found["it"].ceiling, found["it"].struck) == (None, False)
