"""Wrong input is refused before anything starts, by its key, its value and the rule, with the nearest right one."""

from __future__ import annotations

import pytest

from campaign.config import jobs, load
from campaign.errors import EXIT_BAD_INPUT, BadInput, UnknownName


@pytest.mark.parametrize(
    ("override", "near"),
    [
        ("hypothesis=prenorm_fusio", "prenorm_fusion"),
        ("protocol=quik", "quick"),
        ("workload=reference_cp", "reference_cpu"),
        ("hypotesis=prenorm_fusion", "hypothesis"),
        ("protocol.pair=20", "protocol.pairs"),
        ("+protocol.pair=20", "protocol.pairs"),
        ("++protocol.pair=20", "protocol.pairs"),
        ("+protocol.by_device.cpu.pair=20", "protocol.by_device.cpu.pairs"),
        ("+protocol.by_device.cuba.pairs=20", "protocol.by_device.cuda"),
        ("lease.wait_second=3", "lease.wait_seconds"),
        ("+lease.wait_second=3", "lease.wait_seconds"),
        ("+campaign.nam=x", "campaign.name"),
        ("+trackin=none", "tracking"),
        ("+hypothesis.parity.bond=1", "hypothesis.parity.bound"),
        ("+hypothesis.edit.enviroment={}", "hypothesis.edit.environment"),
        ("workload.ops.prenrm=cpu", "workload.ops.prenorm"),
        ("+workload.ops.prenrm=cpu", "workload.ops.prenorm"),
        ("+workload.model.width_=3", "workload.model.width"),
        ("workload.batch={tokens: 4, sequence: 1}", "workload.batch.sequences"),
    ],
)
def test_misspelt_name_is_answered_with_the_nearest_right_one(project, override, near):
    with pytest.raises(UnknownName) as caught:
        load(project, [override])
    assert caught.value.near == near
    assert f"did you mean {near!r}?" in caught.value.message


def test_key_under_the_wrong_parent_is_answered_with_where_it_is(project):
    with pytest.raises(UnknownName, match=r"there is: protocol\.pairs") as caught:
        load(project, ["mesure.pairs=3"])
    assert caught.value.remedy == "protocol.pairs=VALUE"


