"""How predictions are scored: against the measured interval, and count by count."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from campaign import reading
from campaign.records import Evidence, ExpectedChange, Verdict
from campaign.report.describe import describe_engagement
from campaign.verdicts import judge
from tests.reasoning import made


@pytest.mark.parametrize(
    ("predicted", "word"),
    [
        (1.10, "held"),
        (1.08, "held"),
        (1.12, "held"),
        (1.121, "optimistic"),
        (1.079, "pessimistic"),
        (0.9, "pessimistic"),
    ],
)
def test_a_prediction_holds_inside_the_interval_and_is_named_outside_it(predicted, word):
    assert reading.prediction(predicted, 1.08, 1.12) == word


@pytest.mark.parametrize(("low", "high"), [(None, None), (1.0, None), (math.nan, 1.1), (0.0, math.inf)])
def test_without_an_interval_nothing_is_scored(low, high):
    assert reading.prediction(1.1, low, high) == ""


def test_a_nulls_ratio_of_one_is_no_prediction_that_held():
    probe = made.probe(replace(made.PARITY, bitwise=True))
    measured = Evidence(made.NULL, probe, tuple(made.ratio_round(1.0, index=index) for index in range(12)))
    verdict = judge(measured)
    assert isinstance(verdict, Verdict) and verdict.effect is not None
    assert reading.outcome(verdict, 1.0) == ""
    assert reading.outcome(replace(verdict, reason="slower"), 1.0) == "held"


def evidence(*expected: ExpectedChange, before: float, after: float) -> Evidence:
    plan = replace(made.PLAN, hypothesis=replace(made.HYPOTHESIS, predicted_evidence=expected))
    return Evidence(plan, made.probe(before=before, after=after), ())


@pytest.mark.parametrize(
    ("control", "treatment", "found"),
    [
        (96, 16, (2, 2)),
        (96, 17, (1, 2)),
        (95, 17, (0, 2)),
        (96, None, (1, 1)),
        (None, 15, (0, 1)),
        (None, None, (0, 0)),
    ],
)
def test_counts_are_scored_from_the_line_that_the_report_writes(control, treatment, found):
    change = ExpectedChange("op:kernels::prenorm_cpu", "falls", control, treatment)
    assert reading.counts(describe_engagement(evidence(change, before=96, after=16))) == found


def test_counts_of_several_changes_add_up():
    changes = (
        ExpectedChange("op:kernels::prenorm_cpu", "falls", 96, 16),
        ExpectedChange("op:aten::mm", "appears", 0, 5),
        ExpectedChange("op:aten::bmm", "rises"),
    )
    # prenorm: both as predicted; mm is never seen, so 0 -> 0: its control is as predicted; bmm predicts no count.
    line = describe_engagement(evidence(*changes, before=96, after=16))
    assert reading.counts(line) == (3, 4)
    assert reading.counts_text(line, ()) == "3 of 4"
    assert reading.counts_text(line, ("prenorm_fusion",)) == "3 of 4 (of root)"


@pytest.mark.parametrize("line", ["", "not probed", "nothing predicted", "op:a::b appears: 0 -> 9"])
def test_a_line_without_predicted_counts_has_none(line):
    assert reading.counts(line) == (0, 0)
    assert reading.counts_text(line, ()) == ""


def test_outcomes_are_counted_and_what_was_not_measured_is_left_out():
    said = reading.outcomes_text(["held", "", "optimistic", "held", "pessimistic", "optimistic", ""])
    assert said == "Predicted ratios: 2 of 5 inside the measured 95 % interval, 2 optimistic, 1 pessimistic."
    assert reading.outcomes_text(["", ""]) == ""


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("python -m campaign hypothesis=cap", ""),
        ("python -m campaign hypothesis=cap cap.registers=8", "registers=8"),
        ("python -m campaign hypothesis=cap 'cap.keep=[head,out]' workload.seed=1", "keep=[head,out] workload.seed=1"),
        ("python -m campaign hypothesis=cap protocol.pairs=20 recap.x=1", ""),
    ],
)
def test_a_row_is_told_apart_by_what_was_set_for_it(command, shown):
    assert reading.parameters("cap", command) == shown
    assert reading.label("cap", command) == f"cap {shown}".strip()
