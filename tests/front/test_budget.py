"""What a campaign by itself costs: what a budget says, and when it has no time for the next try."""

from __future__ import annotations

import pytest

from campaign.config import ideas
from campaign.errors import BadInput
from campaign.run.autopilot import Idea
from campaign.run.budget import (
    arm_seconds,
    least_seconds,
    revalidation_seconds,
    seconds_of,
    spent_seconds,
    too_late,
    try_seconds,
)
from tests.report import written


@pytest.fixture
def high(project, add_hypothesis) -> Idea:
    """An idea in a campaign called demo."""
    add_hypothesis("high", "workload.seed=1")
    return Idea(ideas(project, ["campaign.name=demo"], ["high"])[1][0])


@pytest.fixture
def ledger(project):
    with written.opened(project) as ledger:
        yield ledger


@pytest.mark.parametrize(
    ("text", "seconds"), [("2h", 7200), ("1h30m", 5400), ("90s", 90), ("0.5h", 1800), ("600", 600)]
)
def test_a_budget_is_hours_minutes_and_seconds(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "2 hours", "h", "2d", "-1h", "0"])
def test_a_budget_that_is_no_time_is_refused(text):
    with pytest.raises(BadInput, match="--budget"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("edits", "arms"),
    [
        (0, 0),
        (1, 2 * 6 + 2 * 12),  # one edit: head and root; then root against head
        (3, 5 * 6 + 2 * 12),  # head, root, and three without one
        (7, 10 * 6 + 2 * 12),  # eight besides head: two groups, head in both
    ],
)
def test_revalidation_is_costed_by_its_arms(high, edits, arms):
    protocol = high.job.protocol
    assert (protocol.confirm_rounds, protocol.looks[-1]) == (6, 12)
    assert revalidation_seconds(protocol, edits, 2.0) == 2.0 * arms
    assert revalidation_seconds(protocol, edits, None) == 0.0


def test_what_rounds_and_tries_took_is_read_from_the_ledger(high, ledger):
    protocol = high.job.protocol
    assert (arm_seconds(ledger), spent_seconds(ledger, 0)) == (None, 0.0)
    assert try_seconds(ledger.decision_rows(), protocol, None) is None
    # Before a try was timed: two arms at each of twelve rounds
    assert try_seconds(ledger.decision_rows(), protocol, 2.0) == 2 * 2.0 * 12
    first = written.slower(ledger, "high", edit=high.job.hypothesis.edit, command=high.job.command)
    line = ledger.decision_rows()[0]["line"]
    evidence = ledger.evidence(first.plan_id)
    seconds = [one.wall_seconds for one in evidence.rounds]
    assert len(seconds) == 4 and all(one == seconds[0] for one in seconds)
    assert arm_seconds(ledger) == pytest.approx(seconds[0] / 2)
    assert spent_seconds(ledger, 0) == pytest.approx(4 * seconds[0] + evidence.probe.wall_seconds)
    assert spent_seconds(ledger, line) == 0.0
    assert try_seconds(ledger.decision_rows(), protocol, 2.0) == pytest.approx(first.wall_seconds)


def test_before_anything_was_measured_a_budget_is_held_against_what_the_protocol_asks_for(high):
    protocol = high.job.protocol
    assert (protocol.pairs, protocol.block_minimum_seconds, protocol.looks[0]) == (40, 0.05, 4)
    assert least_seconds(protocol) == 2 * 40 * 0.05 * 4  # 16 s
    said = too_late(5.0, 0.0, None, protocol, edits=0, each_arm=None)
    assert "what a try takes is not known yet, by its protocol 16.00 s at least" in said
    assert "nothing is to be revalidated yet" in said
    assert too_late(17.0, 0.5, None, protocol, edits=0, each_arm=None) == ""


def test_a_budget_keeps_the_time_to_revalidate(high):
    protocol = high.job.protocol
    # One edit: 36 arms of 2 s; a try of 20 s; 8 s are gone.
    assert too_late(100.0, 8.0, 20.0, protocol, edits=1, each_arm=2.0) == ""
    said = too_late(99.0, 8.0, 20.0, protocol, edits=1, each_arm=2.0)
    assert "8.00 s so far, a try takes about 20.00 s, and 1 min 12 s are kept back to revalidate" in said
