"""A kept answer to a question about the whole ledger: a listing of a thousand decisions must answer at once.

It is a view like MLflow's: made from the ledger, dropped as soon as the file is another, never read by anything that
decides. The key is what the file system says of the file (inode, size, times of change), and the program's version.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import campaign

TYPE_CHECKING = False  # the name that type checkers know, without importing `typing`
if TYPE_CHECKING:
    from typing import Any


class View:
    """The answer called `name` about the ledger `file`, as JSON in `.NAME.json` beside it."""

    def __init__(self, file: Path, name: str) -> None:
        self._path = file.with_name(f".{name}.json")
        self._key: list[object] | None = None
        try:
            found = os.stat(file)
        except OSError:
            return
        self._key = [campaign.__version__, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]

    def get(self) -> Any:
        """The kept answer, or None where there is none of this very file."""
        try:
            kept = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return None
        return kept["answer"] if isinstance(kept, dict) and self._key and kept.get("key") == self._key else None

    def keep(self, answer: Any) -> None:
        """Keep the answer, if it was found in the file as it was when this view was opened. A folder that cannot be
        written keeps nothing."""
        if not self._key:
            return
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            new.write_text(json.dumps({"key": self._key, "answer": answer}, separators=(",", ":")))
            os.replace(new, self._path)
        except OSError:
            with suppress(OSError):
                new.unlink(missing_ok=True)
