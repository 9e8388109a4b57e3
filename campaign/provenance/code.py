"""The hash of the source files that a trial can import or compose, and the installed packages."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

SUFFIXES = (".py", ".cpp", ".cu", ".h", ".hpp", ".cuh", ".yaml", ".yml")
FOLDERS = ("models", "kernels", "conf")
LAUNCHED = "campaign.launch."  # a command of the person's own may run any source of the project
ENVIRONMENT_MARK = "pyvenv.cfg"


def code_hash(
    root: Path, targets: Iterable[str] = (), *, package: Path | None = None, pinned: Iterable[str] = ()
) -> str:
    """SHA-256 over the names and contents of the source files of the installed `campaign`, of the project's `models/`,
    `kernels/` and `conf/`, and of the top package or module of each dotted path in `targets` that lies in the project;
    of the whole project where a target is a launched command (`campaign.launch`).
    `package` is another `campaign` to take for the installed one. `pinned` are the codes (commit and patches) of arms
    that run in worktrees: they count in place of the project's files, of which `conf/` alone is left. A file that
    cannot be read counts by its name and the reason; never raises."""
    total = hashlib.sha256()
    codes = sorted(pinned)
    tops = _tops(root, () if codes else targets, package)
    for name, top in tops if not codes else [one for one in tops if one[0] in ("campaign", "conf")]:
        for line in _lines(name, top):
            total.update(line)
    for code in codes:
        total.update(f"code\0{code}\n".encode())
    return total.hexdigest()


def code_parts(root: Path, targets: Iterable[str] = ()) -> dict[str, str]:
    """The same by its parts, to say later which of them differs: 'campaign', 'models', ... to the SHA-256 of each that
    has source files."""
    found = {}
    for name, top in _tops(root, targets, None):
        if lines := b"".join(_lines(name, top)):
            found[name] = hashlib.sha256(lines).hexdigest()
    return found


def differing(root: Path, other: Path, targets: Iterable[str] = ()) -> list[str]:
    """The source files that `code_hash` counts and that are not the same under both roots, by their names, sorted."""
    targets = list(targets)
    sides = [{line for name, top in _tops(one, targets, None) for line in _lines(name, top)} for one in (root, other)]
    return sorted({line.partition(b"\0")[0].decode("utf-8", "replace") for line in sides[0] ^ sides[1]})


def _tops(root: Path, targets: Iterable[str], package: Path | None) -> list[tuple[str, Path]]:
    targets = list(targets)
    harness = ("campaign", package or Path(__file__).parent.parent)
    if any(target.startswith(LAUNCHED) for target in targets):
        return [harness, (".", root)]
    also = sorted({target.partition(".")[0] for target in targets} - set(FOLDERS))
    folders = [*FOLDERS, *also, *(f"{name}.py" for name in also)]
    return [harness, *((name, root / name) for name in folders)]


def _lines(name: str, top: Path) -> Iterator[bytes]:
    """What a folder or file counts by: one line a source file."""
    for relative, path in _sources(top):
        try:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            content = f"unreadable: {error.strerror}"
        yield f"{name}/{relative}\0{content}\n".encode("utf-8", "surrogateescape")


def _sources(top: Path) -> Iterator[tuple[str, Path]]:
    """(path relative to `top`, path) of the source files under it, sorted. Hidden folders, caches, virtual environments
    and, of a whole project, what campaigns wrote are left out."""
    found = [(top.name, top)] if top.is_file() else []
    for folder, inner, files in os.walk(top):
        if ENVIRONMENT_MARK in files:
            inner.clear()
            continue
        skipped = {"__pycache__", "runs"} if folder == str(top) else {"__pycache__"}
        inner[:] = [name for name in inner if not name.startswith(".") and name not in skipped]
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
        about = one.metadata  # read from its file at each use
        name, version = (about["Name"], about["Version"]) if about is not None else (None, None)
        if name and version:
            found.setdefault(name.lower(), version)  # the first on the path is the one that is imported
    return dict(sorted(found.items()))
