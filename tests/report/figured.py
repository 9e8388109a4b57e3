"""Campaigns whose figures are looked at: a small one with everything in it, one of many decisions, and one whose every
word is hostile. Rates are those of the tiny blocks of `tests.reasoning.made`: 100 tokens a block, 1 s or a little less.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest

from campaign.ledger import Ledger
from campaign.records import ACCEPT, Decision, Edit, Evidence, Memory, Need, Round, to_json
from campaign.report.figures import Absent, Figure, figures
from campaign.report.figures._palette import LIGHT
from campaign.report.reported import gather
from campaign.verdicts import judge
from tests.reasoning import made
from tests.reasoning.several import arms_round
from tests.report import together, written

MIB = together.MIB
NULL: dict[str, Any] = {"looks": (4,), "alpha_split": (1.0,), "beta_split": (1.0,)}
FAMILIES = ("GEMM bf16", "Recurrent, convolution, gating", "Norm and residual", "Pointwise", "Copy and cast",
            "Attention", "Quantization", "Optimizer", "Reduction", "Embedding", "Other")  # fmt: skip
HOSTILE = "<script>alert('#1')</script> $x^2$ _^{}_ \\frac \n\t\u202eevil\u202c שלום \x00\x1b[31m & \"'>" + "n" * 10_000


def null(ledger: Ledger, number: int = 1, logs: tuple[float, ...] = (0.01, -0.01, 0.01, -0.01)) -> Decision:
    """An A/A null: with these logs their mean is 0 and their sd sqrt(4 * .01^2 / 3) = .0115470."""
    plan = written.plan("aa_null", null=True, id=f"aa_null-{number}", protocol=NULL)
    return written.record(ledger, written.evidence(plan, logs))


def families(*shares: tuple[str, float]) -> dict[str, Any]:
    """The part of a diagnosis that the figures read."""
    return {"families": {"shares": [{"family": name.lower(), "title": name, "share": part} for name, part in shares]}}


def diagnosis(ledger: Ledger, stack: tuple[str, ...], *shares: tuple[str, float]) -> str:
    """A recorded diagnosis of root with `stack`, with these families' shares of the busy time."""
    id = f"diagnosis-{len(ledger.profile_rows()) + 1}"
    body = {
        "evidence": "profile",
        "workload": "hybrid_tiny",
        "device": "cpu",
        "stack": list(stack),
        "profile": "",
        "arm": "",
        "trace": {"file": "step.json.gz", "sha256": "a" * 64, "bytes": 3},
        "reports": [],
        "command": "campaign diagnose step.json.gz --record",
        "documents": [],
        "diagnosis": {"dispatch": {"sentence": ""}, "ideas": [], **families(*shares)},
    }
    ledger.append("diagnosis", id, body)
    return id


def whole(ledger: Ledger) -> None:
    """prenorm_fusion at log .10 of root; half on it at .08, together .18; a slowdown, one left open, an invalid one; an
    A/A; headline at .15 with 400 -> 500 MiB; a factorial of A and B; a diagnosis before and after."""
    null(ledger)
    together.two_edits(ledger, peaks={"root": 400 * MIB, "solo": 380 * MIB, "control": 420 * MIB,
                                      "treatment": 390 * MIB})  # fmt: skip
    written.slower(ledger)
    written.record(ledger, written.evidence(written.plan("noisy", floor_id=""), (-0.1, 0.2) * 6))
    written.record(ledger, written.evidence(written.plan("skewed"), probe=made.probe(parity=None)))
    together.headline(ledger)
    together.factorial(ledger)
    diagnosis(ledger, (), ("GEMM", 0.50), ("Norm", 0.30), ("Copy", 0.20))
    diagnosis(ledger, ("prenorm_fusion", "half"), ("GEMM", 0.60), ("Norm", 0.15), ("Copy", 0.25))


def lively(ledger: Ledger, edits: int = 3, *, blocks: int = 20) -> None:
    """A campaign as a machine makes it: noise from block to block, drift within a round, memory that moves, a stack of
    up to `edits`; every third idea is worth something."""
    source = random.Random(7)
    null(ledger)
    stack: list[str] = []
    level = 0.0
    for number in range(3 * edits):
        name = f"idea_{number + 1}"
        gain = 0.05 + 0.03 * source.random() if number % 3 == 0 else source.uniform(-0.04, 0.015)
        alone = gain + source.uniform(-0.03, 0.03)
        held, grown = 400 + 5 * len(stack), source.randint(-8, 7)
        peaks = {"root": 400, "control": held, "solo": 400 + grown, "treatment": held + grown}
        logs = {"control": level, "treatment": level + gain}
        if stack:
            logs = {"root": 0.0, "solo": alone, **logs}
        plan = replace(
            written.plan(name, stack=tuple(stack), edit=Edit(overrides=(f"workload.x={number}",)),
                         predicted_ratio=math.exp(gain + source.uniform(-0.05, 0.08))),
            id=f"{name}-{number}",
        )  # fmt: skip
        if stack:
            head = "+".join(("root", *stack))
            plan = replace(
                plan,
                control=together.arm("control", head),
                treatment=together.arm("treatment", f"{head}+{name}"),
                root=together.arm("root"),
                solo=together.arm("solo", f"root+{name}"),
            )
        rounds = tuple(
            _noisy(plan.id, stage, index, logs, peaks, source, blocks)
            for stage, count in (("screen", 12), ("confirm", 4))
            for index in range(count)
            if stage == "screen" or gain > 0.04
        )
        decided = next(
            evidence
            for looks in (4, 6, 8, 12)
            for evidence in [
                Evidence(
                    plan,
                    made.probe(),
                    tuple(one for one in rounds if one.stage == "confirm" or one.index < looks),
                )
            ]
            if not isinstance(judge(evidence), Need)
        )
        if written.record(ledger, decided).verdict.verdict == ACCEPT:
            stack.append(name)
            level += gain
    if stack:
        together.headline(ledger, level - 0.02)
        diagnosis(
            ledger, (), *zip(FAMILIES, (0.3, 0.2, 0.15, 0.1, 0.08, 0.06, 0.04, 0.03, 0.02, 0.01, 0.01), strict=True)
        )
        diagnosis(ledger, tuple(stack), *zip(FAMILIES, (0.36, 0.1, 0.2, 0.1, 0.04, 0.08, 0.05, 0.03, 0.02, 0.01, 0.01),
                                             strict=True))  # fmt: skip


