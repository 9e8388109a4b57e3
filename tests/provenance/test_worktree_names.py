"""Worktrees of ours and folders of the user's that are called the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from campaign.provenance import worktree

Git = Callable[..., str]


def test_a_folder_of_the_users_own_with_such_a_name_is_left_alone(tmp_path: Path, project: Path, git: Git) -> None:
    # A repository below such a folder, and a worktree of it in another one.
    mine = tmp_path / "campaign-worktree-mine"
    shutil.copytree(project, mine / "repo", symlinks=True)
    (mine / "notes.txt").write_text("keep\n")
    ideas = [tmp_path / "campaign-worktree-ideas" / name for name in ("fused", "tree")]
    for place in ideas:
        git(mine / "repo", "worktree", "add", "-q", "--detach", str(place))
        (place / "untracked.txt").write_text("keep\n")
    with worktree(mine / "repo", "HEAD") as tree:
        assert (tree / "models" / "block.py").is_file()
    kept = (mine / "notes.txt", mine / "repo" / ".git" / "HEAD", *(place / "untracked.txt" for place in ideas))
    assert [path for path in kept if not path.is_file()] == []
    assert git(mine / "repo", "worktree", "list", "--porcelain").count("worktree ") == 3
