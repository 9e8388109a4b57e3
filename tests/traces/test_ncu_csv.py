"""Nsight Compute CSV: the real exports, and every oddity that such files are known to have."""

from __future__ import annotations

import csv
import gzip
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaign.errors import BadInput
from campaign.traces import ncu_csv, open_profile
from tests.traces.ncu_files import BANNER, Launch, details, put, raw

FIGURES = {"registers": 40, "microseconds": 12.5, "dram": 55.25, "spills": 9_650_000, "latency": 65.74,
           "long_scoreboard": 54.69, "dynamic_shared_kbyte": 8.192}  # fmt: skip


def only(path):
    (found,) = open_profile(path).launches
    return found


def codes(report):
    return [notice.code for notice in report.notices]


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


# Numbers and units.


def with_metric(tmp_path, name, value, unit, **more):
    return open_profile(put(tmp_path / "k.csv", raw([Launch("k", more, {name: (value, unit)})])))


@pytest.mark.parametrize(
    ("value", "unit", "seconds"),
    [("139.914240", "msecond", 0.13991424), ("139.91", "ms", 0.13991), ("12.5", "usecond", 12.5e-6),
     ("12.5", "us", 12.5e-6), ("139914240", "nsecond", 0.13991424), ("139914240", "ns", 0.13991424),
     ("1.5", "second", 1.5)],
)  # fmt: skip
def test_durations_are_read_in_every_unit_that_the_versions_print(tmp_path, value, unit, seconds):
    assert with_metric(tmp_path, "gpu__time_duration.sum", value, unit).launches[0].duration_seconds == pytest.approx(
        seconds
    )


@pytest.mark.parametrize(
    ("value", "unit", "count"),
    [("512", "byte", 512), ("1.500000", "Kbyte", 1500), ("23.5", "Mbyte", 23.5e6), ("1.887443", "Gbyte", 1.887443e9),
     ("1.25", "Tbyte", 1.25e12)],
)  # fmt: skip
def test_bytes_are_read_in_every_unit_that_the_tool_scales_to(tmp_path, value, unit, count):
    assert with_metric(tmp_path, "dram__bytes.sum", value, unit).launches[0].dram_bytes == pytest.approx(count)


def test_a_rate_is_not_taken_for_bytes(tmp_path):
    """`Memory Throughput` is a percentage in one section and bytes a second in another."""
    one = Launch("k", {"memory": 71.0})
    text = details([one])
    row = next(line for line in text.splitlines() if "Memory Throughput" in line)
    other = row.replace("GPU Speed Of Light Throughput", "Memory Workload Analysis").replace(
        '"%","71"', '"Gbyte/second","425.29"'
    )
    for order in ((row, other), (other, row)):
        path = put(tmp_path / "k.csv", text.replace(row, "\n".join(order)))
        assert only(path).memory_percent == 71.0


def test_shared_memory_that_was_rounded_to_ten_bytes_is_the_round_number_it_must_have_been(tmp_path):
    """227 KiB are all that a block of sm_90 may have; printed as 232.45 Kbyte they would seem not to fit."""
    text = details([Launch("k", {"dynamic_shared_kbyte": 232.45})])
    assert only(put(tmp_path / "k.csv", text)).dynamic_shared_bytes == 227 * 1024


@pytest.mark.parametrize(
    ("spills", "elsewhere", "expected"),
    [
        ("53,261,312", "12.56", 53_261_312),  # twice grouped
        ("53.261.312", "12,56", 53_261_312),
        ("53.261.312,5", "12,56", 53_261_312.5),
        ("1,024", "12.56", 1024),  # ambiguous alone, but the file has a decimal point
        ("1.024", "12,56", 1024),
        ("1,024", "12,56", 1.024),
        ("1.024", "12.56", 1.024),
        ("1\u202f024", "12,56", 1024),
        ("1'024", "12.56", 1024),
        ("0,149", "12,56", 0.149),
    ],
)
def test_thousands_and_decimals_follow_the_evidence_of_the_file(tmp_path, spills, elsewhere, expected):
    report = with_metric(tmp_path, "derived__local_spilling_requests", spills, "", dram=elsewhere)
    assert report.launches[0].spill_requests == expected and codes(report) == []
    assert report.launches[0].dram_percent == 12.56


