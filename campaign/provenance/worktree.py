"""A recorded commit and patch as files again: a git worktree of its own in a temporary folder, gone at the end.

What a worktree lacks is brought from this machine, never from a network: the files of submodules, each from the
repository that is checked out in its place, and the content behind git-lfs pointers. Hooks do not run. The user's own
files and index are not touched; git's list of worktrees has one more entry meanwhile.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from campaign.errors import BadInput
from campaign.provenance.git import ERROR, NO_GIT, NO_REPOSITORY, UNSAFE, GitFailed, Repository

PREFIX = "campaign-worktree-"
OWNER = "owner"  # locked by the process that uses the worktree
TREE = "tree"
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\n")
_POINTER_LIMIT_BYTES = 1024  # as the specification of git-lfs says
_REMEDIES = {
    NO_GIT: "install git, then the same command again",
    NO_REPOSITORY: "run it in the git repository that the project was measured in",
    UNSAFE: "git config --global --add safe.directory DIR, with the repository's folder",
}


@contextmanager
def worktree(root: Path, commit: str, *patches: bytes) -> Iterator[Path]:
    """The project at `root` as it was at `commit` with `patches` on top in order, in a folder of its own until the
    block ends.

    A patch is what `git apply` reads (`Snapshot.patch`). Yields the place of `root` in the worktree. Raises BadInput,
    with what to do, where there is no git or no repository, the commit is not there, the patch does not apply, or a
    submodule or a git-lfs file has no content on this machine.
    """
    repository = _opened(root)
    _must_have(repository, commit, "the commit", _fetch_remedy(repository, commit))
    place = Path(os.path.relpath(root.resolve(), repository.top.resolve()))
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        owner = os.open(Path(folder, OWNER), os.O_RDWR | os.O_CREAT, 0o600)
        added: list[tuple[Repository, Path]] = []
        try:
            fcntl.flock(owner, fcntl.LOCK_EX)
            tree = Path(folder).resolve() / TREE
            _check_out(repository, commit, tree, added)
            for patch in patches:
                _apply(repository, commit, tree, patch)
            _fill(repository, tree, added)
            if not (tree / place).is_dir():
                raise BadInput(
                    f"commit {commit[:12]} has no folder {place}: the project was elsewhere in the repository then",
                    remedy="campaign ledger, and choose a later decision",
                )
            yield tree / place
        finally:
            for where, path in reversed(added):
                _remove(where, path)
            os.close(owner)


def _opened(root: Path) -> Repository:
    try:
        return Repository(root)
    except GitFailed as failure:
        raise BadInput(f"{root}: {failure.reason}", remedy=_REMEDIES.get(failure.status, "git status")) from failure


def _must_have(repository: Repository, commit: str, what: str, remedy: str) -> None:
    if not commit:
        raise BadInput(f"{what} is not recorded", remedy="commit the project, and measure again")
    try:
        repository.run("cat-file", "-e", f"{commit}^{{commit}}")
    except GitFailed as failure:
        raise BadInput(f"{what} {commit[:12]} is not in {repository.top} any more", remedy=remedy) from failure


def _fetch_remedy(repository: Repository, commit: str) -> str:
    """What may bring a commit that is gone here: a shallow clone made whole, or the remote that still has it."""
    with suppress(GitFailed):
        if repository.run("rev-parse", "--is-shallow-repository").strip() == b"true":
            return f"git -C {repository.top} fetch --unshallow"
    return f"git -C {repository.top} fetch origin {commit}, or from whoever still has it"


def _check_out(repository: Repository, commit: str, tree: Path, added: list[tuple[Repository, Path]]) -> None:
    added.append((repository, tree))  # before: half of a checkout is removed as well
    _bury_dead(repository)
    try:
        repository.run(*_NO_HOOKS, "worktree", "add", "--quiet", "--force", "--detach", str(tree), commit)
    except GitFailed as failure:
        raise BadInput(
            f"commit {commit[:12]} cannot be checked out: {failure.reason}",
            remedy=f"df -h {tree.parent.parent}; git -C {repository.top} fsck",
        ) from failure


def _apply(repository: Repository, commit: str, tree: Path, patch: bytes) -> None:
    if not patch:
        return
    try:
        Repository(tree).run("apply", "--index", "--whitespace=nowarn", "-", feed=patch)
    except GitFailed as failure:
        raise BadInput(
            f"the recorded patch does not apply to commit {commit[:12]}: {failure.reason}",
            remedy=f"git -C {repository.top} worktree add --detach DIR {commit[:12]}, and apply it by hand",
        ) from failure


def _fill(repository: Repository, tree: Path, added: list[tuple[Repository, Path]]) -> None:
    """Bring what git leaves empty in a worktree: the submodules, each with its own, and the git-lfs files."""
    inside = Repository(tree)
    _fill_pointers(repository, inside)
    for name, commit in _submodules(inside):
        source = repository.top / name
        remedy = f"git -C {repository.top} submodule update --init --recursive"
        if not (source / ".git").exists():
            raise BadInput(f"the submodule {name} is not checked out in {repository.top}", remedy=remedy)
        module = _opened(source)
        _must_have(module, commit, f"the submodule {name}'s commit", f"git -C {source} fetch origin {commit}")
        _check_out(module, commit, tree / name, added)
        _fill(module, tree / name, added)


def _submodules(tree: Repository) -> list[tuple[str, str]]:
    """(path, commit) of each submodule in the worktree's index."""
    found = []
    for line in tree.run("ls-files", "--stage", "-z").split(b"\0"):
        about, _, name = line.partition(b"\t")
        if about.startswith(b"160000 "):
            found.append((os.fsdecode(name), about.split(b" ")[1].decode()))
    return found


