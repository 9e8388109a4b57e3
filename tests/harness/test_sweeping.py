"""Sweeps on real processes: the stack grows from job to job, a death costs its own row, a killed sweep goes on."""

from __future__ import annotations

import importlib.util
import json
import signal

import pytest

from campaign.cli import main
from campaign.ledger import open_ledger
from tests.harness.test_main_job import BASE, decisions, kinds, wait_for

MORE = ["protocol.looks=[4]", "protocol.confirm_rounds=3"]  # rounds enough for a gain, in spite of what else runs


@pytest.fixture
def add_hypothesis(project):
    """Writes `conf/hypothesis/<name>.yaml` like `no_sleep` with this override as its edit, and more lines."""
    text = (project / "conf/hypothesis/no_sleep.yaml").read_text()

    def write(name, edit, more=""):
        changed = text.replace("no_sleep", name).replace("workload.sleep=0.0", edit)
        (project / f"conf/hypothesis/{name}.yaml").write_text(changed + more)

    return write


@pytest.mark.slow
def test_an_accepted_edit_joins_the_stack_for_the_next_job(project, capsys):
    words = ["workload.sleep=0.06", "workload.nap=0.02", *MORE]
    assert main(["-m", *BASE, "hypothesis=half_sleep,half_nap", *words]) == 0
    first, second = decisions(project)
    assert first.verdict.verdict == "accept"  # .08 s -> .03 s
    assert (first.stack, second.stack) == ((), ("half_sleep",))
    with open_ledger(project, "default", writable=False) as ledger:
        control = ledger.plan(second.plan_id).control
    assert (control.config["sleep"], control.config["nap"]) == (0.01, 0.02)
    # Two tests at alpha .01, each confirmed at .025
    expected = (
        "False accepts to expect if no edit does anything: 0.0005, the sum of alpha x confirm_alpha over 2 tests."
    )
    assert expected in capsys.readouterr().out


def test_a_trial_that_dies_costs_its_own_row_and_the_exit_code_says_so(project, add_hypothesis, capsys):
    add_hypothesis("killed", "workload.fault=kill")
    add_hypothesis("hungry", "workload.fault=allocate")
    listed = "hypothesis=killed,hungry,broken,more_sleep"
    assert main(["-m", *BASE, listed, "--json"]) == 4
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    rows = [(row["label"], row["verdict"], row["reason"]) for row in said["sweep"]]
    assert rows[:3] == [
        ("killed", "invalid", "killed"),
        ("hungry", "invalid", "out_of_memory"),
        ("broken", "invalid", "crashed"),
    ]
    assert rows[3][:2] == ("more_sleep", "reject")
    assert (said["decided"], said["jobs"], said["tests"]) == (1, 4, 1)


@pytest.mark.slow
def test_a_killed_sweep_goes_on_where_it_was_and_a_finished_one_is_done_again(project, command):
    words = ["-m", "hypothesis=broken,more_sleep", "protocol.looks=[3]"]
    process = command(*words)
    said = wait_for(process, "[2/2]") + wait_for(process, "screen round 2")
    assert "crashed" in said
    process.kill()
    process.wait()
    assert [one.hypothesis for one in decisions(project)] == ["broken"]
    again = command(*words)
    said, _ = again.communicate(timeout=100)
    assert again.returncode == 4, said
    assert "decided before the interruption" in said and "going on with more_sleep" in said
    assert "1 of 2 decided" in said
    first, second = decisions(project)
    assert (first.hypothesis, second.hypothesis) == ("broken", "more_sleep")
    assert (second.attempt, second.verdict.valid_rounds) == (1, 3)
    assert kinds(project).count("registered") == 2
    third = command(*words)
    said, _ = third.communicate(timeout=100)
    assert third.returncode == 4, said
    assert "before the interruption" not in said
    assert [one.hypothesis for one in decisions(project)] == ["broken", "more_sleep"] * 2


@pytest.mark.slow
def test_an_interrupted_sweep_that_is_asked_for_differently_begins_anew(project, command):
    process = command("-m", "hypothesis=broken,more_sleep")
    wait_for(process, "[2/2]")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert main(["-m", *BASE, "hypothesis=broken"]) == 4
    assert [one.hypothesis for one in decisions(project)] == ["broken", "broken"]


@pytest.mark.slow
def test_two_sweeps_of_one_campaign_take_turns_on_the_device(project, command):
    first = command("-m", "hypothesis=more_sleep,broken", "lease.wait_seconds=100")
    second = command("-m", "hypothesis=broken,more_sleep", "lease.wait_seconds=100")
    for process in (first, second):
        said, _ = process.communicate(timeout=110)
        assert process.returncode == 4, said
        assert "1 of 2 decided" in said
    found = decisions(project)
    assert sorted(one.hypothesis for one in found) == ["broken", "broken", "more_sleep", "more_sleep"]
    assert {one.verdict.reason for one in found} == {"crashed", "slowdown"}
    # The ledger has every line once: the two processes wrote it in turns.
    assert [one.sequence for one in found] == [1, 2, 3, 4]