def test_misspelt_key_inside_a_list_of_predictions_is_named(project, add_hypothesis):
    add_hypothesis("x", "workload.ops.prenorm=cpu", more="  predicted_evidence: [{counter: 'op:a', chnge: appears}]\n")
    with pytest.raises(UnknownName, match=r"predicted_evidence\[0\]\.chnge") as caught:
        load(project, ["hypothesis=x"])
    assert caught.value.near == "hypothesis.predicted_evidence[0].change"


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("protocol.pairs=abc", "protocol.pairs: expected int, got 'abc'"),
        ("protocol.pairs=2.5", "protocol.pairs: expected int, got 2.5"),
        ("protocol.pairs=true", "protocol.pairs: expected int, got True"),
        ("protocol.pairs=3", "even and at least 2"),
        ("protocol.pairs=0", "even and at least 2"),
        ("protocol.alpha=0", "between 0 and 1"),
        ("protocol.alpha=1", "between 0 and 1"),
        ("protocol.beta=nan", "between 0 and 1"),
        ("protocol.looks=[8]", "1 look"),
        ("protocol.looks=[4,4,8,12]", "rising order"),
        ("protocol.looks=[1,6,8,12]", "at least 2"),
        ("protocol.looks=[]", "rising order"),
        ("protocol.looks=4", "protocol.looks: expected a list, got 4"),
        ("protocol.alpha_split=[0.5,0.5]", "one share a look"),
        ("protocol.alpha_split=[0.2,0.2,0.2,0.2]", "sums to 0.8: must sum to 1"),
        ("protocol.beta_split=[0.5,0.5,0.5,-0.5]", "every share above 0"),
        ("protocol.clock=gpu", "must be one of wall, cpu"),
        ("protocol.min_effect=-0.1", "at least 0 and below 1"),
        ("protocol.warmup_limit_steps=9", "= 10"),
        ("protocol.confirm_rounds=1", "at least 2"),
        ("protocol.contention_limit=1", "above 1"),
        ("protocol.block_steps=0", "1 or more"),
        ("protocol.reply_deadline_seconds=0", "above 0"),
        ("protocol.seed=-1", "0 or more"),
        ("protocol.seed=???", "protocol.seed is mandatory"),
        ("protocol.by_device=3", "by_device must be a mapping"),
        ("tracking=wandb", "must be one of mlflow, none"),
        ("tracking=null", "must be one of mlflow, none"),
        ("lease.wait_seconds=-1", "0 or more"),
        ("lease.wait_seconds=soon", "0 or more"),
        ("lease=3", "lease must be a mapping"),
        ("campaign=7", "campaign must be a mapping"),
        ("campaign.name=a/b", "letters, digits"),
        ("campaign.name=7", "must be a text"),
        ("json=perhaps", "must be true or false"),
        ("workload.device=tpu", "must be one of cpu, cuda"),
        ("workload._target_=null", "never from a command line"),
        ("+workload.model._target_=three", "never from a command line"),
        ("workload.model.layers=deep", "must be a number"),
        ("workload.graph=1", "must be true or false"),
        ("workload.seed=null", "workload.seed = None: must be a number"),
        ("workload.optimizer.clip=inf", "must be a finite number"),
        ("workload.precision.tail=head", "must be a list"),
        ("workload.ops=3", "must be a mapping"),
        ("~workload.ops.prenorm", "workload.ops.prenorm is missing"),
        ("workload.name=${nope.nothing}", "refers to something that is not there"),
        ("hypothesis.predicted_ratio=0", "above 0"),
        ("hypothesis.predicted_ratio=fast", "hypothesis.predicted_ratio: expected float, got 'fast'"),
        ("hypothesis.parity.kind=close", "must be one of bitwise, rounding, precision"),
        ("hypothesis.claim=''", "must be a text that is not empty"),
        ("hypothesis.memory_growth_limit=-1", "0 or more"),
        ("hypothesis.edit.overrides=[]", "has no edit"),
        ("+hypothesis.edit.environment={2X: a}", "'2X' is not a name of an environment variable"),
        ("hypothesis.parity=3", "hypothesis.parity: expected"),
        ("hypothesis.name=other", "the name is the file's name"),
        ("~hypothesis.claim", "claim is missing"),
        ("+hypothesis.conflicts=[prenorm_fusion]", "no hypothesis in hypothesis.conflicts 'prenorm_fusion'"),
        ("+hypothesis.requires=[nothing_like_it]", "no hypothesis in hypothesis.requires"),
        ("+hypothesis=aa_null", "none to add"),
        ("~hypothesis", "a run needs a hypothesis"),
        ("hypothesis=null", "there is no hypothesis 'None'"),
        ("hypothesis=", "there is no hypothesis ''"),
        ("hypothesis@elsewhere=aa_null", "every group here has one place"),
        ("prenorm_fusion", "has no '='"),
        ("claim=a(b=c", "cannot be parsed"),
        ("hypothesis.claim=two (words", "cannot be parsed"),
        ("hydra/launcher=joblib", "one after another"),
        ("hydra/sweeper=nevergrad", "one after another"),
        ("hydra/sweeper=optuna", "in a sweep"),
    ],
)
def test_wrong_value_is_refused_by_key_value_and_rule(project, override, says):
    with pytest.raises(BadInput) as caught:
        load(project, ["hypothesis=prenorm_fusion", override])
    assert says in caught.value.message
    assert caught.value.remedy
    assert caught.value.exit_code == EXIT_BAD_INPUT


def test_edits_typed_without_quotes_are_refused_with_quotes_that_work(project):
    with pytest.raises(BadInput, match="cannot be parsed") as caught:
        load(project, ["hypothesis=prenorm_fusion", "hypothesis.edit.overrides=[workload.seed=3]"])
    assert "overrides=['workload.KEY=VALUE'" in caught.value.remedy
    job = load(project, ["hypothesis=prenorm_fusion", "hypothesis.edit.overrides=['workload.seed=3']"])
    assert job.hypothesis.edit.overrides == ("workload.seed=3",)


