"""Studies of made-up campaigns, measured in rounds whose logs are planted, and found by the real `interactions.find`.

Two edits, a and b. In logs of speed against root: a alone .06, b alone .03, both .11, so that their interaction is .02.
Every arm but root wanders by +.01, -.01 in turn over four rounds, which cancels between two such arms: a contrast of
them has no scatter at all, and one of such an arm with root has a standard deviation of sqrt(4 * .01^2 / 3) = .011547
and a half width of 3.18245 * .011547 / 2 = .018374 (t with 3 degrees of freedom, 97.5 %).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from campaign import interactions
from campaign.ledger import Ledger
from campaign.records import (
    FACTORIAL,
    HEADLINE,
    LEAVE_ONE_OUT,
    REPLAY,
    Arm,
    Block,
    Decision,
    Finding,
    Found,
    Memory,
    Round,
    Study,
    StudyEvidence,
    Surroundings,
    Trial,
    to_json,
)
from tests.tracking.declared import MIB, MODEL, protocol

SPEED = {"root": 0.0, "a": 0.06, "b": 0.03, "a+b": 0.11}
PEAK_MIB = {"root": 512, "a": 480, "b": 512, "a+b": 480}
WANDER = (0.01, -0.01, 0.01, -0.01)


def leave_one_out(ledger: Ledger, **changes: Any) -> Found:
    """What each adds to the other: a .11 - .03 = .08, b .11 - .06 = .05; in all .11."""
    same = {"head": "a+b", "without_a": "b", "without_b": "a", "root": "root"}
    return measured(ledger, LEAVE_ONE_OUT, same, base="head", subjects=("a", "b"), **changes)


def headline(ledger: Ledger, **changes: Any) -> Found:
    """Root against head: .11."""
    return measured(ledger, HEADLINE, {"root": "root", "head": "a+b"}, base="root", subjects=("a", "b"), **changes)


def factorial(ledger: Ledger, **changes: Any) -> Found:
    """Main effects: a (.06 + .08) / 2 = .07, b (.03 + .05) / 2 = .04, which are the shares too; interaction .02."""
    same = {"root": "root", "a": "a", "b": "b", "a+b": "a+b"}
    return measured(ledger, FACTORIAL, same, base="root", subjects=("a", "b"), **changes)


def replay(ledger: Ledger, of: Decision, **changes: Any) -> Found:
    """Root against a, as control and treatment: .06."""
    same = {"control": "root", "treatment": "a"}
    return measured(ledger, REPLAY, same, base="control", subjects=(of.hypothesis,), of=of.id, **changes)


def measured(
    ledger: Ledger,
    kind: str,
    arms: Mapping[str, str],
    *,
    base: str,
    subjects: tuple[str, ...],
    broken: Mapping[str, dict[str, Any]] | None = None,
    log: Mapping[str, float] | None = None,
    **changes: Any,
) -> Found:
    """A study whose `arms` (role to a key of SPEED) were measured in four rounds, with its finding, all in the ledger.
    `broken` changes trials of the first round, by role; `log` gives arms a speed of their own."""
    speeds = {role: (log or {}).get(role, SPEED[key]) for role, key in arms.items()}
    sequence = len(ledger.finding_rows()) + 1
    members = {role: () if key == "root" else tuple(key.split("+")) for role, key in arms.items()}
    if kind == REPLAY:
        members = {"control": (), "treatment": subjects}
    study = Study(
        id=f"{kind}-{sequence}",
        kind=kind,
        campaign=ledger.folder.name,
        workload="hybrid_tiny",
        device="cpu",
        arms=tuple(Arm(role, role, "models.HybridStep", {**MODEL, "speed": key}) for role, key in arms.items()),
        base=base,
        subjects=subjects,
        members=members,
        groups=(tuple(arms),),
        protocol=changes.pop("protocol", protocol()),
        rounds=4,
        stack=changes.pop("stack", ("a", "b")),
        threshold=0.03,
        floor_id="floor-1",
        fingerprint={"host": "bench-1", "cpu": "Example CPU 2000", "torch": "2.13.0"},
        code="c0de",
        source={"status": "ok", "commit": "0123456789abcdef0123456789abcdef01234567", "branch": "main"},
        machine_line="Example CPU 2000, 2 cores, Linux 6.1, torch 2.13.0",
        command=f"python -m campaign revalidate --campaign {ledger.folder.name}",
        registered_at="2026-12-02T12:00:00+00:00",
        of=changes.pop("of", ""),
    )
    assert not changes, changes
    ledger.append("study", study.id, to_json(study))
    evidence = StudyEvidence(study)
    if broken:
        evidence = replace(evidence, rounds=(_round(ledger, study, 0, arms, speeds, broken),))
    for index in range(4):
        left = {role: key for role, key in arms.items() if role not in (broken or {})}
        one = _round(ledger, study, index + bool(broken), left, speeds, {}, wander=WANDER[index])
        evidence = replace(evidence, rounds=(*evidence.rounds, one))
    finding = interactions.find(ledger.study_evidence(study.id))
    assert isinstance(finding, Finding), finding
    found = Found(
        id=f"{study.id}-finding",
        study_id=study.id,
        sequence=sequence,
        finding=finding,
        stack=study.stack,
        workload=study.workload,
        device="cpu",
        machine_line=study.machine_line,
        command=study.command,
        decided_at=f"2026-12-02T12:{2 * sequence:02d}:00+00:00",
        wall_seconds=30.0 * len(evidence.rounds),
        timed_seconds=8.0 * len(evidence.rounds),
    )
    ledger.append("finding", found.id, to_json(found))
    return found


def _round(
    ledger: Ledger,
    study: Study,
    index: int,
    arms: Mapping[str, str],
    speeds: Mapping[str, float],
    broken: Mapping[str, dict[str, Any]],
    wander: float = 0.0,
) -> Round:
    """One round in the ledger, as a run writes it. Root's step is .1 s of CPU time and .101 s of wall time."""
    blocks, position = [], 0
    roles = list(arms)
    for pair in range(study.protocol.pairs):
        for role in roles if pair % 2 == 0 else roles[::-1]:
            moved = wander if arms[role] != "root" else 0.0
            cpu = 0.1 * math.exp(0.01 * math.sin(pair) - speeds[role] - moved)
            blocks.append(Block(role, position, pair, 1, 512, 1.01 * cpu, cpu, None, 3))
            position += 1
    if broken:
        blocks = []
    id = f"{study.id}-group-1-{index + 1:02d}"
    trials = [
        Trial(
            f"{id}-{role}",
            role,
            "ok",
            log=ledger.keep(f"{role} of round {index}\n".encode(), ".log"),
            steady=True,
            memory=Memory(PEAK_MIB[key] * MIB),
            fingerprint={"torch": "2.13.0"},
        )
        for role, key in arms.items()
    ]
    trials = [replace(trial, **broken.get(trial.arm, {"status": "interrupted"} if broken else {})) for trial in trials]
    one = Round(
        id=id,
        stage="group-1",
        index=index,
        order=tuple(block.arm for block in blocks),
        trials=tuple(trials),
        surroundings=Surroundings(load=1.2),
        code="c0de",
        wall_seconds=30.0,
        timed_seconds=8.0,
        blocks=tuple(blocks),
    )
    if blocks:
        ledger.inflight(id).write_text("".join(json.dumps(to_json(block)) + "\n" for block in blocks))
        one = replace(one, blocks_file=ledger.seal(id))
    for trial in trials:
        ledger.append("trial", trial.id, {"plan_id": study.id, "round_id": id, **to_json(trial)})
    body = {key: value for key, value in to_json(one).items() if key not in ("trials", "blocks")}
    ledger.append("blocks", id, {"plan_id": study.id, **body, "trial_ids": [trial.id for trial in trials]})
    return one
