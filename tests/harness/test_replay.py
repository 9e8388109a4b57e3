"""A decision measured again from its own commit and patch, on real repositories and real processes."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from campaign import provenance
from campaign.cli import main
from campaign.errors import BadInput
from campaign.ledger import open_ledger
from campaign.run.replay import _same_code

BASE = ["workload=tiny", "tracking=none"]
# 50 ms of waiting against 10 ms, beside well under 1 ms of work.
SHORTER = ["hypothesis=no_sleep", "workload.sleep=0.05", "hypothesis.edit.overrides=['workload.sleep=0.01']"]


@pytest.fixture
def repository(project, git):
    """The project in a repository of its own, with one commit."""
    (project / ".gitignore").write_text("/runs/*\n__pycache__/\n")
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    return project


def says(project, text):
    """Make the workload's facts, which every trial records, say `text` and where its module was imported from."""
    tiny = project / "tiny.py"
    before = '"dataset": "fixed"'
    source = tiny.read_text()
    assert before in source
    tiny.write_text(source.replace(before, f'{before}, "says": {text!r}, "file": __file__'))


def ledger_of(project):
    return open_ledger(project, "default", writable=False)


def worktrees(git, project):
    return git(project, "worktree", "list", "--porcelain").count("worktree ")


def decide(*words):
    assert main([*BASE, *words]) in (0, 3)


@pytest.mark.slow
def test_a_decision_is_measured_again_from_its_own_commit_and_patch(repository, git, capsys):
    says(repository, "then")  # a change that no commit holds
    (repository / "beside.py").write_text("x = 1\n")  # nor this file
    decide(*SHORTER)
    with ledger_of(repository) as ledger:
        (decision,) = ledger.decisions()
        stack = ledger.stack_rows()
    git(repository, "checkout", "-q", "--", "tiny.py")
    (repository / "tiny.py").write_text("raise ImportError('this is what came later')\n")
    (repository / "conf" / "workload" / "tiny.yaml").unlink()
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "everything is other now")
    capsys.readouterr()

    assert main(["replay", "no_sleep", "--json"]) == 0

    said = json.loads(capsys.readouterr().out)
    assert said["schema"] == 1 and said["decision"]["sequence"] == 1
    assert said["decision"]["recorded"]["ratio"] == decision.verdict.effect.ratio
    # At most 5 by the planted waits; whatever else the machine does takes from it.
    assert 1.5 < said["again"]["ratio"] < 6 and said["again"]["rounds"] == 2
    assert said["machine"] == {} and said["notices"] == []
    place = Path(said["imported_from"])
    assert not place.exists() and worktrees(git, repository) == 1
    with ledger_of(repository) as ledger:
        (found,) = ledger.findings()
        evidence = ledger.study_evidence(found.study_id)
        assert (len(ledger.decisions()), ledger.stack_rows()) == (1, stack)
        plan = ledger.plan(decision.plan_id)
    study = evidence.study
    assert (study.kind, study.of, study.code) == ("replay", decision.id, plan.code)
    assert study.arms == (plan.control, plan.treatment)
    assert all(study.source[key] == plan.source[key] for key in ("commit", "patch_sha256"))
    # Each trial says itself which module it ran, and where that lay.
    facts = [trial.facts for one in evidence.rounds for trial in one.trials]
    assert len(facts) == 4
    assert {(one["says"], one["file"]) for one in facts} == {("then", str(place / "tiny.py"))}
    assert main(["ledger", "--check"]) == 0

    assert main(["replay", "1", "--rounds", "3"]) == 0
    out = capsys.readouterr().out
    assert "beside what is recorded:" in out and "(decision 1, " in out
    with ledger_of(repository) as ledger:
        assert [one.finding.valid_rounds for one in ledger.findings()] == [2, 3]
        assert ledger.unfinished_studies() == []


