"""Which copy of the project a trial's process runs: every loaded module, and the file that it came from.

An arm with code of its own runs in a worktree. A module of it that came from the user's own tree instead (an editable
install does that) is another arm's code, and the trial says nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONGEST_PATH = 4096
INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Checkout:
    """`root` is the project in the worktree `tree`, `paths` what PYTHONPATH begins with. No module of the arm may come
    from `own`, the user's repository, but for `own_runs`. `names` are the modules and packages that the worktree has at
    the top of one of its import paths."""

    root: Path
    tree: Path
    own: Path
    own_runs: Path
    paths: tuple[str, ...]
    names: tuple[str, ...]

    def question(self) -> dict[str, Any]:
        """The arguments of a trial's `copies`."""
        places = {"tree": self.tree, "own": self.own, "runs": self.own_runs}
        return {**{name: str(path) for name, path in places.items()}, "names": list(self.names)}


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


def foreign_programs(question: Mapping[str, Any], pids: Sequence[str]) -> list[str]:
    """The same of processes that cannot be asked for their modules: those of `pids` that run in a folder of the user's
    repository, or whose command line has a program or script of it. `question` is `Checkout.question()`."""
    own, tree, kept = (Path(question[name]).resolve() for name in ("own", "tree", "runs"))
    found = set()
    for pid in pids:
        try:
            folder = Path(f"/proc/{pid}/cwd").resolve(strict=True)
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it ended, or is another's
        places = [(folder / os.fsdecode(word)).resolve() for word in words if word and len(word) < LONGEST_PATH]
        for place in (folder, *filter(_is_program, places)):
            inside = place.is_relative_to(own) and not any(
                place.is_relative_to(one) for one in (tree, kept, _package())
            )
            if inside and not is_installed(place, own):
                found.add(str(place))
    return sorted(found)


def _is_program(path: Path) -> bool:
    return path.is_file() and (path.suffix in (".py", ".sh") or os.access(path, os.X_OK))


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