def test_optional_key_that_the_file_leaves_out_is_added_with_a_plus(project):
    with pytest.raises(BadInput, match="not set in the chosen config") as caught:
        load(project, ["hypothesis.parity.bound=1e-3"])
    assert caught.value.remedy == "add it with a plus: +hypothesis.parity.bound=VALUE"
    assert load(project, ["+hypothesis.parity.bound=1e-3"]).hypothesis.parity.bound == 1e-3


def test_looks_without_their_splits_are_refused_with_splits_that_work(project):
    typed = ["hypothesis=prenorm_fusion", "protocol.looks=[4,6,8]"]
    with pytest.raises(BadInput, match="one share a look") as caught:
        load(project, typed)
    assert load(project, [*typed, *caught.value.remedy.split()]).protocol.looks == (4, 6, 8)


@pytest.mark.parametrize("typed", ["hypothesis=[aa_null,prenorm_fusion]", "hypothesis=aa_null,prenorm_fusion"])
def test_several_hypotheses_without_m_are_refused_with_the_spelling_that_works(project, typed):
    with pytest.raises(BadInput) as caught:
        load(project, [typed])
    assert caught.value.remedy == "-m hypothesis=aa_null,prenorm_fusion"
    swept = jobs(project, caught.value.remedy.split())
    assert [job.hypothesis.name for job in swept] == ["aa_null", "prenorm_fusion"]


def test_bracketed_hypotheses_are_refused_in_a_sweep_too(project):
    with pytest.raises(BadInput, match="keep the last"):
        jobs(project, ["-m", "hypothesis=[aa_null,prenorm_fusion]"])


def test_comma_values_without_m_are_refused_with_both_meanings(project):
    with pytest.raises(BadInput) as caught:
        load(project, ["protocol.looks=4,6"])
    assert caught.value.remedy == "-m protocol.looks=4,6 for one run each, or protocol.looks=[4,6] for a list"


def test_hypothesis_file_that_changes_the_workload_is_refused(project, add):
    text = (project / "conf/hypothesis/prenorm_fusion.yaml").read_text()
    path = add("hypothesis/sly.yaml", text.replace("prenorm_fusion", "sly") + "workload:\n  seed: 3\n")
    with pytest.raises(BadInput, match="would change control too") as caught:
        load(project, ["hypothesis=sly"])
    assert str(path) in caught.value.message


def test_hypothesis_whose_name_cannot_name_a_ledger_entry_is_refused(project, add_hypothesis):
    add_hypothesis("two words", "workload.ops.prenorm=cpu")
    with pytest.raises(BadInput, match="a name is letters, digits"):
        load(project, ["hypothesis='two words'"])


@pytest.mark.parametrize("name", ["root", "head", "control", "treatment", "solo", "base", "without_prenorm_fusion"])
def test_hypothesis_named_as_an_arm_of_a_study_is_refused(project, add_hypothesis, name):
    add_hypothesis(name, "workload.ops.prenorm=cpu")
    with pytest.raises(BadInput, match=f"hypothesis '{name}': an arm has this name"):
        load(project, [f"hypothesis={name}"])


@pytest.mark.parametrize(
    ("acts_on", "near"),
    [("nrom", "norm"), ("gemm_bf1", "gemm_bf16"), ("dispach", "dispatch"), ("recompte", "recompute")],
)
def test_misspelt_family_in_acts_on_is_refused_with_the_nearest(project, add_hypothesis, acts_on, near):
    path = add_hypothesis("x", "workload.seed=3")
    path.write_text(path.read_text().replace("acts_on: norm", f"acts_on: {acts_on}"))
    with pytest.raises(UnknownName, match=f"no family of kernels .* '{acts_on}'; did you mean '{near}'") as caught:
        load(project, ["hypothesis=x"])
    assert "conf/hypothesis/x.yaml" in caught.value.remedy


def test_kernel_pattern_that_does_not_compile_is_refused(project, add_hypothesis):
    path = add_hypothesis("x", "workload.seed=3")
    path.write_text(path.read_text().replace("acts_on: norm", "acts_on: 'kernel:recurrent_(backward'"))
    with pytest.raises(BadInput, match="does not compile as a regular expression"):
        load(project, ["hypothesis=x"])


def test_search_path_that_is_not_there_is_refused(project):
    with pytest.raises(BadInput, match="/nowhere/at/all is not there"):
        jobs(project, ["hydra.searchpath=[file:///nowhere/at/all]"])


def test_null_with_an_edit_is_refused(project, add_hypothesis):
    add_hypothesis("x", "workload.seed=3", more='  "null": true\n')
    with pytest.raises(BadInput, match="an A/A null changes nothing") as caught:
        load(project, ["hypothesis=x"])
    assert "conf/hypothesis/x.yaml" in caught.value.remedy


def test_hypothesis_that_requires_what_it_conflicts_with_is_refused(project, add_hypothesis):
    both = "  requires: [prenorm_fusion]\n  conflicts: [prenorm_fusion]\n"
    add_hypothesis("x", "workload.seed=3", more=both)
    with pytest.raises(BadInput, match="both requires and conflicts with prenorm_fusion") as caught:
        load(project, ["hypothesis=x"])
    assert caught.value.remedy == "take prenorm_fusion out of `requires` or `conflicts` in conf/hypothesis/x.yaml"


@pytest.mark.parametrize("declared", ["7", "[7]", "file:///somewhere"])
def test_search_path_that_is_no_list_of_strings_is_refused(project, add, declared):
    config = (project / "conf/config.yaml").read_text()
    add("config.yaml", config.replace("hydra:\n", f"hydra:\n  searchpath: {declared}\n", 1))
    with pytest.raises(BadInput, match="must be a list of strings") as caught:
        load(project, [])
    assert "file://DIR" in caught.value.remedy


@pytest.mark.parametrize(
    ("counter", "change", "says"),
    [
        ("aten::rsqrt", "falls", "must be op:NAME, kernel:NAME, gemm:DTYPE, compile:graphs or static:KERNEL:FIELD"),
        ("op:", "falls", "must be op:NAME, kernel:NAME, gemm:DTYPE, compile:graphs or static:KERNEL:FIELD"),
        ("op:aten::rsqrt", "shrinks", "must be one of appears, vanishes, rises, falls"),
    ],
)
def test_prediction_that_no_probe_can_check_is_refused(project, add_hypothesis, counter, change, says):
    more = f"  predicted_evidence:\n    - counter: '{counter}'\n      change: {change}\n"
    add_hypothesis("x", "workload.ops.prenorm=cpu", more=more)
    with pytest.raises(BadInput) as caught:
        load(project, ["hypothesis=x"])
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# @package _global_\nhypothesis: {claim: [unclosed\n", "not valid YAML"),
        ("- a\n- list\n", "bad"),
        ("", "bad"),
        ("just words\n", "just words"),
        ("# @package _global_\ndefaults:\n  - nothing_here\n", "nothing_here"),
        ("# @package _global_\nhypothesis:\n  claim: ${no.such.key}\n", "no.such.key"),
    ],
)
def test_broken_config_file_is_bad_input_and_not_a_traceback(project, add, text, says):
    add("hypothesis/bad.yaml", text)
    with pytest.raises(BadInput) as caught:
        load(project, ["hypothesis=bad"])
    assert says in str(caught.value)


def test_broken_root_config_is_bad_input(project, add):
    add("config.yaml", "defaults: [protocol: standard\n")
    with pytest.raises(BadInput, match=r"config\.yaml cannot be read"):
        load(project, [])


def test_protocol_that_forgets_a_device_names_the_value_it_lacks(project, add):
    add("protocol/mine.yaml", "defaults: [standard, _self_]\nname: mine\nby_device: {cpu: {pairs: null}}\n")
    with pytest.raises(BadInput, match=r"protocol\.pairs is null and protocol\.by_device\.cpu") as caught:
        load(project, ["protocol=mine"])
    assert load(project, ["protocol=mine", caught.value.remedy.replace("VALUE", "8")]).protocol.pairs == 8


@pytest.mark.parametrize("words", [["=3"], ["--resolve"]])
def test_words_that_hydra_answers_with_a_fault_of_its_own_are_bad_input(project, words):
    with pytest.raises(BadInput, match="not understood") as caught:
        jobs(project, words)
    assert caught.value.remedy
