from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Git


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
