"""The bytes of a file, decompressed where it is gzip: in bounded memory, and as far as they go where it is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from campaign.errors import BadInput

GZIP = b"\x1f\x8b"
PACKED_BYTES = 1 << 17
PLAIN_BYTES = 1 << 17  # decompressed at once: what is lost where the stream turns out damaged


class Plain:
    """A file as it is."""

    lost = ""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def into(self, view: memoryview) -> int:
        """Fill the front of `view`; how many bytes, 0 at the end."""
        return self._file.readinto(view)  # type: ignore[attr-defined, no-any-return]


class Inflated:
    """A gzip file of any number of members. `lost` says why the stream ended early, if it did."""

    def __init__(self, file: IO[bytes]) -> None:
        from isal import igzip_lib

        self._new: Any = lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        self._error: Any = igzip_lib.error
        self._file = file
        self._member = self._new()
        self._packed = b""
        self.lost = ""

    def into(self, view: memoryview) -> int:
        """Fill the front of `view`; how many bytes, 0 at the end."""
        while not self.lost:
            if self._member.eof:
                self._packed = (self._member.unused_data or self._file.read(PACKED_BYTES)).lstrip(b"\0")
                if not self._packed:
                    return 0
                self._member = self._new()
            elif self._member.needs_input and not self._packed:
                self._packed = self._file.read(PACKED_BYTES)
                if not self._packed:
                    self.lost = "the gzip stream ends early"
                    return 0
            try:
                found = self._member.decompress(self._packed, min(len(view), PLAIN_BYTES))
            except (self._error, EOFError, ValueError) as error:
                self.lost = f"the gzip stream is damaged ({error})"
                return 0
            self._packed = b""
            if found:
                view[: len(found)] = found
                return len(found)
        return 0


@contextmanager
def opened(path: Path) -> Iterator[Plain | Inflated]:
    """The decompressed content of a file. Raises BadInput where it cannot be opened or read."""
    try:
        with path.open("rb", buffering=0) as file:
            packed = file.read(2) == GZIP
            file.seek(0)
            yield Inflated(file) if packed else Plain(file)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}", remedy="campaign diagnose --help") from error
