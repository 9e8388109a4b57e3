"""What an autopilot does next, from the ledger: which ideas there are, in which order, and why one is not tried."""

from __future__ import annotations

import pytest

from campaign.cli.autopilot import seconds_of
from campaign.config import ideas
from campaign.errors import BadInput, UnknownName
from campaign.records import Edit
from campaign.run.autopilot import (
    CEILINGS,
    TRIED,
    Idea,
    accepted_now,
    arm_seconds,
    idea_seconds,
    ordered,
    revalidation_seconds,
    spent_seconds,
    stopped,
    survey,
)
from tests.report import written

D = 0.03


@pytest.fixture
def few(project, add_hypothesis):
    """Three ideas: `high` predicts 1.3x, `low` has a ceiling of 1.02x, `middle` one of 1.1x and needs `high`."""
    add_hypothesis("high", "workload.seed=1")
    add_hypothesis("middle", "workload.seed=2", more="  ceiling_ratio: 1.1\n")
    add_hypothesis("low", "workload.seed=3", more="  ceiling_ratio: 1.02\n")
    (project / "conf/hypothesis/high.yaml").write_text(
        (project / "conf/hypothesis/high.yaml").read_text().replace("predicted_ratio: 1.1", "predicted_ratio: 1.3")
    )
    return lambda *only: ordered(ideas(project, ["campaign.name=demo"], only or ("high", "middle", "low"))[1])


@pytest.fixture
def ledger(project):
    with written.opened(project) as ledger:
        yield ledger


def looked_at(found, ledger, begun=0, **more):
    """The survey of `found` as the ledger stands."""
    d = {idea.name: D for idea in found}
    return survey(found, ledger.decision_rows(), accepted_now(ledger), d, begun, **more)


def names(found):
    return [idea.name for idea in found]


def decided(ledger, record, idea: Idea, **more):
    """A decision on this very idea, as its run would write it."""
    job = idea.job
    id = f"{job.hypothesis.name}-{len(ledger.decision_rows()) + 1}"
    return record(ledger, job.hypothesis.name, **{"id": id, "edit": job.hypothesis.edit, "command": job.command} | more)


def test_ideas_are_every_hypothesis_but_the_null_the_highest_ceiling_first(project):
    null, found = ideas(project, [])
    assert null.hypothesis.name == "aa_null"
    everything = {path.stem for path in (project / "conf/hypothesis").glob("*.yaml")}
    assert {job.hypothesis.name for job in found} == everything - {"aa_null"}
    ceilings = [idea.ceiling for idea in ordered(found)]
    assert ceilings == sorted(ceilings, reverse=True)


def test_among_equal_ceilings_what_compiles_in_each_process_comes_last(project):
    words = ["compile", "prenorm_fusion", "shared_activation_quant"]
    found = ideas(project, ["hypothesis.predicted_ratio=1.2"], words)[1]
    assert names(ordered(found)) == ["prenorm_fusion", "shared_activation_quant", "compile"]


def test_a_known_ceiling_goes_before_what_is_predicted(few):
    assert names(few()) == ["high", "middle", "low"]
    assert [idea.ceiling_text for idea in few()] == ["1.300x predicted", "1.100x at most", "1.020x at most"]


def test_only_takes_names_and_lists_of_conf_ideas_each_once(project, add):
    add("ideas/small.yaml", "- register_cap\n- prenorm_fusion\n")
    found = ideas(project, [], ["prenorm_fusion", "small"])[1]
    assert [job.hypothesis.name for job in found] == ["prenorm_fusion", "register_cap"]
    add("ideas/wrong.yaml", "prenorm_fusion: yes\n")
    with pytest.raises(BadInput, match=r"wrong\.yaml must be a list of hypotheses"):
        ideas(project, [], ["wrong"])
    with pytest.raises(UnknownName, match="did you mean 'small'"):
        ideas(project, [], ["smal"])


def test_a_parameter_of_one_hypothesis_is_set_for_that_one_alone(project):
    words = ["register_cap.registers=8", "workload.seed=3"]
    found = ideas(project, words, ["prenorm_fusion", "register_cap"])[1]
    assert [job.overrides for job in found] == [
        ("hypothesis=prenorm_fusion", "workload.seed=3"),
        ("hypothesis=register_cap", "workload.seed=3", "register_cap.registers=8"),
    ]
    with pytest.raises(BadInput, match="not among those of --only"):
        ideas(project, words, ["prenorm_fusion"])


