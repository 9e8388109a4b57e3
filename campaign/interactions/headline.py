"""Root against head, and a recorded decision measured again: two arms, one ratio."""

from __future__ import annotations

from dataclasses import replace

from campaign import units
from campaign.effects import effect, memory_change, readable
from campaign.interactions.contrasts import TAIL, contrast
from campaign.interactions.taken import Taken
from campaign.interactions.words import headline_text, size_pair
from campaign.records import Contrast, Effect, Finding, MemoryChange


def headline(taken: Taken) -> Finding:
    """Root against head: what the whole stack is worth, measured, never multiplied."""
    found, memory, total, warnings = _compared(taken, "root", "head")
    base = taken.finding("", warnings)
    sentence = headline_text(
        found.control_tokens_per_second,
        found.treatment_tokens_per_second,
        found.ratio,
        found.low,
        found.high,
        memory.control_bytes if memory else None,
        memory.treatment_bytes if memory else None,
        base.blocks,
        clock=found.clock,
    )
    return replace(base, sentence=sentence, effect=found, memory=memory, total=total)


def replayed(taken: Taken) -> Finding:
    """Control against treatment of a recorded decision, measured again. Reports set the recorded ratio beside it."""
    found, memory, total, warnings = _compared(taken, "control", "treatment")
    clock = " of CPU time" if found.clock == "cpu" else ""
    said = (
        f"measured again: {units.ratio(found.ratio)} {units.interval(found.low, found.high)}{clock} over"
        f" {units.counted(found.rounds, 'round')}"
    )
    if memory:
        said += f", memory {size_pair(memory.control_bytes, memory.treatment_bytes)}"
    return replace(taken.finding(said, warnings), effect=found, memory=memory, total=total)


def _compared(taken: Taken, control: str, treatment: str) -> tuple[Effect, MemoryChange | None, Contrast, list[str]]:
    study, rounds = taken.study, taken.rounds_of(control, treatment)
    clock = study.protocol.clock
    found = effect(rounds, clock, TAIL, TAIL, control=control, treatment=treatment)
    memory = memory_change(
        rounds, study.protocol, TAIL, control=control, treatment=treatment, least_bytes=study.memory_floor_bytes
    )
    total = contrast(taken.logs[treatment] - taken.logs[control])
    warnings = []
    if (found.ratio - 1) * (found.total_ratio - 1) < 0:
        warnings.append(
            f"the median pair says {units.ratio(found.ratio)}, total time {units.ratio(found.total_ratio)}: one arm has"
            " stalls that a median hides"
        )
    beside = "wall" if clock != "wall" else ("cpu" if study.device == "cpu" else "device")
    if readable(rounds, beside):
        other = effect(rounds, beside, TAIL, TAIL, control=control, treatment=treatment)
        if clock != "wall":
            warnings.append(f"on wall time: {units.ratio(other.ratio)} {units.interval(other.low, other.high)}")
        if other.low > found.high or other.high < found.low:
            warnings.append(
                f"the {clock} clock says {units.ratio(found.ratio)} and the {beside} clock {units.ratio(other.ratio)},"
                " beyond their intervals"
            )
    return found, memory, total, warnings
