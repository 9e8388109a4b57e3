"""Where an arm with code of its own runs: a worktree, and the import paths that lead into it and nowhere else.

A trial of it starts in the worktree, with PYTHONPATH naming the worktree before anything. An editable install points
into the user's own tree, so each folder of it on this interpreter's path is replaced by the same folder of the
worktree. The installed `campaign` is the harness, also where the worktree holds another one: it comes first by a link.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import campaign
from campaign.copies import Checkout, is_installed
from campaign.provenance.edits import top_of
from campaign.provenance.worktree import worktree
from campaign.records import Code

HARNESS = "harness"


@contextmanager
def checkout(root: Path, code: Code, patches: list[bytes]) -> Iterator[Checkout]:
    """The project at `root` with the files of `code`, whose patches' bytes are `patches`, until the block ends. Raises
    BadInput as `worktree` does."""
    own_root, own = root.resolve(), top_of(root)
    with worktree(root, code.commit, *patches) as place:
        inside = place.resolve()
        tree = inside.parents[len(own_root.relative_to(own).parts) - 1] if own_root != own else inside
        harness = tree.parent / HARNESS  # goes with the worktree's folder, also where a killed process left both behind
        harness.mkdir()
        (harness / "campaign").symlink_to(Path(campaign.__file__).resolve().parent)
        paths = [inside, *(tree / folder for folder in _own_folders(own))]
        paths = list(dict.fromkeys(path for path in paths if path.is_dir()))
        yield Checkout(
            root=inside,
            tree=tree,
            own=own,
            own_runs=own_root / "runs",
            paths=(str(harness), *(str(path) for path in paths)),
            names=tuple(sorted(_importable([*paths, inside / "src"]))),
        )


def _own_folders(own: Path) -> list[Path]:
    """The folders of the user's repository that this interpreter imports from, relative to its top, in order: entries
    of its path (an editable install's too), and where the finders of editable installs lead."""
    mapped = [
        Path(place).parent
        for name, module in list(sys.modules.items())
        if name.startswith("__editable__") and isinstance(mapping := getattr(module, "MAPPING", None), dict)
        for package, place in mapping.items()
        if Path(place).name == package.rpartition(".")[2]
    ]
    folders = [Path(entry or os.getcwd()).resolve() for entry in sys.path] + [path.resolve() for path in mapped]
    inside = (folder for folder in folders if folder.is_relative_to(own) and not is_installed(folder, own))
    return [folder.relative_to(own) for folder in inside]


def _importable(folders: list[Path]) -> set[str]:
    """The names of packages and modules at the top of `folders`, but for the standard library's and `campaign`."""
    found = set()
    for folder in folders:
        for entry in folder.iterdir() if folder.is_dir() else ():
            if entry.suffix == ".py" or (entry / "__init__.py").is_file():
                found.add(entry.stem)
    return found - set(sys.stdlib_module_names) - {"campaign", "__init__"}