@pytest.mark.parametrize("value", ["1,024", "1.024", "-1,024"])
def test_a_number_that_can_be_read_both_ways_is_not_guessed(tmp_path, value):
    report = with_metric(tmp_path, "derived__local_spilling_requests", value, "", dram=88)
    assert report.launches[0].spill_requests is None
    assert report.launches[0].failed == ("derived__local_spilling_requests",)
    assert codes(report) == ["ambiguous-number"] and "line 3" in report.notices[0].text


def test_a_file_that_contradicts_itself_is_read_column_by_column(tmp_path):
    spills, local = "derived__local_spilling_requests", "memory_l2_theoretical_sectors_local"
    path = put(tmp_path / "k.csv", raw([
        Launch("a", {"dram": "12,56"}, {spills: ("1,024", ""), local: ("7,777,777", "sector")}),
        Launch("b", {"dram": "7,125"}, {spills: ("2,048", ""), local: ("1,024", "sector")}),
    ]))  # fmt: skip
    first, second = open_profile(path).launches
    assert (first.spill_requests, second.spill_requests) == (None, None)
    assert (second.dram_percent, second.local_requests) == (7.125, 1024)


@pytest.mark.parametrize(
    "absent", ["n/a", "(!) n/a", "nan", "-nan", "no data", "NaN", "inf", "CachePreferNone", "1.2.3"]
)
def test_what_is_no_number_is_none_and_stands_in_failed(tmp_path, absent):
    found = with_metric(tmp_path, "dram__bytes.sum", absent, "byte", dram=12.5).launches[0]
    assert (found.dram_bytes, found.failed, found.profiled) == (None, ("dram__bytes.sum",), True)


def test_a_launch_of_which_everything_measured_is_no_number_is_not_profiled(tmp_path):
    """flash_fwd_kernel of a public report: its launch is known, every counter is nan, and some are 0."""
    figures = {"registers": 168, "dram": "nan", "sm": "nan", "microseconds": "nan", "tensor": 0.0, "theoretical": 25.0}
    found = open_profile(put(tmp_path / "k.csv", raw([Launch("flash_fwd_kernel", figures)]))).launches[0]
    assert not found.profiled and found.pipes_percent == {}
    assert (found.registers_per_thread, found.theoretical_occupancy_percent) == (168, 25.0)


def test_a_table_without_units_says_nothing_of_scaled_numbers(tmp_path):
    lines = raw([Launch("k", {"microseconds": 12.5, "dram": 55.25})]).splitlines(keepends=True)
    report = open_profile(put(tmp_path / "k.csv", lines[0] + lines[2]))
    assert (report.launches[0].duration_seconds, report.launches[0].dram_percent) == (None, None)
    assert "no-units" in codes(report)


# Which metric says what.


@pytest.mark.parametrize("prefix", ["pmsampling:", "breakdown:", "FBPA.TriageA.", "group:"])
def test_a_prefix_makes_another_metric(tmp_path, prefix):
    name = f"{prefix}gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
    assert with_metric(tmp_path, name, "99.000000", "%", sm=12.5).launches[0].dram_percent is None


SPILLING = "sass__inst_executed_register_spilling"


@pytest.mark.parametrize(
    "names",
    [(SPILLING,), (f"{SPILLING}_mem_local",), ("derived__local_spilling_requests",),
     (f"{SPILLING}_mem_local_op_read", f"{SPILLING}_mem_local_op_write")],
)  # fmt: skip
def test_spills_come_from_counters_of_spilling(tmp_path, names):
    path = put(tmp_path / "k.csv", raw([Launch("k", {}, dict.fromkeys(names, ("32768", "inst")))]))
    found = only(path)
    assert found.spill_requests == 32768 * len(names) and found.local_requests is None
    assert found.spill_counter == " + ".join(names)


