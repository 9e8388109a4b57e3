"""What is said of a plan that is not decided yet: nothing before a declared look."""

from __future__ import annotations

import io
import json
import math

import pytest

from campaign.report.progress import Progress
from tests.reasoning import made
from tests.report import written

PLAN = written.plan("fusion", protocol={"looks": (4, 6)})


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """A terminal in which nothing is cut off."""
    monkeypatch.setenv("COLUMNS", "140")


def test_there_is_no_ratio_before_a_declared_look_and_only_the_looks_after_it():
    output, errors = io.StringIO(), io.StringIO()
    # Five rounds; the look is after 4. Their logs average 0.01, which is e^.01 = 1.010x; the fifth changes nothing.
    logs = (0.0, 0.02, 0.0, 0.02, 0.5)
    rounds = written.rounds(PLAN, logs)
    with (
        Progress(output=output, terminal=True) as progress,
        Progress(json=True, output=io.StringIO(), errors=errors) as program,
    ):
        for voice in (progress, program):
            voice.start(PLAN)
        seen = []
        for index, one in enumerate(rounds):
            for voice in (progress, program):
                voice.round_started("screen", index, 4 if index < 4 else 6)
            before = output.tell()
            progress.block(10, 80, "treatment")
            seen.append(output.getvalue()[before:])
            for voice in (progress, program):
                voice.round_done(one, made.evidence(plan=PLAN, rounds=rounds[: index + 1]))
    assert all("fusion, screen round" in drawn and "block 10 of 80, treatment's turn" in drawn for drawn in seen)
    assert all("not yet decided (" in drawn and "x [" not in drawn for drawn in seen[:4])
    assert "not yet decided: 1.010x [" in seen[4]
    events = [json.loads(line) for line in errors.getvalue().splitlines()]
    (look,) = [event for event in events if event["event"] == "look"]
    # sd .011547, 4 rounds: the half-width is 3.182 x .011547 / 2 = .018371
    assert (look["looked"], look["next"]) == (4, 6)
    assert look["ratio"] == pytest.approx(math.exp(0.01))
    assert (look["low"], look["high"]) == pytest.approx(
        (math.exp(0.01 - 0.018371), math.exp(0.01 + 0.018371)), abs=1e-5
    )
    assert look["text"] == "not yet decided: 1.010x [0.992, 1.029] at the look after 4 rounds, next after 6"


def test_a_gain_that_is_being_confirmed_is_not_yet_decided_either():
    output = io.StringIO()
    screen = written.rounds(PLAN, (0.1, 0.102, 0.1, 0.102))
    with Progress(output=output) as progress:
        progress.start(PLAN)
        progress.round_done(screen[-1], made.evidence(plan=PLAN, rounds=screen))
        progress.round_started("confirm", 0, 4)
    assert "not yet decided: 1.106x [1.104, 1.108] at the look after 4 rounds, being confirmed" in output.getvalue()


def test_what_is_looked_at_once_at_its_end_shows_no_ratio_on_the_way():
    plan = made.with_hypothesis(PLAN, null=True)
    rounds = written.rounds(plan, (0.0, 0.01, 0.0, 0.01))
    output = io.StringIO()
    with Progress(output=output, terminal=True) as progress:
        progress.start(plan)
        progress.round_done(rounds[-1], made.evidence(plan=plan, rounds=rounds))
        progress.round_started("screen", 4, 6)
    assert "not yet decided (first look after 6 " in output.getvalue()
    assert "at the look" not in output.getvalue()
