"""A recorded commit and patch as files again, from real repositories."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import campaign
from campaign import provenance
from campaign.errors import BadInput
from campaign.provenance import worktree
from tests.provenance.trees import change, contents, state

ROOT = Path(campaign.__file__).parent.parent

Git = Callable[..., str]


def head(git: Git, folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD").strip()


def listed(git: Git, folder: Path) -> int:
    """How many worktrees git knows of, the main one among them."""
    return git(folder, "worktree", "list", "--porcelain").count("worktree ")


def test_a_dirty_tree_comes_back_with_its_binary_untracked_renamed_and_removed_files(project: Path, git: Git) -> None:
    change(project)
    snapshot = provenance.snapshot(project)
    wanted = contents(project)
    (project / "models" / "block.py").write_text("what came later\n")
    git(project, "checkout", "-q", "-b", "later")
    git(project, "commit", "-qam", "later")
    with worktree(project, snapshot.source["commit"], snapshot.patch) as tree:
        assert contents(tree) == wanted
        # What a snapshot of it records is what was recorded: a replay says so of its own arms.
        again = provenance.snapshot(tree).source
        assert (again["commit"], again["patch_sha256"]) == (
            snapshot.source["commit"],
            snapshot.source["patch_sha256"],
        )
        assert again["detached"]
        assert (project / "models" / "block.py").read_text() == "what came later\n"
    assert not tree.exists() and listed(git, project) == 1


def test_nothing_of_the_users_is_touched_and_nothing_stays(project: Path, git: Git) -> None:
    (project / "models" / "block.py").write_text("dirty\n")
    git(project, "add", "models/block.py")
    (project / "models" / "block.py").write_text("dirtier\n")
    before, files, status = state(project), contents(project), git(project, "status", "--porcelain")
    with worktree(project, head(git, project)) as tree:
        assert "line 7\n" in (tree / "models" / "block.py").read_text()
        assert not provenance.snapshot(tree).source["dirty"]
    assert (state(project), contents(project), git(project, "status", "--porcelain")) == (before, files, status)


def test_the_worktree_goes_when_the_block_raises(project: Path, git: Git) -> None:
    with pytest.raises(ZeroDivisionError), worktree(project, head(git, project)) as tree:
        raise ZeroDivisionError
    assert not tree.parent.exists() and listed(git, project) == 1


def test_a_detached_head_and_a_linked_worktree_can_be_the_place_to_start_from(
    tmp_path: Path, project: Path, git: Git
) -> None:
    git(project, "checkout", "-q", "--detach")
    linked = tmp_path / "linked"
    git(project, "worktree", "add", "-q", "--detach", str(linked))
    for folder in (project, linked):
        with worktree(folder, head(git, project)) as tree:
            assert (tree / "weights.bin").read_bytes() == bytes(range(256))
    assert listed(git, project) == 2


def test_a_project_below_the_top_is_found_below_the_top(project: Path, git: Git) -> None:
    with worktree(project / "models", head(git, project)) as tree:
        assert tree.name == "models" and (tree / "block.py").is_file() and (tree.parent / "no_newline.txt").is_file()
    git(project, "mv", "models", "moved")
    git(project, "commit", "-qm", "moved")
    with (
        pytest.raises(BadInput, match="no folder moved"),
        worktree(project / "moved", git(project, "rev-parse", "HEAD~1").strip()),
    ):
        pass


def test_each_of_two_worktrees_imports_its_own_module(project: Path, git: Git) -> None:
    (project / "models" / "__init__.py").touch()
    (project / "models" / "block.py").write_text("answer = 'before'\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "before")
    before = head(git, project)
    (project / "models" / "block.py").write_text("answer = 'after'\n")
    git(project, "commit", "-qam", "after")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import models.block as one; print(one.answer, one.__file__)"
    with worktree(project, before) as one, worktree(project, head(git, project)) as other:
        for tree, answer in ((one, "before"), (other, "after")):
            said = subprocess.run(
                [sys.executable, "-c", code, str(tree)], capture_output=True, text=True, check=True, cwd=project
            ).stdout
            assert said.split() == [answer, str(tree / "models" / "block.py")]


def test_a_patch_that_does_not_apply_names_its_file_and_leaves_nothing(project: Path, git: Git) -> None:
    first = head(git, project)
    (project / "models" / "block.py").write_text("rewritten\n")
    git(project, "commit", "-qam", "rewritten")
    (project / "models" / "block.py").write_text("rewritten again\n")
    patch = provenance.snapshot(project).patch
    with pytest.raises(BadInput, match=r"does not apply .*models/block\.py") as caught, worktree(project, first, patch):
        pass
    assert "git -C" in caught.value.remedy and first[:12] in caught.value.remedy
    assert listed(git, project) == 1


def test_a_commit_that_is_gone_says_so(project: Path, git: Git) -> None:
    gone = "0123456789abcdef0123456789abcdef01234567"
    with pytest.raises(BadInput, match="the commit 0123456789ab is not in") as caught, worktree(project, gone):
        pass
    assert f"fetch origin {gone}" in caught.value.remedy
    with pytest.raises(BadInput, match="not recorded"), worktree(project, ""):
        pass


def test_a_commit_beyond_a_shallow_clones_edge_is_fetched_as_the_message_says(
    tmp_path: Path, project: Path, git: Git
) -> None:
    first = head(git, project)
    git(project, "commit", "-q", "--allow-empty", "-m", "second")
    shallow = tmp_path / "shallow"
    git(project, "clone", "-q", "--depth=1", project.as_uri(), str(shallow))
    with pytest.raises(BadInput) as caught, worktree(shallow, first):
        pass
    subprocess.run(caught.value.remedy.split(), check=True, capture_output=True)
    with worktree(shallow, first) as tree:
        assert (tree / "models" / "block.py").is_file()


def test_no_repository_and_no_commit_are_said(tmp_path: Path, git: Git) -> None:
    with pytest.raises(BadInput, match="not inside a git repository"), worktree(tmp_path, "0" * 40):
        pass
    git(tmp_path, "init", "-q")
    with pytest.raises(BadInput, match="is not in"), worktree(tmp_path, "0" * 40):
        pass


def test_a_repository_of_another_owner_says_how_to_trust_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(BadInput) as caught, worktree(project, "0" * 40):
        pass
    assert "safe.directory" in caught.value.remedy


def test_no_git_on_path_is_said(project: Path) -> None:
    code = f"""