@pytest.mark.parametrize(
    "pair",
    [("sass__inst_executed_local_loads", "sass__inst_executed_local_stores"),
     ("smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum"),
     ("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum")],
)  # fmt: skip
def test_local_traffic_is_no_spill(tmp_path, pair):
    found = only(put(tmp_path / "k.csv", raw([Launch("k", {}, {name: ("100", "inst") for name in pair})])))
    assert (found.local_requests, found.spill_requests, found.spill_counter) == (200, None, "")
    half = only(put(tmp_path / "h.csv", raw([Launch("k", {}, {pair[0]: ("100", "inst")})])))
    assert half.local_requests is None  # loads alone are not the whole


def test_stack_size_is_no_evidence_of_anything(tmp_path):
    found = with_metric(tmp_path, "launch__stack_size", "1024", "byte").launches[0]
    assert (found.spill_requests, found.local_requests) == (None, None)


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [("smsp__issue_inst0.avg.pct_of_peak_sustained_active", "91.600000", "%"),
     ("smsp__issue_active.avg.pct_of_peak_sustained_active", "8.400000", "%"),
     ("smsp__issue_active.avg.per_cycle_active", "0.0840", "inst/cycle")],
)  # fmt: skip
def test_idle_schedulers_are_known_from_any_of_their_counters(tmp_path, name, value, unit):
    unit = unit.partition("/")[0]
    assert with_metric(tmp_path, name, value, unit).launches[0].no_eligible_percent == pytest.approx(91.6)


def test_older_stall_percentages_and_samples_need_no_latency(tmp_path):
    old = with_metric(tmp_path, "smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct", "56.100000", "%")
    assert old.launches[0].stalls_percent == {"long_scoreboard": 56.1}
    samples = {f"smsp__pcsamp_warps_issue_stalled_{name}": (count, "warp")
               for name, count in (("wait", "20"), ("sleeping", "60"), ("sleeping_not_issued", "55"))}  # fmt: skip
    samples["smsp__pcsamp_sample_count"] = ("80", "")
    found = only(put(tmp_path / "s.csv", raw([Launch("k", {}, samples)])))
    assert found.stalls_percent == {"wait": 25.0, "sleeping": 75.0}


def test_stall_cycles_without_the_latency_are_no_shares(tmp_path):
    path = put(tmp_path / "k.csv", raw([Launch("k", {"long_scoreboard": 54.69})]))
    assert only(path).stalls_percent == {}


def test_a_details_page_without_stall_columns_has_them_in_its_rules(tmp_path):
    said = (
        "On average, each warp of this workload spends 11.5 cycles being stalled waiting for a scoreboard dependency on"
        " a L1TEX (local, global, surface, texture) operation. This stall type represents about 51.8% of the total"
        " average of 22.3 cycles between issuing two instructions."
    )
    fixed = '"0","4242","python3.12","127.0.0.1","k","1","7","(128, 1, 1)","(4096, 1, 1)","0","12.0"'
    rule = f'{fixed},"WarpStateStats","","","","CPIStall","OPT","{said}","global","51.8"\n'
    path = put(tmp_path / "k.csv", details([Launch("k", {"registers": 40})]) + rule)
    assert only(path).stalls_percent == {"long_scoreboard": 51.8}


def test_busy_cycles_of_the_tensor_pipe_go_before_counts_of_its_instructions(tmp_path):
    """Asynchronous matrix instructions are one instruction for many cycles."""
    pct = ".avg.pct_of_peak_sustained_active"
    found = only(put(tmp_path / "k.csv", raw([Launch("k", {}, {
        f"sm__inst_executed_pipe_tensor_op_gmma{pct}": ("3.250000", "%"),
        f"sm__pipe_tensor_op_hmma_cycles_active{pct}": ("82.000000", "%"),
        f"sm__pipe_tensor_op_imma_cycles_active{pct}": ("0.000000", "%"),
        f"sm__pipe_fma_cycles_active{pct}": ("10.500000", "%"),
        f"sm__pipe_fmaheavy_cycles_active{pct}": ("70.500000", "%"),
    })])))  # fmt: skip
    assert found.pipes_percent == {"tensor": 82.0, "fma": 10.5}
    blackwell = with_metric(tmp_path, f"sm__pipe_tc_cycles_active{pct}", "78.000000", "%").launches[0]
    assert blackwell.pipes_percent == {"tensor": 78.0}