def test_a_chosen_hypothesis_and_a_range_are_refused(project):
    with pytest.raises(BadInput, match="goes through every hypothesis"):
        ideas(project, ["hypothesis=prenorm_fusion"])
    with pytest.raises(BadInput, match="lists several values"):
        ideas(project, ["protocol.pairs=20,40"], ["prenorm_fusion"])


@pytest.mark.parametrize(
    ("text", "seconds"), [("2h", 7200), ("1h30m", 5400), ("90s", 90), ("0.5h", 1800), ("600", 600)]
)
def test_a_budget_is_hours_minutes_and_seconds(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "2 hours", "h", "2d", "-1h", "0"])
def test_a_budget_that_is_no_time_is_refused(text):
    with pytest.raises(BadInput, match="--budget"):
        seconds_of(text)


def test_ceiling_that_does_not_exceed_the_floor_is_struck_out_and_stops_the_campaign(few, ledger):
    found = looked_at(few(), ledger)
    assert names(found.untried) == ["high", "middle"]
    assert found.struck == {"low": "its ceiling of 1.020x is not above 1 + d = 1.030x"}
    for idea in few("high", "middle"):
        decided(ledger, written.slower, idea)
    word, sentence = stopped(looked_at(few(), ledger), {"low": D})
    assert (word, sentence) == (CEILINGS, "no untried idea's ceiling exceeds the floor (1 + d = 1.030x): low")


def test_every_idea_tried_is_the_other_end(few, ledger):
    for idea in few("high", "middle"):
        decided(ledger, written.slower, idea)
    found = looked_at(few("high", "middle"), ledger)
    assert (found.untried, found.again, stopped(found, {})) == ((), (), (TRIED, "every idea was tried"))


def test_key_that_the_stack_sets_already_is_a_reason_with_both_names(few, ledger):
    decided(ledger, written.faster, few("high")[0])
    assert looked_at(few(), ledger).untried == ()
    assert "high and middle set the same key" in looked_at(few(), ledger).struck["middle"]


def test_what_is_required_makes_an_idea_wait_and_what_conflicts_strikes_it_out(few, ledger, add_hypothesis):
    add_hypothesis("after", "workload.threads=2", more="  requires: [high]\n")
    add_hypothesis("against", "workload.threads=4", more="  conflicts: [high]\n")
    found = looked_at(few("high", "after", "against"), ledger)
    assert names(found.untried) == ["high", "against"]
    assert found.struck == {"after": "it requires high, not in the stack"}
    decided(ledger, written.faster, few("high")[0])
    found = looked_at(few("high", "after", "against"), ledger)
    assert names(found.untried) == ["after"]
    assert "conflicts with high" in found.struck["against"]


SMALL = (0.001, 0.002, 0.001, 0.002)  # logs of round ratios: an upper bound far below 1 + d, and no slowdown


def too_small(ledger, name, **more):
    return written.record(ledger, written.evidence(written.plan(name, **more), SMALL))


def test_what_lost_is_tried_once_more_where_another_edit_joined_since(few, ledger, add_hypothesis):
    add_hypothesis("other", "workload.threads=2")
    other, high = few("other")[0], few("high")[0]
    assert decided(ledger, too_small, other).verdict.reason == "too_small"
    assert looked_at([high, other], ledger).again == ()
    decided(ledger, written.faster, high)
    found = looked_at([high, other], ledger)
    assert found.untried == ()
    assert found.again == ((other, "joined since: high"),)
    decided(ledger, too_small, other, stack=("high",))
    assert looked_at([high, other], ledger).again == ()


def test_what_lost_twice_is_left_alone_even_when_the_stack_moves_again(few, ledger, add_hypothesis):
    add_hypothesis("other", "workload.threads=2")
    add_hypothesis("third", "workload.name=x")
    other, high, third = few("other")[0], few("high")[0], few("third")[0]
    decided(ledger, too_small, other)
    decided(ledger, written.faster, high)
    decided(ledger, too_small, other, stack=("high",))
    decided(ledger, written.faster, third, stack=("high",))
    assert looked_at([high, other, third], ledger).again == ()
    # A campaign that begins now may try it once more.
    assert names(idea for idea, _ in looked_at([other], ledger, begun=10**6).again) == ["other"]


