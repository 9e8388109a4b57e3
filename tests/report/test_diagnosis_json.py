"""A diagnosis as JSON: every number of the records, nanoseconds whole, nothing that JSON does not have."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np

from campaign.report.diagnosis_json import comparison_json, diagnosis_json
from tests.report import diagnosed


def strict(text: str):
    def refuse(word: str):
        raise AssertionError(word)

    return json.loads(text, parse_constant=refuse)


def test_records_are_there_field_by_field_with_what_follows_from_them():
    answer = strict(diagnosis_json([diagnosed.diagnosis()]))
    assert (answer["schema"], answer["evidence"], len(answer["diagnoses"])) == (1, "profile", 1)
    found = answer["diagnoses"][0]
    (device,) = found["dispatch"]["devices"]
    assert (device["busy_ns"], device["idle_ns"], device["span_ns"]) == (12_789_000_000, 21_000_000, 12_810_000_000)
    assert device["overlap_ns"] == 500_000
    assert [gap["duration_ns"] for gap in found["dispatch"]["gaps"]] == [2_500_000, 1_000_000]
    assert found["families"]["masks_ns"][1] == {"families": ["gemm_bf16", "pointwise"], "ns": 500_000}
    assert found["kernels"][0]["counters"]["stalls_percent"]["long_scoreboard"] == 56.0
    assert found["ideas"][1]["struck"] is True
    assert set(found) == set(vars(diagnosed.diagnosis()))


def test_what_is_unknown_or_not_finite_is_null():
    kernel = replace(diagnosed.kernel(), ceiling=math.inf, share=math.nan)
    found = strict(diagnosis_json([diagnosed.diagnosis(kernels=(kernel,), dispatch=None)]))["diagnoses"][0]
    assert (found["kernels"][0]["ceiling"], found["kernels"][0]["share"], found["dispatch"]) == (None, None, None)


def test_numbers_of_numpy_are_numbers():
    use = replace(diagnosed.dispatch().devices[0], busy_ns=np.int64(2**60 + 1))
    made = diagnosed.diagnosis(dispatch=replace(diagnosed.dispatch(), devices=(use,)))
    assert strict(diagnosis_json([made]))["diagnoses"][0]["dispatch"]["devices"][0]["busy_ns"] == 2**60 + 1


def test_control_characters_are_escaped_and_mean_the_same():
    name = "a\x1b[2J\u202eb\u2028"
    text = diagnosis_json([diagnosed.diagnosis(unjoined=(name,))])
    assert "\x1b" not in text and "\u202e" not in text
    assert strict(text)["diagnoses"][0]["unjoined"] == [name]


def test_comparison_is_one_object():
    answer = strict(comparison_json(diagnosed.comparison()))
    assert answer["evidence"] == "profile"
    assert answer["comparison"]["families"][0]["before_launches"] == 96.0
    assert answer["comparison"]["speedup_command"] == "campaign hypothesis=NAME"
