"""A ledger's text made fit to stand in a drawing: on one line, without control characters, of a known width."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

LONGEST = 34  # characters of a name
_NARROW = frozenset("ijlftrI.,:;|!'()[]/ -·")
_BROAD = frozenset("mwMW@%&—…#+=<>~")


def plain(text: str, most: int = LONGEST) -> str:
    """`text` on one line and at most `most` characters long, an ellipsis in the place of the rest. Control and format
    characters go (such as turn the reading order round), and of marks on one letter all after the second."""
    kept: list[str] = []
    marks = 0
    for one in text:
        kind = unicodedata.category(one)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if one.isspace():
            kept.append(" ")
        elif kind[0] != "C" and marks <= 2:
            kept.append(one)
    flat = " ".join("".join(kept).split())
    return flat if len(flat) <= most else f"{flat[: most - 1].rstrip()}…"


def escaped(text: str) -> str:
    """`text` so that matplotlib draws it as it stands: a `$` begins no formula."""
    return text.replace("$", r"\$")


def width(text: str, size: float) -> float:
    """About how wide `text` is at `size`, in the same units; rather too wide than too narrow."""
    return size * sum(map(_share, text))


def fitted(text: str, room: float, size: float) -> str:
    """`text` cut with an ellipsis so that it fits into `room`."""
    flat = plain(text, 200)
    if width(flat, size) <= room:
        return flat
    while flat and width(f"{flat}…", size) > room:
        flat = flat[:-1]
    return f"{flat.rstrip()}…"


def _share(one: str) -> float:
    if one in _NARROW:
        return 0.4
    if one in _BROAD:
        return 0.92
    if unicodedata.east_asian_width(one) in "WF":
        return 1.05
    return 0.7 if one.isupper() else 0.64


def listed(names: Sequence[str], most: int = 6) -> str:
    """'a, b and c'; of more than `most`, the first and how many others."""
    shown = [plain(name) for name in names[:most]]
    if len(names) > most + 1:
        return f"{', '.join(shown)} and {len(names) - most} others"
    shown += [plain(name) for name in names[most:]]
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)


def latest(shown: int, every: int, what: str) -> str:
    """'The most recent 30 of 200 decisions; the table has all.' Empty where all are shown."""
    return f"The most recent {shown} of {every} {what}; the table has all of them." if shown < every else ""


def sentences(*parts: str) -> str:
    """The parts that are not empty, a space between."""
    return " ".join(part for part in parts if part)