def test_what_was_slower_is_not_tried_again_and_is_named(few, ledger, add_hypothesis):
    add_hypothesis("other", "workload.threads=2")
    other, high = few("other")[0], few("high")[0]
    decided(ledger, written.slower, other)
    decided(ledger, written.faster, high)
    found = looked_at([high, other], ledger)
    assert (found.again, found.slower) == ((), ("other (#1)",))


def test_what_a_person_ruled_on_or_took_back_is_not_tried_again(few, ledger, add_hypothesis):
    add_hypothesis("other", "workload.threads=2")
    other, high = few("other")[0], few("high")[0]
    decision = decided(ledger, too_small, other)
    ledger.rule(decision.id, "reject", "unsafe")
    taken = decided(ledger, written.faster, high)
    found = looked_at([high, other], ledger, begun=10**6)
    assert (found.untried, found.again) == ((), ())
    assert found.struck == {"other": "decided before, #1: reject, and a person ruled reject"}
    ledger.revoke(taken.id, "breaks resume")
    found = looked_at([high], ledger, begun=10**6)
    assert found.struck == {"high": "decided before, #2: accept, and taken back since"}


def test_what_was_decided_before_the_campaign_began_counts_and_first_looks_and_invalid_ones_do_not(few, ledger):
    (high,) = few("high")
    quick = {"looks": (4,), "alpha_split": (1.0,), "beta_split": (1.0,), "decisive": False, "name": "quick"}
    assert decided(ledger, too_small, high, protocol=quick).verdict.reason == "not_promising"
    assert names(looked_at([high], ledger, begun=10**6).untried) == ["high"]
    decided(ledger, too_small, high)
    found = looked_at([high], ledger, begun=10**6)
    assert (found.untried, found.struck) == ((), {"high": "decided before, #2: reject"})


def test_another_value_of_a_parameter_is_another_idea(project, ledger):
    words = ["register_cap.registers=8"]
    (eight,) = ordered(ideas(project, words, ["register_cap"])[1])
    (twelve,) = ordered(ideas(project, [], ["register_cap"])[1])
    decided(ledger, too_small, eight)
    assert looked_at([eight], ledger).untried == ()
    assert names(looked_at([twelve], ledger).untried) == ["register_cap registers=12"]


def test_idea_that_ended_without_a_decision_is_left_alone(few, ledger):
    assert names(looked_at(few("high", "middle"), ledger, left_alone={"high"}).untried) == ["middle"]


@pytest.mark.parametrize(
    ("edits", "arms"),
    [
        (0, 0),
        (1, 2 * 6 + 2 * 12),  # one edit: head and root; then root against head
        (3, 5 * 6 + 2 * 12),  # head, root, and three without one
        (7, 10 * 6 + 2 * 12),  # eight besides head: two groups, head in both
    ],
)
def test_revalidation_is_costed_by_its_arms(few, edits, arms):
    protocol = few("high")[0].job.protocol
    assert (protocol.confirm_rounds, protocol.looks[-1]) == (6, 12)
    assert revalidation_seconds(protocol, edits, 2.0) == 2.0 * arms
    assert revalidation_seconds(protocol, edits, None) == 0.0


def test_what_rounds_and_tries_took_is_read_from_the_ledger(few, ledger):
    assert (arm_seconds(ledger), idea_seconds(ledger.decision_rows()), spent_seconds(ledger, 0)) == (None, 0.0, 0.0)
    (high,) = few("high")
    first = decided(ledger, written.slower, high)
    line = ledger.decision_rows()[0]["line"]
    evidence = ledger.evidence(first.plan_id)
    seconds = [one.wall_seconds for one in evidence.rounds]
    assert len(seconds) == 4 and all(one == seconds[0] for one in seconds)
    assert arm_seconds(ledger) == pytest.approx(seconds[0] / 2)
    assert spent_seconds(ledger, 0) == pytest.approx(4 * seconds[0] + evidence.probe.wall_seconds)
    assert spent_seconds(ledger, line) == 0.0
    assert idea_seconds(ledger.decision_rows()) == pytest.approx(first.wall_seconds)


def test_edit_of_a_hypothesis_file_that_changed_since_is_another_idea(few, ledger):
    (high,) = few("high")
    decided(ledger, too_small, high, edit=Edit(("workload.seed=7",)))
    assert names(looked_at([high], ledger).untried) == ["high"]
