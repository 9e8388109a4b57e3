"""Ledgers written through campaign.ledger from evidence made by hand, judged by the real rules, as a run does it.

`faster` screens at logs .14, .16, .14, .16 and confirms at .09, .11, .09, .11. Confirmation: mean .10, sd
sqrt(4 * .01^2 / 3) = .0115470, t(3, .975) = 3.182446, half width 3.182446 * .0115470 / 2 = .0183738. So the
published ratio is e^.10 = 1.1051709, its interval [e^.0816261, e^.1183739] = [1.085050, 1.125665].
Screening: e^.15 = 1.1618342.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from campaign.ledger import Ledger, open_ledger
from campaign.records import ACCEPT, Decision, Evidence, Need, Plan, Probe, Round, to_json
from campaign.report.describe import describe_engagement, describe_low_precision, describe_parity
from campaign.verdicts import judge
from tests.reasoning import made

SCREEN, CONFIRM = (0.14, 0.16, 0.14, 0.16), (0.09, 0.11, 0.09, 0.11)
SLOWER = (-0.09, -0.11, -0.09, -0.11)
MACHINE = "Example CPU 2000, 2 cores, Linux 6.1"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def opened(root: Path, name: str = "demo") -> Ledger:
    """A writable ledger of campaign `name` under `root`."""
    return open_ledger(root, name, writable=True)


def plan(name: str, **changes: Any) -> Plan:
    """A plan for hypothesis `name`; `claim`, `null` and `overrides` go to the hypothesis, protocol fields by
    `protocol={...}`, everything else to the plan."""
    claim = {key: changes.pop(key) for key in ("claim", "null", "edit", "predicted_ratio") if key in changes}
    protocol = replace(made.PLAN.protocol, **changes.pop("protocol", {}))
    values: dict[str, Any] = {
        "id": f"{name}-1",
        "campaign": "demo",
        "workload": "hybrid_tiny",
        "hypothesis": replace(made.HYPOTHESIS, name=name, **claim),
        "protocol": protocol,
        "machine_line": MACHINE,
        "source": {"status": "ok", "commit": COMMIT, "branch": "main", "dirty": False},
        "command": f"python -m campaign hypothesis={name}",
    }
    return replace(made.PLAN, **(values | changes))


def rounds(plan: Plan, logs: Sequence[float], stage: str = "screen", **changes: Any) -> tuple[Round, ...]:
    """One round a log ratio, every pair exactly at it, ids under the plan's."""
    found = []
    for index, log in enumerate(logs):
        one = made.ratio_round(math.exp(log), stage=stage, index=index, **changes)
        id = f"{plan.id}-{stage}-{index + 1:02d}"
        trials = tuple(replace(trial, id=f"{id}-{trial.arm}") for trial in one.trials)
        found.append(replace(one, id=id, trials=trials))
    return tuple(found)


def evidence(plan: Plan, screen: Sequence[float] = (), confirm: Sequence[float] = (), **changes: Any) -> Evidence:
    """The plan's evidence with a green probe, unless `probe` says otherwise; low precision is emulated."""
    probe: Probe = changes.pop("probe", None) or made.probe()
    probe = replace(probe, arms=tuple(replace(arm, facts={"low_precision": "emulated"}) for arm in probe.arms))
    return Evidence(plan, probe, (*rounds(plan, screen, **changes), *rounds(plan, confirm, "confirm", **changes)))


def record(ledger: Ledger, measured: Evidence, **changes: Any) -> Decision:
    """Write plan, probe, rounds and decision as a run does; the decision as written."""
    measure(ledger, measured)
    decision = decide(ledger, measured)
    decision = replace(decision, **changes)
    ledger.append("decision", decision.id, to_json(decision))
    if decision.verdict.verdict == ACCEPT:
        stack = ledger.stack()
        body = {"decisions": [one.id for one in stack], "head": [one.hypothesis for one in stack]}
        ledger.append("stack", f"stack-{decision.sequence}", body)
    return decision


def measure(ledger: Ledger, measured: Evidence) -> None:
    plan = measured.plan
    ledger.append("registered", plan.id, to_json(plan))
    if measured.probe:
        ledger.append("probe", f"{plan.id}-probe", {"plan_id": plan.id, **to_json(measured.probe)})
    write_rounds(ledger, plan.id, measured.rounds)


def write_rounds(ledger: Ledger, id: str, rounds: Sequence[Round]) -> None:
    """The lines and raw files of these rounds, which belong to the plan or study `id`."""
    for one in rounds:
        file = ledger.inflight(one.id)
        file.write_text("".join(json.dumps(to_json(block)) + "\n" for block in one.blocks))
        kept = ledger.seal(one.id)
        for trial in one.trials:
            trial = replace(trial, log=ledger.keep(f"output of {trial.id}\n".encode(), ".log"))
            ledger.append("trial", trial.id, {"plan_id": id, "round_id": one.id, **to_json(trial)})
        body = to_json(replace(one, trials=(), blocks=(), blocks_file=kept))
        body |= {"plan_id": id, "trial_ids": [trial.id for trial in one.trials]}
        ledger.append("blocks", one.id, {key: body[key] for key in body if key not in ("trials", "blocks")})


def decide(ledger: Ledger, measured: Evidence) -> Decision:
    """The decision that the evidence gives, not yet written."""
    plan, verdict = measured.plan, judge(measured)
    assert not isinstance(verdict, Need), verdict
    sequence = 1 + len(ledger.decisions())
    return Decision(
        id=f"{plan.id}-decision",
        plan_id=plan.id,
        sequence=sequence,
        hypothesis=plan.hypothesis.name,
        claim=plan.hypothesis.claim,
        workload=plan.workload,
        device=plan.device,
        predicted_ratio=plan.hypothesis.predicted_ratio,
        verdict=verdict,
        stack=plan.stack,
        overrides=plan.hypothesis.edit.overrides,
        attempt=plan.attempt,
        parity=describe_parity(measured),
        engagement=describe_engagement(measured),
        low_precision=describe_low_precision(measured),
        machine_line=plan.machine_line,
        command=plan.command,
        decided_at=f"2026-12-01T12:{sequence:02d}:00.000Z",
        wall_seconds=sum((one.wall_seconds for one in measured.rounds), measured.probe.wall_seconds),
        timed_seconds=sum((one.timed_seconds for one in measured.rounds), 0.0),
    )


def faster(ledger: Ledger, name: str = "prenorm_fusion", **changes: Any) -> Decision:
    """An accept: see the module's docstring."""
    return record(ledger, evidence(plan(name, **changes), SCREEN, CONFIRM))


def slower(ledger: Ledger, name: str = "register_cap", **changes: Any) -> Decision:
    """A reject for a slowdown, from four screening rounds at mean log -.10: e^-.10 = 0.9048374."""
    return record(ledger, evidence(plan(name, **changes), SLOWER))
