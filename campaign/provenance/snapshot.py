"""The working tree as a patch on the commit: tracked changes and untracked files, taken without touching anything."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign.provenance.git import ERROR, NO_COMMIT, OK, GitFailed, Repository
from campaign.provenance.secrets import looks_secret

PATCH_LIMIT_BYTES = 5_000_000
TRACKED_LIMIT_BYTES = 100_000_000  # a small change of a large tracked file is a small patch, but reading it takes time
UNTRACKED_LIMIT_FILES = 5_000
LEFT_OUT_SHOWN = 200

SECRET = "looks like a secret"
SUBMODULE = "a submodule; its own commit or changes are not recorded"
FILTERED = "the git filter"
UNREAD = "bytes are not read"
LONG = "its patch has"
# Why a changed file is left out without which an arm would run something else.
_NEEDED = (SUBMODULE, FILTERED, UNREAD, LONG)
DIFF = "--binary --full-index --no-renames --no-ext-diff --no-textconv --no-color --no-relative".split()
DIFF += "-U3 --src-prefix=a/ --dst-prefix=b/ -O/dev/null --submodule=short --ignore-submodules=none".split()


@dataclass(frozen=True)
class Snapshot:
    """The state of the project's repository. `patch` holds the bytes that `git apply` turns `commit` into the working
    tree with, but for the files left out; empty when there is nothing to record or no repository to record it against.

    `source` is what the ledger keeps, as JSON values. status: ok, no_git, no_repository, no_commit, unsafe (another
    owner's repository) or error; reason: a sentence when it is not ok; commit, branch (None when detached), detached,
    shallow; dirty: tracked changes or untracked files, ignored ones not counted; patch_sha256 (empty without a patch)
    and patch_bytes; left_out: 'path: why' of changed files that the patch does not have.
    """

    source: dict[str, Any]
    patch: bytes = b""


@dataclass
class _Choice:
    """Which changed files go into the patch, and which do not, with the reason."""

    taken: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def leave(self, path: str, why: str) -> None:
        self.left_out.append(f"{path}: {why}")


def snapshot(root: Path, *, limit_bytes: int = PATCH_LIMIT_BYTES) -> Snapshot:
    """The working tree below or around `root` as it is now. Never raises for a state of git."""
    known: dict[str, Any] = {
        "status": OK,
        "reason": "",
        "commit": "",
        "branch": None,
        "detached": False,
        "shallow": False,
        "dirty": False,
        "patch_sha256": "",
        "patch_bytes": 0,
        "left_out": [],
    }
    try:
        repository = Repository(root)
        _locate(repository, known)
        with tempfile.TemporaryDirectory(prefix="campaign-git-") as folder:
            data, choice = _take(repository, root, Path(folder), known["commit"], limit_bytes)
    except GitFailed as failure:
        return Snapshot({**known, "status": failure.status, "reason": failure.reason})
    except OSError as error:
        return Snapshot({**known, "status": ERROR, "reason": f"the snapshot failed: {error}"})
    known["dirty"] = bool(data or choice.left_out)
    choice.left_out.sort(key=lambda line: not must_not_lack(line))  # which no number of others may push out
    known["left_out"] = choice.left_out[:LEFT_OUT_SHOWN]
    if len(choice.left_out) > LEFT_OUT_SHOWN:
        known["left_out"].append(f"and {len(choice.left_out) - LEFT_OUT_SHOWN} more")
    if data:
        known |= {"patch_sha256": hashlib.sha256(data).hexdigest(), "patch_bytes": len(data)}
    return Snapshot(known, data)


def must_not_lack(line: str) -> bool:
    """Whether a line of `left_out` is of a change that an arm would run without, and should not."""
    return any(why in line for why in _NEEDED)


def _locate(repository: Repository, known: dict[str, Any]) -> None:
    """Fill in commit, branch, detached, shallow; status `no_commit` on an unborn branch."""
    known["shallow"] = repository.run("rev-parse", "--is-shallow-repository").strip() == b"true"
    try:
        known["branch"] = os.fsdecode(repository.run("symbolic-ref", "--short", "HEAD").strip())
    except GitFailed as failure:
        if failure.status != ERROR:
            raise
        known["detached"] = True
    try:
        known["commit"] = repository.run("rev-parse", "--verify", "HEAD^{commit}").decode().strip()
    except GitFailed as failure:
        if failure.status != ERROR:
            raise
        known |= {"status": NO_COMMIT, "reason": "the repository has no commit yet"}


def _take(repository: Repository, root: Path, scratch: Path, commit: str, limit: int) -> tuple[bytes, _Choice]:
    """The patch and what was left out of it."""
    base = commit or repository.run("hash-object", "-t", "tree", "--stdin").decode().strip()
    (scratch / "objects").mkdir()
    # Blobs of changed files go into the scratch folder; the user's objects are read from where they are.
    aside = {
        "GIT_OBJECT_DIRECTORY": str(scratch / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repository.objects),
    }
    looking = {**aside, "GIT_INDEX_FILE": str(scratch / "looking")}
    if repository.index.is_file():
        # Its cache of unchanged files makes this fast; its time of change must come along, because git reads the
        # content of files that changed in the same moment as the index.
        shutil.copy2(repository.index, scratch / "looking")
    choice = _Choice()
    _choose_tracked(repository, base, looking, choice)
    _choose_untracked(repository, root, looking, choice, limit)
    _drop_filtered(repository, looking, choice)
    building = {**aside, "GIT_INDEX_FILE": str(scratch / "building")}
    if commit:
        repository.run("read-tree", base, environment=building)
    # First what is gone: git does not look behind a link that took a folder's place.
    gone = [path for path in choice.taken if not _is_there(repository.top, path)]
    for names, how in ((gone, ("--force-remove",)), (sorted({*choice.taken} - {*gone}), ("--add", "--replace"))):
        feed = b"".join(os.fsencode(path) + b"\0" for path in names)
        if feed:
            repository.run("update-index", *how, "-z", "--stdin", environment=building, feed=feed)
    if not commit and not choice.taken:
        return b"", choice
    data = repository.run("diff-index", "--cached", "-p", *DIFF, base, environment=building)
    listed = repository.run("diff-index", "--cached", "-z", "--name-only", "--no-renames", base, environment=building)
    paths = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    return _within(data, paths, choice, limit), choice


def _choose_tracked(repository: Repository, base: str, looking: dict[str, str], choice: _Choice) -> None:
    if not Path(looking["GIT_INDEX_FILE"]).exists():
        return
    try:
        repository.run("update-index", "-q", "--refresh", "--unmerged", environment=looking)
    except GitFailed as failure:
        if failure.status != ERROR:  # it exits with 1 when files need an update, which is what we are after
            raise
    raw = repository.run(
        "diff-index", "--raw", "-z", "--no-renames", "--ignore-submodules=none", base, environment=looking
    )
    fields = raw.split(b"\0")
    for about, name in zip(fields[:-1:2], fields[1::2], strict=False):
        path = os.fsdecode(name)
        modes = about.lstrip(b":").split(b" ")[:2]
        if b"160000" in modes:
            choice.leave(path, SUBMODULE)
        elif looks_secret(path):
            choice.leave(path, SECRET)
        elif (size := _size(repository.top / path)) > TRACKED_LIMIT_BYTES:
            choice.leave(path, f"{size} bytes; more than {TRACKED_LIMIT_BYTES} {UNREAD}")
        elif path not in choice.taken:
            choice.taken.append(path)


def _choose_untracked(repository: Repository, root: Path, looking: dict[str, str], choice: _Choice, limit: int) -> None:
    raw = repository.run("ls-files", "-z", "--others", "--exclude-standard", environment=looking)
    runs = Path(os.path.relpath(root.resolve(), repository.top.resolve()), "runs").as_posix() + "/"
    room = limit
    files = []
    for name in filter(None, raw.split(b"\0")):
        path = os.fsdecode(name)
        if path.startswith(runs):
            continue  # our own output, were it not ignored
        if path.endswith("/"):
            choice.leave(path, "a repository inside the repository")
        elif looks_secret(path):
            choice.leave(path, SECRET)
        else:
            files.append((_size(repository.top / path), path))
    for size, path in sorted(files)[:UNTRACKED_LIMIT_FILES]:
        if size > room:
            choice.leave(path, f"untracked, {size} bytes, over the limit of {limit} bytes a patch")
        else:
            room -= size
            choice.taken.append(path)
    for _, path in sorted(files)[UNTRACKED_LIMIT_FILES:]:
        choice.leave(path, f"untracked, after the first {UNTRACKED_LIMIT_FILES} files")


def _drop_filtered(repository: Repository, looking: dict[str, str], choice: _Choice) -> None:
    """Leave out files that a git filter (git-lfs) rewrites: what is on disk is not what git would compare with."""
    if not choice.taken:
        return
    names = b"".join(os.fsencode(path) + b"\0" for path in choice.taken)
    raw = repository.run("check-attr", "-z", "--stdin", "filter", environment=looking, feed=names).split(b"\0")
    for name, value in zip(raw[:-1:3], raw[2::3], strict=False):
        if value not in (b"unspecified", b"unset", b""):
            path = os.fsdecode(name)
            choice.taken.remove(path)
            choice.leave(path, f"{FILTERED} {os.fsdecode(value)!r} rewrites it")


def _is_there(top: Path, path: str) -> bool:
    """Whether there is something at `path` that no folder on the way is a link to."""
    place = top / path
    between = [one for one in place.parents if one != top and one.is_relative_to(top)]
    return os.path.lexists(place) and not any(one.is_symlink() for one in between)


def _size(path: Path) -> int:
    """The size on disk of a plain file; 0 for a link, a folder, or a file that is gone."""
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _within(data: bytes, paths: list[str], choice: _Choice, limit: int) -> bytes:
    """The patch without its largest files, so that it has at most `limit` bytes. `paths` name its files in order."""
    if len(data) <= limit:
        return data
    parts = list(_files_of(data))
    kept = set()
    room = limit
    for index in sorted(range(len(parts)), key=lambda i: len(parts[i])):
        if len(parts[index]) <= room:
            room -= len(parts[index])
            kept.add(index)
        else:
            choice.leave(paths[index], f"{LONG} {len(parts[index])} bytes, over the limit of {limit} in all")
    return b"".join(part for index, part in enumerate(parts) if index in kept)


def _files_of(data: bytes) -> Iterator[bytes]:
    """A patch cut into one part a file. A content line starts with ' ', '+', '-' or '\\', a line of a binary with no
    space in it, so the header cannot be mistaken."""
    starts = [found.start() for found in re.finditer(rb"^diff --git ", data, re.MULTILINE)]
    for start, stop in zip(starts, [*starts[1:], len(data)], strict=True):
        yield data[start:stop]
