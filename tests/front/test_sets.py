"""Sets: a hypothesis of several edits, composed as one, refused where it could not be taken apart."""

from __future__ import annotations

import pytest

from campaign.config import load
from campaign.errors import BadInput, UnknownName
from campaign.records import Edit, Hypothesis, from_json, to_json

HEAD = """\
# @package _global_
hypothesis:
  claim: together they are faster
  mechanism: fewer bytes
  acts_on: norm
  predicted_ratio: 1.1
  parity: {kind: rounding}
"""
TWO = """\
  parts:
    norms: {overrides: [workload.ops.prenorm=cpu]}
    memory: {overrides: [workload.checkpoint.policy=none, workload.seed=1], environment: {MALLOC_ARENA_MAX: 1}}
"""


@pytest.fixture
def composed(project, add):
    """Composes a hypothesis `both` of these parts; further text stands before the node."""

    def compose(parts: str, *, before: str = "", overrides: tuple[str, ...] = ()) -> Hypothesis:
        add("hypothesis/both.yaml", HEAD.replace("hypothesis:", f"{before}hypothesis:", 1) + parts)
        return load(project, ["hypothesis=both", *overrides]).hypothesis

    return compose


def test_a_set_is_measured_as_all_of_its_parts_and_keeps_each(composed):
    found = composed(TWO)
    assert found.edit.overrides == (
        "workload.ops.prenorm=cpu",
        "workload.checkpoint.policy=none",
        "workload.seed=1",
    )
    assert found.edit.environment == {"MALLOC_ARENA_MAX": "1"}
    assert [part.name for part in found.parts] == ["norms", "memory"]
    assert found.parts[0].edit == Edit(("workload.ops.prenorm=cpu",))
    assert from_json(Hypothesis, to_json(found)) == found


def test_a_single_edit_has_no_parts(project):
    assert load(project, ["hypothesis=prenorm_fusion"]).hypothesis.parts == ()


def test_parts_take_the_parameters_of_their_set(composed):
    parts = TWO.replace("workload.seed=1", "'workload.seed=${both.seed}'")
    found = composed(parts, before="both: {seed: 3}\n", overrides=("both.seed=5",))
    assert found.parts[1].edit.overrides[1] == "workload.seed=5"
    assert "workload.seed=5" in found.edit.overrides


def test_arms_without_one_part_differ_from_the_whole_by_its_keys_alone(composed, project):
    composed(TWO)
    job = load(project, ["hypothesis=both"])
    norms, memory = job.hypothesis.parts
    whole = job.arm("head", "both", [("both", job.hypothesis.edit)])
    apart = job.arm("head", "both", [(part.name, part.edit) for part in (norms, memory)])
    assert whole.hash == apart.hash
    without = job.arm("without_memory", "norms", [("norms", norms.edit)])
    assert without.config["ops"] == whole.config["ops"]
    assert (without.config["checkpoint"]["policy"], whole.config["checkpoint"]["policy"]) == ("full", "none")


@pytest.mark.parametrize(
    ("parts", "said", "remedy"),
    [
        (TWO + "  edit: {overrides: [workload.seed=2]}\n", "has `edit` and `parts`", "among the parts"),
        ("  parts:\n    one: {overrides: [workload.seed=1]}\n", "at least two", "`edit` for a single one"),
        ("  parts: [a, b]\n", "a mapping from names to edits", "parts:"),
        (TWO.replace("norms:", "'no rms':"), "hypothesis.parts.no rms: the name of a part is letters", "rename"),
        (
            TWO.replace("{overrides: [workload.ops.prenorm=cpu]}", "{}"),
            "hypothesis.parts.norms changes nothing",
            "hypothesis.parts.norms.overrides",
        ),
        (
            TWO.replace("workload.ops.prenorm=cpu", "workload.seed=2"),
            "norms and memory set the same key: workload.seed=2 and workload.seed=1",
            "one of the two parts",
        ),
        (
            TWO.replace("MALLOC_ARENA_MAX", "'MALLOC ARENA'"),
            "hypothesis.parts.memory.environment: 'MALLOC ARENA' is not a name",
            "++hypothesis.parts.memory.environment.NAME=VALUE",
        ),
        (TWO.replace("workload.ops.", "ops."), "hypothesis both, part norms: the edit 'ops.prenorm=cpu'", "--cfg job"),
        (TWO.replace("workload.seed=1", "workload.device=cuda"), "changes workload.device", "both sides"),
    ],
)
def test_a_set_that_could_not_be_taken_apart_is_refused_before_anything_starts(composed, parts, said, remedy):
    with pytest.raises(BadInput) as refused:
        composed(parts)
    assert said in refused.value.message
    assert remedy in refused.value.remedy


def test_a_misspelt_key_of_a_part_is_said_with_its_place(composed):
    with pytest.raises(UnknownName, match=r"hypothesis\.parts\.norms\.overides"):
        composed(TWO.replace("norms: {overrides", "norms: {overides"))


@pytest.mark.parametrize("single", ["cached_quantized_weights", "shared_activation_quant"])
def test_the_shipped_set_and_a_hypothesis_that_sets_its_key_do_not_stand_in_one_stack(project, single):
    job, other = (load(project, [f"hypothesis={name}"]) for name in ("quantized_once", single))
    assert single in job.hypothesis.conflicts
    edits = [(one.hypothesis.name, one.hypothesis.edit) for one in (other, job)]
    with pytest.raises(BadInput, match=f"{single} and quantized_once set the same key"):
        job.arm("treatment", "both", edits)
