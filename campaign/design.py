"""Who runs when: the turn order inside a round, the order of starting processes, and the seed of each round."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def order(arms: Sequence[str], pairs: int, rng: random.Random) -> tuple[str, ...]:
    """Turns of one round: each arm `pairs` times, in balanced random order.

    Turns come two at a time: a random permutation of the arms, then its reverse, so that a linear drift cancels
    inside the two. For two arms that is AB BA or BA AB. With an odd `pairs` the last turn is one permutation alone.
    Raises ValueError for fewer than two arms, a repeated arm, or `pairs` below 1.
    """
    if len(arms) < 2 or len(set(arms)) != len(arms):
        raise ValueError(f"a round needs at least two different arms, got {list(arms)}")
    if pairs < 1:
        raise ValueError(f"pairs={pairs}: a round needs at least one block of each arm")
    turns: list[str] = []
    for first in range(0, pairs, 2):
        turn = rng.sample(list(arms), len(arms))
        turns += turn
        if first + 1 < pairs:
            turns += reversed(turn)
    return tuple(turns)


def leads(pairs: int, least: int, rng: random.Random) -> tuple[int, ...]:
    """Steps before the blocks of each pair: `least` or one more, so that the timed steps are not always the same ones
    of a training that does something every few steps. Zeros where `least` is 0."""
    return tuple(least + rng.randrange(2) if least else 0 for _ in range(pairs))


def start_order(arms: Sequence[T], rng: random.Random) -> tuple[T, ...]:
    """The order in which a round's processes are started: a random permutation of `arms`."""
    return tuple(rng.sample(list(arms), len(arms)))


def round_seed(seed: int, stage: str, index: int) -> int:
    """The seed of one round's random choices, below 2**63, from the plan's seed, the stage and the round's index.

    A digest rather than a sum: neighbouring seeds and indexes must not share their choices, and Python's own `hash`
    differs from process to process.
    """
    digest = hashlib.sha256(f"{seed}:{stage}:{index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
