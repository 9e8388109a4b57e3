from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """`git(folder, *arguments)`, as a user without settings of her own; HOME is `home` in the temporary folder."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))  # the temporary folder may be in a repository
    (home / ".gitconfig").write_text("[user]\nname = A\nemail = a@example.org\n[init]\ndefaultBranch = main\n")

    def run(folder: Path, *arguments: str) -> str:
        return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True).stdout

    return run


@pytest.fixture
def project(tmp_path: Path, git: Git) -> Path:
    """A repository with one commit of three text files, one of them without a last newline, and a binary."""
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "block.py").write_text("".join(f"line {n}\n" for n in range(30)))
    (folder / "no_newline.txt").write_text("one\ntwo")
    (folder / "ä name.py").write_text("x = 1\n")
    (folder / "weights.bin").write_bytes(bytes(range(256)))
    (folder / ".gitignore").write_text("*.log\n/runs/*\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder
