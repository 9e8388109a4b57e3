"""Which code ran: the git commit with the patch on top of it, the hash of the source files, the packages.

A snapshot never raises because of git: a missing binary, no repository, an unborn branch or a folder of another owner
is a `status` in the record. It only reads the user's repository: it uses an index and an object store of its own in a
temporary folder. `worktree` brings a recorded state back as files beside, and says why where it cannot. `edits` makes
a patch of an edit of code, and `checkout` the place where an arm with code of its own runs.
"""

from campaign.provenance.checkout import Checkout, checkout
from campaign.provenance.code import code_hash, code_parts, differing, packages
from campaign.provenance.edits import (
    Change,
    Named,
    change_of,
    check_applies,
    commit_of,
    files_between,
    head,
    merge_base,
    top_of,
    tree_change,
)
from campaign.provenance.snapshot import PATCH_LIMIT_BYTES, Snapshot, snapshot
from campaign.provenance.worktree import worktree

__all__ = [
    "PATCH_LIMIT_BYTES",
    "Change",
    "Checkout",
    "Named",
    "Snapshot",
    "change_of",
    "check_applies",
    "checkout",
    "code_hash",
    "code_parts",
    "commit_of",
    "differing",
    "files_between",
    "head",
    "merge_base",
    "packages",
    "snapshot",
    "top_of",
    "tree_change",
    "worktree",
]