import os, pathlib
os.environ["PATH"] = ""
from campaign.errors import BadInput
from campaign.provenance import worktree
try:
    worktree(pathlib.Path({str(project)!r}), "0" * 40).__enter__()
except BadInput as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "there is no git on PATH" in done.stdout and "install git" in done.stdout


def test_hooks_and_settings_of_the_users_do_not_run(project: Path, git: Git, tmp_path: Path) -> None:
    hook = project / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
    hook.chmod(0o755)
    with (tmp_path / "home" / ".gitconfig").open("a") as file:
        file.write("[apply]\nwhitespace = error\n[diff]\nexternal = /bin/false\n[core]\nautocrlf = input\n")
    (project / "models" / "block.py").write_text("blank at the end  \n")
    snapshot = provenance.snapshot(project)
    with worktree(project, snapshot.source["commit"], snapshot.patch) as tree:
        assert (tree / "models" / "block.py").read_bytes() == b"blank at the end  \n"
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def with_submodule(tmp_path: Path, project: Path, git: Git) -> tuple[Path, str]:
    """The project with a submodule `sub`, itself with one `deep`, both moved on since the commit that comes beside."""
    deep, inner = tmp_path / "deep", tmp_path / "inner"
    shutil.copytree(project, deep)
    shutil.copytree(project, inner)
    for outer, module, name in ((inner, deep, "deep"), (project, inner, "sub")):
        git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(module), name)
        git(outer, "commit", "-qm", "with a submodule")
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
    first = head(git, project)
    (project / "sub" / "models" / "block.py").write_text("moved on\n")
    git(project / "sub", "commit", "-qam", "moved on")
    git(project, "commit", "-qam", "moved on")
    return project, first


