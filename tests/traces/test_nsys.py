"""Nsight Systems exports: exact against plain SQL, and every way in which their device events mislead."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaign.traces import nsys
from campaign.traces.timeline import Call, Shape, Work
from tests.traces import brute
from tests.traces.nsys_files import (
    Gpu,
    Kernel,
    Memcpy,
    Memset,
    Runtime,
    Sample,
    write_nsys,
)
from tests.traces.seen import calls_of, notices, swept

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
    assert notices(timeline)["backtraces"].text.endswith(": 38")


def test_lost_events_that_nsys_admits_lower_confidence(real_traces: Path) -> None:
    timeline = nsys.read(real_traces / "lighttransport_gemm_profile.sqlite")
    lost = [one.text for one in timeline.notices if one.lowers_confidence]
    assert any("Not all CUDA events might have been collected" in text for text in lost)
    assert any("Some CUPTI events might be missing" in text for text in lost)


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


def test_gpu_metrics_are_summed_up_by_device_since_the_capture_began(tmp_path: Path) -> None:
    samples = [Sample(-5, "SMs Active", 100), Sample(1, "SMs Active", 20), Sample(2, "SMs Active", 40)]
    samples += [Sample(1, "DRAM Read", 7, type_id=0x5_0000_0001)]
    timeline = nsys.read(write_nsys(tmp_path / "a.sqlite", [Kernel("k", 0, 5)], metrics=samples))
    found = sorted((one.device, one.name, one.samples, one.mean, one.largest) for one in timeline.metrics)
    assert found == [(0, "SMs Active", 2, 30.0, 40.0), (1, "DRAM Read", 1, 7.0, 7.0)]


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
    assert notices(timeline)["bad_durations"].text.endswith(": 2 in CUPTI_ACTIVITY_KIND_KERNEL")


def test_nothing_is_made_beside_the_file(tmp_path: Path) -> None:
    path = write_nsys(tmp_path / "a.sqlite", [Kernel("k", 10, 20)])
    before = path.read_bytes()
    nsys.read(path).close()
    assert [one.name for one in tmp_path.iterdir()] == ["a.sqlite"]
    assert path.read_bytes() == before


def test_file_in_write_ahead_mode_is_read_without_a_log_beside_it(tmp_path: Path) -> None:
    path = write_nsys(tmp_path / "a.sqlite", [Kernel("k", 10, 20)])
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    connection.close()
    timeline = nsys.read(path)
    assert swept(timeline).devices[0].busy_ns == 10
    assert {one.name for one in tmp_path.iterdir()} == {"a.sqlite"}


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


def test_events_come_in_order_whatever_the_order_of_tables(tmp_path: Path) -> None:
    kernels = [Kernel("k", start, start + 1) for start in (30, 10, 20)]
    path = write_nsys(tmp_path / "a.sqlite", kernels, [Memcpy(15, 16, 1)], [Memset(25, 26, 1)])
    starts = np.concatenate([batch["start"] for batch in nsys.read(path).events.batches()])
    assert starts.tolist() == [10, 15, 20, 25, 30]
    kinds = [int(row["kind"]) for batch in nsys.read(path).events.batches() for row in batch]
    assert kinds == [Work.KERNEL, Work.MEMCPY, Work.KERNEL, Work.MEMSET, Work.KERNEL]
