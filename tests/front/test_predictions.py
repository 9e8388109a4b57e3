"""What a hypothesis may predict: counters that a probe has, counts and ratios for the workload at hand, needs."""

from __future__ import annotations

import pytest

from campaign.config import load
from campaign.errors import BadInput, UnknownName


@pytest.fixture
def predicting(project, add_hypothesis):
    """Loads a hypothesis with these further lines, each text in a file of its own: a project is read once."""
    files: dict[str, str] = {}

    def read(more: str, *overrides: str):
        if more not in files:
            files[more] = f"x{len(files)}"
            add_hypothesis(files[more], "workload.seed=1", more=more)
        return load(project, [f"hypothesis={files[more]}", *overrides]).hypothesis

    return read


@pytest.mark.parametrize(
    "counter",
    [
        "op:aten::rsqrt", "op:models::quantize_weight", "kernel:ampere_bf16_s16816gemm_bf16 128x64", "gemm:bfloat16",
        "gemm:float8_e4m3fn", "compile:graphs", "static:recurrence_backward:spill_store_bytes",
    ],
)  # fmt: skip
def test_every_kind_of_counter_is_taken(predicting, counter):
    found = predicting(f"  predicted_evidence: [{{counter: '{counter}', change: falls}}]\n")
    assert found.predicted_evidence[0].counter == counter


@pytest.mark.parametrize(
    ("counter", "near"),
    [
        ("gemm:bf16", "bfloat16"),
        ("gemm:float8_e4m3", "float8_e4m3fn"),
        ("compile:graph", "graphs"),
        ("static:recurrence_backward:spill_store", "spill_store_bytes"),
    ],
)
def test_misspelt_part_of_a_counter_is_answered_with_the_nearest(predicting, counter, near):
    with pytest.raises(UnknownName, match=r"predicted_evidence\[0\]\.counter") as caught:
        predicting(f"  predicted_evidence: [{{counter: '{counter}', change: falls}}]\n")
    assert caught.value.near == near


@pytest.mark.parametrize("counter", ["gemm:", "compile:", "static:", "static:kernel", "static:a:b:c", "ops:x", "op: "])
def test_counter_of_no_kind_is_refused(predicting, counter):
    with pytest.raises(BadInput, match=r"must be op:NAME, kernel:NAME, gemm:DTYPE"):
        predicting(f"  predicted_evidence: [{{counter: '{counter}', change: falls}}]\n")


def test_count_is_the_one_predicted_for_the_chosen_workload(predicting):
    more = "  predicted_evidence: [{counter: 'op:a::b', change: falls, control: {reference_cpu: 96, other: 7}, treatment: {reference_1b: 3}}]\n"  # noqa: E501
    here = predicting(more).predicted_evidence[0]
    there = predicting(more, "workload=reference_1b").predicted_evidence[0]
    assert (here.control, here.treatment) == (96.0, None)
    assert (there.control, there.treatment) == (7.0, 3.0)


def test_ratio_limit_and_ceiling_are_those_of_the_chosen_workload(predicting):
    more = "  memory_growth_limit: {reference_cpu: 0.5, other: 0.1}\n  ceiling_ratio: {reference_1b: 1.035}\n"
    override = "hypothesis.predicted_ratio={reference_cpu: 1.2, reference_1b: 1.01}"
    here, there = predicting(more, override), predicting(more, override, "workload=reference_1b")
    assert (here.predicted_ratio, here.memory_growth_limit, here.ceiling_ratio) == (1.2, 0.5, None)
    assert (there.predicted_ratio, there.memory_growth_limit, there.ceiling_ratio) == (1.01, 0.1, 1.035)


def test_ratio_that_says_nothing_of_the_workload_is_refused(predicting):
    with pytest.raises(BadInput, match="says nothing of workload reference_cpu") as caught:
        predicting("", "hypothesis.predicted_ratio={reference_1b: 1.2}")
    assert "or add `reference_cpu` or `other`" in caught.value.remedy


def test_prediction_for_a_workload_that_does_not_exist_is_refused(predicting):
    with pytest.raises(UnknownName) as caught:
        predicting("  ceiling_ratio: {reference_cp: 1.2}\n")
    assert caught.value.near == "reference_cpu"


@pytest.mark.parametrize("ceiling", ["1.0", "0.9", "-2", "true", "high"])
def test_ceiling_that_is_not_above_one_is_refused(predicting, ceiling):
    with pytest.raises(BadInput, match=r"ceiling_ratio"):
        predicting(f"  ceiling_ratio: {ceiling}\n")


def test_ceiling_is_none_while_no_profile_says(predicting):
    assert predicting("").ceiling_ratio is None
    assert predicting("  ceiling_ratio: 1.035\n").ceiling_ratio == 1.035


def test_need_outside_the_vocabulary_is_answered_with_the_nearest(predicting):
    assert predicting("  needs: [compiler, cuda, triton, fp8, fp4, torch_compile]\n").needs[-1] == "torch_compile"
    with pytest.raises(UnknownName, match=r"need in hypothesis\.needs") as caught:
        predicting("  needs: [compilr]\n")
    assert caught.value.near == "compiler"


@pytest.mark.parametrize("value", ["1.0", "0.5", "null_", "-1"])
def test_suspect_ratio_is_above_one(project, value):
    with pytest.raises(BadInput, match=r"suspect_ratio"):
        load(project, [f"protocol.suspect_ratio={value}"])