def test_submodules_come_with_the_files_of_their_own_commit(with_submodule: tuple[Path, str], git: Git) -> None:
    project, first = with_submodule
    with worktree(project, first) as tree:
        assert "line 7\n" in (tree / "sub" / "models" / "block.py").read_text()
        assert "line 7\n" in (tree / "sub" / "deep" / "models" / "block.py").read_text()
    with worktree(project, head(git, project)) as tree:
        assert (tree / "sub" / "models" / "block.py").read_text() == "moved on\n"
    assert [listed(git, folder) for folder in (project, project / "sub", project / "sub" / "deep")] == [1, 1, 1]
    assert not tree.exists()


def test_a_submodule_that_is_not_checked_out_is_refused_and_not_measured_empty(
    with_submodule: tuple[Path, str], git: Git
) -> None:
    project, first = with_submodule
    git(project, "submodule", "--quiet", "deinit", "--force", "sub")
    with pytest.raises(BadInput, match="the submodule sub is not checked out") as caught, worktree(project, first):
        pass
    assert "submodule update --init" in caught.value.remedy
    assert listed(git, project) == 1


@pytest.fixture
def with_lfs(project: Path, git: Git) -> tuple[Path, bytes]:
    """The project with `big.bin` as git-lfs commits it, a pointer, and its content, which lies in the user's tree."""
    content = bytes(range(256)) * 8
    sha256 = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(content)}\n"
    (project / ".gitattributes").write_text("big.bin filter=lfs diff=lfs merge=lfs -text\n")
    (project / "big.bin").write_text(pointer)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "with lfs")
    (project / "big.bin").write_bytes(content)
    return project, content


def test_a_git_lfs_file_has_its_content_from_the_users_tree_or_from_its_store(
    with_lfs: tuple[Path, bytes], git: Git, tmp_path: Path
) -> None:
    project, content = with_lfs
    with (tmp_path / "home" / ".gitconfig").open("a") as file:
        file.write('[filter "lfs"]\nclean = /bin/false\nsmudge = /bin/false\nrequired = true\n')
    with worktree(project, head(git, project)) as tree:
        assert (tree / "big.bin").read_bytes() == content
    sha256 = hashlib.sha256(content).hexdigest()
    store = project / ".git" / "lfs" / "objects" / sha256[:2] / sha256[2:4] / sha256
    store.parent.mkdir(parents=True)
    shutil.move(project / "big.bin", store)
    (project / "big.bin").write_bytes(b"a later content")
    with worktree(project, head(git, project)) as tree:
        assert (tree / "big.bin").read_bytes() == content


def test_a_git_lfs_file_without_its_content_is_refused_unless_the_users_is_a_pointer_too(
    with_lfs: tuple[Path, bytes], git: Git
) -> None:
    project, _ = with_lfs
    pointer = git(project, "cat-file", "blob", "HEAD:big.bin")
    (project / "big.bin").write_bytes(b"a later content")
    with pytest.raises(BadInput, match=r"git-lfs file big\.bin"), worktree(project, head(git, project)):
        pass
    (project / "big.bin").write_text(pointer)
    with worktree(project, head(git, project)) as tree:
        assert (tree / "big.bin").read_text() == pointer


def test_what_a_killed_process_left_goes_with_the_next_and_a_live_ones_stays(
    with_submodule: tuple[Path, str], git: Git
) -> None:
    project, commit = with_submodule
    code = f"""
import pathlib, time
from campaign.provenance import worktree
with worktree(pathlib.Path({str(project)!r}), {commit!r}) as tree:
    print(tree, flush=True)
    time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with worktree(project, commit):
            assert left.is_dir() and listed(git, project) == 3
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    finally:
        process.kill()
    assert left.is_dir()
    with worktree(project, commit):
        pass
    assert not left.parent.exists() and [listed(git, folder) for folder in (project, project / "sub")] == [1, 1]
