"""Which copy of the project a trial's process runs: every loaded module, and the file that it came from.

An arm with code of its own runs in a worktree. A module of it that came from the user's own tree instead (an editable
install does that) is another arm's code, and the trial says nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

INSTALLED = ("site-packages", "dist-packages")


def foreign(own: str, tree: str, runs: str, names: Sequence[str]) -> list[str]:
    """'module (file)' of each loaded module that is not from the worktree `tree` and should be, sorted: those with a
    file under the user's repository `own`, but for `runs`, virtual environments and `campaign` itself, and those of
    `names`, which the worktree has, wherever they came from."""
    found = []
    own_path, tree_path, kept = Path(own).resolve(), Path(tree).resolve(), [Path(runs).resolve(), _package()]
    for name, module in list(sys.modules.items()):
        written = getattr(module, "__file__", None)
        if not isinstance(written, str):
            continue
        file = Path(written).resolve()
        if any(file.is_relative_to(place) for place in (tree_path, *kept)):
            continue
        if name.partition(".")[0] in names or (file.is_relative_to(own_path) and not is_installed(file, own_path)):
            found.append(f"{name} ({file})")
    return sorted(found)


def _package() -> Path:
    return Path(__file__).resolve().parent


def is_installed(file: Path, own: Path) -> bool:
    """Whether a file or folder under `own` lies in an environment: this interpreter's, or any virtual one."""
    if any(part in INSTALLED for part in file.parts):
        return True
    bases = [Path(base).resolve() for base in (sys.prefix, sys.base_prefix)]
    if any(base != own and file.is_relative_to(base) for base in bases):
        return True
    return any((folder / "pyvenv.cfg").is_file() for folder in (file, *file.parents) if folder.is_relative_to(own))
