"""NVTX ranges in Nsight Systems exports: as the host made them, and projected on the streams."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaign.traces import nsys
from campaign.traces.timeline import Call
from tests.traces import brute
from tests.traces.nsys_files import (
    Kernel,
    Nvtx,
    Runtime,
    write_nsys,
)
from tests.traces.seen import calls_of, marks_of, notices


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
    assert notices(timeline)["open_ranges"].text.endswith("end of the capture: 1")


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


def test_profiler_overhead_in_the_range_stands_beside_idle(tmp_path: Path) -> None:
    overheads = [(0, 1_000), (999_000, 1_001_000), (1_900_000, 2_500_000)]  # before the range, and partly in it
    kernels = [Kernel("k", 1_000_000, 1_100_000), Kernel("k", 1_900_000, 2_000_000)]
    found = notices(nsys.read(write_nsys(tmp_path / "a.sqlite", kernels, overheads=overheads)))["profiler_overhead"]
    assert "took 0.101 ms" in found.text and "10.10 %" in found.text
    assert found.lowers_confidence


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
    assert notices(timeline)["shared_correlation"].text.startswith(
        "correlation ids that belong to several host calls: 1."
    )
