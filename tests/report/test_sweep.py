"""The end of a sweep: every job has its line, whatever became of it."""

from __future__ import annotations

import json

from campaign.report.flight import Flight, flight_json, flight_text
from campaign.report.sweep import FAULT, NOT_STARTED, REFUSED, Ended, summary, summary_json
from tests.report.test_listing import row

JOBS = (
    Ended("fusion", 0, row()),
    Ended("cap registers=8", 0, row(sequence=2, verdict="reject", reason="slower", ratio=0.9, prediction="optimistic")),
    Ended("live_state", 2, ended=REFUSED, why="live_state conflicts with phase_split, which is in the accepted stack"),
    Ended("graph_replay", 3, row(sequence=3, verdict="unavailable", reason="unavailable", ratio=None, ratio_low=None,
                                 ratio_high=None, prediction="", sentence="treatment cannot run on this machine")),
    Ended("broken", 4, ended=FAULT, why="ValueError: a fault " + "x" * 200),
    Ended("late", None, ended=NOT_STARTED),
)  # fmt: skip


def test_every_job_has_a_line_with_its_verdict_or_the_reason_why_there_is_none():
    lines = summary(JOBS).splitlines()
    assert len(lines) == 1 + len(JOBS) + 1 + 2
    shown = {job.label: line for job, line in zip(JOBS, lines[1:], strict=False)}
    assert all(label in line for label, line in shown.items())
    assert "accept (faster)" in shown["fusion"] and "1.042x" in shown["fusion"] and "1.040x held" in shown["fusion"]
    assert "reject (slower)" in shown["cap registers=8"] and "1.040x optimistic" in shown["cap registers=8"]
    assert "refused" in shown["live_state"] and "conflicts with phase_split" in shown["live_state"]
    assert "unavailable" in shown["graph_replay"] and "cannot run on this machine" in shown["graph_replay"]
    assert "emulated" in shown["fusion"]
    assert shown["broken"].endswith("xx ...")
    assert "not started" in shown["late"]


def test_the_count_names_what_was_not_decided():
    said = summary(JOBS)
    left = "live_state (exit 2), graph_replay (exit 3), broken (exit 4), late (not started)"
    assert f"2 of 6 decided; without a decision: {left}" in said
    assert "Predicted ratios: 1 of 2 inside the measured 95 % interval, 1 optimistic, 0 pessimistic." in said
    assert summary(JOBS[:2]).splitlines()[-2] == "2 of 2 decided"


def test_the_json_is_one_line_with_the_same_and_the_whole_reason():
    text = summary_json(JOBS)
    assert "\n" not in text
    document = json.loads(text)
    assert (document["schema"], document["decided"], document["jobs"]) == (1, 2, 6)
    found = {job["label"]: job for job in document["sweep"]}
    assert (found["fusion"]["verdict"], found["fusion"]["ratio"], found["fusion"]["sequence"]) == ("accept", 1.0421, 1)
    assert (found["live_state"]["verdict"], found["live_state"]["exit_code"]) == ("refused", 2)
    assert found["live_state"]["ratio"] is None
    assert found["broken"]["why"].endswith("x" * 200)
    assert (found["late"]["verdict"], found["late"]["exit_code"]) == ("not started", None)


def test_expected_false_accepts_are_summed_over_tests_and_said_with_their_formula():
    tested = (
        Ended("fusion", 0, row(), tests=1, false_accepts=0.00025),
        Ended("cap", 0, row(), tests=2, false_accepts=0.000375, before=True),
    )
    said = summary(tested)
    assert "2 of 2 decided, 1 of them before the interruption" in said
    formula = "the sum of alpha x confirm_alpha over 3 tests."
    assert f"False accepts to expect if no edit does anything: 0.000625, {formula}" in said
    document = json.loads(summary_json(tested))
    assert document["false_accepts_expected"] == 0.000625
    assert [job["before"] for job in document["sweep"]] == [False, True]
    assert "False accepts" not in summary(JOBS), "no test was taken"


def test_an_autopilot_says_why_it_stopped_what_it_passed_over_and_where_its_page_is():
    flight = Flight(
        stopped="budget",
        why="the budget of 2 h 00 min is spent",
        struck={"low": "its ceiling of 1.020x is not above 1 + d = 1.030x"},
        slower=("cap (#3)",),
        not_tried=("late", "later"),
        headline="13.65k -> 15.11k tokens/s",
        page="/p/runs/default/campaign.md",
        spent_seconds=7000.0,
        budget_seconds=7200.0,
    )
    lines = flight_text(flight).splitlines()
    assert lines[0] == "stopped: the budget of 2 h 00 min is spent"
    assert "not tried: low: its ceiling of 1.020x is not above 1 + d = 1.030x" in lines
    assert "not tried for want of time: late, later" in lines
    assert any(line.endswith("since slower: cap (#3)") for line in lines)
    assert "headline: 13.65k -> 15.11k tokens/s" in lines
    assert lines[-1] == "page: /p/runs/default/campaign.md"
    document = json.loads(flight_json(JOBS, flight))
    assert (document["schema"], document["jobs"], document["autopilot"]["stopped"]) == (1, 6, "budget")
    assert document["autopilot"]["not_tried"] == ["late", "later"]
