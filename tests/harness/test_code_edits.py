"""Edits of code measured end to end: real repositories, real processes, the tiny workload with planted work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from campaign.cli import main
from campaign.config import jobs
from campaign.ledger import open_ledger
from campaign.run.declare import compose_arms
from campaign.run.trees import moved
from tests.builders import plan

BASE = ["workload=tiny", "tracking=none", "protocol.suspect_ratio=9", "protocol.looks=[3]", "protocol.confirm_rounds=3"]
CODE = """\
# @package _global_
hypothesis:
  claim: A claim for a test.
  mechanism: a planted change
  acts_on: dispatch
  predicted_ratio: 2.0
  parity: {kind: bitwise}
  edit: {EDIT}
"""
WORK, SLEEP = 'range(self.config["work"])', 'time.perf_counter() + self.config["sleep"]'


@pytest.fixture
def repository(project, git):
    """The project in a repository, with two branches beside main: `shorter` waits 10 ms where main waits 40, and
    `clashing` changes the same line."""
    (project / ".gitignore").write_text("/runs/*\n__pycache__/\n")
    for name, edit in (("shorter", "{ref: shorter}"), ("clashing", "{ref: clashing}"), ("dirty", "{worktree: dirty}")):
        (project / "conf" / "hypothesis" / f"{name}.yaml").write_text(CODE.replace("{EDIT}", edit))
    tiny = project / "tiny.py"
    tiny.write_text(tiny.read_text().replace(SLEEP, "time.perf_counter() + 0.04"))
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    for name, seconds in (("shorter", "0.01"), ("clashing", "0.02")):
        git(project, "switch", "-q", "-c", name)
        tiny.write_text(tiny.read_text().replace("+ 0.04", f"+ {seconds}"))
        git(project, "commit", "-qam", name)
        git(project, "switch", "-q", "main")
    return project


def ledger_of(project):
    return open_ledger(project, "default", writable=False)


def test_a_branch_is_accepted_and_the_next_edit_stands_on_its_patch(repository, git, capsys):
    status, branches = git(repository, "status", "--porcelain"), git(repository, "for-each-ref")
    first = git(repository, "rev-parse", "HEAD").strip()
    assert main([*BASE, "hypothesis=shorter"]) == 0
    with ledger_of(repository) as ledger:
        (decision,) = ledger.decisions()
        found = ledger.plan(decision.plan_id)
    assert decision.verdict.verdict == "accept" and decision.verdict.effect.ratio > 2  # 40 ms against 10
    assert found.control.code.commit == found.treatment.code.commit == first
    assert found.control.code.patches == () and len(found.treatment.code.patches) == 1
    about = found.source["edits"]["shorter"]
    assert about["commit"] == git(repository, "rev-parse", "shorter").strip() and about["base"] == first
    assert about["patch_sha256"] == found.treatment.code.patches[0]
    assert (repository / "runs" / "default" / "raw" / f"{about['patch_sha256']}.patch").is_file()
    assert (git(repository, "status", "--porcelain"), git(repository, "for-each-ref")) == (status, branches)
    assert git(repository, "worktree", "list", "--porcelain").count("worktree ") == 1

    # An edit of configuration on this stack runs the stack's code in every arm, whatever the user's tree holds now.
    (repository / "tiny.py").write_text("raise ImportError('not the code of any arm')\n")
    other = ["hypothesis=half_sleep", "hypothesis.edit.overrides=['workload.work=400']", "protocol=quick"]
    assert main([*BASE, *other]) == 0
    with ledger_of(repository) as ledger:
        found = ledger.plan(ledger.decisions()[-1].plan_id)
    patches = (about["patch_sha256"],)
    codes = {arm.role: arm.code.patches for arm in found.arms}
    assert codes == {"control": patches, "treatment": patches, "root": (), "solo": ()}

    capsys.readouterr()
    assert main([*BASE, "hypothesis=clashing"]) == 2
    said = capsys.readouterr().err
    assert "clashing: its patch no longer applies on the stack: shorter, accepted before it, changes tiny.py" in said
    assert "campaign stack --campaign default --revert shorter" in said
    assert main(["ledger", "--check"]) == 0

    # Its arms are the recorded commit and patches: the broken file of today takes no part.
    assert main(["replay", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["again"]["ratio"] > 2


def test_the_dirty_tree_is_measured_against_head_and_an_import_of_the_users_own_tree_is_refused(
    repository, git, capsys
):
    tiny = repository / "tiny.py"
    tiny.write_text(
        tiny.read_text().replace("+ 0.04", "+ 0.01").replace("import numpy\n", "import numpy\nimport beside\n")
    )
    (repository / "beside.py").write_text("x = 1\n")
    before = tiny.read_text()
    assert main([*BASE, "hypothesis=dirty"]) == 0
    assert "ACCEPTED" in capsys.readouterr().out and tiny.read_text() == before

    tiny.write_text(
        before.replace("import beside", f"import sys\nsys.path.insert(0, {str(repository)!r})\nimport beside")
    )
    (repository / ".gitignore").write_text("/runs/*\n__pycache__/\nbeside.py\n")  # no worktree has it now
    assert main([*BASE, "hypothesis=dirty", "campaign.name=other"]) == 3
    said = capsys.readouterr().out
    assert "(wrong_copy)" in said and f"treatment imported beside ({repository / 'beside.py'})" in said


def test_a_branch_that_moved_or_a_head_that_did_is_other_code(repository, git):
    (job,) = jobs(repository, [*BASE, "hypothesis=shorter"])
    with open_ledger(repository, "default", writable=True) as ledger:
        arms = compose_arms(job, ledger)
        then = plan(arms.control, arms.treatment, hypothesis=job.hypothesis)
        assert not moved(job, ledger, then)
        (repository / "later.txt").touch()
        git(repository, "add", "-A")
        git(repository, "commit", "-qm", "later")
        assert moved(job, ledger, then)
        git(repository, "reset", "-q", "--hard", "HEAD~")
        assert not moved(job, ledger, then)
        git(repository, "branch", "-f", "shorter", "clashing")
        assert moved(job, ledger, then)
        git(repository, "branch", "-D", "shorter")
        assert moved(job, ledger, then)


@pytest.mark.parametrize(
    ("words", "said", "remedy"),
    [
        (["hypothesis=dirty"], "the working tree is clean", "edit.ref=BRANCH"),
        (["hypothesis=dirty", "edit.ref=shorter"], "has ref and worktree", "keep one"),
        (["hypothesis=shorter", "edit.ref=--output"], "may not start with '-'", "hypothesis.edit.ref=NAME"),
        (["hypothesis=shorter", "edit.ref=gone"], "no branch, tag or commit", "git branch --all"),
        (["hypothesis=dirty", "edit.worktree=clean"], "is called 'dirty'", "worktree=dirty"),
        (["edit.ref=shorter"], "null: true and has an edit", "aa_null"),
    ],
)
def test_an_edit_of_code_that_is_none_is_bad_input_before_anything_starts(repository, words, said, remedy, capsys):
    assert main([*BASE, *words]) == 2
    error = capsys.readouterr().err
    assert said in error and remedy in error
    assert not list(Path(repository, "runs").glob("*/raw/*.jsonl"))


def test_a_change_of_conf_alone_is_no_edit_of_code(repository, capsys):
    workload = repository / "conf" / "workload" / "tiny.yaml"
    workload.write_text(workload.read_text().replace("work: 20", "work: 30"))
    assert main([*BASE, "hypothesis=dirty"]) == 2
    assert "changes conf/workload/tiny.yaml and no code" in capsys.readouterr().err


def test_without_a_repository_the_next_command_is_said(project, git, capsys):
    (project / "conf" / "hypothesis" / "dirty.yaml").write_text(CODE.replace("{EDIT}", "{worktree: dirty}"))
    assert main([*BASE, "hypothesis=dirty"]) == 2
    assert "git init && git add -A && git commit" in capsys.readouterr().err