def _noisy(
    plan: str, stage: str, index: int, logs: dict[str, float], peaks: dict[str, int], source: random.Random, blocks: int
) -> Round:
    drift = source.uniform(-0.05, 0.05)

    def seconds(log: float, pair: int) -> float:
        held_up = 3 if source.random() < 0.01 else 1
        return held_up * 0.1 * math.exp(-log + drift * pair / blocks + source.gauss(0, 0.02))

    times = {role: [seconds(log, pair) for pair in range(blocks)] for role, log in logs.items()}
    one = arms_round(times, stage=stage, index=index, pairs=blocks, peaks={role: peaks[role] * MIB for role in logs})
    id = f"{plan}-{stage}-{index + 1:02d}"
    return replace(one, id=id, trials=tuple(replace(trial, id=f"{id}-{trial.arm}") for trial in one.trials))


def many(ledger: Ledger, count: int) -> None:
    """`count` decisions, an accept and three rejects in turns, copied from one of each; the raw files are shared."""
    accept = written.faster(ledger, "idea_1", edit=Edit(overrides=("workload.x=1",)))
    reject = written.slower(ledger, "idea_2", stack=("idea_1",), edit=Edit(overrides=("workload.x=2",)))
    stack = ["idea_1"]
    for number in range(3, count + 1):
        like = accept if number % 4 == 1 else reject
        name = f"idea_{number}"
        plan = written.plan(name, id=f"{name}-1", stack=tuple(stack), edit=Edit(overrides=(f"workload.x={number}",)))
        ledger.append("registered", plan.id, to_json(plan))
        decision = replace(
            like, id=f"{plan.id}-decision", plan_id=plan.id, sequence=number, hypothesis=name, stack=tuple(stack)
        )
        ledger.append("decision", decision.id, to_json(decision))
        stack += [name] if like is accept else []


def peak(mebibytes: int) -> dict[str, Any]:
    """What a trial is changed by to have this peak."""
    return {"memory": Memory(mebibytes * MIB, process_peak_bytes=600 * MIB, limit_bytes=8192 * MIB)}


def hostile(ledger: Ledger) -> None:
    """A campaign of two accepted edits, one rejected, and studies of them, whose every name is `HOSTILE`, and whose
    families of kernels are called so too."""
    names = [f"{letter}{HOSTILE}" for letter in "abc"]
    written.faster(ledger, names[0], id="a-1", claim=HOSTILE)
    together.on_stack(ledger, names[1], names[:1], id="b-1", below=0.10, alone=0.10, marginal=0.08, edit=together.HALF)
    written.slower(ledger, names[2], id="c-1", edit=Edit(overrides=("workload.c=1",)))
    together.headline(ledger)
    together.study(
        ledger,
        "factorial",
        {"root": (), "A": names[:1], "B": names[1:2], "A+B": names[:2]},
        {"root": 0.0, "A": 0.10, "B": 0.05, "A+B": 0.10},
        base="root",
        wanders="A+B",
    )
    diagnosis(ledger, (), (HOSTILE, 0.6), ("GEMM", 0.4))
    diagnosis(ledger, tuple(names[:2]), (HOSTILE, 0.5), ("GEMM", 0.5))


def of(ledger: Ledger) -> dict[str, Figure | Absent]:
    """The campaign's figures by their names."""
    return {one.name: one for one in figures(gather(ledger))}


def bars(axes: Any) -> list[tuple[float, float]]:
    """(left, width) of each bar, from top to bottom of the drawing list."""
    from matplotlib.patches import Rectangle

    return [(one.get_x(), one.get_width()) for one in axes.patches if isinstance(one, Rectangle)]


def marks(axes: Any, marker: str, colour: str) -> list[tuple[float, float]]:
    """The points drawn with a marker of a colour, as (x, y)."""
    return [
        (float(x), float(y))
        for line in axes.lines
        if line.get_marker() == marker and line.get_color() == LIGHT[colour]
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


def said(drawing: Any) -> list[str]:
    """The texts of a drawing that stand outside of its axes."""
    return [text.get_text().replace(r"\$", "$") for text in drawing.texts]


def near(*values: float) -> Any:
    """Equal to these but for the last digits."""
    return pytest.approx(values, rel=1e-6)