def _fill_pointers(repository: Repository, tree: Repository) -> None:
    """Put the content of git-lfs files where git put their pointers: the user's own file where it still has the hash,
    else git-lfs's store. A file that is a pointer in the user's tree too stays one: it was measured so."""
    names = tree.run("ls-files", "-z")
    common = repository.top / os.fsdecode(repository.run("rev-parse", "--git-common-dir").rstrip(b"\n"))
    attributes = tree.run("check-attr", "-z", "--stdin", "filter", feed=names).split(b"\0")
    for name, value in zip(attributes[:-1:3], attributes[2::3], strict=False):
        path = tree.top / os.fsdecode(name)
        if value != b"lfs" or (wanted := _pointed(path)) is None:
            continue
        own = repository.top / os.fsdecode(name)
        stored = common / "lfs" / "objects" / wanted[:2] / wanted[2:4] / wanted
        whole = next((one for one in (own, stored) if one.is_file() and _sha256(one) == wanted), None)
        if whole is not None:
            shutil.copyfile(whole, path)
        elif _pointed(own) is None:
            raise BadInput(
                f"the content of the git-lfs file {os.fsdecode(name)} ({wanted[:12]}) is not on this machine any more",
                remedy=f"git -C {repository.top} lfs fetch --all",
            )


def _pointed(path: Path) -> str | None:
    """The SHA-256 that a git-lfs pointer names; None for a file that is no pointer, or is not there."""
    try:
        if path.is_symlink() or path.stat().st_size > _POINTER_LIMIT_BYTES:
            return None
        found = _POINTER.match(path.read_bytes())
    except OSError:
        return None
    return found[1].decode() if found else None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remove(repository: Repository, tree: Path) -> None:
    """Take the worktree off git's list, and its files with it. Twice forced: also one that is locked."""
    with suppress(GitFailed):
        repository.run("worktree", "remove", "--force", "--force", str(tree))


def _bury_dead(repository: Repository) -> None:
    """Remove the worktrees that killed processes left behind. `git worktree prune` would forget the user's own too,
    for example of a drive that is not plugged in."""
    try:
        listed = repository.run("worktree", "list", "--porcelain", "-z")
    except GitFailed as failure:
        if failure.status != ERROR:
            raise
        listed = repository.run("worktree", "list", "--porcelain").replace(b"\n", b"\0")  # git before 2.36
    trees = [field.removeprefix(b"worktree ") for field in listed.split(b"\0") if field.startswith(b"worktree ")]
    for name in trees[1:]:  # the first is the repository itself
        tree = Path(os.fsdecode(name))
        folder = next((one.parent for one in (tree, *tree.parents) if _is_ours(one)), None)
        if folder is not None and not _is_used(folder):
            _remove(repository, tree)
            shutil.rmtree(folder, ignore_errors=True)


def _is_ours(tree: Path) -> bool:
    """Whether `tree` is where `worktree` puts one, in a folder that has its mark, or that is gone altogether. A person
    may call a folder of her own what ours are called."""
    folder = tree.parent
    named = tree.name == TREE and folder.name.startswith(PREFIX)
    return named and ((folder / OWNER).is_file() or not os.path.lexists(folder))


def _is_used(folder: Path) -> bool:
    """Whether a live process holds the worktree in this folder."""
    try:
        owner = os.open(folder / OWNER, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # another user's
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(owner)
    return False