@pytest.mark.slow
def test_a_project_below_the_top_of_its_repository_is_replayed(project, git, capsys):
    top = project.parent / "top"
    top.mkdir()
    os.rename(project, top / "inner")
    os.chdir(top / "inner")
    git(top, "init", "-q")
    (top / ".gitignore").write_text("runs\n")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "first")
    decide("hypothesis=more_sleep")
    capsys.readouterr()
    assert main(["replay", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert Path(said["imported_from"]).name == "inner"
    assert said["again"]["ratio"] < 0.5  # 60 ms of waiting were added to well under 1 ms


@pytest.mark.slow
def test_a_decision_without_a_ratio_is_replayed_beside_nothing(repository, capsys):
    decide("hypothesis=no_sleep", "hypothesis.edit.overrides=['workload.scale=1.5']")
    with ledger_of(repository) as ledger:
        assert ledger.decisions()[0].verdict.reason == "parity"
    capsys.readouterr()
    assert main(["replay", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["decision"]["recorded"], said["compared"]) == (None, "nothing to compare")


def test_an_arm_that_fails_again_is_a_finding_without_numbers(repository, capsys):
    decide("hypothesis=broken")
    capsys.readouterr()
    assert main(["replay", "broken", "--json"]) == 3
    said = json.loads(capsys.readouterr().out)
    assert said["again"] is None and "treatment" in said["finding"]["finding"]["failed"]


# Of these decisions none has a round: no_sleep changes nothing here, which the probe says.


def refused(capsys, *words):
    """What is said of a replay that is refused, after nothing was timed."""
    capsys.readouterr()
    assert main(["replay", *words]) == 2
    return capsys.readouterr().err


def kinds(project):
    return [json.loads(line)["kind"] for line in (project / "runs/default/ledger.jsonl").read_text().splitlines()]


def test_a_source_file_that_git_ignores_is_named_and_nothing_is_timed(repository, git, capsys):
    with (repository / ".gitignore").open("a") as file:
        file.write("generated.py\n")
    git(repository, "commit", "-qam", "ignore")
    (repository / "kernels").mkdir()
    (repository / "kernels" / "generated.py").write_text("x = 1\n")
    decide("hypothesis=no_sleep")
    said = refused(capsys, "1")
    assert "is not the code that ran" in said and "kernels/generated.py" in said
    assert "study" not in kinds(repository) and worktrees(git, repository) == 1
    # Once the file is gone here too, which part differs is what the plan recorded.
    (repository / "kernels" / "generated.py").unlink()
    assert "what differs: kernels" in refused(capsys, "1")


def test_a_module_that_would_come_from_the_project_itself_is_refused(repository, git, capsys):
    # No part of the hash: neither the target's module nor in models/, kernels/ or conf/.
    with (repository / ".gitignore").open("a") as file:
        file.write("tuned.py\n")
    tiny = repository / "tiny.py"
    tiny.write_text(tiny.read_text().replace("import fcntl\n", "import fcntl\nimport tuned\n"))
    git(repository, "commit", "-qam", "tuned")
    (repository / "tuned.py").write_text("x = 1\n")
    decide("hypothesis=no_sleep")
    said = refused(capsys, "1")
    assert f"would import tuned from {repository / 'tuned.py'}" in said
    assert "study" not in kinds(repository) and worktrees(git, repository) == 1


def test_a_decision_measured_outside_a_repository_says_that_its_code_was_not_recorded(project, git, capsys):
    decide("hypothesis=no_sleep")
    said = refused(capsys, "1")
    assert "the code of decision 1 (no_sleep) was not recorded" in said and "git init" in said


def test_a_commit_that_is_gone_is_said_before_anything_is_timed(repository, git, capsys):
    decide("hypothesis=no_sleep")
    (repository / ".git").rename(repository / "old.git")
    assert "is not inside a git repository" in refused(capsys, "1")
    git(repository, "init", "-q")
    assert "the commit" in (said := refused(capsys, "1")) and "is not in" in said
    assert "study" not in kinds(repository)


def test_a_patch_that_was_altered_or_lost_is_refused(repository, capsys):
    says(repository, "then")
    decide("hypothesis=no_sleep")
    (patch,) = (repository / "runs/default/raw").glob("*.patch")
    patch.write_bytes(patch.read_bytes() + b"\n")
    assert "was altered since it was recorded" in refused(capsys, "1")
    patch.unlink()
    assert "cannot be read" in refused(capsys, "1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no_slep"], "did you mean 'no_sleep'?"),
        (["9"], "there is no decision '9'"),
        ([], "takes one decision"),
        (["1", "2"], "takes one decision"),
        (["1", "--rounds", "1"], "at least 2"),
        (["1", "--campaign", "other"], "there is no campaign 'other'"),
    ],
)
def test_what_cannot_be_asked_is_said(repository, capsys, words, said):
    if not (repository / "runs" / "default").exists():
        decide("hypothesis=no_sleep")
    assert said in refused(capsys, *words)


def test_another_campaign_on_the_same_arms_is_told_from_another_code(repository, capsys):
    decide("hypothesis=no_sleep")
    with ledger_of(repository) as ledger:
        (plan,) = ledger.plans()
    targets = ["tiny.Tiny"]
    assert plan.source["code_parts"] == provenance.code_parts(repository, targets)
    assert set(plan.source["code_parts"]) == {"campaign", "conf", "tiny.py"}
    assert _same_code(repository, repository, plan) == []
    other = {**plan.source["code_parts"], "campaign": "as it was"}
    (notice,) = _same_code(
        repository, repository, replace(plan, code="then", source={**plan.source, "code_parts": other})
    )
    assert "campaign itself has changed since" in notice
    other["conf"] = "as it was"
    with pytest.raises(BadInput, match=r"what differs: conf\)"):
        _same_code(repository, repository, replace(plan, code="then", source={**plan.source, "code_parts": other}))


def test_a_project_that_is_campaigns_own_repository_is_compared_with_the_campaign_of_its_commit(repository):
    decide("hypothesis=no_sleep")
    with ledger_of(repository) as ledger:
        (plan,) = ledger.plans()
    (repository / "campaign").mkdir()
    (repository / "campaign" / "worker.py").write_text("print('an older one')\n")
    code = provenance.code_hash(repository, ["tiny.Tiny"], package=repository / "campaign")
    older = replace(plan, code=code, source={key: plan.source[key] for key in plan.source if key != "code_parts"})
    (notice,) = _same_code(repository, repository, older)
    assert "campaign itself has changed since" in notice
