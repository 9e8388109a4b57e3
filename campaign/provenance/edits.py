"""An edit of code as a patch: what a branch adds, a patch file, or the working tree against HEAD.

The user's tree, index and branches are only read: patches are tried in an index and an object store of their own in a
temporary folder. What the person typed reaches git as a value, never as an option.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign.errors import BadInput
from campaign.provenance.git import NO_GIT, NO_REPOSITORY, UNSAFE, GitFailed, Repository
from campaign.provenance.secrets import looks_secret
from campaign.provenance.snapshot import DIFF, SECRET, SUBMODULE, must_not_lack, snapshot
from campaign.records import Edit

LIMIT_BYTES = 50_000_000
DIRTY = "dirty"
BEGIN = "git init && git add -A && git commit -m begin"
_REMEDIES = {
    NO_GIT: "install git, then the same command again",
    NO_REPOSITORY: BEGIN,
    UNSAFE: "git config --global --add safe.directory DIR, with the repository's folder",
}
_FILE = re.compile(
    r"error: (?:patch failed: )?(.+?)(?::\d+$|: (?:already exists|does not|patch does not|No such))", re.M
)


@dataclass(frozen=True)
class Change:
    """What an edit of code changes. `patch` is what `git apply` reads, `about` what the ledger keeps of where it came
    from: kind, written, and of a ref its commit and the merge base; left_out as in `Snapshot`."""

    patch: bytes
    about: dict[str, Any]
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Named:
    """A patch with the hypothesis that it is of."""

    name: str
    patch: bytes = field(repr=False)


def head(root: Path) -> str:
    """The commit of HEAD in the repository of the project at `root`. Raises BadInput where there is none."""
    repository = _opened(root)
    try:
        return repository.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip()
    except GitFailed as failure:
        raise BadInput(
            f"{root}: the repository has no commit yet, and an edit of code is measured against one",
            remedy="git add -A && git commit -m begin",
        ) from failure


def top_of(root: Path) -> Path:
    """The top folder of the repository around `root`. Raises BadInput."""
    return _opened(root).top.resolve()


def commit_of(root: Path, ref: str, what: str) -> str:
    """The commit that `ref` names; `what` says in an error where it was given. Raises BadInput."""
    check_word(ref, what)
    repository = _opened(root)
    try:
        found = repository.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    except GitFailed as failure:
        raise BadInput(
            f"{what}={ref}: no branch, tag or commit of {repository.top} has this name",
            remedy="git branch --all; of a remote's branch: git fetch origin NAME, then origin/NAME",
        ) from failure
    return found.decode().split()[-1]


def merge_base(root: Path, one: str, other: str, what: str) -> str:
    """The newest commit that both commits come from. Raises BadInput where there is none here."""
    repository = _opened(root)
    try:
        return repository.run("merge-base", one, other).decode().split()[0]
    except (GitFailed, IndexError) as failure:
        shallow = repository.run("rev-parse", "--is-shallow-repository").strip() == b"true"
        raise BadInput(
            f"{what}: {one[:12]} and {other[:12]} have no common commit"
            + (" in this shallow clone" if shallow else ""),
            remedy="git fetch --unshallow" if shallow else "a branch of the same history: git branch --all",
        ) from failure


def files_between(root: Path, one: str, other: str) -> tuple[str, ...]:
    """The files that differ between two commits, from the top of the repository."""
    listed = _opened(root).run("diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other)
    return tuple(os.fsdecode(name) for name in listed.split(b"\0") if name)


def change_of(root: Path, edit: Edit, base: str) -> Change:
    """The patch of an edit of code against `base`, the commit of HEAD. Raises BadInput where it changes nothing, or
    names nothing that is there."""
    if edit.ref:
        return _of_ref(root, edit.ref, base)
    found = _of_file(root, edit.patch) if edit.patch else tree_change(root)
    if not found.patch:
        left_out = found.about["left_out"]
        raise BadInput(
            f"edit.{edit.code}: the working tree is clean, so there is nothing to measure"
            + (f" (left out: {left_out[0]})" if left_out else ""),
            remedy="change a file; or edit.ref=BRANCH for what a branch adds",
        )
    if len(found.patch) > LIMIT_BYTES:
        raise _too_large(f"edit.{edit.code}", len(found.patch))
    return found


def _of_ref(root: Path, ref: str, base: str) -> Change:
    what = "edit.ref"
    commit = commit_of(root, ref, what)
    start = merge_base(root, base, commit, f"{what}={ref}")
    repository = _opened(root)
    files = files_between(root, start, commit)
    secret = [file for file in files if looks_secret(file)]
    kept = [file for file in files if file not in secret]
    if not kept:
        raise BadInput(
            f"{what}={ref}: {commit[:12]} adds nothing to {start[:12]}, where it left HEAD",
            remedy=f"git log HEAD..{commit}",
        )
    exclude = [f":(exclude,top,literal){file}" for file in secret]
    patch = repository.run("diff-tree", "-r", "-p", *DIFF, start, commit, "--", ":(top)", *exclude)
    if len(patch) > LIMIT_BYTES:
        raise _too_large(f"{what}={ref}", len(patch))
    about = {"kind": "ref", "written": ref, "commit": commit, "base": start}
    return Change(patch, {**about, "left_out": [f"{file}: {SECRET}" for file in secret]}, tuple(kept))


def _of_file(root: Path, path: str) -> Change:
    check_word(path, "edit.patch")
    file = root / path
    try:
        if not file.is_file():
            raise FileNotFoundError
        if (size := file.stat().st_size) > LIMIT_BYTES:
            raise _too_large(f"edit.patch={path}", size)
        patch = file.read_bytes()
    except OSError as error:
        raise BadInput(
            f"edit.patch={path}: {file} cannot be read: {error.strerror or 'it is no file'}",
            remedy="a path from the project's folder, of what git diff wrote: git diff --binary > fix.diff",
        ) from error
    files = files_of(root, patch, f"edit.patch={path}")
    if secret := next((one for one in files if looks_secret(one)), ""):
        raise BadInput(
            f"edit.patch={path} changes {secret}, which {SECRET}: a patch is kept beside the ledger",
            remedy=f"take {secret} out of the patch",
        )
    return Change(patch, {"kind": "patch", "written": path, "left_out": []}, files)


def tree_change(root: Path) -> Change:
    """The working tree against HEAD, with an empty patch where it is clean. Raises BadInput where a patch cannot hold
    what an arm would run without."""
    if unmerged := [line for line in _opened(root).run("ls-files", "-z", "--unmerged").split(b"\0") if line]:
        name = os.fsdecode(unmerged[0].partition(b"\t")[2])
        raise BadInput(
            f"edit.worktree={DIRTY}: {name} has conflicts of a merge, so there is no one working tree to measure",
            remedy=f"git add -- {shlex.quote(name)}, once it is as you want it; or git merge --abort",
        )
    found = snapshot(root, limit_bytes=LIMIT_BYTES)
    if found.source["status"] != "ok":
        raise BadInput(f"edit.worktree={DIRTY}: {found.source['reason']}", remedy="git status")
    left_out = found.source["left_out"]
    for line in left_out:
        if must_not_lack(line):
            branch = "commit it (git switch -c NAME && git commit -a), then campaign try --base BRANCH or edit.ref=NAME"
            clean = f"git -C {line.partition(': ')[0]} status, ignore or commit what it lists, then: {branch}"
            raise BadInput(
                f"edit.worktree={DIRTY} cannot hold a change: {line}", remedy=clean if SUBMODULE in line else branch
            )
    about = {"kind": "worktree", "written": DIRTY, "left_out": left_out}
    return Change(found.patch, about, files_of(root, found.patch, f"edit.worktree={DIRTY}") if found.patch else ())


def files_of(root: Path, patch: bytes, what: str) -> tuple[str, ...]:
    """The files that a patch changes, from the top of the repository. Raises BadInput for what is no patch."""
    try:
        listed = _opened(root).run("apply", "--numstat", "-z", "-", feed=patch)
    except GitFailed as failure:
        raise BadInput(f"{what} is no patch: {failure.reason}", remedy="git diff --binary > fix.diff") from failure
    return tuple(os.fsdecode(line.split(b"\t", 2)[2]) for line in listed.split(b"\0") if line.count(b"\t") >= 2)


def check_applies(root: Path, commit: str, patches: Sequence[Named], *, campaign: str) -> None:
    """Raises BadInput where the last patch does not apply on `commit` and the patches before it, naming the file and
    the hypothesis that it clashes with."""
    *before, last = patches
    with _scratch(_opened(root), commit) as trying:
        whole = [trying(one.patch) for one in before]
        if any(whole):  # said where that patch was the last
            return
        if not (why := trying(last.patch, check=True)):
            return
    file = _file_in(why) or next(iter(files_of(root, last.patch, last.name)), "a file")
    with _scratch(_opened(root), commit) as trying:
        clash = "" if not trying(last.patch, check=True) else commit[:12]
        if clash and not trying(last.patch, check=True, reverse=True):
            raise BadInput(
                f"{last.name}: its patch is in HEAD ({clash}) already: {file}",
                remedy=f"campaign stack --campaign {campaign} --revert {last.name} --why merged, if it is in the stack",
            )
        for one in before if not clash else ():
            trying(one.patch)
            if trying(last.patch, check=True):
                clash = one.name
                break
    if any(clash == one.name for one in before):
        raise BadInput(
            f"{last.name}: its patch no longer applies on the stack: {clash}, accepted before it, changes {file} too",
            remedy=f"rebase it on that patch; or campaign stack --campaign {campaign} --revert {clash} --why TEXT",
        )
    raise BadInput(
        f"{last.name}: its patch does not apply to HEAD ({commit[:12]}): {file} differs there",
        remedy="rebase the edit on HEAD, or git switch to the commit that it was written on",
    )


def check_word(word: str, what: str) -> None:
    """Raises BadInput for a ref or path that git or a terminal could take for something else."""
    if not word or word.startswith("-") or any(ord(one) < 32 or ord(one) == 127 for one in word):
        raise BadInput(
            f"{what}={word!r}: a branch, commit or file, not starting with '-' and without control characters",
            remedy=f"{what}=NAME",
        )


def _opened(root: Path) -> Repository:
    try:
        return Repository(root)
    except GitFailed as failure:
        raise BadInput(
            f"{root}: an edit of code needs git: {failure.reason}", remedy=_REMEDIES.get(failure.status, "git status")
        ) from failure


@contextmanager
def _scratch(repository: Repository, commit: str) -> Iterator[Any]:
    """A function that applies a patch to an index of its own, which begins as `commit`; it returns why it could not,
    empty where it could. Only to `check`, the index stays as it is."""
    with tempfile.TemporaryDirectory(prefix="campaign-git-") as folder:
        (Path(folder) / "objects").mkdir()
        aside = {
            "GIT_INDEX_FILE": str(Path(folder) / "index"),
            "GIT_OBJECT_DIRECTORY": str(Path(folder) / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repository.objects),
        }
        repository.run("read-tree", commit, environment=aside)

        def trying(patch: bytes, *, check: bool = False, reverse: bool = False) -> str:
            how = ["--check"] * check + ["--reverse"] * reverse
            try:
                repository.run("apply", "--cached", "--whitespace=nowarn", *how, "-", environment=aside, feed=patch)
            except GitFailed as failure:
                return failure.reason
            return ""

        yield trying


def _file_in(reason: str) -> str:
    found = _FILE.search(reason)
    return found[1] if found else ""


def _too_large(what: str, size: int) -> BadInput:
    return BadInput(
        f"{what} is a patch of {size} bytes; more than {LIMIT_BYTES} are not kept beside a ledger",
        remedy="leave large files out of it: data is no code",
    )
