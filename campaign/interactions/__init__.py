"""What edits do together: `four_arms` (an edit alone and on the stack), `finding` (what a study's rounds say),
`factorial` (its designs) and `words` (what an interval earns).

Pure functions of records. Loaded when first asked for: `words` serves listings, which must answer without numpy.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from campaign.interactions.factorial import MOST_SUBJECTS, design, fraction, full, groups
    from campaign.interactions.finding import active_roles, find
    from campaign.interactions.four_arms import combined
    from campaign.interactions.words import headline_of, headline_text, stack_word, word

__all__ = [
    "MOST_SUBJECTS",
    "active_roles",
    "combined",
    "design",
    "find",
    "fraction",
    "full",
    "groups",
    "headline_of",
    "headline_text",
    "stack_word",
    "word",
]

HOMES = {
    "factorial": ("MOST_SUBJECTS", "design", "fraction", "full", "groups"),
    "finding": ("active_roles", "find"),
    "four_arms": ("combined",),
    "words": ("headline_of", "headline_text", "stack_word", "word"),
}


def __getattr__(name: str) -> Any:
    for home, names in HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"campaign.interactions.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
