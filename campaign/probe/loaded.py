"""Which of the objects that were compiled this process has loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def only_what_is_loaded(rows: list[dict[str, Any]]) -> None:
    """A row of an object that this process has not loaded says nothing of the steps that it ran."""
    try:
        loaded = Path("/proc/self/maps").read_text()
    except OSError:
        return  # no Linux: the rows stand as they were compiled
    for row in rows:
        if row.get("object") and row["object"] not in loaded:
            row |= {"status": "unavailable", "reason": f"{row['object']} was compiled, but no step loaded it"}
