"""Nsight Compute CSV: the real exports, and what stands around the table."""

from __future__ import annotations

import csv
import gzip

import pytest

from campaign.errors import BadInput
from campaign.traces import open_profile
from tests.traces.ncu_files import BANNER, FIGURES, Launch, codes, details, only, put, raw

# The real files.


def test_every_page_and_unit_choice_of_one_report_gives_the_same_counters(real_traces):
    files = ("esmm_profile_b.raw.csv", "esmm_profile_b.rawbase.csv", "esmm_profile_b.details.csv")
    scaled, base, page = (open_profile(real_traces / name).launches for name in files)
    for one, same, shown in zip(scaled, base, page, strict=True):
        for other in (same, shown):
            assert other.name == one.name and other.profiled == one.profiled
            for field in ("registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes", "grid_blocks",
                          "threads_per_block", "architecture", "limits_blocks", "waves"):  # fmt: skip
                assert getattr(other, field) == getattr(one, field), field
            for field in ("sm_percent", "memory_percent", "dram_percent", "l2_percent", "l1_percent", "active_warps",
                          "achieved_occupancy_percent", "theoretical_occupancy_percent"):  # fmt: skip
                assert getattr(other, field) == pytest.approx(getattr(one, field), abs=0.00501), field
            assert other.duration_seconds == (one.duration_seconds and pytest.approx(one.duration_seconds, rel=1e-4))
    # A details page has pipes only with --print-details all, and never the number of multiprocessors of this version.
    assert scaled[0].pipes_percent["alu"] == 69.861062 and base[0].pipes_percent["alu"] == 69.86
    assert page[0].pipes_percent == {} and page[0].multiprocessors is None and scaled[0].multiprocessors == 80


def test_values_are_those_of_the_cells_in_plain_units(real_traces):
    """Against the csv module: the first launch of the report with msecond and Kbyte columns."""
    with (real_traces / "esmm_profile_a.raw.csv").open(newline="") as file:
        header, cell_units, *rows = csv.reader(file)
    launches = open_profile(real_traces / "esmm_profile_a.raw.csv").launches
    assert len(launches) == len(rows) == 12
    assert cell_units[header.index("gpu__time_duration.sum")] == "msecond"
    assert cell_units[header.index("launch__shared_mem_per_block_static")] == "Kbyte/block"
    for one, row in zip(launches, rows, strict=True):
        cells = dict(zip(header, row, strict=True))
        assert one.duration_seconds == pytest.approx(float(cells["gpu__time_duration.sum"]) / 1000, rel=1e-12)
        assert one.static_shared_bytes == round(1000 * float(cells["launch__shared_mem_per_block_static"]))
        assert one.registers_per_thread == float(cells["launch__registers_per_thread"])
        assert one.waves == float(cells["launch__waves_per_multiprocessor"])
        assert one.source_row == 3 + rows.index(row)
    # 40,960 is what a block was given, not what a thread has.
    assert launches[1].registers_per_thread == 40


@pytest.mark.parametrize("page", ["raw", "rawbase", "details"])
def test_a_launch_that_failed_is_not_profiled_and_nothing_of_it_is_zero(real_traces, page):
    report = open_profile(real_traces / f"esmm_profile_b.{page}.csv")
    failed = report.launches[3]  # its grid is (0, 0, 0); the raw page prints 0.000000 for some of its pipes
    assert not failed.profiled and failed.pipes_percent == {} and failed.sm_percent is None
    assert (failed.grid_blocks, failed.threads_per_block, failed.duration_seconds) == (None, None, None)
    assert failed.failed
    assert codes(report) == ["not-profiled"] and "vectorized_blocktiling" in report.notices[0].text


def test_a_page_of_chosen_metrics_with_thousands_is_read(real_traces):
    """`ncu --metrics ... --csv` prints 15 columns, raw names, and 32,746,880."""
    launches = open_profile(real_traces / "esmm_metrics.csv").launches
    assert len(launches) == 9
    assert (launches[0].dram_bytes, launches[0].duration_seconds) == (32_746_880, pytest.approx(0.010776576))
    assert launches[8].name == "ampere_sgemm_128x64_nn" and launches[8].grid_blocks == 8 * 16 * 5
    assert launches[0].registers_per_thread is None  # not asked for: neither 0 nor failed
    assert launches[0].failed == ()


# What is around the table.


