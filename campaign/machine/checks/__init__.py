"""What `campaign doctor` looks at: one check a file, each a pure function of what was gathered.

A check is a module here with `NAME`, `GROUP` (one of `GROUPS`) and `check(look) -> Answer | None`, None where it has
nothing to say of this machine (a GPU's clocks where nothing measures on a GPU). Its docstring says what it looks at and
where its limits are from. Adding one is adding a file. Read `_look` first (what a check sees), then `_gather` (how that
is read from the machine).

Levels: `fit`; `doubtful`, where a measurement goes on and is blurred, raised or harder to repeat; `unfit`, where the
protocol's gates would call rounds invalid, or nothing can be measured or written at all; `unknown`, where the machine
does not say, which counts for nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from functools import cache
from types import ModuleType

from campaign import discovery
from campaign.machine.checks._gather import gather
from campaign.machine.checks._look import (
    DOUBTFUL,
    FIT,
    GROUPS,
    LEVELS,
    UNFIT,
    UNKNOWN,
    Answer,
    Finding,
    Look,
    Place,
    Project,
)

__all__ = [
    "DOUBTFUL",
    "FIT",
    "GROUPS",
    "LEVELS",
    "UNFIT",
    "UNKNOWN",
    "Answer",
    "Finding",
    "Look",
    "Place",
    "Project",
    "checks",
    "findings",
    "fitness",
    "gather",
]


@cache
def checks() -> tuple[ModuleType, ...]:
    """The check modules, by group and then by name."""
    found = [module for module in discovery.modules(sys.modules[__name__]) if hasattr(module, "check")]
    return tuple(sorted(found, key=lambda module: (GROUPS.index(module.GROUP), module.NAME.lower())))


def findings(look: Look, groups: Collection[str] = GROUPS) -> tuple[Finding, ...]:
    """What each check of `groups` says of `look`, those without an answer left out."""
    found = []
    for module in checks():
        answer: Answer | None = module.check(look) if module.GROUP in groups else None
        if answer is not None:
            found.append(Finding(module.NAME, module.GROUP, *answer))
    return tuple(found)


def fitness(found: Sequence[Finding]) -> str:
    """The worst level among them: 'fit', 'doubtful' or 'unfit'. What is unknown counts for nothing."""
    levels = {one.level for one in found}
    return next((level for level in (UNFIT, DOUBTFUL) if level in levels), FIT)
