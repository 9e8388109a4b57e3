"""Numbers, units and metrics of Nsight Compute CSV: which figure a cell is, and which cell says a figure."""

from __future__ import annotations

import pytest

from campaign.traces import open_profile
from tests.traces.ncu_files import Launch, codes, details, only, put, raw


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


@pytest.mark.parametrize("value", ["1e330", "1e-330", "9" * 400, "0." + "0" * 400 + "1"])
def test_a_number_that_no_counter_has_is_none(tmp_path, value):
    assert with_metric(tmp_path, "dram__bytes.sum", value, "byte").launches[0].dram_bytes is None
