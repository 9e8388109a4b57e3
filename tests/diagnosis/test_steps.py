"""How many steps a range holds: by marks, by ranges of several threads, in a range asked for, and by graph launches."""

from __future__ import annotations

import numpy as np
import pytest

from campaign.diagnosis import idle
from campaign.diagnosis.question import Question
from campaign.diagnosis.replays import period
from campaign.diagnosis.whole import diagnose
from campaign.traces import open_profile
from tests.traces.kineto_files import host, kernel, read_events
from tests.traces.nsys_files import Kernel, Nvtx, Runtime, write_nsys

K = "nvjet_tst_64x64"


def launched(number: int, called: float, start: float, length: float) -> list[dict]:
    return [
        host("cuda_runtime", "cudaLaunchKernel", called, 1.0, correlation=number),
        kernel(K, start, length, correlation=number),
    ]


def steps_of(timeline, **question):
    return diagnose(timeline, (), Question(**question)).dispatch.steps


def profiled(folder, count: int, *more: dict):
    """Steps of 100 us, in each a kernel of 90 us, marked on the host and, 20 us later, on the stream."""
    events = [event for n in range(count) for event in launched(n + 1, 100.0 * n + 1, 100.0 * n + 21, 90.0)]
    events += [host("user_annotation", f"ProfilerStep#{n}", 100.0 * n, 100.0) for n in range(count)]
    events += [
        {**kernel(f"ProfilerStep#{n}", 100.0 * n + 20, 92.0), "cat": "gpu_user_annotation"} for n in range(count)
    ]
    return read_events(folder, *events, *more)


def test_step_that_launched_nothing_is_not_divided_by(tmp_path):
    steps = steps_of(profiled(tmp_path, 4, host("user_annotation", "ProfilerStep#4", 400.0, 3.0)))
    assert (steps.count, steps.attributable) == (4, True)
    assert "1 more launched nothing" in steps.why


def test_only_the_steps_inside_a_range_asked_for_are_counted(tmp_path):
    middle = [host("user_annotation", "measured", 200.0, 200.0)]
    middle.append({**kernel("measured", 219.0, 194.0), "cat": "gpu_user_annotation"})
    found = diagnose(profiled(tmp_path, 6, *middle), (), Question(window="measured")).dispatch
    assert found.steps.count == 2
    assert found.devices[0].span_ns == 194_000
    assert found.devices[0].kernels == 2


def test_one_step_can_be_asked_for_by_its_name(tmp_path):
    found = diagnose(profiled(tmp_path, 3), (), Question(window="ProfilerStep#1")).dispatch
    assert (found.steps.count, found.devices[0].kernels) == (1, 1)
    assert found.devices[0].busy_ns == 90_000


def test_idle_at_both_ends_of_a_range_has_a_cause_too(tmp_path):
    found = diagnose(profiled(tmp_path, 3), (), Question(window="ProfilerStep#1")).dispatch
    # The range begins 1 us before the kernel and ends 1 us after it.
    assert sum(found.idle_by_cause_ns.values()) == found.devices[0].idle_ns == 2_000
    assert {(gap.before, gap.after) for gap in found.gaps} == {
        ("the beginning of the range", K),
        (K, "the end of the range"),
    }


def ranks(path, counts: tuple[int, ...], text: str = "train_step"):
    """One process a device, each with ranges of its own around one kernel."""
    kernels, nvtx, runtime = [], [], []
    for rank, count in enumerate(counts):
        pid = 100 + rank
        for n in range(count):
            begun = 1000 * n
            nvtx.append(Nvtx(text, begun, begun + 990, pid=pid, tid=pid))
            runtime.append(Runtime("cudaLaunchKernel", begun + 5, begun + 9, correlation=n + 1, pid=pid, tid=pid))
            kernels.append(Kernel(K, begun + 20, begun + 900, correlation=n + 1, device=rank, pid=pid))
    write_nsys(path, kernels=kernels, runtime=runtime, nvtx=nvtx)
    return open_profile(path)


def test_ranges_that_every_process_marks_for_itself_are_counted_once(tmp_path):
    steps = steps_of(ranks(tmp_path / "two.sqlite", (5, 5)))
    assert (steps.count, steps.source, steps.attributable) == (5, "range train_step", True)
    assert steps.why == "5 steps by range train_step"


def test_processes_that_mark_different_numbers_of_steps_are_unattributable(tmp_path):
    steps = steps_of(ranks(tmp_path / "two.sqlite", (5, 7)))
    assert not steps.attributable
    assert "--steps" in steps.why


@pytest.mark.parametrize("text", ["Optimizer.step#AdamW.step", "lr_scheduler.step", "aten::step(int)"])
def test_step_of_an_optimizer_is_no_training_step(tmp_path, text):
    assert steps_of(ranks(tmp_path / "one.sqlite", (5,), text)).count is None


