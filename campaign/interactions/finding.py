"""A study's evidence in, a finding or what must still be measured out: a pure function, asked again after each round.

Groups take turns, so that round i of every group lies near the others in time. A study ends without numbers where its
base arm fails (of a headline or a replay: any arm), where a replacement round could not be compared either
(`stability.FATAL_FAULTS`), or where more rounds were invalid than `stability.most_invalid` allows for all the rounds
that it wants. Any other arm that fails costs its own numbers only.
"""

from __future__ import annotations

from collections.abc import Callable

from campaign import units
from campaign.interactions.attribution import attribution
from campaign.interactions.headline import headline, replayed
from campaign.interactions.leave_one_out import leave_one_out
from campaign.interactions.taken import Taken
from campaign.records import Finding, Need, StudyEvidence
from campaign.records.study import FACTORIAL, HEADLINE, LEAVE_ONE_OUT, PARTS, REPLAY
from campaign.stability import FATAL_FAULTS, most_frequent, most_invalid

KINDS: dict[str, Callable[[Taken], Finding]] = {
    LEAVE_ONE_OUT: leave_one_out,
    PARTS: leave_one_out,
    HEADLINE: headline,
    FACTORIAL: attribution,
    REPLAY: replayed,
}


def find(evidence: StudyEvidence) -> Finding | Need:
    """What the evidence says; a Need asks for valid rounds of one group (`group-<g+1>`) until there are that many.

    Raises ValueError for a study of an unknown kind.
    """
    if evidence.study.kind not in KINDS:
        raise ValueError(f"there is no study of kind {evidence.study.kind!r} (there is: {', '.join(KINDS)})")
    taken = Taken.of(evidence)
    ended = _ended(taken)
    if ended:
        return ended
    have = {stage: len(taken.valid(stage)) for stage in taken.stages}
    short = [stage for stage in have if have[stage] < taken.wanted]
    if short:
        stage = min(short, key=have.__getitem__)
        return Need(stage, have[stage] + 1)
    return KINDS[evidence.study.kind](taken)


def active_roles(evidence: StudyEvidence, group: int | str) -> tuple[str, ...]:
    """The arms that the next round of a group holds: those that have not failed. `group` is its place from 0, or the
    stage of its rounds (`group-1` is the first)."""
    place = int(group.removeprefix("group-")) - 1 if isinstance(group, str) else group
    return Taken.of(evidence).active(place)


def _ended(taken: Taken) -> Finding | None:
    """The finding of a study that cannot go on."""
    broken = [role for role in taken.essential if role in taken.failed]
    if broken:
        return taken.finding(f"no finding: the {broken[0]} arm could not run ({taken.failed[broken[0]]})")
    faulty = taken.faulty
    for _, faults in faulty:
        fatal = next((fault for fault in faults if fault.code in FATAL_FAULTS), None)
        if fatal:
            return taken.finding(f"no finding: {fatal.sentence}", [fatal.remedy])
    if not taken.stages:
        return taken.finding("no finding: no arm is left to compare with the base arm")
    limit = most_invalid(taken.wanted * len(taken.stages), taken.study.protocol.invalid_share_limit)
    if len(faulty) > limit:
        worst = most_frequent([faults for _, faults in faulty])
        assert worst is not None, "a faulty round has a fault"
        return taken.finding(
            f"no finding: {units.counted(len(faulty), 'round')} of {len(faulty) + len(taken.counted)} were invalid,"
            f" mostly {worst.code} ({worst.sentence})",
            [worst.remedy],
        )
    return None