@pytest.mark.parametrize("page", [raw, details])
@pytest.mark.parametrize("before", ["", BANNER, "\ufeff" + BANNER, "\ufeff"])
def test_both_pages_are_recognised_by_content_behind_banners_program_output_and_a_mark(tmp_path, page, before):
    found = only(put(tmp_path / "nothing.telling", before + page([Launch("k<int>(float *)", FIGURES)])))
    assert (found.name, found.architecture, found.registers_per_thread) == ("k<int>(float *)", "sm_120", 40)
    assert (found.grid_blocks, found.threads_per_block, found.dynamic_shared_bytes) == (4096, 128, 8192)
    assert (found.dram_percent, found.duration_seconds) == (55.25, pytest.approx(12.5e-6))
    # trace-formats 2.3: stall columns are cycles per issue; 54.69 of 65.74 are 83.2 %.
    assert found.stalls_percent["long_scoreboard"] == pytest.approx(83.2, abs=0.05)


def test_a_file_that_powershell_wrote_is_read(tmp_path):
    path = tmp_path / "k.csv"
    path.write_text(BANNER + raw([Launch("k", FIGURES)]), encoding="utf-16")
    assert only(path).registers_per_thread == 40


def test_a_compressed_file_is_read(tmp_path):
    path = tmp_path / "k.csv.gz"
    path.write_bytes(gzip.compress(raw([Launch("k", FIGURES)]).encode()))
    assert only(path).registers_per_thread == 40


def test_a_damaged_compressed_file_names_the_line(tmp_path):
    path = tmp_path / "k.csv.gz"
    whole = gzip.compress(raw([Launch(f"kernel_{i}", FIGURES) for i in range(2000)]).encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match=r"after line \d+"):
        open_profile(path)


def test_program_output_before_the_table_may_be_longer_than_what_is_looked_at(tmp_path):
    noise = BANNER + "".join(f"step {i}: loss 3.1, time 12 ms\n" for i in range(5000))
    assert len(noise) > 1 << 16
    assert only(put(tmp_path / "k.csv", noise + raw([Launch("k", FIGURES)]))).registers_per_thread == 40


def test_program_output_between_the_rows_is_passed_over_and_reported(tmp_path):
    lines = raw([Launch("a", FIGURES), Launch("b", FIGURES)]).splitlines(keepends=True)
    lines.insert(3, 'the answer is "42\n')
    report = open_profile(put(tmp_path / "k.csv", "".join(lines)))
    assert [one.name for one in report.launches] == ["a", "b"]
    assert codes(report) == ["stray-lines"] and "line 4" in report.notices[0].text


def test_two_files_put_together_are_read_as_both(tmp_path):
    path = put(tmp_path / "k.csv", raw([Launch("a", FIGURES)]) + details([Launch("b", {"registers": 255})]))
    assert [(one.name, one.registers_per_thread) for one in open_profile(path).launches] == [("a", 40), ("b", 255)]


def test_metric_sets_may_differ_between_kernels(tmp_path):
    path = put(tmp_path / "k.csv", raw([Launch("a", {"registers": 40}), Launch("b", {"dram": 88.0})]))
    first, second = open_profile(path).launches
    assert (first.registers_per_thread, first.dram_percent, first.failed) == (40, None, ())
    assert (second.registers_per_thread, second.dram_percent, second.failed) == (None, 88.0, ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("==PROF== Connected to process 1\n==WARNING== No kernels were profiled.\nAvailable Kernels:\n1. gemm, f\n",
         "No kernels were profiled"),
        ("==PROF== Connected to process 1\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n",
         "ERR_NVGPUCTRPERM"),
    ],
)  # fmt: skip
def test_a_file_without_a_table_repeats_what_the_tool_said(tmp_path, text, said):
    with pytest.raises(BadInput, match=said) as error:
        open_profile(put(tmp_path / "k.csv", text))
    assert error.value.remedy.startswith("ncu --csv --page raw")


def test_launches_that_were_summed_up_are_refused(tmp_path):
    text = '"Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Minimum","Maximum","Average"\n'
    with pytest.raises(BadInput, match="line 1: launches are summed up"):
        open_profile(put(tmp_path / "k.csv", text))


def test_a_table_of_another_tool_is_not_taken_for_one(tmp_path):
    with pytest.raises(BadInput, match="no table of Nsight Compute"):
        open_profile(put(tmp_path / "k.csv", '"Time (%)","Total Time (ns)","Instances","Name"\n"51.2","100","2","k"\n'))
