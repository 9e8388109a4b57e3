"""Studies on real processes: edits combined, a set taken apart; and where they take workload and protocol from."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest

from campaign.cli import main
from campaign.errors import BadInput, UnknownName
from campaign.ledger import open_ledger
from campaign.run import conduct, measure, studies
from campaign.run.context import study_job
from campaign.run.declare import accepted_here
from campaign.run.factorial import design, factorial, seconds_of
from tests.harness.studied import WAITS, findings, interrupt, kinds, near, standing, terms


@pytest.mark.slow
def test_an_accepted_set_is_taken_apart(study_project, capsys):
    assert main([*WAITS, "hypothesis=both", "protocol.confirm_rounds=2"]) == 0
    assert standing(study_project) == ["both"]
    (found,) = findings(study_project)
    assert "the parts of a set of sleep, nap" in capsys.readouterr().out
    assert found.finding.kind == "parts"
    assert terms(found)["sleep"].effect.ratio == near(2.5)
    assert terms(found)["nap"].effect.ratio == near(2.5)
    assert found.finding.total.ratio == near(4)
    with open_ledger(study_project, "default", writable=False) as ledger:
        (study,) = ledger.studies()
        (decision,) = ledger.stack()
    assert study.of == decision.id
    assert {arm.role: arm.name for arm in study.arms} == {
        "head": "root+both",
        "without_sleep": "root+both without sleep",
        "without_nap": "root+both without nap",
        "root": "root",
    }


@pytest.mark.slow
@pytest.mark.parametrize("again", [[*WAITS, "hypothesis=both", "protocol.confirm_rounds=2"], ["revalidate"]])
def test_a_set_whose_run_was_killed_before_it_was_taken_apart_is_taken_apart_later(study_project, monkeypatch, again):
    with monkeypatch.context() as patched:
        patched.setattr(studies, "take_apart", interrupt)
        assert main([*WAITS, "hypothesis=both", "protocol.confirm_rounds=2"]) == 130
    assert standing(study_project) == ["both"]
    assert findings(study_project) == []
    assert main(again) == 0
    assert [found.finding.kind for found in findings(study_project)].count("parts") == 1
    assert kinds(study_project).count("decision") == 1
    # It is in the stack and taken apart: nothing is left to go on with.
    assert main([*WAITS, "hypothesis=both"]) == 2


@pytest.mark.slow
def test_edits_are_combined_on_root_and_their_shares_multiply_to_the_whole(study_project, capsys):
    assert main(["interactions", "half_sleep", "half_nap", *WAITS, "--rounds", "3", "--yes"]) == 0
    said = capsys.readouterr()
    assert "half_sleep, half_nap on root: 4 arms (every combination), 3 rounds of 4 arms" in said.err
    assert "not in the stack, and not probed here: half_sleep, half_nap" in said.err
    (found,) = findings(study_project)
    effects = terms(found)
    # 80, 50, 50 and 20 ms: (5/2) / (8/5) = 25/16; the main effect is the mean of log 8/5 and log 5/2, log 2.
    assert effects["half_sleep"].effect.ratio == near(2)
    assert effects["half_nap"].effect.ratio == near(2)
    assert effects["half_sleep:half_nap"].effect.ratio == near(25 / 16)
    first, second = found.finding.shares
    assert first.effect.ratio * second.effect.ratio == pytest.approx(found.finding.total.ratio, rel=1e-9)
    assert kinds(study_project).count("blocks") == 3


def test_edits_are_combined_on_the_rest_of_the_stack(stacked):
    job = study_job(stacked, "default", [])
    with open_ledger(stacked, "default", writable=True) as ledger:
        made = design(job, ledger, ["half_nap", "more_work"], "head", {"more_work": []})
        study = factorial(job, ledger, made, 2, "head")
    arms = {arm.role: arm for arm in study.arms}
    assert list(arms) == ["root", "half_nap", "more_work", "half_nap+more_work"]
    assert arms["root"].name == "root+half_sleep"
    assert [arms[role].config["sleep"] for role in arms] == [0.01] * 4
    changes = {"nap": 0.01, "work": 9000}
    assert arms["half_nap+more_work"].config == arms["root"].config | changes
    assert study.stack == ("half_sleep", "half_nap")
    assert study.command.startswith("python -m campaign interactions half_nap more_work --on head --campaign default")


@pytest.mark.slow
def test_sixteen_combinations_are_split_into_rounds_that_each_hold_root(study_project):
    job = study_job(study_project, "default", WAITS)
    with open_ledger(study_project, "default", writable=False) as ledger:
        made = design(job, ledger, ["half_sleep", "half_nap", "more_work", "padded"])
        assert seconds_of(ledger, made, 6, 4) is None, "no round was measured here"
    assert len(made.arms) == 16
    # 15 arms beside root, at most 7 of them in a round
    assert [len(group) for group in made.groups] == [6, 6, 6]
    assert all(group[0] == "root" for group in made.groups)
    assert sorted(role for group in made.groups for role in group[1:]) == sorted(set(made.members) - {"root"})


def test_the_time_of_a_factorial_is_that_of_earlier_rounds_by_arm(stacked):
    job = study_job(stacked, "default", [])
    with open_ledger(stacked, "default", writable=False) as ledger:
        made = design(job, ledger, ["half_sleep", "half_nap"])
        bodies = [entry.body for entry in ledger.store.entries({"blocks"})][-20:]
        an_arm = sum(body["wall_seconds"] / 2 for body in bodies) / len(bodies)
        # 5 rounds of 4 arms
        assert seconds_of(ledger, made, 5, 4) == pytest.approx(20 * an_arm)
        assert seconds_of(ledger, made, 5, 40) is None, "no round of as many pairs"


@pytest.mark.slow
def test_a_combination_that_cannot_run_costs_its_own_numbers_only(study_project):
    # fragile raises where root's 40 ms of sleep are still there, and not beside half_sleep.
    assert main(["interactions", "half_sleep", "fragile", *WAITS, "--rounds", "2", "--yes"]) == 0
    (found,) = findings(study_project)
    assert list(found.finding.failed) == ["fragile"]
    assert found.finding.shares == ()
    assert found.finding.total.ratio == near(4)
    assert kinds(study_project).count("blocks") == 3


@pytest.mark.slow
def test_interactions_without_a_finding_end_with_3(study_project, capsys):
    assert (
        main(["interactions", "half_sleep", "half_nap", *WAITS, "workload.fault=raise", "--rounds", "2", "--yes"]) == 3
    )
    assert "no finding: the root arm could not run" in capsys.readouterr().out


def test_nobody_at_the_terminal_and_no_yes_measures_nothing(study_project, capsys):
    assert main(["interactions", "half_sleep", "half_nap", *WAITS]) == 2
    said = capsys.readouterr().err
    assert "3 rounds of 4 arms" in said
    assert "--yes" in said
    assert not (study_project / "runs" / "default" / "ledger.jsonl").exists()


@pytest.mark.parametrize(("answer", "code"), [("n\n", 3), ("\n", 3), ("", 3), ("y\n", 130)])
def test_a_person_is_asked_before_anything_is_measured(study_project, monkeypatch, answer, code):
    import io
    import sys

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(measure, "run_round", interrupt)
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["interactions", "half_sleep", "half_nap", *WAITS, "--rounds", "2"]) == code
    assert (study_project / "runs" / "default" / "ledger.jsonl").exists() is (code == 130)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["half_sleep"], "between at least two edits"),
        ([], "the stack of campaign 'default' holds 0 edits"),
        (["half_sleep", "half_sleep"], "half_sleep is named twice"),
        (["half_sleep", "aa_null"], "aa_null is an A/A null"),
        (["half_sleep", "no_sleep"], "half_sleep and no_sleep set the same key"),
        (["half_sleep", "apart"], "half_sleep and apart conflict"),
        (["half_nap", "leaning"], "leaning requires half_sleep"),
        (["half_sleep", "half_snap"], "did you mean 'half_nap'?"),
        (["half_sleep", "half_nap", "--rounds", "1"], "one round has no scatter"),
        (["half_sleep", "half_nap", "hypothesis=both"], "no hypothesis is chosen"),
        (["half_sleep", "half_nap", "--on", "tail"], "invalid choice: 'tail'"),
    ],
)
def test_what_cannot_be_combined_is_refused_before_anything_starts(study_project, capsys, words, said):
    assert main(["interactions", *words, "--yes", *WAITS]) == 2
    assert said in capsys.readouterr().err
    assert not (study_project / "runs" / "default" / "ledger.jsonl").exists()


def test_the_whole_stack_is_combined_where_no_edit_is_named(stacked, capsys):
    assert main(["interactions"]) == 2
    assert "half_sleep, half_nap on root: 4 arms" in capsys.readouterr().err


def test_a_study_measures_where_the_campaign_did(stacked):
    job = study_job(stacked, "default", [])
    assert (job.workload, job.tracking, job.protocol.pairs) == ("tiny", "none", 4)
    assert job.arm("root", "root", []).config["nap"] == 0.04
    assert not any(text.startswith("hypothesis") for text in job.overrides)


def test_words_given_with_a_study_win_over_those_recorded(stacked):
    job = study_job(stacked, "default", ["workload.nap=0.05", "protocol=quick"])
    root = job.arm("root", "root", [])
    assert (root.config["nap"], root.config["sleep"]) == (0.05, 0.04)
    assert job.protocol.name == "quick"
    assert job.protocol.pairs != 4, "another protocol comes without the words for the one before"


@pytest.mark.slow
def test_a_null_or_a_first_look_since_does_not_change_how_a_campaign_measures(stacked, monkeypatch):
    monkeypatch.setattr(measure, "run_round", interrupt)
    place = [*WAITS, "protocol.pairs=6"]
    assert main([*place, "hypothesis=aa_null"]) == 130
    assert main([*place, "hypothesis=more_work", "protocol=quick"]) == 130
    assert kinds(stacked).count("registered") == 5
    job = study_job(stacked, "default", [])
    assert (job.protocol.pairs, job.protocol.name) == (4, "standard")


@pytest.mark.parametrize(
    "verb", [["hypothesis=more_work"], ["revalidate"], ["interactions", "half_sleep", "more_work", "--yes"]]
)
def test_edits_of_one_root_are_not_stacked_on_another(stacked, capsys, verb):
    lines = kinds(stacked)
    words = [*verb, *(WAITS if verb[0].startswith("hyp") else []), "workload.nap=0.2", "workload.sleep=0.05"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert (
        "workload.nap is 0.2 here and 0.04, workload.sleep is 0.05 here and 0.04 where half_sleep was accepted" in said
    )
    assert "workload.nap=0.04 workload.sleep=0.04" in said and "campaign.name=OTHER" in said
    assert kinds(stacked) == lines, "nothing was declared"


def test_a_knob_that_the_workload_gained_is_no_other_root(stacked):
    code, file = stacked / "tiny.py", stacked / "conf/workload/tiny.yaml"
    code.write_text(code.read_text().replace("tensors=False,", "tensors=False,\n        knob=0,"))
    file.write_text(file.read_text().replace("  tensors: false\n", "  tensors: false\n  knob: 0\n"))
    with open_ledger(stacked, "default", writable=False) as ledger:
        job = study_job(stacked, "default", [])
        assert job.arm("root", "root", []).config["knob"] == 0
        assert [one.name for one in accepted_here(job, ledger)] == ["half_sleep", "half_nap"]


def test_the_root_of_two_arms_on_a_stack_is_that_of_the_edit_beneath(stacked):
    with open_ledger(stacked, "default", writable=True) as ledger:
        beneath = ledger.stack()[0]
        ledger.revoke(beneath.id, "for a test")
        assert [one.name for one in accepted_here(study_job(stacked, "default", []), ledger)] == ["half_nap"]
        with pytest.raises(BadInput, match=r"workload\.nap is 0\.2 here and 0\.04 where half_nap was accepted"):
            accepted_here(study_job(stacked, "default", ["workload.nap=0.2"]), ledger)


@pytest.mark.slow
def test_a_plan_on_a_stack_that_moved_before_its_own_line_is_composed_again(stacked, monkeypatch):
    declare = importlib.import_module("campaign.run.declare")  # whose name in the package is its function
    real, moved = declare.compose_arms, []

    def then_a_person_reverts(job, ledger):
        arms = real(job, ledger)
        if not moved:
            moved.append(main(["stack", "--revert", "half_nap", "--why", "another process says so"]))
        return arms

    monkeypatch.setattr(declare, "compose_arms", then_a_person_reverts)
    assert main([*WAITS, "hypothesis=more_work", "protocol.arms=2", "protocol.looks=[2]"]) == 0
    with open_ledger(stacked, "default", writable=False) as ledger:
        plan, decision = ledger.plans()[-1], ledger.decisions()[-1]
        assert kinds(stacked).count("registered") == 4, "the stale plan was never declared"
    assert moved == [0] and plan.stack == ("half_sleep",)
    assert decision.verdict.reason != "stale"


def test_two_edits_of_one_key_are_not_combined_and_the_remedy_is_to_name_one(study_project, capsys):
    assert main(["interactions", "half_sleep", "no_sleep", "--yes", *WAITS]) == 2
    assert "name only one of the two" in capsys.readouterr().err
    assert not (study_project / "runs/default").exists()


def test_a_refused_run_leaves_no_folder(study_project):
    assert main([*WAITS, "hypothesis=leaning", "campaign.name=fresh"]) == 2
    assert not (study_project / "runs/fresh").exists()


@pytest.mark.parametrize("sentence", ["no finding: too few of the arms ran", ""])
@pytest.mark.slow
def test_a_finding_that_says_there_is_none_is_no_finding(stacked, sentence):
    assert main(["interactions", "half_sleep", "half_nap", "--rounds", "2", "--yes"]) == 0
    (found,) = findings(stacked)
    assert conduct.says_something(found)
    told = replace(found, finding=replace(found.finding, sentence=sentence or found.finding.sentence))
    assert conduct.says_something(told) is (sentence == "")


def test_a_study_elsewhere_or_of_a_campaign_that_is_not_there_or_named_twice_is_refused(stacked, capsys):
    with pytest.raises(UnknownName, match="no campaign 'defalt'"):
        study_job(stacked, "defalt", [])
    with pytest.raises(BadInput, match="no hypothesis is chosen"):
        study_job(stacked, "default", ["hypothesis.null=true"])
    (stacked / "conf" / "workload" / "other.yaml").write_text((stacked / "conf" / "workload" / "tiny.yaml").read_text())
    for verb in (["revalidate"], ["interactions", "half_sleep", "half_nap", "--yes"]):
        assert main([*verb, "workload=other"]) == 2
        assert "belongs to tiny on cpu, and this is other on cpu" in capsys.readouterr().err
    assert main(["revalidate", "--campaign", "other", "campaign.name=default"]) == 2
    assert "say the same thing twice" in capsys.readouterr().err
