"""What an autopilot does next, from the ledger: which ideas there are, in which order, and why one is not tried."""

from __future__ import annotations

import pytest

from campaign.cli import main
from campaign.config import ideas
from campaign.errors import BadInput, DoesNotFit, UnknownName
from campaign.records import Edit
from campaign.run.autopilot import (
    CEILINGS,
    TRIED,
    Idea,
    accepted_now,
    ordered,
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
def ledger(project, add):
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


@pytest.mark.slow
def test_ideas_are_every_hypothesis_but_the_null_the_highest_ceiling_first(project):
    null, found, struck = ideas(project, [])
    assert struck == {}
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


@pytest.mark.slow
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


def test_edit_of_a_hypothesis_file_that_changed_since_is_another_idea(few, ledger):
    (high,) = few("high")
    decided(ledger, too_small, high, edit=Edit(("workload.seed=7",)))
    assert names(looked_at([high], ledger).untried) == ["high"]


@pytest.mark.parametrize("only", ["", ",", " , "])
def test_only_that_names_nothing_is_refused_and_does_not_mean_everything(project, capsys, only):
    assert main(["run", "--all", "--only", only]) == 2
    assert "names no hypothesis" in capsys.readouterr().err


@pytest.mark.slow
def test_what_does_not_fit_the_workload_is_struck_out_and_the_rest_goes_on(project, add, add_hypothesis):
    add("workload/lean.yaml", "_target_: models.workload.ReferenceWorkload\ndevice: cpu\nthreads: 1\nwork: 1\n")
    add_hypothesis("less_work", "workload.work=0")
    add("ideas/both.yaml", "- less_work\n- precision_tail\n")
    _, found, struck = ideas(project, ["workload=lean"])
    assert [job.hypothesis.name for job in found] == ["less_work"]
    assert struck["precision_tail"].startswith("hypothesis precision_tail sets workload.precision, which this workload")
    assert list(ideas(project, ["workload=lean"], ["both"])[2]) == ["precision_tail"]
    with pytest.raises(DoesNotFit, match=r"workload\.precision"):
        ideas(project, ["workload=lean"], ["less_work", "precision_tail"])
    add("ideas/none.yaml", "- compile\n- precision_tail\n")
    with pytest.raises(DoesNotFit, match="no hypothesis fits the workload"):
        ideas(project, ["workload=lean"], ["none"])


def test_a_set_that_conflicts_with_an_accepted_part_of_it_is_struck_out(project, ledger):
    found = ordered(ideas(project, ["campaign.name=demo"], ["cached_quantized_weights", "quantized_once"])[1])
    (part,) = [idea for idea in found if idea.name == "cached_quantized_weights"]
    decided(ledger, written.faster, part)
    seen = looked_at(found, ledger)
    assert (seen.untried, seen.again) == ((), ())
    assert seen.struck["quantized_once"] == "it conflicts with cached_quantized_weights, which is in the stack"
