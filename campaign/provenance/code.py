"""The hash of the source files that a trial can import or compose, and the installed packages."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

SUFFIXES = (".py", ".cpp", ".cu", ".h", ".hpp", ".cuh", ".yaml", ".yml")
FOLDERS = ("models", "kernels", "conf")


def code_hash(root: Path, targets: Iterable[str] = ()) -> str:
    """SHA-256 over the names and contents of the source files of the installed `campaign`, of the project's `models/`,
    `kernels/` and `conf/`, and of the top package or module of each dotted path in `targets` that lies in the project.
    A file that cannot be read counts by its name and the reason; never raises."""
    total = hashlib.sha256()
    also = sorted({target.partition(".")[0] for target in targets} - set(FOLDERS))
    folders = [*FOLDERS, *also, *(f"{name}.py" for name in also)]
    for name, top in [("campaign", Path(__file__).parent.parent), *((name, root / name) for name in folders)]:
        for relative, path in _sources(top):
            try:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError as error:
                content = f"unreadable: {error.strerror}"
            total.update(f"{name}/{relative}\0{content}\n".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def _sources(top: Path) -> Iterator[tuple[str, Path]]:
    """(path relative to `top`, path) of the source files under it, sorted; hidden folders and caches left out."""
    found = [(top.name, top)] if top.is_file() else []
    for folder, inner, files in os.walk(top):
        inner[:] = [name for name in inner if not name.startswith(".") and name != "__pycache__"]
        for name in files:
            if name.endswith(SUFFIXES) and not name.startswith("."):
                path = Path(folder, name)
                found.append((path.relative_to(top).as_posix(), path))
    yield from sorted(found)


def packages() -> dict[str, str]:
    """The installed distributions, name (lower case) to version, sorted; broken ones are left out."""
    from importlib.metadata import distributions

    found: dict[str, str] = {}
    for one in distributions():
        name = one.metadata["Name"] if one.metadata is not None else None
        if name and one.version:
            found.setdefault(name.lower(), one.version)  # the first on the path is the one that is imported
    return dict(sorted(found.items()))