@pytest.mark.slow
def test_another_value_of_an_accepted_hypothesis_is_not_tried_and_is_no_failure(project, add_hypothesis, capsys):
    add_hypothesis("swept", "workload.sleep=${swept.sleep}", PARAMETER)
    loose = ["protocol.alpha=0.4", "protocol.confirm_alpha=0.4", "protocol.suspect_ratio=100"]
    assert main([*BASE, "-m", "hypothesis=swept", "swept.sleep=0.005,0.001", "workload.sleep=0.05", *loose]) == 0
    assert [one.verdict.verdict for one in decisions(project)] == ["accept"]
    said = capsys.readouterr().out
    assert "1 of 2 decided; without a decision: swept sleep=0.001 workload.sleep=0.05 (not tried)" in said
    assert "swept sleep=0.005 workload.sleep=0.05 was accepted before it" in said


SEARCH = ["-m", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=4", "hypothesis=swept", "swept.sleep=0.03,0.01,0.02"]
PARAMETER = "swept: {sleep: 0.03}\n"
has_optuna = importlib.util.find_spec("hydra_plugins") and importlib.util.find_spec(
    "hydra_plugins.hydra_optuna_sweeper"
)


def test_a_search_without_its_sweeper_says_what_to_install(project, add_hypothesis, capsys):
    if has_optuna:
        pytest.skip("hydra-optuna-sweeper is here")
    add_hypothesis("swept", "workload.sleep=${swept.sleep}", PARAMETER)
    assert main([*BASE, *SEARCH]) == 2
    assert "pip install 'campaign[optuna]'" in capsys.readouterr().err


@pytest.mark.skipif(not has_optuna, reason="hydra-optuna-sweeper is not installed")
class TestSearch:
    @pytest.fixture(autouse=True)
    def swept(self, add_hypothesis):
        add_hypothesis("swept", "workload.sleep=${swept.sleep}", PARAMETER)

    def test_values_get_first_looks_and_the_best_is_decided_on_rounds_of_its_own(self, project, capsys):
        assert main([*BASE, *SEARCH, "workload.sleep=0.04", *MORE]) == 0
        *looks, best = decisions(project)
        assert {one.verdict.reason for one in looks} <= {"promising", "not_promising"}
        assert len({one.command for one in looks}) == len(looks) <= 3, "a value is looked at once"
        assert best.verdict.verdict == "accept"
        fastest = max(looks, key=lambda one: one.verdict.effect.ratio)
        assert best.command == fastest.command.replace(" protocol=quick", "")
        assert "over 1 test." in capsys.readouterr().out

    def test_a_killed_search_asks_for_the_same_values_and_measures_what_is_left(self, project, command):
        words = [*SEARCH, "workload.sleep=0.04", "protocol=quick", "protocol.looks=[6]"]
        process = command(*words)
        wait_for(process, "[look 2]")
        process.kill()
        process.wait()
        before = len(decisions(project))
        again = command(*words)
        said, _ = again.communicate(timeout=100)
        assert again.returncode == 0, said
        found = decisions(project)
        assert before == 1 and len({one.command for one in found}) == len(found)
        assert "before the interruption" in said and "decide it: python -m campaign" in said
        assert all(one.attempt == 1 for one in found)

    def test_a_value_that_fails_costs_itself_only(self, project, capsys):
        words = ["-m", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=6", "hypothesis=swept"]
        assert main([*BASE, *words, "swept.sleep=0.02,high", "workload.sleep=0.04", "protocol=quick"]) == 4
        said = capsys.readouterr().out
        refused = next(line for line in said.splitlines() if "swept.sleep=high" in line)
        assert "must be a number" in refused
        assert "1 of 2 decided" in said
        assert [one.verdict.reason for one in decisions(project)] == ["promising"]

    def test_a_grid_goes_through_its_values(self, project, capsys):
        words = ["-m", "hydra/sweeper=optuna", "hydra/sweeper/sampler=grid", "hypothesis=swept", "protocol=quick"]
        assert main([*BASE, *words, "swept.sleep=0.02,0.03", "workload.sleep=0.04"]) == 0
        commands = {one.command for one in decisions(project)}
        assert len(commands) == 2 and all("swept.sleep=0.0" in command for command in commands)
        assert main([*BASE, *words, "swept.sleep=0.02,high", "workload.sleep=0.04"]) == 2
        assert "the sweeper does not take this" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["workload.seed=1,2"], "over the parameters of one hypothesis"),
            ([], "nothing to search"),
            (["swept.sleep=0.01,0.02", "hydra.sweeper.n_jobs=4"], "one job at a time"),
            (["swept.sleep=0.01,0.02", "hydra.sweeper.storage=null"], "goes on from the ledger"),
            (["swept.sleep=[1],[2]"], "must be a number"),
        ],
    )
    def test_what_is_no_search_is_refused(self, project, capsys, words, says):
        assert main(["-m", *BASE, "hydra/sweeper=optuna", "hypothesis=swept", *words]) == 2
        assert says in capsys.readouterr().err
