"""What changed from one trace to another: counted exactly, divided by steps only where both have them."""

from __future__ import annotations

from campaign.diagnosis.compare import compare
from campaign.diagnosis.question import Question
from campaign.traces.kineto import read
from tests.traces.kineto_files import host, kernel, laid

NORM, GEMM, OTHER_GEMM = "rms_norm_kernel", "nvjet_tst_64x64", "nvjet_tst_128x64"


def traced(folder, name: str, steps: int, kernels: dict[str, int], marked: bool = True):
    """Steps of the same kernels, each 2 us long."""
    (folder / name).mkdir()
    events, now, number = [], 0.0, 0
    for step in range(steps):
        begun = now
        for kind, count in kernels.items():
            for _ in range(count):
                number += 1
                events.append(host("cuda_runtime", "cudaLaunchKernel", now, 0.5, correlation=number))
                events.append(kernel(kind, now + 1, 2.0, correlation=number))
                now += 3
        if marked:
            events.append(host("user_annotation", f"ProfilerStep#{step}", begun, now - begun))
    return read(laid(folder / name, events))


def changes(before, after, **asked):
    return compare(before, after, Question(), Question(**asked))


def test_ranges_of_different_lengths_are_compared_a_step(tmp_path):
    found = changes(traced(tmp_path, "a", 3, {GEMM: 7, NORM: 4}), traced(tmp_path, "b", 7, {GEMM: 7, NORM: 1}))
    assert found.matched
    assert (found.total.before_launches, found.total.after_launches) == (11, 8)
    families = {one.name: (one.before_launches, one.after_launches) for one in found.families}
    assert families == {"gemm_bf16": (7, 7), "norm": (4, 1)}
    assert "11 -> 8 (-27.3 %) launches a step" in found.sentence
    assert "normalisation 4 -> 1 (-75.0 %)" in found.sentence


def test_launches_that_do_not_divide_evenly_are_still_equal(tmp_path):
    # 10 in 3 steps and 20 in 6: no rounding makes a difference of it.
    before = traced(tmp_path, "a", 1, {GEMM: 7, NORM: 3}, marked=False)
    after = traced(tmp_path, "b", 2, {GEMM: 7, NORM: 3}, marked=False)
    found = compare(before, after, Question(steps=3), Question(steps=6))
    assert found.matched
    assert found.sentence.endswith(": nothing changed")


def test_where_one_side_has_no_steps_both_are_of_the_whole_range(tmp_path):
    found = changes(traced(tmp_path, "a", 3, {GEMM: 7}), traced(tmp_path, "b", 3, {GEMM: 7}, marked=False))
    assert not found.matched
    assert "--steps N" in found.why
    assert (found.total.before_launches, found.total.after_launches) == (21, 21)
    assert (found.total.before_ns, found.total.after_ns) == (42_000, 42_000)


def test_kernels_that_took_each_others_place_are_named(tmp_path):
    found = changes(traced(tmp_path, "a", 2, {GEMM: 7}), traced(tmp_path, "b", 2, {OTHER_GEMM: 7}))
    assert (found.appeared, found.vanished) == ((OTHER_GEMM,), (GEMM,))
    assert "no family launches more or less often; 1 kernel new, 1 gone" in found.sentence


def test_a_speedup_is_never_said_but_how_to_measure_one(tmp_path):
    found = changes(traced(tmp_path, "a", 2, {GEMM: 7}), traced(tmp_path, "b", 2, {GEMM: 3}))
    assert "x faster" not in found.sentence and "speedup" not in found.sentence
    assert found.speedup_command == "campaign hypothesis=NAME"
