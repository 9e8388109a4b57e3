"""Edits measured together, written through campaign.ledger and judged by the real rules: decisions of four arms,
studies with their findings. Every round's logs are planted.

`wander` adds +.01, -.01, +.01, -.01 to the faster arm's log over four rounds: sd sqrt(4 * .01^2 / 3) = .0115470, half
width of the 95 % interval 3.182446 * .0115470 / 2 = .0183738, as in `written`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from campaign.interactions import find
from campaign.ledger import Ledger
from campaign.records import Arm, Decision, Edit, Evidence, Finding, Found, Plan, Round, Study, to_json
from campaign.records.study import FACTORIAL, HEADLINE, LEAVE_ONE_OUT, PARTS, REPLAY
from tests.reasoning import made
from tests.reasoning.several import log_round
from tests.report import written

WANDER = (0.01, -0.01, 0.01, -0.01)
MIB = 1024**2


def arm(role: str, name: str = "") -> Arm:
    return Arm(role, name or role, "models.Workload", {"role": role})


def rounds(
    id: str, stage: str, logs: Mapping[str, float], wanders: str, *, count: int = 4, **changes: Any
) -> tuple[Round, ...]:
    """`count` rounds whose arms are faster than 1 s a block by these logs; the arm `wanders` wanders."""
    found = []
    for index in range(count):
        shifted = {role: log + WANDER[index % 4] * (role == wanders) for role, log in logs.items()}
        one = log_round(shifted, stage=stage, index=index, **changes)
        round_id = f"{id}-{stage}-{index + 1:02d}"
        trials = tuple(replace(trial, id=f"{round_id}-{trial.arm}") for trial in one.trials)
        found.append(replace(one, id=round_id, trials=trials))
    return tuple(found)


def on_stack(
    ledger: Ledger,
    name: str,
    stack: Sequence[str],
    *,
    below: float,
    alone: float,
    marginal: float,
    peaks: Mapping[str, int] | None = None,
    **changes: Any,
) -> Decision:
    """A decision from rounds of four arms: the stack is faster than root by the log `below`, the edit on root by
    `alone`, and on the stack by `marginal`, which wanders."""
    plan: Plan = written.plan(name, stack=tuple(stack), **changes)
    head = "+".join(("root", *stack))
    plan = replace(
        plan,
        control=arm("control", head),
        treatment=arm("treatment", f"{head}+{name}"),
        root=arm("root"),
        solo=arm("solo", f"root+{name}"),
    )
    logs = {"root": 0.0, "solo": alone, "control": below, "treatment": below + marginal}
    screened = rounds(plan.id, "screen", logs, "treatment", peaks=peaks)
    confirmed = rounds(plan.id, "confirm", logs, "treatment", peaks=peaks) if marginal > 0.05 else ()
    probe = made.probe()
    probe = replace(probe, arms=tuple(replace(one, facts={"low_precision": "emulated"}) for one in probe.arms))
    return written.record(ledger, Evidence(plan, probe, (*screened, *confirmed)))


def study(
    ledger: Ledger,
    kind: str,
    members: Mapping[str, Sequence[str]],
    logs: Mapping[str, float],
    *,
    base: str,
    wanders: str = "",
    peaks: Mapping[str, int] | None = None,
    trials: Mapping[str, Mapping[str, Any]] | None = None,
    number: int = 1,
    **changes: Any,
) -> Found:
    """Declare, measure in four rounds, find and write. `members` maps roles to their edits, `logs` roles to their log
    against root; `trials` changes the trials of every round."""
    subjects = tuple(dict.fromkeys(name for names in members.values() for name in names))
    plan = written.plan("study")
    shared = {field.name: getattr(plan, field.name) for field in fields(Study) if hasattr(plan, field.name)}
    values: dict[str, Any] = {
        "id": f"{kind}-{number}",
        "kind": kind,
        "arms": tuple(arm(role) for role in members),
        "base": base,
        "subjects": subjects,
        "members": {role: tuple(names) for role, names in members.items()},
        "groups": (tuple(members),),
        "rounds": 4,
        "stack": tuple(one.hypothesis for one in ledger.stack()),
        "command": f"campaign {kind}",
    }
    one = Study(**(shared | values | changes))
    ledger.append("study", one.id, to_json(one))
    written.write_rounds(
        ledger, one.id, rounds(one.id, "group-1", logs, wanders, count=one.rounds, peaks=peaks, trials=trials)
    )
    finding = find(ledger.study_evidence(one.id))
    assert isinstance(finding, Finding), finding
    sequence = 1 + len(ledger.finding_rows())
    found = Found(
        id=f"{one.id}-finding",
        study_id=one.id,
        sequence=sequence,
        finding=finding,
        stack=one.stack,
        workload=one.workload,
        device=one.device,
        machine_line=one.machine_line,
        command=one.command,
        decided_at=f"2026-12-02T12:{sequence:02d}:00.000Z",
        wall_seconds=40.0,
        timed_seconds=sum(each.timed_seconds for each in ledger.study_evidence(one.id).rounds),
    )
    ledger.append("finding", found.id, to_json(found))
    return found


def two_edits(ledger: Ledger, **changes: Any) -> None:
    """A stack of prenorm_fusion (log .10 on root) and half (log .08 on it, .10 alone: redundancy of .02 in logs, which
    is within d = 3 %): root against head is .18."""
    written.faster(ledger, "prenorm_fusion")
    on_stack(ledger, "half", ("prenorm_fusion",), below=0.10, alone=0.10, marginal=0.08, edit=HALF, **changes)


HALF = Edit(overrides=("workload.half=true",))


def headline(ledger: Ledger, log: float = 0.15, **changes: Any) -> Found:
    """Root against head, faster by the log `log`, which wanders; memory 400 -> 500 MiB, exactly."""
    names = [one.hypothesis for one in ledger.stack()]
    return study(
        ledger,
        HEADLINE,
        {"root": (), "head": names},
        {"root": 0.0, "head": log},
        base="root",
        wanders="head",
        peaks={"root": 400 * MIB, "head": 500 * MIB},
        **changes,
    )


def leave_one_out(ledger: Ledger, **changes: Any) -> Found:
    """Of prenorm_fusion and half: head at .15, without prenorm_fusion .07, without half .14. So prenorm_fusion adds .08
    and half .01, and head wanders."""
    return study(
        ledger,
        LEAVE_ONE_OUT,
        {"head": ("prenorm_fusion", "half"), "without-prenorm_fusion": ("half",), "without-half": ("prenorm_fusion",),
         "root": ()},
        {"head": 0.15, "without-prenorm_fusion": 0.07, "without-half": 0.14, "root": 0.0},
        base="head",
        **changes,
    )  # fmt: skip


def factorial(ledger: Ledger, **changes: Any) -> Found:
    """A .10, B .05, both .10: main effects (.10 + .05) / 2 = .075 and (.05 + 0) / 2 = .025, which are the Shapley
    shares too; interaction -.05."""
    return study(
        ledger,
        FACTORIAL,
        {"root": (), "A": ("A",), "B": ("B",), "A+B": ("A", "B")},
        {"root": 0.0, "A": 0.10, "B": 0.05, "A+B": 0.10},
        base="root",
        wanders="A+B",
        **changes,
    )


def parts(ledger: Ledger, of: Decision, **changes: Any) -> Found:
    """Of a set of A and B: .12 with both, .11 without B, .02 without A."""
    return study(
        ledger,
        PARTS,
        {"head": ("A", "B"), "without-A": ("B",), "without-B": ("A",)},
        {"head": 0.12, "without-A": 0.02, "without-B": 0.11},
        base="head",
        of=of.id,
        **changes,
    )


def replay(ledger: Ledger, of: Decision, log: float = 0.10, **changes: Any) -> Found:
    """The decision's arms measured again: faster by the log `log`."""
    return study(
        ledger,
        REPLAY,
        {"control": (), "treatment": (of.hypothesis,)},
        {"control": 0.0, "treatment": log},
        base="control",
        wanders="treatment",
        of=of.id,
        **changes,
    )
