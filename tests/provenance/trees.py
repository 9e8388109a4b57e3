from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

Git = Callable[..., str]


def state(folder: Path) -> dict[str, str]:
    """Everything in the repository's own folder, by content."""
    files = (path for path in (folder / ".git").rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def applied(tmp_path: Path, git: Git, project: Path, patch: bytes) -> Path:
    """A clean checkout of the project's commit with the patch applied, after `git apply --check` let it pass."""
    clean = tmp_path / f"clean-{hashlib.sha256(patch).hexdigest()[:8]}"
    git(project, "-c", "core.autocrlf=false", "clone", "-q", "--no-local", str(project), str(clean))
    file = tmp_path / "snapshot.patch"
    file.write_bytes(patch)
    git(clean, "apply", "--check", str(file))
    git(clean, "apply", str(file))
    return clean


def change(project: Path) -> None:
    """A change of every kind: staged, not staged, binary, no last newline, removed, renamed, new, a new folder."""
    block = project / "models" / "block.py"
    block.write_text(block.read_text().replace("line 7\n", "line seven\n"))
    (project / "no_newline.txt").write_text("one\nTWO")
    (project / "weights.bin").write_bytes(bytes(reversed(range(256))) * 4)
    (project / "ä name.py").rename(project / "b c.py")
    (project / "new").mkdir()
    (project / "new" / "kernel.py").write_text("y = 2\n")
    (project / "new" / "run.sh").write_text("#!/bin/sh\n")
    (project / "new" / "run.sh").chmod(0o755)
    (project / "new" / "link").symlink_to("kernel.py")
    (project / "new" / "empty.py").touch()


def contents(folder: Path) -> dict[str, tuple[str, bool]]:
    found = {}
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        if ".git" not in relative.parts and (path.is_file() or path.is_symlink()):
            text = os.readlink(path) if path.is_symlink() else path.read_bytes().hex()
            found[str(relative)] = (text, not path.is_symlink() and os.access(path, os.X_OK))
    return found
