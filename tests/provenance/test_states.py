from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import campaign
from campaign import provenance
from tests.provenance.trees import applied, change

ROOT = Path(campaign.__file__).parent.parent

Git = Callable[..., str]


def test_a_detached_head_has_a_commit_and_no_branch(project: Path, git: Git) -> None:
    git(project, "checkout", "-q", "--detach")
    source = provenance.snapshot(project).source
    assert (source["status"], source["branch"], source["detached"]) == ("ok", None, True)
    assert source["commit"] == git(project, "rev-parse", "HEAD").strip()


def test_a_shallow_clone_says_so(tmp_path: Path, project: Path, git: Git) -> None:
    (project / "models" / "block.py").write_text("second\n")
    git(project, "commit", "-qam", "second")
    git(project, "clone", "-q", "--depth=1", project.as_uri(), str(tmp_path / "shallow"))
    (tmp_path / "shallow" / "x.py").write_text("x = 1\n")
    source = provenance.snapshot(tmp_path / "shallow").source
    assert source["status"] == "ok" and source["shallow"] and source["patch_bytes"] > 0


def test_a_linked_worktree_is_its_own_tree(tmp_path: Path, project: Path, git: Git) -> None:
    git(project, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    (tmp_path / "tree" / "models" / "block.py").write_text("changed here\n")
    assert provenance.snapshot(tmp_path / "tree").source["dirty"] and not provenance.snapshot(project).source["dirty"]
    assert b"changed here" in provenance.snapshot(tmp_path / "tree").patch


def test_a_project_below_the_top_takes_the_whole_repository(project: Path) -> None:
    (project / "no_newline.txt").write_text("outside the project\n")
    (project / "models" / "runs").mkdir()
    (project / "models" / "runs" / "out.txt").touch()
    snapshot = provenance.snapshot(project / "models")
    source, patch = snapshot.source, snapshot.patch
    assert source["status"] == "ok" and b"outside the project" in patch and b"out.txt" not in patch


def test_no_commit_yet_is_a_status_and_the_files_are_the_patch(tmp_path: Path, git: Git) -> None:
    folder = tmp_path / "unborn"
    folder.mkdir()
    git(folder, "init", "-q")
    assert provenance.snapshot(folder).source["status"] == "no_commit"
    (folder / "a.py").write_text("a = 1")
    snapshot = provenance.snapshot(folder)
    assert (snapshot.source["status"], snapshot.source["commit"], snapshot.source["branch"]) == (
        "no_commit",
        "",
        "main",
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "p").write_bytes(snapshot.patch)
    git(empty, "apply", str(tmp_path / "p"))
    assert (empty / "a.py").read_text() == "a = 1"


def test_no_repository_is_a_status(tmp_path: Path, git: Git) -> None:
    for folder in (tmp_path, tmp_path / "not there"):
        source = provenance.snapshot(folder).source
        assert source["status"] == "no_repository" and source["reason"] and provenance.snapshot(folder).patch == b""


def test_a_bare_repository_is_no_repository_to_measure_in(tmp_path: Path, git: Git, project: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(project), "bare")
    source = provenance.snapshot(tmp_path / "bare").source
    assert source["status"] == "no_repository" and "bare" in source["reason"]


def test_a_folder_of_another_owner_is_unsafe(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    source = provenance.snapshot(project).source
    assert source["status"] == "unsafe" and "safe.directory" in source["reason"]
    assert provenance.snapshot(project).patch == b""


def test_a_damaged_repository_is_a_status(project: Path) -> None:
    shutil.rmtree(project / ".git" / "objects")
    (project / ".git" / "objects").mkdir()
    source = provenance.snapshot(project).source
    assert source["status"] in ("error", "no_commit") and source["reason"]


@pytest.mark.parametrize("first", ["", "import git; "])
def test_no_git_on_path_is_a_status_before_and_after_gitpython_was_loaded(project: Path, first: str) -> None:
    code = f"""
{first}import os, pathlib
os.environ["PATH"] = ""
from campaign import provenance
source = provenance.snapshot(pathlib.Path({str(project)!r})).source
print(source["status"], "|", source["reason"], "|", provenance.snapshot(pathlib.Path({str(project)!r})).patch)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "no_git | there is no git on PATH | b''"


def test_variables_of_a_git_hook_do_not_point_elsewhere(
    tmp_path: Path, project: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(project)
    plain = provenance.snapshot(project)
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "index"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "/bin/true")
    assert provenance.snapshot(project) == plain


def test_a_changed_submodule_and_a_nested_repository_are_listed(tmp_path: Path, project: Path, git: Git) -> None:
    inner = tmp_path / "inner"
    shutil.copytree(project, inner)
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    git(project, "commit", "-qm", "with a submodule")
    assert not provenance.snapshot(project).source["dirty"]
    git(project / "sub", "commit", "-q", "--allow-empty", "-m", "moved on")
    shutil.copytree(inner, project / "nested")
    source = provenance.snapshot(project).source
    left = sorted(source["left_out"])
    assert source["status"] == "ok" and len(left) == 2
    assert left[0].startswith("nested/: a repository") and left[1].startswith("sub: a submodule")


def test_files_that_a_filter_rewrites_are_left_out_without_running_it(project: Path, git: Git, tmp_path: Path) -> None:
    (project / ".gitattributes").write_text("*.bin filter=lfs -text\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "attributes")
    with (tmp_path / "home" / ".gitconfig").open("a") as file:
        file.write('[filter "lfs"]\nclean = /bin/false\nsmudge = /bin/false\nrequired = true\n')
    (project / "weights.bin").write_bytes(b"other")
    source = provenance.snapshot(project).source
    assert source["status"] == "ok" and source["left_out"] == ["weights.bin: the git filter 'lfs' rewrites it"]


def test_files_marked_skip_worktree_are_not_deletions(project: Path, git: Git) -> None:
    git(project, "update-index", "--skip-worktree", "weights.bin")
    (project / "weights.bin").unlink()
    assert not provenance.snapshot(project).source["dirty"]


def test_an_unmerged_index_is_recorded_as_it_lies_in_the_tree(tmp_path: Path, project: Path, git: Git) -> None:
    git(project, "checkout", "-qb", "side")
    (project / "no_newline.txt").write_text("side\n")
    git(project, "commit", "-qam", "side")
    git(project, "checkout", "-q", "main")
    (project / "no_newline.txt").write_text("main\n")
    git(project, "commit", "-qam", "main")
    with pytest.raises(subprocess.CalledProcessError):
        git(project, "merge", "side")
    snapshot = provenance.snapshot(project)
    assert snapshot.source["status"] == "ok" and b"<<<<<<<" in snapshot.patch
    clean = applied(tmp_path, git, project, snapshot.patch)
    assert (clean / "no_newline.txt").read_bytes() == (project / "no_newline.txt").read_bytes()
