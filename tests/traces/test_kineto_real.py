"""Kineto traces of other people's runs, against plain loops over their JSON and against the recorded truth."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from campaign.traces import open_profile
from campaign.traces.timeline import Call, Work
from tests.traces import brute
from tests.traces.kineto_files import codes, rows, swept

CUDA_AND_ROCM = [
    "hta_alexnet.json.gz",
    "hta_amd_mi250_minitoy.json.gz",
    "hta_compare_base.json.gz",
    "hta_compare_test.json.gz",
    "hta_diff_control.json.gz",
    "hta_diff_test.json.gz",
    "hta_event_sync_multi_stream.json.gz",
    "hta_nccl_data.json.gz",
    "hta_neg_queue_rank0.json.gz",
    "hta_ns_resolution_rank0.json.gz",
    "hta_triton_example.json.gz",
    "kineto_gpu_metrics_input.json",
    "kineto_resnet50_nw4_a.pt.trace.json.gz",
    "tracelens_b200_eager.json.gz",
    "tracelens_h100_bert_small.json.gz",
    "tracelens_h100_qwen15_05b.json.gz",
    "tracelens_mi210_gpu_only.json.gz",
    "tracelens_mi300_resnet_train.json.gz",
    "tracelens_sglang_qwen3_decode_graph.json.gz",
    "tracelens_torch_compile_triton.json.gz",
    "tracelens_vllm_decode_graph_exec.json.gz",
    "tracelens_vllm_piecewise_graph_exec.json.gz",
]
CPU_ONLY = ["hta_cpu_only_rank34.json.gz", "hta_cupti_counters.json.gz", "hta_dist_info_missing.json.gz"]


@pytest.fixture(scope="module", params=CUDA_AND_ROCM)
def each(request, real_traces):
    """One file as it is read here, and its complete events as the plain loops see them."""
    timeline = open_profile(real_traces / request.param)
    yield timeline, brute.kineto_events(real_traces / request.param)
    timeline.close()


def test_every_kineto_file_there_is_looked_at(real_traces):
    there = {path.name for path in real_traces.iterdir() if ".json" in path.suffixes}
    assert there - {"tracelens_rocprof_908_results.json.gz"} == {*CUDA_AND_ROCM, *CPU_ONLY}


def test_counts_union_and_idle_are_those_of_a_plain_loop(each):
    timeline, events = each
    busy = swept(timeline)
    plain = brute.kineto(events)
    assert {use.device for use in busy.devices} == set(plain)
    for use in busy.devices:
        found = brute.Counted(use.events, use.kernels, use.busy_ns, use.span_ns)
        assert (found, use.idle_ns) == (plain[use.device], plain[use.device].idle)


def test_each_event_has_the_name_place_and_bytes_that_the_file_gives_it(each):
    timeline, events = each
    wanted = []
    for event in events:
        if event.get("cat", "").lower() in brute.KINETO_WORK:
            args = event["args"]
            stream = str(args.get("stream", event["tid"])).removeprefix("stream ")
            place = (str(args.get("device", event["pid"])), stream, args.get("correlation", -1), args.get("bytes", 0))
            wanted.append((*brute.kineto_interval(event), event["name"][:4096], *place))
    found = []
    for row in rows(timeline.events):
        stream = timeline.streams[row["stream"]]
        assert stream.device == row["device"]
        device = str(timeline.devices[row["device"]].ordinal)
        place = (device, stream.label, int(row["correlation"]), int(row["bytes"]))
        found.append((int(row["start"]), int(row["end"]), timeline.names[row["name"]], *place))
    assert sorted(found, key=str) == sorted(wanted, key=str)


def test_host_calls_are_counted_as_in_the_file(each):
    timeline, events = each
    categories = [event.get("cat", "").lower() for event in events]
    names = [event["name"] for event in events]
    kinds = rows(timeline.calls)["kind"]
    steps = sum(
        one in ("operator", "cpu_op") and text.startswith("ProfilerStep#")
        for one, text in zip(categories, names, strict=True)
    )
    operators = sum(one in ("operator", "cpu_op") for one in categories)
    runtime = sum(one in ("cuda_runtime", "cuda_driver", "runtime") for one in categories)
    assert int((kinds == Call.OPERATOR).sum()) == operators - steps
    assert int((kinds == Call.ANNOTATION).sum()) == categories.count("user_annotation") + steps
    assert int((kinds < Call.OPERATOR).sum()) == runtime
    assert len(timeline.marks) == categories.count("gpu_user_annotation")


def test_the_recorded_truths_come_out(real_traces):
    with (real_traces / "truth.tsv").open(encoding="utf-8") as file:
        truths = [row for row in csv.DictReader(file, delimiter="\t") if ".json" in row["file"]]
    assert len(truths) == 12
    for truth in truths:
        timeline = open_profile(real_traces / truth["file"])
        if truth["device_events"] == "0":
            assert all(device.is_cpu for device in timeline.devices)
            continue
        (use,) = swept(timeline).devices
        assert use.events == int(truth["device_events"]), truth
        assert use.idle_ns == round(float(truth["idle_us"]) * 1000), truth
        assert use.span_ns == round(float(truth["span_us"]) * 1000), truth


@pytest.mark.parametrize("name", CPU_ONLY)
def test_a_run_without_a_device_is_its_innermost_operators(real_traces, name):
    timeline = open_profile(real_traces / name)
    busy = swept(timeline)
    (device,) = timeline.devices
    assert device.is_cpu and "cpu_only" in codes(timeline)
    plain = brute.innermost(brute.kineto_events(real_traces / name))
    found = {timeline.names[place]: (int(busy.launches[place]), int(busy.summed_ns[place])) for place in busy.names()}
    assert found == plain
    assert set(rows(timeline.events)["kind"].tolist()) == {Work.OPERATOR}


def test_a_clock_of_whole_microseconds_is_said_to_be_one(each):
    timeline, events = each
    starts = [brute.kineto_interval(event)[0] for event in events]
    whole = all(start % 1000 == 0 for start in starts)
    assert (timeline.source.resolution_ns == 1000) == whole
    assert ("coarse_clock" in codes(timeline)) == (whole and len(timeline.events) >= 8)


@pytest.mark.parametrize(
    ("name", "launches", "events"),
    [
        # trace-formats.md 2.2: one launch of 421 events, one of 544, 25 launches
        ("tracelens_vllm_decode_graph_exec.json.gz", 1, 421),
        ("tracelens_sglang_qwen3_decode_graph.json.gz", 1, 544),
        ("tracelens_vllm_piecewise_graph_exec.json.gz", 25, 361),
    ],
)
def test_events_of_graph_launches_are_found_by_their_correlation(real_traces, name, launches, events):
    timeline = open_profile(real_traces / name)
    assert len(timeline.graph_launches) == launches
    assert int(np.isin(rows(timeline.events)["correlation"], timeline.graph_launches).sum()) == events
    assert swept(timeline).in_graph == events


def test_a_device_is_described_as_the_file_does(real_traces):
    (device,) = open_profile(real_traces / "tracelens_h100_qwen15_05b.json.gz").devices
    assert (device.ordinal, device.architecture, device.multiprocessors) == (0, "sm_90", 132)
    (device,) = open_profile(real_traces / "tracelens_mi300_resnet_train.json.gz").devices
    assert (device.ordinal, device.architecture) == (2, "")