def replays(path, nodes: tuple[int, ...], devices: int = 1, traced: bool = True):
    """Graph launches of so many kernels each, on every device; 0 is one whose kernels were lost."""
    kernels, runtime = [], []
    for device in range(devices):
        for place, count in enumerate(nodes):
            correlation, begun = 100 * device + place + 1, 10_000 * place
            runtime.append(Runtime("cudaGraphLaunch_v10000", begun, begun + 50, correlation=correlation))
            kernels += [
                Kernel(K, begun + 100 * node, begun + 100 * node + 90, correlation=correlation, device=device,
                       graph_node=node)
                for node in range(1, count + 1)
            ]  # fmt: skip
    if not traced:
        kernels = [Kernel("eager", 50, 90, correlation=9_000)]
    write_nsys(path, kernels=kernels, runtime=runtime)
    return open_profile(path)


@pytest.mark.parametrize(
    ("nodes", "steps", "said"),
    [
        ((7,), 1, "1 graph launch"),
        ((7, 7, 7, 7), 4, "4 graph launches"),
        ((3, 5, 3, 5, 3, 5), 3, "2 a step"),  # a forward and a backward graph
        ((3, 5, 5, 3, 5, 5), 2, "3 a step"),
        ((7, 7, 7, 0), 3, "1 more made no device event"),
    ],
)
def test_rows_of_graph_launches_that_repeat_are_steps(tmp_path, nodes, steps, said):
    found = steps_of(replays(tmp_path / "graphs.sqlite", nodes))
    assert (found.count, found.source, found.attributable) == (steps, "graph launches", True)
    assert said in found.why


@pytest.mark.parametrize("nodes", [(4, 15, 15, 12), (3, 5, 3), (3, 5)])
def test_graph_launches_that_do_not_repeat_are_pieces_and_not_steps(tmp_path, nodes):
    found = diagnose(replays(tmp_path / "graphs.sqlite", nodes), (), Question()).dispatch
    assert (found.steps.count, found.steps.attributable) == (None, False)
    assert found.steps.why.startswith("unattributable: ")
    assert "--steps N" in found.steps.why


def test_launches_of_two_devices_are_the_same_steps(tmp_path):
    found = steps_of(replays(tmp_path / "graphs.sqlite", (6, 6, 6), devices=2))
    assert (found.count, found.attributable) == (3, True)


def test_graph_launches_without_their_kernels_leave_idle_unknown(tmp_path):
    found = diagnose(replays(tmp_path / "graphs.sqlite", (6, 6), traced=False), (), Question()).dispatch
    assert found.verdict == "unattributable"
    assert "--cuda-graph-trace=node" in found.sentence


def test_idle_between_replays_that_share_a_correlation_is_not_called_inside(tmp_path):
    kernels, runtime = [], []
    for replay in range(4):
        begun = 1000 * replay
        runtime.append(Runtime("cudaGraphLaunch_v10000", begun + 400, begun + 450, correlation=5))
        kernels += [Kernel(K, begun + 500, begun + 590, correlation=5, graph_node=1),
                    Kernel(K, begun + 600, begun + 690, correlation=5, graph_node=2)]  # fmt: skip
    write_nsys(tmp_path / "shared.sqlite", kernels=kernels, runtime=runtime)
    found = diagnose(open_profile(tmp_path / "shared.sqlite"), (), Question()).dispatch
    assert found.replay_idle_ns is None
    # The three gaps of 810 ns before the next replay was launched are the host's; the four of 10 ns were queued.
    assert found.idle_by_cause_ns["host"] == 3 * 810
    assert found.idle_by_cause_ns["queued"] == 4 * 10
    assert found.steps.count == 4


def test_idle_inside_and_between_replays_is_told_apart(tmp_path):
    # Two replays of 7 nodes: 6 gaps of 10 ns in each, and the rest between them.
    found = diagnose(replays(tmp_path / "graphs.sqlite", (7, 7)), (), Question()).dispatch
    assert found.replay_idle_ns == 120
    assert found.devices[0].idle_ns == 120 + (10_100 - 790)
    assert found.aggregation_ceiling == pytest.approx(10_690 / (10_690 - 9_310))


def test_gaps_too_many_to_look_up_still_leave_out_what_lies_inside_replays(tmp_path, monkeypatch):
    monkeypatch.setattr(idle, "GAPS_KEPT", 1)
    found = diagnose(replays(tmp_path / "graphs.sqlite", (7, 7)), (), Question()).dispatch
    assert found.idle_by_cause_ns["small"] == 120
    assert found.aggregation_ceiling == pytest.approx(10_690 / (10_690 - 9_310))


@pytest.mark.parametrize(
    ("counts", "length"),
    [([4], 1), ([4, 4], 1), ([4, 5], None), ([4, 5, 4, 5], 2), ([4, 5, 4], None), ([1, 1, 2, 1, 1, 2], 3)],
)
def test_the_shortest_row_that_repeats_whole_is_the_period(counts, length):
    assert period(np.array(counts)) == length


def test_steps_of_real_traces_are_those_that_the_profiler_marked(real_traces):
    def steps(name):
        return steps_of(open_profile(real_traces / name))

    assert steps("hta_diff_control.json.gz").count == 6  # HTA 0.5 drops the last
    assert steps("hta_amd_mi250_minitoy.json.gz").count == 1  # ProfilerStep#2 launched nothing
    assert steps("tracelens_sglang_qwen3_decode_graph.json.gz").count == 1
    assert steps("tracelens_vllm_piecewise_graph_exec.json.gz").count is None  # 4, 15, ..., 15 and 12 kernels
