"""The interpreter: 3.11 at least (pyproject.toml), and no debug build, whose checks slow every call."""

from __future__ import annotations

from campaign.machine.checks._look import DOUBTFUL, FIT, UNFIT, Answer, Look

NAME, GROUP = "python", "software"
LEAST = (3, 11)


def check(look: Look) -> Answer | None:
    if not look.python:
        return None
    seen = f"{look.python['implementation']} {look.python['version']}"
    if tuple(look.python["tuple"]) < LEAST:
        return Answer(UNFIT, seen, "campaign needs 3.11", "python3.11 -m venv .venv")
    if look.python["debug"]:
        return Answer(DOUBTFUL, f"{seen}, a debug build", "its checks slow every call", "an interpreter without them")
    return Answer(FIT, seen)
