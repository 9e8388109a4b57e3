"""Cases A, B and G of the published case studies: their inputs as profiler files, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from campaign.cli import main
from tests.traces.kineto_files import host, kernel, laid
from tests.traces.nsys_files import Kernel, Memcpy, Runtime, write_nsys

REPLAYS, NODES, RANGE_NS, KERNELS_NS = 10, 4948, 12_810_000_000, 12_789_000_000
# A kernel of each family, and its published share of the time in per mille; the rest is other products.
SHARES = {
    "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN": 248,  # bf16 GEMM
    "chunk_gated_delta_rule_bwd_kernel_dhu_blockdim64": 224,  # recurrent/convolution/gating
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, Array<char*, 3> >(int)": 123,
    "per_token_group_quant_8bit_kernel": 109,  # quantization
    "nvjet_qqtst_128x256_128x6_2x1_2cta_v_bz_TNT": 150,
    "nvjet_sm100_ootst_128x128_256x4_2x1_2cta_v_bz_Avec16UE4M3_Bvec16UE4M3_TNT": 146,
}


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A folder that is no campaign project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    return tmp_path


def answered(capsys, *words: str) -> dict:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def spread(total: int, count: int) -> list[int]:
    """`count` whole numbers, as equal as can be, that add up to `total`."""
    return [total * (place + 1) // count - total * place // count for place in range(count)]


def case_a(path: Path) -> Path:
    """Ten graph replays of 4,948 kernels on one stream: 12.789 s of kernels in a range of 12.810 s."""
    lengths = spread(KERNELS_NS, REPLAYS * NODES)
    gaps = [*spread(RANGE_NS - KERNELS_NS, REPLAYS * NODES - 1), 0]
    kernels, runtime, now = [], [], 1_000_000
    for place, (length, gap) in enumerate(zip(lengths, gaps, strict=True)):
        replay, node = divmod(place, NODES)
        if not node:
            runtime.append(Runtime("cudaGraphLaunch_v10000", now - 50_000, now - 20_000, correlation=replay + 1))
        kernels.append(Kernel("chunk_fwd_kernel_o", now, now + length, correlation=replay + 1, graph_node=node + 1))
        now += length + gap
    write_nsys(path, kernels=kernels, runtime=runtime)
    return path


def test_case_a_dispatch_is_device_bound_at_a_sixth_of_a_percent_of_idle(outside, capsys):
    (found,) = answered(capsys, "diagnose", str(case_a(outside / "a.sqlite")))["diagnoses"]
    dispatch = found["dispatch"]
    (device,) = dispatch["devices"]
    steps = dispatch["steps"]["count"]
    assert (steps, dispatch["steps"]["source"], dispatch["graph_launches"]) == (10, "graph launches", 10)
    assert device["kernels"] / steps == 4948
    assert (device["span_ns"], device["busy_ns"]) == (RANGE_NS, KERNELS_NS)
    assert round(device["idle_ns"] / steps / 1e6, 2) == 2.10  # milliseconds a microstep
    assert round(100 * device["idle_ns"] / device["span_ns"], 3) == 0.164
    assert dispatch["verdict"] == "device-bound"
    assert "launch aggregation is not the lever" in dispatch["sentence"]
    assert dispatch["sentence"].endswith("kernels are")


def test_case_a_the_traced_rate_is_not_called_a_speed(outside, capsys):
    # 16,384 tokens / 1.2810 s = 12.79k tokens/s traced, against 14.08k unprofiled: no page of a profile has a rate.
    assert main(["diagnose", str(case_a(outside / "a.sqlite"))]) == 0
    said = capsys.readouterr().out
    assert "tok/s" not in said
    assert "profile evidence" in said


def case_b(folder: Path) -> Path:
    """One step of 1,000 us without idle, in the published shares."""
    now, events = 0.0, [host("user_annotation", "ProfilerStep#1", 0.0, 1000.0)]
    for number, (name, share) in enumerate(SHARES.items(), 1):
        events.append(host("cuda_runtime", "cudaLaunchKernel", now, 0.5, correlation=number))
        events.append(kernel(name, now, float(share), correlation=number))
        now += share
    return laid(folder, events)


def test_case_b_ceilings_of_families_and_of_halving_format_and_layout(outside, capsys):
    (found,) = answered(capsys, "diagnose", str(case_b(outside)), "--target", "2.35x")["diagnoses"]
    shares = {one["family"]: one["share"] for one in found["families"]["shares"]}
    assert shares["gemm_bf16"] == pytest.approx(0.248)
    assert shares["recurrent"] == pytest.approx(0.224)
    each = {one["family"]: one for one in found["ceilings"]["each"]}
    assert round(each["recurrent"]["removed"], 3) == 1.289
    combined = next(one for one in found["ceilings"]["groups"] if one["family"] == "format")
    assert round(100 * combined["share_of_range"], 1) == 23.2
    assert round(combined["halved"], 2) == 1.13
    assert found["families"]["unclassified_share"] == 0


def test_case_b_no_single_family_reaches_the_target(outside, capsys):
    (found,) = answered(capsys, "diagnose", str(case_b(outside)), "--target", "2.35")["diagnoses"]
    ceilings = found["ceilings"]
    assert max(one["removed"] for one in ceilings["each"]) < 2.35
    # 1 - 1/2.35 = 57.4 %: the three largest are 24.8 + 22.4 + 15.0 = 62.2 %, any two at most 47.2 %.
    assert {len(one["families"]) for one in ceilings["removing"]} == {3}
    assert ceilings["halving"] == []
    assert round(ceilings["all_halved"], 6) == 2.0
    assert "no single family reaches it" in ceilings["sentence"]
    assert "other hardware" in ceilings["sentence"]


def test_case_c_passes_over_memory_are_not_copies(outside, capsys):
    path = outside / "c.sqlite"
    parts = {
        "per_token_group_quant_8bit_kernel": 109_000,
        "void elementwise_kernel<CUDAFunctor_add<float>>(int)": 123_000,
        "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN": 767_000,
    }
    kernels, now = [], 0
    for number, (name, length) in enumerate(parts.items(), 1):
        kernels.append(Kernel(name, now, now + length, correlation=number))
        now += length
    write_nsys(path, kernels=kernels, memcpys=[Memcpy(now, now + 1000, 4096, correlation=9)])
    (found,) = answered(capsys, "diagnose", str(path), "--steps", "1")["diagnoses"]
    copies = found["copies"]
    assert sum(one["count"] for one in copies["directions"]) == 1
    assert copies["moving_share"] == pytest.approx(0.232)
    assert "repeated read/transform/write kernel passes, not memory copies" in copies["sentence"]


def stepped(folder: Path, name: str, quantizers: int) -> Path:
    """Two steps, each of 100 products and some quantizers."""
    folder = folder / name
    folder.mkdir()
    events, now, number = [], 0.0, 0
    for step in range(2):
        begun = now
        for kind in ["nvjet_tst_64x64"] * 100 + ["per_token_group_quant_8bit_kernel"] * quantizers:
            number += 1
            events.append(host("cuda_runtime", "cudaLaunchKernel", now, 0.5, correlation=number))
            events.append(kernel(kind, now + 1, 2.0, correlation=number))
            now += 3
        events.append(host("user_annotation", f"ProfilerStep#{step}", begun, now - begun))
    return laid(folder, events)


def test_case_g_a_small_total_hides_a_large_targeted_change(outside, capsys):
    before, after = stepped(outside, "before", 10), stepped(outside, "after", 2)
    found = answered(capsys, "compare", str(before), str(after))["comparison"]
    assert (found["total"]["before_launches"], found["total"]["after_launches"]) == (110, 102)  # -7 %
    families = {one["name"]: one for one in found["families"]}
    assert (families["quantization"]["before_launches"], families["quantization"]["after_launches"]) == (10, 2)
    assert families["gemm_bf16"]["before_launches"] == families["gemm_bf16"]["after_launches"] == 100
    assert found["matched"] is True


def test_case_g_a_traced_difference_is_never_called_a_speedup(outside, capsys):
    before, after = stepped(outside, "before", 10), stepped(outside, "after", 2)
    assert main(["compare", str(before), str(after)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no difference here is a speedup" in said
    assert "campaign hypothesis=" in said
