"""Arms with code of their own: which commit and patches each runs, and the worktrees that they run in.

Every arm of one comparison is built on the same commit, that of the project's HEAD. An edit of code is a patch; those
of accepted edits are the recorded ones, applied in the order of the stack. Each arm has a worktree of its own, and the
user's tree is only read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from campaign import provenance
from campaign.config import Job
from campaign.config.edits import LAUNCHED
from campaign.errors import BadInput
from campaign.ledger import Ledger
from campaign.provenance import Checkout, Named
from campaign.records import Arm, Code, Edit, Plan

COPY = "restore the file from a copy of the campaign's folder; without it this decision cannot be replayed"


class Composition:
    """Composes arms of several edits. `edits` are all that any of them holds, each with the name of its hypothesis.

    `about` is what the ledger keeps of where the patches came from, by hypothesis, and `base` the commit that they are
    applied to; both empty where no edit changes code. Raises BadInput as `provenance.change_of` does.
    """

    def __init__(self, job: Job, ledger: Ledger, edits: Sequence[tuple[str, Edit]]) -> None:
        self._job, self._ledger = job, ledger
        self._patches: dict[str, tuple[str, bytes]] = {}
        self._tried: set[tuple[str, ...]] = set()
        self.about: dict[str, dict[str, Any]] = {}
        self.warnings: list[str] = []
        coded = [(name, edit) for name, edit in edits if edit.code]
        self.base = provenance.head(job.root) if coded else ""
        for name, edit in coded:
            self._patches[name] = self._recorded(name, edit) or self._made(name, edit)

    def arm(self, role: str, name: str, edits: Sequence[tuple[str, Edit]]) -> Arm:
        """`Job.arm`, with the code of these edits. Raises BadInput naming file and hypothesis where a patch does not
        apply on those before it."""
        arm = self._job.arm(role, name, edits)
        if not self.base:
            return arm
        names = tuple(one for one, edit in edits if edit.code)
        for stop in range(1, len(names) + 1):
            self._try(names[:stop])
        return replace(arm, code=self.code(names))

    def code(self, names: Sequence[str]) -> Code:
        """The base with the patches of these edits, in order."""
        return Code(self.base, tuple(self._patches[one][0] for one in names))

    def _try(self, names: tuple[str, ...]) -> None:
        if names not in self._tried:
            patches = [Named(one, self._patches[one][1]) for one in names]
            provenance.check_applies(self._job.root, self.base, patches, campaign=self._job.campaign)
            self._tried.add(names)

    def _recorded(self, name: str, edit: Edit) -> tuple[str, bytes] | None:
        """The patch of an accepted edit, as it was measured; None for one that is not in the stack."""
        for decision in self._ledger.stack():
            plan = self._ledger.plan(decision.plan_id)
            if plan.hypothesis.name == name and plan.hypothesis.edit == edit and plan.treatment.code:
                sha256 = plan.treatment.code.patches[-1]
                return sha256, patch_of(self._ledger, sha256)
        return None

    def _made(self, name: str, edit: Edit) -> tuple[str, bytes]:
        """The patch of an edit as it is now, kept beside a ledger that is being written."""
        change = provenance.change_of(self._job.root, edit, self.base)
        sha256 = hashlib.sha256(change.patch).hexdigest()
        self._note(name, edit, change.files, change.about["left_out"])
        self.about[name] = {**change.about, "patch_sha256": sha256, "patch_bytes": len(change.patch)}
        if self._ledger.writable:
            self._ledger.keep(change.patch, ".patch")
        return sha256, change.patch

    def _note(self, name: str, edit: Edit, files: Sequence[str], left_out: Sequence[str]) -> None:
        if left_out:
            self.warnings.append(f"edit.{edit.code}: not in the arm: {'; '.join(left_out)}")
        top, root = provenance.top_of(self._job.root), self._job.root.resolve()
        conf = (root / "conf").relative_to(top).as_posix() + "/"
        inside = [file for file in files if file.startswith(conf)]
        target = self._job.composer.compose(self._job.overrides).values["workload"]["_target_"]
        if not inside or target.startswith(LAUNCHED):
            return
        if len(inside) == len(files) and not edit.overrides and not edit.environment:
            raise BadInput(
                f"{name}: edit.{edit.code} changes {', '.join(inside[:3])} and no code: both arms are configured by the"
                " project's own conf/",
                remedy="hypothesis.edit.overrides=['workload.KEY=VALUE'] for what conf/ should say instead",
            )
        self.warnings.append(
            f"edit.{edit.code} changes {inside[0]} too: both arms are configured by the project's own conf/, as it is"
        )


def moved(job: Job, ledger: Ledger, plan: Plan) -> bool:
    """Whether the job's edit of code is another one than when `plan` was registered, or is for another commit."""
    name, edit, then = job.hypothesis.name, job.hypothesis.edit, plan.treatment.code
    if not edit.code or then is None:
        return bool(edit.code) != bool(plan.hypothesis.edit.code)
    try:
        return Composition(job, ledger, [(name, edit)]).code([name]) != Code(then.commit, then.patches[-1:])
    except BadInput:
        return True


def patch_of(ledger: Ledger, sha256: str) -> bytes:
    """The patch that is kept under this name, checked against it. Raises BadInput."""
    path = ledger.path(f"raw/{sha256}.patch")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}, the recorded patch, cannot be read: {error.strerror}", remedy=COPY) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise BadInput(f"{path} was altered since it was recorded: it is not the code that ran", remedy=COPY)
    return data


@contextmanager
def places(root: Path, ledger: Ledger, arms: Iterable[Arm]) -> Iterator[dict[str, Checkout]]:
    """Where the arms with code of their own run, by their roles: a worktree each, gone at the end. Raises BadInput."""
    with ExitStack() as stack:
        yield {
            arm.role: stack.enter_context(
                provenance.checkout(root, arm.code, [patch_of(ledger, one) for one in arm.code.patches])
            )
            for arm in arms
            if arm.code is not None
        }


def pinned(arms: Iterable[Arm]) -> list[str]:
    """The codes of arms that have their own, in full."""
    return [" ".join((arm.code.commit, *arm.code.patches)) for arm in arms if arm.code is not None]


def uncoded(arm: Arm) -> str:
    """The arm's hash without its code: the same workload and configuration, whatever its files."""
    return replace(arm, code=None).hash
