"""Copies against kernels that only move or convert data: case C, and each way to call a kernel."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from campaign.diagnosis.busy import sweep
from campaign.diagnosis.copies import find_copies
from campaign.diagnosis.families import Classifier
from campaign.diagnosis.question import Question
from campaign.diagnosis.whole import diagnose
from campaign.traces import open_profile
from tests.traces.ncu_files import Launch, put, raw

STUDIES = Path(__file__).parents[3] / "shared" / "reference" / "case_studies.json"
COPY = "Memcpy DtoD (Device -> Device)"
QUANTIZE = "void quantize_pack_fp4_kernel<__nv_bfloat16>(__nv_bfloat16 const*)"
STREAM = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"
REDUCE = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(int)"
GEMM = "nvjet_qqtst_128x256_64x6_2x1_v_bz_coopA_TNT"


def event(name, start_us, duration_us, *, stream=7, moved=None, graph=None, number=0):
    kind = "gpu_memcpy" if name.startswith("Memcpy") else "gpu_memset" if name.startswith("Memset") else "kernel"
    args = {"device": 0, "stream": stream, "correlation": graph or number}
    if moved is not None:
        args["bytes"] = moved
    return {"ph": "X", "cat": kind, "name": name, "pid": 0, "tid": stream, "args": args,
            "ts": round(start_us, 3), "dur": round(duration_us, 3)}  # fmt: skip


def serial(*parts):
    """Events back to back, each (name, microseconds) or (name, microseconds, bytes)."""
    found, start = [], 0.0
    for number, (name, duration, *moved) in enumerate(parts, 1):
        found.append(event(name, start, duration, moved=moved[0] if moved else None, number=number))
        start += duration
    return found


def timeline(path, events):
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": events}))
    return open_profile(path)


def copies(tmp_path, *parts):
    return diagnose(timeline(tmp_path / "t.json", serial(*parts)), [], Question()).copies


@pytest.fixture(scope="module")
def published():
    if not STUDIES.is_file():
        pytest.skip(f"{STUDIES} is not there")
    return json.loads(STUDIES.read_text(encoding="utf-8"))["C_copies"]


def test_case_c_pays_for_passes_over_data_and_not_for_copies(tmp_path, published):
    """Ten replays of 1 ms, each with one device copy: 10.9 % quantization, 12.3 % pointwise and reduction."""
    inputs, events, start = published["inputs"], [], 0.0
    reduced = inputs["pointwise_reduction_layout_percent"] - 8.0
    parts = ((QUANTIZE, inputs["quantization_percent"]), (STREAM, 8.0), (REDUCE, reduced), (COPY, 0.1), (GEMM, 76.7))
    for replay in range(1, 11):
        for name, percent in parts:
            moved = 4096 if name == COPY else None
            events.append(event(name, start, 10 * percent, moved=moved, graph=replay))
            start += 10 * percent
        call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 1, "tid": 1, "ts": start - 1000.0,
                "dur": 3.0, "args": {"correlation": replay}}  # fmt: skip
        events.append(call)
    packing = inputs["fp4_packing"]
    report = open_profile(put(tmp_path / "k.csv", raw([
        Launch(QUANTIZE, {"sm": packing["sm_compute_percent"], "dram": packing["dram_percent"],
                          "registers": packing["registers_per_thread"]}),
        Launch(STREAM, {"dram": inputs["streaming_kernels_dram_percent"][0], "sm": 20.0}),
        Launch(REDUCE, {"dram": inputs["streaming_kernels_dram_percent"][1], "sm": 25.0}),
    ])))  # fmt: skip
    found = diagnose(timeline(tmp_path / "t.json", events), [report], Question()).copies
    assert found.sentence.startswith(published["results"]["verdict_family"])
    assert "quantization 10.9 %" in found.sentence and "(1 device copy a step)" in found.sentence
    assert found.moving_share == pytest.approx(0.232) and found.copy_share == pytest.approx(0.001)
    (copy,) = found.directions
    assert (copy.name, copy.count, copy.bytes, copy.summed_ns) == ("DtoD", 10, 40_960, 10_000)
    called = {one.name: one for one in found.movers}
    assert set(called) == {QUANTIZE, STREAM, REDUCE}
    assert called[QUANTIZE].word == "compute-heavy conversion"
    assert called[QUANTIZE].why == "DRAM 35.0 %, SM 83.0 %: compute-heavy format conversion, not copy traffic"
    assert called[STREAM].word == called[REDUCE].word == "streaming at roof"
    assert called[STREAM].why.startswith("DRAM 88.0 %, SM 20.0 %: at the DRAM roof; fuse, reuse or drop the pass")
    assert called[QUANTIZE].share == pytest.approx(0.109) and called[QUANTIZE].launches == 10
    assert [one.name for one in found.movers] == [QUANTIZE, STREAM, REDUCE]


def test_a_step_that_copies_more_than_it_converts_says_so(tmp_path):
    found = copies(tmp_path, (COPY, 30.0, 3_000_000), (STREAM, 10.0), (GEMM, 60.0))
    assert found.sentence.startswith("memory copies, more than kernel passes")
    assert "(1 device copy)" in found.sentence
    assert (found.copy_share, found.moving_share) == (pytest.approx(0.3), pytest.approx(0.1))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (((COPY, 20.0, 100), (STREAM, 25.0), (GEMM, 55.0)), "memory copies and kernel passes alike"),
        (((COPY, 0.5, 100), (STREAM, 0.4), (GEMM, 99.1)), "neither copies nor passes over data matter"),
        (((GEMM, 100.0),), "neither copies nor passes over data matter"),
    ],
)
def test_the_sentence_weighs_one_against_the_other(tmp_path, parts, said):
    assert copies(tmp_path, *parts).sentence.startswith(said)


def test_directions_are_told_apart_and_their_rate_is_of_their_own_time(tmp_path):
    upload, clear = ("Memcpy HtoD (Pinned -> Device)", 10.0, 250_000), ("Memset (Device)", 1.0, 1_000_000)
    found = copies(tmp_path, upload, (COPY, 4.0, 8_000_000), (COPY, 4.0, 8_000_000), clear, (GEMM, 50.0))
    rows = {one.name: (one.count, one.bytes, one.summed_ns, one.bytes_per_second) for one in found.directions}
    assert rows == {
        "HtoD": (1, 250_000, 10_000, pytest.approx(25e9)),
        "DtoD": (2, 16_000_000, 8_000, pytest.approx(2e12)),
        "memset": (1, 1_000_000, 1_000, pytest.approx(1e12)),
    }
    assert [one.name for one in found.directions] == ["HtoD", "DtoD", "memset"]  # by time
    assert {one.roof_share for one in found.directions} == {None}  # the trace does not know its device's DRAM


def test_copies_within_a_device_read_and_write_its_memory(tmp_path):
    """2 TB/s of copies are 4 TB/s of traffic: 80 % of 5 TB/s; a set only writes; the host is no part of the roof."""
    upload, clear = ("Memcpy HtoD (Pinned -> Device)", 10.0, 250_000), ("Memset (Device)", 1.0, 1_000_000)
    trace = timeline(tmp_path / "t.json", serial(upload, (COPY, 4.0, 8_000_000), clear))
    trace.devices[0] = replace(trace.devices[0], dram_bytes_per_second=5e12)
    found = find_copies(sweep(trace, Classifier().family), trace)
    assert {one.name: one.roof_share for one in found.directions} == {
        "HtoD": None, "DtoD": pytest.approx(0.8), "memset": pytest.approx(0.2)}  # fmt: skip


def test_an_instant_shared_with_other_work_is_charged_in_parts(tmp_path):
    """A pointwise kernel of 10 us wholly beside a GEMM of 20 us: 5 of 20 us are its own."""
    trace = timeline(
        tmp_path / "t.json", [event(GEMM, 0.0, 20.0, number=1), event(STREAM, 5.0, 10.0, stream=8, number=2)]
    )
    found = find_copies(sweep(trace, Classifier().family), trace)
    assert found.moving_share == pytest.approx(0.25)
    assert found.movers[0].share == pytest.approx(0.5)  # of the busy time it ran half


@pytest.mark.parametrize(
    ("figures", "word"),
    [
        ({"dram": 80.0, "sm": 20.0}, "streaming at roof"),
        ({"dram": 85.0}, "streaming at roof"),
        ({"dram": 59.0, "sm": 60.0}, "compute-heavy conversion"),
        ({"dram": 61.0, "sm": 90.0}, "neither"),
        ({"dram": 45.0, "sm": 30.0}, "neither"),
        ({"sm": 90.0}, "no counters"),
        ({"registers": 40}, "no counters"),
        ({"dram": "nan", "sm": "nan"}, "no counters"),
    ],
)
def test_a_mover_is_called_by_its_counters_and_never_without(tmp_path, figures, word):
    trace = timeline(tmp_path / "t.json", serial((STREAM, 50.0), (GEMM, 50.0)))
    report = open_profile(put(tmp_path / "k.csv", raw([Launch(STREAM, figures)])))
    (mover,) = diagnose(trace, [report], Question()).copies.movers
    assert mover.word == word
    for key, words in (("dram", "DRAM"), ("sm", "SM")):
        if isinstance(figures.get(key), float):
            assert f"{words} {figures[key]} %" in mover.why


def test_a_trace_alone_asks_for_a_kernel_report(tmp_path):
    (mover,) = copies(tmp_path, (STREAM, 50.0), (GEMM, 50.0)).movers
    assert mover.word == "no counters" and "ncu --csv" in mover.why
