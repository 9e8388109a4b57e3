"""Room in the folders that are written to, and what they lie on (statvfs, /proc/self/mountinfo).

A round writes some hundred kilobytes, a profile's traces and compiled kernels tens of megabytes; a ledger that the disk
refuses ends a run with exit code 3. The limits are judgement. Locks are flocks, and network file systems may have none
(docs/ledger.md)."""

from __future__ import annotations

from campaign import units
from campaign.machine.checks._look import DOUBTFUL, FIT, UNFIT, Answer, Look

NAME, GROUP = "disk", "machine"
LEAST_BYTES, FLAGGED_BYTES = 100 * units.MIB, 2 * units.GIB
NETWORK = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "afs", "ceph")


def check(look: Look) -> Answer | None:
    if not look.places:
        return None
    seen = "; ".join(
        f"{one.name}: {units.size(one.free_bytes)} free" + (f" on {one.kind}" if one.kind in NETWORK else "")
        for one in look.places
    )
    for one in look.places:
        if one.flaw:
            return Answer(UNFIT, f"{one.path}: {one.flaw}", "nothing can be recorded", f"ls -ld {one.path}")
    least = min(look.places, key=lambda one: one.free_bytes)
    if least.free_bytes < LEAST_BYTES:
        return Answer(UNFIT, seen, "a line that the disk refuses ends the run", f"df -h {least.path}, and make room")
    if least.free_bytes < FLAGGED_BYTES:
        return Answer(DOUBTFUL, seen, "traces and compiled kernels may not fit", f"df -h {least.path}, and make room")
    if remote := next((one for one in look.places if one.kind in NETWORK), None):
        return Answer(
            DOUBTFUL,
            seen,
            "the ledger's locks and fsyncs go over the network, and some such file systems have no locks",
            f"CAMPAIGN_PROJECT of a folder on a local disk, not {remote.path}",
        )
    return Answer(FIT, seen)