# Files that are not whole.


def test_a_cut_file_loses_its_last_row_and_says_so(tmp_path):
    text = raw([Launch("a", FIGURES), Launch("b", FIGURES)])
    report = open_profile(put(tmp_path / "k.csv", text[:-60]))
    assert [one.name for one in report.launches] == ["a"]
    assert codes(report) == ["cut"] and report.notices[0].lowers_confidence and "line 4" in report.notices[0].text


def test_rows_of_another_length_are_read_as_far_as_they_go_and_reported(tmp_path):
    lines = raw([Launch("a", FIGURES), Launch("b", FIGURES)]).splitlines()
    lines[2] = lines[2].rpartition(",")[0]
    report = open_profile(put(tmp_path / "k.csv", "\n".join(lines) + "\n"))
    assert (report.launches[0].registers_per_thread, report.launches[0].dynamic_shared_bytes) == (40, None)
    assert codes(report) == ["ragged-rows"] and "line 3" in report.notices[0].text


def test_a_row_whose_quote_does_not_close_costs_only_itself(tmp_path):
    lines = raw([Launch("a", FIGURES), Launch("b", FIGURES), Launch("c", FIGURES)]).splitlines()
    lines[3] = lines[3][:-1]
    report = open_profile(put(tmp_path / "k.csv", "\n".join(lines) + "\n"))
    assert [one.name for one in report.launches] == ["a", "c"] and codes(report) == ["cut"]


@pytest.mark.parametrize("ending", ['"\n', ""])
def test_a_cell_of_100_mb_is_refused_by_its_line_in_bounded_memory(tmp_path, ending):
    path = tmp_path / "k.csv"
    with path.open("w") as file:
        file.write(raw([Launch("a", FIGURES)]) + '"1","')
        for _ in range(100):
            file.write("x" * (1 << 20))
        file.write(ending)
    tracemalloc.start()
    with pytest.raises(BadInput, match="line 4: longer than"):
        open_profile(path)
    assert tracemalloc.get_traced_memory()[1] < 80 << 20
    tracemalloc.stop()


def test_a_quote_that_never_closes_is_refused_by_the_line_where_it_opened(tmp_path):
    path = tmp_path / "k.csv"
    with path.open("w") as file:
        file.write(raw([Launch("a", FIGURES)]) + '"1","\n')
        for _ in range(100):
            file.write(("x" * 1023 + "\n") * 100)
    with pytest.raises(BadInput, match="line 4: a row without end"):
        open_profile(path)


def test_the_limit_of_the_csv_module_is_given_back(tmp_path):
    before = csv.field_size_limit()
    only(put(tmp_path / "k.csv", raw([Launch("k" * 200_000, FIGURES)])))
    assert csv.field_size_limit() == before


def test_launches_beyond_the_most_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(ncu_csv, "MOST_LAUNCHES", 2)
    report = open_profile(put(tmp_path / "k.csv", raw([Launch(f"k{i}", FIGURES) for i in range(5)])))
    assert len(report.launches) == 2 and codes(report) == ["launches-beyond"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_read_in_part_or_refused(tmp_path, data):
    """Cut, or with bytes put in anywhere: launches, or BadInput, and no other end."""
    whole = (BANNER + data.draw(st.sampled_from([raw, details]))([Launch("a", FIGURES), Launch("b", FIGURES)])).encode()
    place = data.draw(st.integers(0, len(whole)))
    alphabet = st.sampled_from(
        ['"', ",", "\n", '""', "\0", "9", ".", "-", "\x1b", '"ID","Kernel Name"\n', ";", "\u00e9"]
    )
    put_in = "".join(data.draw(st.lists(alphabet, max_size=12))).encode()
    rest = whole[place + data.draw(st.integers(0, 40)) :] if data.draw(st.booleans()) else b""
    path = tmp_path / "k.csv"
    path.write_bytes(whole[:place] + put_in + rest)
    try:
        assert open_profile(path).launches
    except BadInput as error:
        assert "k.csv" in str(error) and error.remedy
