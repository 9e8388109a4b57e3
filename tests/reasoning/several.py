"""Rounds of several arms made by hand: each arm's blocks take chosen times, so that every log is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from campaign.records import Finding, Memory, Need, Round, Study, StudyEvidence
from tests.reasoning.made import blocks, ratio_round, study, trial


def arms_round(
    seconds: Mapping[str, float | Sequence[float]],
    *,
    stage: str = "group-1",
    index: int = 0,
    peaks: Mapping[str, int] | None = None,
    trials: Mapping[str, Mapping[str, Any]] | None = None,
    pairs: int = 2,
    **changes: Any,
) -> Round:
    """A round whose arms take turns forward and back; an arm's blocks take these seconds (or one for each pair).

    `peaks` are live peak bytes by arm, `trials` what else to change in an arm's trial.
    """
    roles = list(seconds)
    rows = []
    for place, role in enumerate(roles):
        times = seconds[role]
        every = [float(times)] * pairs if isinstance(times, float | int) else list(times)
        for block in blocks(role, every, [True] * len(every)):
            turn = place if block.pair % 2 == 0 else len(roles) - 1 - place
            rows.append(replace(block, position=block.pair * len(roles) + turn))
    rows.sort(key=lambda block: block.position)
    ran = []
    for role in roles:
        memory = {"memory": Memory(peaks[role])} if peaks else {}
        ran.append(trial(role, **(memory | dict((trials or {}).get(role, {})))))
    one = ratio_round(1.0, stage=stage, index=index)
    return replace(one, order=tuple(b.arm for b in rows), trials=tuple(ran), blocks=tuple(rows), **changes)


def log_round(logs: Mapping[str, float], **made: Any) -> Round:
    """A round in which each arm is faster than 1 s a block by its log: 0.1 takes exp(-0.1) s."""
    return arms_round({role: math.exp(-log) for role, log in logs.items()}, **made)


def evidence_of(of: Study, *rounds: Mapping[str, float], stage: str = "group-1", **made: Any) -> StudyEvidence:
    """Evidence of rounds with these logs, in the order given."""
    return StudyEvidence(
        of, tuple(log_round(logs, stage=stage, index=index, **made) for index, logs in enumerate(rounds))
    )


def found(answer: Finding | Need) -> Finding:
    assert isinstance(answer, Finding), answer
    return answer


def left_out(*subjects: str, groups: tuple[tuple[str, ...], ...] = (), **changes) -> Study:
    """Head, head without each subject, and root, gates on head."""
    members = {"head": subjects, "root": ()}
    members |= {f"without-{one}": tuple(name for name in subjects if name != one) for one in subjects}
    roles = tuple(members)
    values = {
        "kind": "leave_one_out",
        "members": members,
        "subjects": subjects,
        "groups": groups or (roles,),
    }
    return study(roles, base="head", **(values | changes))


def two_arms(kind: str, control: str, treatment: str, **changes) -> Study:
    members = {control: (), treatment: ("A", "B")}
    values = {"kind": kind, "members": members, "subjects": ("A", "B")}
    return study((control, treatment), base=control, **(values | changes))
