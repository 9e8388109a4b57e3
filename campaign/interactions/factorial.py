"""Which arms a factorial takes: every combination of up to four edits, a fraction of five to nine, split into rounds.

The fractions are the minimum-aberration ones of resolution IV or better (NIST/SEMATECH e-Handbook, table 5.3.3.4.7):
main effects are clear of pairwise interactions, and twice a main effect's coded coefficient is the Shapley share when
nothing beyond pairs is there (measurement 6). pyDOE3 lays them out; it has no generators for all of these sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from campaign.errors import BadInput

ROOT = "root"
FULL_SUBJECTS = 4  # 2^4 = 16 arms; above it a fraction
MOST_SUBJECTS = 9
MOST_ARMS = 8  # side by side in one round
LETTERS = "abcdefghi"
# Of the subjects after the first four (or five, of nine), in order: the product that sets each.
GENERATORS = {
    5: ("abcd",),  # resolution V: pairs are clear too
    6: ("abc", "bcd"),
    7: ("abc", "bcd", "acd"),
    8: ("abc", "bcd", "acd", "abd"),
    9: ("bcde", "acde", "abde", "abce"),
}


def role_of(subjects: Sequence[str]) -> str:
    """The role of the arm that holds these subjects: `root` for none, else their names joined by '+'."""
    return "+".join(subjects) or ROOT


def design(subjects: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """`Study.members` (role -> subjects in the arm; root first) and `Study.generators` of a factorial of `subjects`.

    Raises BadInput for fewer than two subjects, more than nine, or one named twice.
    """
    return fraction(subjects) if len(subjects) > FULL_SUBJECTS else (full(subjects), ())


def full(subjects: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Every combination of `subjects`, by role: 2^k arms, fewest subjects first. Raises BadInput as `design`."""
    _check(subjects)
    from pyDOE3 import ff2n

    return _members(subjects, [tuple(level > 0 for level in run) for run in ff2n(len(subjects))])


def fraction(subjects: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """A fraction of resolution IV or better of five to nine subjects, by role, and its generators.

    16 runs for five to eight subjects, 32 for nine. Root is one of them: a product of an even number of factors is
    negated, so that with every edit left out it leaves its own out too. The arm of all subjects is added where the
    fraction lacks it (five and nine), because the whole is measured and never multiplied. A generator reads `e=-abcd`:
    the fifth subject is in where the product of the levels of the first four is negative. Raises BadInput as `design`.
    """
    _check(subjects)
    count = len(subjects)
    if count not in GENERATORS:
        raise BadInput(
            f"a fraction is for {min(GENERATORS)} to {max(GENERATORS)} edits, got {count}",
            remedy="up to four edits take every combination: campaign interactions A B C",
        )
    from pyDOE3 import fracfact

    words = [("" if len(word) % 2 else "-") + word for word in GENERATORS[count]]
    factors = LETTERS[: count - len(words)]
    runs = [tuple(level > 0 for level in run) for run in fracfact(" ".join([*factors, *words]))]
    whole = (True,) * count
    generators = tuple(f"{letter}={word}" for letter, word in zip(LETTERS[len(factors) :], words, strict=False))
    return _members(subjects, runs if whole in runs else [*runs, whole]), generators


def groups(roles: Sequence[str], base: str, most: int = MOST_ARMS) -> tuple[tuple[str, ...], ...]:
    """`roles` split into rounds of at most `most` arms, `base` first in each, the others in order and as evenly as they
    go. Raises ValueError where `base` is not among them or nothing fits beside it."""
    others = [role for role in roles if role != base]
    if base not in roles or not others or most < 2:
        raise ValueError(f"rounds of at most {most} arms with {base!r} in each cannot be made of {list(roles)}")
    count = math.ceil(len(others) / (most - 1))
    ends = [round(len(others) * part / count) for part in range(count + 1)]
    return tuple((base, *others[start:end]) for start, end in pairwise(ends))


def in_fraction(levels: Sequence[int], generators: Sequence[str]) -> bool:
    """Whether an arm of these levels (-1 or 1 by subject) is a run of the fraction; every arm is, of a full design."""
    for generator in generators:
        letter, _, word = generator.partition("=")
        sign = -1 if word.startswith("-") else 1
        wanted = sign * math.prod(levels[LETTERS.index(factor)] for factor in word.lstrip("-"))
        if levels[LETTERS.index(letter)] != wanted:
            return False
    return True


def _members(subjects: Sequence[str], runs: Sequence[tuple[bool, ...]]) -> dict[str, tuple[str, ...]]:
    arms = [tuple(name for name, there in zip(subjects, run, strict=True) if there) for run in runs]
    arms.sort(key=lambda arm: (len(arm), [subjects.index(name) for name in arm]))
    return {role_of(arm): arm for arm in arms}


def _check(subjects: Sequence[str]) -> None:
    twice = sorted({name for name in subjects if list(subjects).count(name) > 1})
    if twice:
        raise BadInput(f"{twice[0]} is named twice", remedy="name each edit once")
    if len(subjects) < 2:
        raise BadInput(
            f"an interaction is between at least two edits, got {len(subjects)}",
            remedy="campaign interactions A B    (see campaign stack for names)",
        )
    if len(subjects) > MOST_SUBJECTS:
        raise BadInput(
            f"{len(subjects)} edits: the largest factorial here has {MOST_SUBJECTS} (33 arms)",
            remedy="name the ones that are suspected of each other; campaign revalidate takes any number",
        )
