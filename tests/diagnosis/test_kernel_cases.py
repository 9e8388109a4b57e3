"""Published kernels, as Nsight Compute files through the path that the command line takes: cases C, D and E of
case_studies.json, and the negative controls of trace-formats.md 5.6.

Where a case publishes a percentage of a stall and the tool prints cycles, the cycles are that percentage of a latency
of 100. Where it only names the leading stall, 60 of 100 stand for it, with less for the others.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from campaign.diagnosis.question import Question
from campaign.diagnosis.whole import diagnose
from campaign.traces import open_profile
from tests.traces.ncu_files import BANNER, Launch, details, put, raw

STUDIES = Path(__file__).parents[3] / "shared" / "reference" / "case_studies.json"
PAGES = {"raw": raw, "details": details}


@pytest.fixture(scope="module")
def published():
    if not STUDIES.is_file():
        pytest.skip(f"{STUDIES} is not there")
    return json.loads(STUDIES.read_text(encoding="utf-8"))


@pytest.fixture(params=PAGES)
def page(request):
    return PAGES[request.param]


def diagnosed(tmp_path, page, *launches, trace=None):
    report = open_profile(put(tmp_path / "kernels.csv", BANNER + page(launches)))
    timeline = open_profile(trace) if trace else None
    return diagnose(timeline, [report], Question()).kernels


def one(tmp_path, page, figures, name="kernel", **more):
    (found,) = diagnosed(tmp_path, page, Launch(name, figures, **more))
    return found


def stalls(leading, percent=60.0):
    others = {"wait": 15.0, "barrier": 10.0, "selected": 8.0}
    return {"latency": 100.0, leading: percent, **{name: value for name, value in others.items() if name != leading}}


def traced(path, shares):
    """A trace of 100 ms with these parts of it, back to back, as (name, percent)."""
    events, start = [], 0.0
    for name, percent in shares:
        duration = 1000.0 * percent
        args = {"device": 0, "stream": 7, "correlation": len(events) + 1}
        events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "args": args,
                       "ts": round(start, 3), "dur": round(duration, 3)})  # fmt: skip
        start += duration
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": events}))
    return path


# D: registers.


def test_case_d_first_kernel_is_register_pressure_with_its_ceiling(tmp_path, page, published):
    case = published["D_registers"]["inputs"]["first"]
    name = "recurrent_backward_kernel"
    trace = traced(tmp_path / "t.json", [(name, case["share_percent"]), ("gemm_kernel", 100 - case["share_percent"])])
    figures = {
        "registers": case["registers_per_thread"],
        "spills": case["local_spill_requests"],
        "no_eligible": case["no_eligible_warp_percent"],
        **stalls("long_scoreboard", case["long_scoreboard_percent"]),
    }
    (found,) = diagnosed(tmp_path, page, Launch(name, figures), trace=trace)
    assert found.rule == "register_pressure"
    assert found.verdict.startswith("register pressure with spills: the chain is complete")
    assert found.counters.threads_per_block == case["threads_per_block"] == 128
    assert "255 registers a thread" in found.numbers
    assert "8 of 48 warps fit (16.7 %, limited by registers)" in found.numbers
    assert "9.65M spill requests" in found.numbers[2]
    assert "no eligible warp in 91.6 % of the cycles" in found.numbers
    assert "long scoreboard 56.0 % of the time between instructions" in found.numbers
    assert any("reduce live state" in said for said in found.next)
    assert any("split a favourable phase" in said for said in found.next)
    assert found.avoid.startswith("a lower register cap")
    assert found.share == pytest.approx(0.0338, abs=1e-6)
    assert f"{found.ceiling:.3f}" == f"{published['D_registers']['results']['ceiling_of_first']:.3f}" == "1.035"
    assert (found.launches_profiled, found.launches_traced) == (1, 1)


def test_case_d_second_kernel_is_memory_latency_without_spill(tmp_path, page, published):
    case = published["D_registers"]["inputs"]["second"]
    found = one(tmp_path, page, {
        "registers": case["registers_per_thread"], "spills": case["local_spill_requests"],
        "theoretical": case["occupancy_percent"], "memory": case["memory_throughput_percent"],
        **stalls(case["leading_stall"]),
    })  # fmt: skip
    assert found.rule == "memory_latency"
    assert found.verdict == "memory latency, no spill: healthier than a spilling kernel, lower priority"
    assert "12 of 48 warps fit (25.0 %, limited by registers)" in found.numbers
    assert (
        found.recomputed_occupancy_percent == case["occupancy_percent"] == found.counters.theoretical_occupancy_percent
    )
    assert "memory 71.0 %" in found.numbers and "0 spill requests" in found.numbers[2]
    assert "capping its registers" in found.avoid


def test_a_spilling_kernel_stands_before_a_healthier_one_by_its_share(tmp_path, page):
    spilling = Launch("a_kernel", {"registers": 255, "microseconds": 5.0})
    other = Launch("b_kernel", {"registers": 153, "microseconds": 50.0})
    trace = traced(tmp_path / "t.json", [("a_kernel", 60.0), ("b_kernel", 40.0)])
    assert [k.name for k in diagnosed(tmp_path, page, spilling, other)] == ["b_kernel", "a_kernel"]
    assert [k.name for k in diagnosed(tmp_path, page, spilling, other, trace=trace)] == ["a_kernel", "b_kernel"]


# E: healthy at low occupancy.


@pytest.mark.parametrize("case", ["fp8_gemm", "fp4_gemm"])
def test_case_e_warp_specialised_matrix_kernels_are_healthy_by_design(tmp_path, page, published, case):
    inputs = published["E_healthy_low_occupancy"]["inputs"][case]
    figures = {"tensor": inputs["tensor_percent"], "registers": 168, "dynamic_shared_kbyte": 92.16, "spills": 0,
               **stalls(inputs["leading_stall"])}  # fmt: skip
    if "memory_l2_percent" in inputs:
        figures |= {"memory": inputs["memory_l2_percent"], "l2": inputs["memory_l2_percent"]}
    found = one(tmp_path, page, figures, block="(384, 1, 1)")
    assert found.rule == "healthy_by_design"
    assert found.verdict == "healthy: the target pipe is busy, low occupancy is by design"
    assert f"tensor pipe {inputs['tensor_percent']}.0 %" in found.numbers
    assert inputs["ctas_per_sm"] == 1 and "1 block on a multiprocessor" in found.numbers
    assert "leading stall sleeping (60.0 %)" in found.numbers
    assert found.avoid == "raising its occupancy"


def test_case_e_bf16_kernel_wants_another_tile_or_precision_before_a_rewrite(tmp_path, page, published):
    inputs = published["E_healthy_low_occupancy"]["inputs"]["bf16_gemm"]
    found = one(tmp_path, page, {
        "tensor": inputs["tensor_percent"], "dram": inputs["dram_percent"], "theoretical": inputs["occupancy_percent"],
        "spills": inputs["local_spill_requests"], **stalls(inputs["leading_stall"]),
    })  # fmt: skip
    assert found.rule == "tile_or_precision"
    assert found.verdict == "less efficient, no spill: tile selection or precision policy before a rewrite"
    assert {"tensor pipe 61.0 %", "DRAM 51.0 %", "theoretical occupancy 16.7 %"} <= set(found.numbers)
    assert found.avoid.startswith("a rewrite")


# C: streaming kernels and a conversion.


@pytest.mark.parametrize("place", [0, 1])
def test_case_c_streaming_kernels_are_at_the_dram_roof(tmp_path, page, published, place):
    dram = published["C_copies"]["inputs"]["streaming_kernels_dram_percent"][place]
    found = one(tmp_path, page, {"dram": dram, "sm": 22.0, "registers": 32, "spills": 0})
    assert found.rule == "dram_roof"
    assert found.verdict.startswith("at the DRAM roof: fuse, reuse or drop the pass; the kernel alone has no ceiling")
    assert f"DRAM {dram}.0 %" in found.numbers


def test_case_c_fp4_packing_is_a_compute_heavy_conversion(tmp_path, page, published):
    case = published["C_copies"]["inputs"]["fp4_packing"]
    found = one(tmp_path, page, {
        "sm": case["sm_compute_percent"], "dram": case["dram_percent"], "registers": case["registers_per_thread"],
        "theoretical": case["theoretical_occupancy_percent"],
    }, name="void quantize_pack_fp4_kernel<__nv_bfloat16>(__nv_bfloat16 const*)")  # fmt: skip
    assert found.rule == "compute_conversion"
    assert found.verdict == "compute-heavy format conversion: not copy traffic"
    assert {"SM 83.0 %", "DRAM 35.0 %", "100 registers a thread"} <= set(found.numbers)
    assert "16 of 48 warps fit (33.3 %, limited by registers)" in found.numbers


# Kernels that look alike and are not (trace-formats 5.6).


@pytest.mark.parametrize(
    ("figures", "rule"),
    [
        # rmsnorm_matrix_v2: long scoreboard 54.69 of 65.74 cycles = 83 %, at the DRAM roof for all that.
        ({"registers": 32, "spills": 0, "no_eligible": 78.0, "dram": 89.0, "achieved": 92.0, "latency": 65.74,
          "long_scoreboard": 54.69}, "dram_roof"),
        # matrix_addition2D
        ({"registers": 16, "dram": 88.0, **stalls("long_scoreboard", 77.0)}, "dram_roof"),
        # naive_gemm: the queue of the load/store unit
        ({"spills": 0, "no_eligible": 70.0, "latency": 100.0, "long_scoreboard": 5.0, "lg_throttle": 73.0},
         "instruction_queue"),
        # warptiling: many registers and low occupancy alone are no verdict.
        ({"registers": 228, "theoretical": 16.7}, "no_verdict"),
    ],
    ids=["rmsnorm_matrix_v2", "matrix_addition2D", "naive_gemm", "warptiling"],
)  # fmt: skip
def test_negative_controls_get_their_own_verdict(tmp_path, page, figures, rule):
    assert one(tmp_path, page, figures).rule == rule


def test_the_same_registers_with_and_without_spills_are_told_apart(tmp_path):
    """Published on an H200: 168 registers both; 148,406,272 and 32,768 spill instructions, long scoreboard 11.55 of
    22.29 and 0.25 of 6.02 cycles, 0.14 and 0.52 eligible warps; 160 and 211 KB of shared memory, 384 threads."""
    spilling, healthy = diagnosed(
        tmp_path, raw,
        Launch("main_kernel", {"registers": 168, "microseconds": 5060.0, "dynamic_shared_kbyte": 160.0,
                               "eligible": 0.14, "sm": 15.48, "l2": 58.75, "dram": 8.82, "achieved": 18.52,
                               "latency": 22.29, "long_scoreboard": 11.55, "barrier": 5.89,
                               "lg_throttle": 1.29, "wait": 1.73},
               {"sass__inst_executed_register_spilling": ("148406272", "inst"),
                "sass__inst_executed_local_loads": ("71417856", "inst"),
                "sass__inst_executed_local_stores": ("76988416", "inst")}, block="(384, 1, 1)", capability="9.0"),
        Launch("flash_fwd", {"registers": 168, "microseconds": 893.0, "dynamic_shared_kbyte": 211.0, "eligible": 0.52,
                             "sm": 79.20, "l2": 26.09, "dram": 5.99, "achieved": 14.06, "latency": 6.02,
                             "long_scoreboard": 0.25, "barrier": 0.82, "wait": 1.64},
               {"sass__inst_executed_register_spilling": ("32768", "inst")}, block="(384, 1, 1)", capability="9.0"),
    )  # fmt: skip
    assert spilling.rule == "register_pressure"
    assert spilling.counters.stalls_percent["long_scoreboard"] == pytest.approx(51.8, abs=0.05)
    assert spilling.counters.spill_requests == 71_417_856 + 76_988_416  # the loads and stores are the spills
    assert "0.14 eligible warps a scheduler" in spilling.numbers
    assert healthy.rule == "no_verdict" and healthy.missing == ("pipe utilization",)


# The real reports.


def test_recomputed_occupancy_is_the_tools_own_on_every_real_launch(real_traces):
    files = ("esmm_profile_a.raw.csv", "esmm_profile_b.raw.csv", "esmm_profile_b.details.csv")
    for name in files:
        kernels = diagnose(None, [open_profile(real_traces / name)], Question()).kernels
        known = [k for k in kernels if k.counters.profiled]
        assert len(known) >= 3
        for kernel in known:
            tool = kernel.counters.theoretical_occupancy_percent
            assert kernel.recomputed_occupancy_percent == pytest.approx(tool, abs=0.005), kernel.name


def test_launch_facts_alone_get_no_verdict_on_the_real_report(real_traces):
    kernels = diagnose(None, [open_profile(real_traces / "esmm_profile_a.raw.csv")], Question()).kernels
    assert {k.rule for k in kernels} == {"no_verdict"}
    assert sum(k.launches_profiled for k in kernels) == 12 and len(kernels) == 11  # cublas ran twice
    times = [k.counters.duration_seconds for k in kernels]
    assert times[0] == pytest.approx(0.010776992)  # longest first, where there is no trace


def test_the_failed_launch_of_the_real_report_is_named_last(real_traces):
    kernels = diagnose(None, [open_profile(real_traces / "esmm_profile_b.raw.csv")], Question()).kernels
    assert [k.rule for k in kernels] == ["healthy_by_design", "instruction_queue", "instruction_queue", "not_profiled"]
    assert "failed under the profiler" in kernels[-1].verdict


# Grouping and joining.


def test_launches_of_one_shape_are_one_finding_by_the_median_one(tmp_path, page):
    launches = [
        Launch("k", {"dram": dram, "microseconds": us}) for dram, us in ((88.0, 10.0), (20.0, 30.0), (85.0, 11.0))
    ]
    other = Launch("k", {"dram": 30.0, "microseconds": 2.0}, grid="(8, 1, 1)")
    first, second = diagnosed(tmp_path, page, *launches, other)
    assert (first.launches_profiled, first.counters.dram_percent) == (3, 85.0)
    assert (second.launches_profiled, second.counters.grid_blocks) == (1, 8)


def test_the_launch_with_the_most_counters_speaks_for_its_shape(tmp_path, page):
    bare = Launch("k", {"microseconds": 10.0})
    full = Launch("k", {"microseconds": 99.0, "dram": 88.0, "sm": 20.0})
    (found,) = diagnosed(tmp_path, page, bare, bare, full)
    assert found.rule == "dram_roof" and found.launches_profiled == 3


def test_spellings_of_one_kernel_are_joined_with_the_trace_and_others_are_named(tmp_path):
    trace = traced(tmp_path / "t.json", [
        ("void (anonymous namespace)::softmax_kernel<float, 4>(float const*, int)", 30.0), ("k_bare(int)", 70.0),
    ])  # fmt: skip
    report = open_profile(put(tmp_path / "k.csv", raw([
        Launch("void <unnamed>::softmax_kernel<float, 4>(const float *, int)", {"dram": 88.0}),
        Launch("k_bare", {"dram": 88.0}),
        Launch("elsewhere", {"dram": 88.0}),
    ])))  # fmt: skip
    found = diagnose(open_profile(trace), [report], Question())
    assert {k.name: k.share for k in found.kernels}["k_bare"] == pytest.approx(0.7)
    assert found.unjoined == ("elsewhere",)
