"""What a hypothesis may change, and two edits that disagree."""

from __future__ import annotations

import pytest

from campaign.config import load
from campaign.errors import BadInput, DoesNotFit
from campaign.records import Edit


def arm(job, *edits):
    return job.arm("treatment", "stacked", [(f"edit{place}", edit) for place, edit in enumerate(edits, 1)])


def test_edits_stack_in_order(project):
    job = load(project, [])
    stacked = arm(
        job,
        Edit(("workload.ops.prenorm=cpu",), {"A": "1"}),
        Edit(("workload.quant.activations=shared",)),
        Edit((), {"B": "2"}),
    )
    assert stacked.config["ops"]["prenorm"] == "cpu"
    assert stacked.config["quant"]["activations"] == "shared"
    assert stacked.environment == {"A": "1", "B": "2"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("workload.ops.prenorm=cpu", "workload.ops.prenorm=triton"),
        ("workload.ops.prenorm=cpu", "workload.ops.prenorm=cpu"),
        ("workload.precision.tail=[head]", "workload.precision.tail=[]"),
        ("workload.ops={prenorm: cpu}", "workload.ops.prenorm=triton"),
        ("workload.ops=null", "workload.ops.prenorm=cpu"),
        ("workload.ops.prenorm=cpu", "workload.ops=null"),
    ],
)
def test_two_edits_that_set_one_key_are_refused_by_both_names(project, first, second):
    with pytest.raises(BadInput) as caught:
        arm(load(project, []), Edit((first,)), Edit((second,)))
    assert f"edit1 and edit2 set the same key: {first} and {second}" in caught.value.message
    assert "--revert edit1" in caught.value.remedy


def test_two_edits_that_set_one_variable_are_refused_by_both_names(project):
    with pytest.raises(BadInput, match="edit1 and edit2 set the same key: OMP=1 and OMP=2"):
        arm(load(project, []), Edit((), {"OMP": "1"}), Edit((), {"OMP": "2"}))


def test_true_and_one_are_different_values(project, add_hypothesis):
    add_hypothesis("x", "workload.graph=true", "workload.graph=1")
    with pytest.raises(BadInput, match="set twice"):
        load(project, ["hypothesis=x"])


def test_hypothesis_that_disagrees_with_itself_is_refused(project, add_hypothesis):
    add_hypothesis("x", "workload.seed=1", "workload.seed=2")
    with pytest.raises(BadInput, match=r"hypothesis x: workload\.seed is set twice, to 1"):
        load(project, ["hypothesis=x"])


def test_edit_may_not_invent_a_key(project, add_hypothesis):
    add_hypothesis("x", "workload.ops.prenrm=cpu")
    with pytest.raises(DoesNotFit) as caught:
        load(project, ["hypothesis=x"])
    said = "hypothesis x sets workload.ops.prenrm, which this workload does not have"
    assert caught.value.message == f"{said}; did you mean 'workload.ops.prenorm'?"


@pytest.mark.parametrize(
    "edit",
    [
        "+workload.ops.prenrm=cpu",
        "++workload.seed=1",
        "'~workload.seed'",
        "workload.seed=1,2",
        "workload=reference_1b",
        "protocol.pairs=20",
        "hypothesis.predicted_ratio=2",
    ],
)
def test_edit_that_is_more_than_a_workload_value_is_refused(project, add_hypothesis, edit):
    add_hypothesis("x", edit)
    with pytest.raises(BadInput, match=r"not of the form workload\.KEY=VALUE"):
        load(project, ["hypothesis=x"])


def test_edit_that_moves_the_treatment_to_another_device_is_refused(project, add_hypothesis):
    add_hypothesis("x", "workload.device=cuda")
    with pytest.raises(BadInput, match="one device"):
        load(project, ["hypothesis=x"])


def test_edit_of_the_wrong_kind_is_refused(project, add_hypothesis):
    add_hypothesis("x", "workload.model.layers=many")
    with pytest.raises(BadInput, match=r"workload\.model\.layers = 'many': must be a number"):
        load(project, ["hypothesis=x"])


def test_requires_and_conflicts_name_hypotheses_that_exist(project, add_hypothesis):
    more = "  requires: [prenorm_fusion]\n  conflicts: [aa_null]\n"
    add_hypothesis("x", "workload.quant.activations=shared", more=more)
    hypothesis = load(project, ["hypothesis=x"]).hypothesis
    assert (hypothesis.requires, hypothesis.conflicts) == (("prenorm_fusion",), ("aa_null",))


def test_requiring_and_refusing_the_same_hypothesis_is_refused(project, add_hypothesis):
    add_hypothesis("x", "workload.quant.activations=shared", more="  requires: [aa_null]\n  conflicts: [aa_null]\n")
    with pytest.raises(BadInput, match="both requires and conflicts with aa_null"):
        load(project, ["hypothesis=x"])
