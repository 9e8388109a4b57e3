"""What a recorded diagnosis does to the ideas of an autopilot: it orders them, and strikes those that it bounds."""

from __future__ import annotations

import pytest

from campaign.config import ideas
from campaign.run.autopilot import diagnosed_ceilings, ordered, survey
from tests.report import written

D = 0.03
TRACE = {"file": "step.json.gz", "sha256": "5", "bytes": 9}


@pytest.fixture
def few(project, add_hypothesis):
    """Jobs of ideas: `high` predicts 1.1x, `middle` has a ceiling of 1.1x and `low` one of 1.02x in its file."""
    add_hypothesis("high", "workload.seed=1")
    add_hypothesis("middle", "workload.seed=2", more="  ceiling_ratio: 1.1\n")
    add_hypothesis("low", "workload.seed=3", more="  ceiling_ratio: 1.02\n")
    return lambda *only: ideas(project, ["campaign.name=demo"], only or ("high", "middle", "low"))[1]


@pytest.fixture
def ledger(project, add):
    with written.opened(project) as ledger:
        yield ledger


def looked_at(found, ledger):
    """The survey of `found` on an empty stack."""
    return survey(found, ledger.decision_rows(), [], {idea.name: D for idea in found}, 0)


def names(found):
    return [idea.name for idea in found]


def diagnosed(ledger, few, *only, stack=(), **row):
    """The ideas as a campaign takes them up after a diagnosis on `stack`: high 1.01x, middle 1.5x, low not bounded."""
    found = [
        {"hypothesis": "high", "ceiling": 1.01, "matched": ["norm"]},
        {"hypothesis": "middle", "ceiling": 1.5, "matched": ["norm"]},
        {"hypothesis": "low", "ceiling": 1.0, "matched": []},
    ]
    body = {
        "workload": "reference_cpu",
        "device": "cpu",
        "stack": list(stack),
        "profile": "",
        "arm": "",
        "trace": TRACE,
    }
    ledger.append(
        "diagnosis", f"d{len(ledger.profile_rows())}", {**body, "diagnosis": {"dispatch": {}, "ideas": found}, **row}
    )
    jobs = few(*only)
    return ordered(jobs, diagnosed_ceilings(ledger, jobs[0]))


def test_the_last_diagnosis_orders_and_strikes_what_has_no_ceiling_of_its_own(few, ledger):
    found = diagnosed(ledger, few)
    assert names(found) == ["middle", "low", "high"]
    assert [idea.ceiling_text for idea in found] == [
        "1.100x at most",  # its file stands before the diagnosis
        "1.020x at most",
        "1.010x at most by the diagnosis of step.json.gz",
    ]
    said = looked_at(found, ledger).struck["high"]
    assert said == "its ceiling of 1.010x by the diagnosis of step.json.gz is not above 1 + d = 1.030x"


def test_a_diagnosis_of_another_stack_orders_and_strikes_nothing(few, ledger):
    found = diagnosed(ledger, few, "high", stack=("other",))
    assert (found[0].ceiling, names(looked_at(found, ledger).untried)) == (1.01, ["high"])


@pytest.mark.parametrize("other", [{"workload": "reference_1b"}, {"device": "cuda:0"}])
def test_a_diagnosis_of_another_workload_or_device_says_nothing(few, ledger, other):
    (high,) = diagnosed(ledger, few, "high", **other)
    assert high.ceiling_text == "1.100x predicted"


def test_an_idea_on_a_family_that_the_trace_does_not_have_is_not_bounded(few, ledger, add_hypothesis):
    add_hypothesis("low", "workload.seed=3")
    (low,) = diagnosed(ledger, few, "low")
    assert low.ceiling_text == "1.100x predicted"
