"""What a hypothesis may change, and two edits that disagree."""

from __future__ import annotations

import pytest

from campaign.config import load
from campaign.errors import BadInput, UnknownName
from campaign.records import Edit


def arm(job, *edits):
    return job.arm("treatment", "stacked", edits)


def test_edits_stack_in_order_and_the_same_one_twice_counts_once(project):
    job = load(project, [])
    stacked = arm(
        job,
        Edit(("workload.ops.prenorm=cpu",), {"A": "1"}),
        Edit(("workload.quant.activations=shared",)),
        Edit(("workload.ops.prenorm=cpu",), {"A": "1", "B": "2"}),
    )
    assert stacked.config["ops"]["prenorm"] == "cpu"
    assert stacked.config["quant"]["activations"] == "shared"
    assert stacked.environment == {"A": "1", "B": "2"}


def test_two_edits_that_set_one_key_to_different_values_are_refused_by_key_and_both_values(project):
    with pytest.raises(BadInput) as caught:
        arm(load(project, []), Edit(("workload.ops.prenorm=cpu",)), Edit(("workload.ops.prenorm=triton",)))
    for part in ("workload.ops.prenorm", "'cpu'", "'triton'"):
        assert part in caught.value.message


def test_lists_are_compared_as_whole_values(project):
    with pytest.raises(BadInput) as caught:
        arm(load(project, []), Edit(("workload.precision.tail=[head]",)), Edit(("workload.precision.tail=[]",)))
    for part in ("workload.precision.tail", "['head']", "[]"):
        assert part in caught.value.message


def test_mapping_and_a_key_inside_it_are_compared_key_by_key(project):
    job = load(project, [])
    whole = Edit(("workload.ops={prenorm: cpu}",))
    assert arm(job, whole, Edit(("workload.ops.prenorm=cpu",))).config["ops"]["prenorm"] == "cpu"
    with pytest.raises(BadInput, match=r"workload\.ops\.prenorm is set twice"):
        arm(job, whole, Edit(("workload.ops.prenorm=triton",)))


def test_value_and_mapping_for_one_key_are_refused(project):
    with pytest.raises(BadInput, match="as a whole"):
        arm(load(project, []), Edit(("workload.ops=null",)), Edit(("workload.ops.prenorm=cpu",)))


def test_true_and_one_are_different_values(project):
    with pytest.raises(BadInput, match="set twice"):
        arm(load(project, []), Edit(("workload.graph=true",)), Edit(("workload.graph=1",)))


def test_two_edits_that_set_one_variable_to_different_values_are_refused(project):
    with pytest.raises(BadInput) as caught:
        arm(load(project, []), Edit((), {"OMP": "1"}), Edit((), {"OMP": "2"}))
    for part in ("OMP", "'1'", "'2'"):
        assert part in caught.value.message


def test_hypothesis_that_disagrees_with_itself_is_refused(project, add_hypothesis):
    add_hypothesis("x", "workload.seed=1", "workload.seed=2")
    with pytest.raises(BadInput, match=r"hypothesis x: workload\.seed is set twice, to 1"):
        load(project, ["hypothesis=x"])


def test_edit_may_not_invent_a_key(project, add_hypothesis):
    add_hypothesis("x", "workload.ops.prenrm=cpu")
    with pytest.raises(UnknownName) as caught:
        load(project, ["hypothesis=x"])
    assert caught.value.near == "workload.ops.prenorm"
    assert "(x)" in caught.value.message


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
