"""An edit on root and on the stack, from rounds that held four arms: root, solo (root + the edit), control (the stack)
and treatment (the stack + the edit)."""

from __future__ import annotations

from collections.abc import Sequence

from campaign import units
from campaign.effects import readable, round_logs
from campaign.interactions.contrasts import byte_change, contrast, peaks_of, rounds_hint
from campaign.interactions.words import UNRESOLVED, word
from campaign.records import ByteChange, Combined, Plan, Round

ROLES = ("root", "solo", "control", "treatment")


def combined(rounds: Sequence[Round], plan: Plan) -> Combined | None:
    """What the edit is worth alone and together with the stack, on the plan's clock; None with fewer than two rounds or
    unless every one of them has all four arms, each with its blocks.

    With v the per-round log of an arm against control: marginal = v(treatment), which is the verdict's own effect,
    isolated = v(solo) - v(root), cumulative = v(treatment) - v(root), and the interaction = marginal - isolated =
    log S_AB - log S_A - log S_B (measurement 6), each with t over rounds. Bytes are the same contrasts of peaks.
    """
    if len(rounds) < 2 or not all(_whole(one, plan.protocol.clock) for one in rounds):
        return None
    logs = round_logs(rounds, plan.protocol.clock, plan.base)
    root, solo, head = (logs[role] for role in ("root", "solo", "treatment"))
    marginal, isolated, interaction = contrast(head), contrast(solo - root), contrast(head - solo + root)
    return Combined(
        marginal=marginal,
        isolated=isolated,
        cumulative=contrast(head - root),
        interaction=interaction,
        word=word(marginal, isolated, interaction, plan.threshold),
        marginal_bytes=_bytes(rounds, treatment=1, control=-1),
        isolated_bytes=_bytes(rounds, solo=1, root=-1),
        cumulative_bytes=_bytes(rounds, treatment=1, root=-1),
        interaction_bytes=_bytes(rounds, treatment=1, control=-1, solo=-1, root=1),
    )


def hints(found: Combined | None, d: float) -> tuple[str, ...]:
    """What would resolve an unresolved interaction; nothing for any other."""
    if found is None or found.word != UNRESOLVED:
        return ()
    one = found.interaction
    shown = f"{units.ratio(one.ratio)} {units.interval(one.low, one.high)}"
    return (f"the interaction with the stack is unresolved, {shown} over {one.rounds} rounds: {rounds_hint(one, d)}",)


def _whole(one: Round, clock: str) -> bool:
    ran = {trial.arm for trial in one.trials if trial.status == "ok"}
    counts = {sum(block.arm == role for block in one.blocks) for role in ROLES}
    return ran >= set(ROLES) and len(counts) == 1 and readable([one], clock)


def _bytes(rounds: Sequence[Round], **weights: int) -> ByteChange | None:
    return byte_change((weight, peaks_of(rounds, role)) for role, weight in weights.items())
