"""The C++ compiler that CPU kernels are built with: CXX where it is set, else the first of c++, g++, clang++ on the
PATH (as kernels/build.py of the reference project takes it)."""

from __future__ import annotations

from campaign.machine.checks._look import DOUBTFUL, FIT, Answer, Look

NAME, GROUP = "compiler", "software"


def check(look: Look) -> Answer:
    command, said = look.compiler
    if command:
        return Answer(FIT, said)
    mend = "unset CXX, or correct it" if said.startswith("CXX=") else "apt-get install g++, or dnf install gcc-c++"
    return Answer(DOUBTFUL, said or "not looked for", "kernels in C++ are `unavailable`", mend)
