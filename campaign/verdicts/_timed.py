"""What the timed steps of a round computed, block by block, and whether the two arms can be compared by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from campaign.records import Block, Round

if TYPE_CHECKING:
    from campaign.verdicts._case import Case  # whose warnings use this module

FIRST_RULES = 2  # plans of an earlier version did not record what these gates look at


def first_wrong(case: Case, of_round: Callable[[Round], str]) -> str:
    """What `of_round` says of the first valid round that it finds wrong, with the round's id. Empty where it finds none
    and for a plan from before these gates."""
    if case.plan.rules < FIRST_RULES:
        return ""
    said = ((one.id, of_round(one)) for one in case.sorted.valid())
    return next((f"round {round_id}: {wrong}" for round_id, wrong in said if wrong), "")


def in_step(one: Round) -> bool:
    """Whether both arms have taken equally many steps on as many tokens."""
    blocks = [blocks_of(one, arm) for arm in ("control", "treatment")]
    sizes = [[(block.steps, block.tokens) for block in both] for both in blocks]
    return sizes[0] == sizes[1] and steps_taken(one, "control") == steps_taken(one, "treatment")


def tells(one: Round, field: str) -> bool:
    """Whether both arms told `loss` or `gradient_norm` of a block of the same pair."""
    pairs = zip(blocks_of(one, "control"), blocks_of(one, "treatment"), strict=True)
    return any(getattr(a, field) is not None and getattr(b, field) is not None for a, b in pairs)


def steps_taken(one: Round, arm: str) -> int:
    """Warm-up and timed steps of `arm` and those before its blocks, when its last block ended."""
    blocks = blocks_of(one, arm)
    return len(one.trial(arm).warmup_seconds) + sum(block.steps + block.lead_steps for block in blocks)


def blocks_of(one: Round, arm: str) -> list[Block]:
    """The arm's blocks in the order of the pairs, which is that of its own steps."""
    return sorted((block for block in one.blocks if block.arm == arm), key=lambda block: block.pair)
