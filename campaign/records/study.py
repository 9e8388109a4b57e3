"""A question about several edits together: what was declared, what was measured, what was found.

A hypothesis compares two arms and ends in a verdict. A study compares several arms in the same rounds and ends in a
finding: what each edit still adds to the whole stack, what the stack adds to root, how edits interact, or what a
recorded decision gives when it is measured again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from campaign.records.decision import ByteChange, Contrast, Effect, MemoryChange
from campaign.records.measured import Round
from campaign.records.plan import RULES, Arm, Protocol

LEAVE_ONE_OUT = "leave_one_out"  # head, and head without each subject
PARTS = "parts"  # the same of the parts of one accepted set
HEADLINE = "headline"  # root against head
FACTORIAL = "factorial"  # root with combinations of the subjects
REPLAY = "replay"  # control and treatment of a recorded decision
STUDIES = (LEAVE_ONE_OUT, PARTS, HEADLINE, FACTORIAL, REPLAY)


@dataclass(frozen=True)
class Study:
    """Registered in the ledger before the first timing. `kind` is one of `STUDIES`.

    `arms` have unique roles; `members` maps each role to the subjects that are in it. `groups` are the roles that one
    round holds, each with `base` among them; round i of every group makes one replicate. `base` is the arm that gates
    look at and that per-round logs are taken against. `rounds` valid rounds are taken of each group. `generators`
    define a fraction of a factorial, empty for a full one. `of` is the decision that a parts or replay study is about.
    The other fields are those of `Plan`.
    """

    id: str
    kind: str
    campaign: str
    workload: str
    device: str
    arms: tuple[Arm, ...]
    base: str
    subjects: tuple[str, ...]
    members: dict[str, tuple[str, ...]]
    groups: tuple[tuple[str, ...], ...]
    protocol: Protocol
    rounds: int
    stack: tuple[str, ...]
    threshold: float
    floor_id: str
    fingerprint: dict[str, Any]
    code: str
    source: dict[str, Any]
    machine_line: str
    command: str
    registered_at: str
    memory_floor_bytes: int = 0
    generators: tuple[str, ...] = ()
    of: str = ""
    rules: int = RULES


@dataclass(frozen=True)
class StudyEvidence:
    """Everything a finding may look at. A round of group g (0-based) has the stage `group-<g+1>`."""

    study: Study
    rounds: tuple[Round, ...] = ()


@dataclass(frozen=True)
class Term:
    """One number of a finding. `name` is a subject, or subjects joined by ':' for an interaction. `word` is what the
    interval earns; `aliases` are the terms that a fraction cannot tell it from: of several pairs that are one number
    only the first has a term."""

    name: str
    effect: Contrast
    word: str = ""
    memory: ByteChange | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """What a study's evidence says; a pure function of it.

    `terms`: of leave-one-out and parts, one a subject (what it adds to all the others); of a factorial, main effects
    (averaged over the other edits), then pairwise interactions. `shares` is the Shapley attribution of a factorial;
    the product of its ratios is `total`'s. `total` is all subjects against none: root against head, or control against
    treatment. `effect` and `memory` are the headline's. `product` is that of the parts' ratios beside `total`, `sum`
    1 + the sum of their gains, and `word` what the two earn. `retire` names subjects that no longer pay. `failed` maps
    roles to why they could not run. `drift` is the largest change of the base arm's level within a round, as a share.
    """

    kind: str
    subjects: tuple[str, ...]
    sentence: str
    terms: tuple[Term, ...] = ()
    shares: tuple[Term, ...] = ()
    total: Contrast | None = None
    effect: Effect | None = None
    memory: MemoryChange | None = None
    product: float | None = None
    sum: float | None = None
    word: str = ""
    retire: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    drift: float = 0.0
    blocks: int = 0
    valid_rounds: int = 0
    invalid_rounds: int = 0


@dataclass(frozen=True)
class Found:
    """A finding written in the ledger. `sequence` counts findings from 1."""

    id: str
    study_id: str
    sequence: int
    finding: Finding
    stack: tuple[str, ...]
    workload: str
    device: str
    machine_line: str
    command: str
    decided_at: str
    wall_seconds: float
    timed_seconds: float
