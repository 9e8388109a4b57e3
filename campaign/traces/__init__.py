"""Profiler files as other tools write them, read exactly and in bounded memory.

    open_profile(path) -> Timeline | KernelReport

A reader is one module of this package with three names; a new format is one new file:

    FORMAT       what the format is called in messages; empty for `refused`, which is asked last
    recognises(head: bytes, path: Path) -> bool      from the first bytes (decompressed), never from the file's name
    read(path: Path) -> Timeline | KernelReport      raises BadInput (with the offset, line or table) for what cannot
                                                     be read; what was repaired or lost becomes a Notice

`timeline` and `counters` are what readers hand on, `spool` is how rows stay out of memory.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path
from types import ModuleType

from campaign import discovery
from campaign.errors import BadInput
from campaign.traces.counters import KernelReport
from campaign.traces.timeline import Timeline

__all__ = ["KernelReport", "Timeline", "open_profile", "readers"]

HEAD_BYTES = 1 << 16
GZIP = b"\x1f\x8b"


def readers() -> tuple[ModuleType, ...]:
    """The modules here that are readers, in the order of their names, and then what only refuses."""
    found = [module for module in discovery.modules(sys.modules[__name__]) if hasattr(module, "FORMAT")]
    return tuple(sorted(found, key=lambda module: not module.FORMAT))


def open_profile(path: Path) -> Timeline | KernelReport:
    """Read a file with the reader that recognises its content.

    Raises BadInput for a file that is missing, empty, unreadable, or in no known format, and what the reader raises.
    """
    head = _head(path)
    for reader in readers():
        if reader.recognises(head, path):
            found: Timeline | KernelReport = reader.read(path)
            return found
    known = ", ".join(reader.FORMAT for reader in readers() if reader.FORMAT)
    raise BadInput(
        f"{path}: not a profile that can be read; its first bytes are {head[:16]!r}",
        remedy=f"campaign diagnose FILE, with a file of one of these: {known}",
    )


def _head(path: Path) -> bytes:
    """The first bytes of the content, decompressed where the file is gzip."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}", remedy="campaign diagnose --help") from error
    if not head:
        raise BadInput(f"{path} is empty", remedy="campaign diagnose --help")
    if head.startswith(GZIP):
        try:
            return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
        except zlib.error as error:
            raise BadInput(
                f"{path}: damaged gzip at its beginning ({error})", remedy="make the profile again"
            ) from error
    return head
