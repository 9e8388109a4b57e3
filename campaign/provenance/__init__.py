"""Which code ran: the git commit with the patch on top of it, the hash of the source files, the packages.

Nothing here raises because of git: a missing binary, no repository, an unborn branch or a folder of another owner is
a `status` in the record. The user's repository is only read: the snapshot uses an index and an object store of its
own in a temporary folder.
"""

from campaign.provenance.code import code_hash, packages
from campaign.provenance.snapshot import PATCH_LIMIT_BYTES, Snapshot, snapshot

__all__ = ["PATCH_LIMIT_BYTES", "Snapshot", "code_hash", "packages", "snapshot"]
