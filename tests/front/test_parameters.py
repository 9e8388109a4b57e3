"""The parameters of a hypothesis: set, swept, refused, and seen in every row."""

from __future__ import annotations

import shlex

import pytest

from campaign.config import jobs, load
from campaign.config.parameters import spelled
from campaign.errors import BadInput, UnknownName
from campaign.reading import label


@pytest.fixture
def capped(add_hypothesis, project):
    """A hypothesis with parameters of each kind; `seed` decides its edit."""
    more = (
        "  predicted_evidence: [{counter: 'op:a::b', change: falls}]\n"
        "capped: {seed: 12, sites: [head, mixer_out], form: full, left: null, live: true, table: {cpu: 3, triton: 4}}\n"
    )
    add_hypothesis("capped", "workload.seed=${capped.seed}", "workload.precision.tail=${capped.sites}", more=more)
    return project


def test_default_of_a_parameter_reaches_the_edit(capped):
    job = load(capped, ["hypothesis=capped"])
    arm = job.arm("treatment", "capped", [(job.hypothesis.name, job.hypothesis.edit)])
    assert (arm.config["seed"], arm.config["precision"]["tail"]) == (12, ["head", "mixer_out"])
    assert job.parameters == {"seed": 12, "sites": ["head", "mixer_out"], "form": "full", "left": None, "live": True}


def test_typed_parameter_reaches_the_edit_and_not_control(capped):
    job = load(capped, ["hypothesis=capped", "capped.seed=8", "capped.sites=[]"])
    treatment = job.arm("treatment", "capped", [(job.hypothesis.name, job.hypothesis.edit)])
    assert (treatment.config["seed"], treatment.config["precision"]["tail"]) == (8, [])
    assert job.arm("control", "root", []).config["seed"] == 0


def test_sweep_over_a_parameter_gives_one_job_a_value(project):
    found = jobs(project, ["-m", "hypothesis=register_cap", "register_cap.registers=8,12,16"])
    assert [job.parameters["registers"] for job in found] == [8, 12, 16]
    edits = [f"workload.ops.recurrence_registers={cap}" for cap in (8, 12, 16)]
    assert [job.hypothesis.edit.overrides for job in found] == [(edit,) for edit in edits]


@pytest.mark.slow
def test_sweep_over_lists_gives_one_job_a_list(project):
    found = jobs(project, ["-m", "hypothesis=precision_tail", "precision_tail.keep=[head],[head,mixer_out],[]"])
    tails = [
        job.arm("solo", "x", [(job.hypothesis.name, job.hypothesis.edit)]).config["precision"]["tail"] for job in found
    ]
    assert tails == [["head"], ["head", "mixer_out"], []]
    assert [label(job.hypothesis.name, job.command) for job in found] == [
        "precision_tail keep=[head]",
        "precision_tail keep=[head,mixer_out]",
        "precision_tail keep=[]",
    ]


def test_command_names_every_parameter_so_that_a_later_default_does_not_change_it(capped):
    job = load(capped, ["hypothesis=capped", "capped.seed=8"])
    words = shlex.split(job.command)[3:]
    assert words == [
        "hypothesis=capped", "capped.seed=8", "capped.sites=[head,mixer_out]", "capped.form=full", "capped.left=null",
        "capped.live=true",
    ]  # fmt: skip
    again = load(capped, words)
    assert again.parameters == job.parameters
    assert (
        again.arm("solo", "x", [(again.hypothesis.name, again.hypothesis.edit)]).hash
        == job.arm("solo", "x", [(job.hypothesis.name, job.hypothesis.edit)]).hash
    )


@pytest.mark.parametrize(
    "value", ["head", "two words", "it's", "null", "true", "a,b=c", "", "3", 3, -0.25, True, None, ["head", "a b"], []]
)
def test_spelled_value_reads_back_as_itself(capped, value):
    key = "left"
    job = load(capped, ["hypothesis=capped", f"capped.{key}={spelled(value)}"])
    assert job.parameters[key] == value and type(job.parameters[key]) is type(value)


def test_default_of_the_register_cap_suits_the_workloads_compiler(project):
    caps = {
        name: load(project, ["hypothesis=register_cap", f"workload={name}"]).parameters["registers"]
        for name in ("reference_cpu", "reference_1b")
    }
    assert caps["reference_cpu"] < 32 < caps["reference_1b"] < 255


@pytest.mark.parametrize(
    ("overrides", "says", "remedy"),
    [
        (["hypothesis=phase_split", "register_cap.registers=8"], "hypothesis=phase_split is chosen",
         "hypothesis=register_cap register_cap.registers=8"),
        (["register_cap.registers=8"], "hypothesis=aa_null is chosen",
         "hypothesis=register_cap register_cap.registers=8"),
        (["hypothesis=phase_split", "phase_split.tiles=8"], "phase_split has no parameters",
         "campaign run hypothesis=phase_split --cfg job    (shows what can be set)"),
        (["hypothesis=phase_split", "+register_cap.registers=8"], "hypothesis=phase_split is chosen", None),
        (["hypothesis=register_cap", "register_cap.registers=many"], "must be a number", None),
        (["hypothesis=register_cap", "register_cap.registers=8,12"], "lists several values", None),
        (["hypothesis=register_cap", "register_cap=8"], "a mapping", None),
    ],
)  # fmt: skip
def test_parameter_that_cannot_be_meant_is_refused(project, overrides, says, remedy):
    with pytest.raises(BadInput) as caught:
        load(project, overrides)
    assert says in caught.value.message
    assert remedy is None or caught.value.remedy == remedy


@pytest.mark.parametrize("word", ["register_cap.registrs=8", "+register_cap.registrs=8"])
def test_misspelt_parameter_is_answered_with_the_nearest(project, word):
    with pytest.raises(UnknownName) as caught:
        load(project, ["hypothesis=register_cap", word])
    assert caught.value.near == "register_cap.registers"


@pytest.mark.parametrize("choice", ["register_cap,phase_split", "glob(*)"])
def test_parameter_in_a_sweep_over_other_hypotheses_starts_none_of_it(project, choice):
    with pytest.raises(BadInput, match="sets a parameter of hypothesis register_cap") as caught:
        jobs(project, ["-m", f"hypothesis={choice}", "register_cap.registers=8,12"])
    assert caught.value.remedy == "-m hypothesis=register_cap register_cap.registers=8,12"


def test_file_with_the_parameters_of_another_hypothesis_is_refused(project, add_hypothesis):
    add_hypothesis("x", "workload.seed=${register_cap.registers}", more="register_cap: {registers: 3}\n")
    with pytest.raises(BadInput, match="a hypothesis has its parameters under its own name"):
        load(project, ["hypothesis=x"])


def test_parameters_that_are_no_mapping_are_refused(project, add_hypothesis):
    add_hypothesis("x", "workload.seed=${x}", more="x: 3\n")
    with pytest.raises(BadInput, match=r"x = 3: the parameters of a hypothesis are a mapping"):
        load(project, ["hypothesis=x"])
