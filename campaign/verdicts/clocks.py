"""Where another clock than wall decides, wall must not contradict it (DESIGN 5): when their 95 % intervals do not
overlap, or one clock accepts what the other rejects, the result is inconclusive, `clocks`. At a look it is asked when
the deciding clock is about to decide (until then more rounds may settle it), and of the confirmation always."""

from __future__ import annotations

from campaign import units
from campaign.records import INCONCLUSIVE, Effect, Verdict
from campaign.verdicts._case import ACCEPTS, REJECTS, SLOWER, UNDECIDED, Case, Judged

ORDER = 120


def rule(case: Case) -> Verdict | None:
    if case.protocol.clock == "wall":
        return None
    for stage in case.stages():
        ours, wall = stage.effect, stage.beside
        if wall is None or (stage is case.screen and case.standing(ours) == UNDECIDED):
            continue
        said = {case.standing(ours), case.standing(wall)}
        if apart(ours, wall) or (ACCEPTS in said and said & {REJECTS, SLOWER}):
            return contradicted(case, stage)
    return None


def apart(ours: Effect, wall: Effect) -> bool:
    """Whether the 95 % intervals of the two clocks have nothing in common."""
    return ours.low > wall.high or wall.low > ours.high


def contradicted(case: Case, stage: Judged) -> Verdict:
    """The verdict where wall contradicts the clock that decides in `stage`, whose `beside` is wall's effect."""
    ours, wall = stage.effect, stage.beside
    assert wall is not None
    return case.verdict(
        INCONCLUSIVE,
        "clocks",
        f"{ours.clock} says {units.ratio(ours.ratio)} {units.interval(ours.low, ours.high)},"
        f" wall says {units.ratio(wall.ratio)} {units.interval(wall.low, wall.high)}:"
        " the edit moves waiting, or the machine is shared",
        "decide by wall time on a quiet machine: protocol.clock=wall",
        published=stage,
    )
