"""`campaign try`: real repositories, real trials of the tiny workload, with more work planted and none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from campaign.cli import main
from campaign.ledger import open_ledger
from campaign.run import tries
from tests.builders import PROJECT, laid_down

# 6,000 passes take some 10 ms, so that twice the work is twice the step. d is 60 %: what a busy machine does to equal
# code stays within it, and three times the work does not.
WORDS = ["workload=tiny", "workload.work=6000", "protocol.looks=[3]", "protocol.pairs=4", "protocol.min_effect=0.6"]
WORK = 'range(self.config["work"])'


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """The project, in no repository."""
    return laid_down(PROJECT, tmp_path, monkeypatch)


@pytest.fixture
def repository(outside, git):
    (outside / ".gitignore").write_text("/runs/*\n__pycache__/\n")
    git(outside, "init", "-q")
    git(outside, "add", "-A")
    git(outside, "commit", "-qm", "first")
    return outside


def rewrite(repository, old, new):
    tiny = repository / "tiny.py"
    text = tiny.read_text()
    assert old in text
    tiny.write_text(text.replace(old, new))


def head(git, repository):
    return git(repository, "rev-parse", "HEAD").strip()


@pytest.mark.parametrize(
    ("words", "said", "remedy"),
    [
        ([], "the working tree is clean: there is nothing to measure against HEAD", "campaign try --base BRANCH"),
        (["--base", "main"], "adds nothing to main and the working tree is clean", "--base BRANCH"),
        (["--base", "nowhere"], "--base=nowhere: no branch, tag or commit", "git branch --all"),
        (["--base=--help-me"], "not starting with '-'", "--base=NAME"),
        (["--base", ""], "--base needs a branch", "campaign try --base main"),
        (["hypothesis=more_sleep"], "a try says itself what is compared", "edit.ref=BRANCH"),
        (["campaign.name=mine"], "has its own ledger (runs/try)", "leave it out"),
        (["--workload", "tinny"], "did you mean 'tiny'", "campaign try --workload tiny"),
        (["--parity", "near"], "--parity 'near': one of bitwise", "--parity loss"),
        (["--out", "nowhere/try.md"], "cannot write nowhere/try.md", "--out FILE"),
        (["--json", "--export", "md"], "two forms of one answer", "leave one of them out"),
    ],
)
def test_what_cannot_be_tried_is_bad_input_with_the_next_command(repository, words, said, remedy, capsys):
    assert main(["try", *words]) == 2
    error = capsys.readouterr().err
    assert said in error and remedy in error
    assert not (repository / "runs" / "try").exists()


def test_without_a_repository_or_a_commit_the_next_command_makes_one(outside, git, capsys):
    assert main(["try"]) == 2
    assert "git init && git add -A && git commit" in capsys.readouterr().err
    git(outside, "init", "-q")
    assert main(["try"]) == 2
    assert "git add -A && git commit" in capsys.readouterr().err


def test_a_fault_of_this_program_is_no_slowdown(repository, monkeypatch, capsys):
    def fault(root):
        raise RuntimeError("planted")

    monkeypatch.setattr(tries.provenance, "head", fault)
    assert main(["try"]) == 3  # Python's own code for it, 1, would say slower
    assert "RuntimeError: planted" in capsys.readouterr().err


def test_a_damaged_index_is_bad_input_and_no_slowdown(repository, capsys):
    (repository / ".git" / "index").write_bytes(b"no index")
    assert main(["try"]) == 2
    error = capsys.readouterr().err
    assert "git ls-files failed" in error and "git fsck" in error


def test_a_changed_file_whose_name_is_no_utf8_is_shown_escaped(repository, capsys):
    Path(os.fsdecode(b"bad\xff.py")).write_text("x = 1\n")
    assert main(["try", *WORDS]) in (0, 3)  # 3 on a busy machine
    shown = capsys.readouterr()
    assert "bad\\udcff.py" in shown.out and "Traceback" not in shown.err


def test_more_work_is_slower_and_the_same_work_is_not_and_nothing_joins_a_stack(repository, git, capsys):
    rewrite(repository, WORK, 'range(3 * self.config["work"])')
    (repository / "notes.txt").write_text("a new file\n")
    before = (git(repository, "status", "--porcelain"), (repository / "tiny.py").read_text(), head(git, repository))
    assert main(["try", *WORDS, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["answer"], said["exit_code"], said["d"]) == ("slower", 1, 0.6)
    assert said["before"] == f"HEAD {before[2][:12]}" and said["after"] == "the working tree"
    assert sorted(said["files"]) == ["notes.txt", "tiny.py"]
    assert said["decision"]["verdict"]["effect"]["ratio"] < 1 / 1.6
    assert (
        git(repository, "status", "--porcelain"),
        (repository / "tiny.py").read_text(),
        head(git, repository),
    ) == before
    assert git(repository, "worktree", "list", "--porcelain").count("worktree ") == 1

    git(repository, "checkout", "-q", "--", "tiny.py")
    assert main(["try", *WORDS]) == 0
    out = capsys.readouterr().out
    assert (
        ": the working tree against HEAD" in out
        and "files      notes.txt" in out
        and "SLOWER: the" not in out.split("\n")[0]
    )

    with open_ledger(repository, "try", writable=False) as ledger:
        first, second = ledger.decisions()
        plan = ledger.plan(first.plan_id)
        assert ledger.stack_rows() == [] and second.attempt == 1
    assert plan.protocol.alpha == 0.05 and plan.protocol.beta == 0.01  # the usual ones, changed about
    assert plan.control.code.commit == plan.treatment.code.commit == before[2]
    assert plan.control.code.patches == () and len(plan.treatment.code.patches) == 1
    assert main(["ledger", "--check", "--campaign", "try"]) == 0
    capsys.readouterr()
    assert main(["stack", "--campaign", "try", "--accept", "2", "--why", "it is fine"]) == 2
    assert "joins no stack" in capsys.readouterr().err
    assert main(["workload=tiny", "campaign.name=try", "tracking=none"]) == 2
    assert "has no stack" in capsys.readouterr().err


@pytest.mark.slow
def test_a_branch_is_measured_against_its_merge_base_each_side_with_its_own_conf(repository, git, tmp_path, capsys):
    base = head(git, repository)
    git(repository, "switch", "-q", "-c", "change")
    conf = repository / "conf" / "workload" / "tiny.yaml"
    conf.write_text(conf.read_text().replace("  tensors: false\n", "  tensors: false\n  times: 3\n"))
    rewrite(
        repository, "tensors=False,\n    ):", "tensors=False,\n        times=1,\n    ):\n        self.times = times"
    )
    rewrite(repository, WORK, 'range(self.times * self.config["work"])')
    git(repository, "commit", "-qam", "change")
    tip = head(git, repository)
    git(repository, "switch", "-q", "main")
    (repository / "later.txt").write_text("main went on\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "later")
    git(repository, "switch", "-q", "change")
    (repository / "dirty.txt").write_text("and the tree is dirty\n")

    page = tmp_path / "try.md"
    assert main(["try", "--base", "main", *WORDS, "--export", "md", "--out", str(page)]) == 1
    assert capsys.readouterr().out == ""
    lines = page.read_text().splitlines()
    header = next(line for line in lines if line.startswith("| "))
    assert f"{base[:12]}, where it left main" in header and f"HEAD {tip[:12]} and the working tree" in header
    assert lines[0].startswith("**slower**: slower: 0.") and any(
        line.startswith("| step (wall time)") for line in lines
    )
    with open_ledger(repository, "try", writable=False) as ledger:
        plan = ledger.plan(ledger.decisions()[0].plan_id)
    assert "times" not in plan.control.config and plan.treatment.config["times"] == 3
    assert (plan.control.code.commit, plan.treatment.code.commit) == (base, tip)
    assert len(plan.treatment.code.patches) == 1 and plan.hypothesis.asks == "slower"
    assert plan.command.startswith("python -m campaign try --base main workload=tiny")
