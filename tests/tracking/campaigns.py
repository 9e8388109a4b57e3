"""A campaign that is made up but whole: plans, probes, rounds with blocks, raw files, decisions. Numbers by hand.

`prenorm_fusion`: four rounds whose log ratios are .03, .05, .03, .05. Mean .04, standard deviation sqrt(4 * .01^2 / 3)
= .011547, t(3, .975) = 3.18245, half width 3.18245 * .011547 / 2 = .018374. So ratio e^.04 = 1.040811, low e^.021626 =
1.021862, high e^.058374 = 1.060111. Control's step is .1 s of CPU time and .101 s of wall time for 512 tokens: 5,069.3
tokens/s; treatment's .1 / 1.040811 s and .101 / 1.040811 s: 5,276.2 tokens/s.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from campaign.ledger import Ledger, open_ledger
from campaign.records import (
    ACCEPT,
    INCONCLUSIVE,
    INVALID,
    REJECT,
    UNAVAILABLE,
    Arm,
    ArmProbe,
    Block,
    ByteChange,
    Combined,
    Contrast,
    Decision,
    Effect,
    Memory,
    MemoryChange,
    ParityMeasure,
    Plan,
    Probe,
    Round,
    Surroundings,
    Trial,
    Verdict,
    to_json,
)
from tests.tracking.declared import MIB, MODEL, changed, hypothesis, protocol

CAMPAIGN = "demo"
PATCH = b"diff --git a/kernels/x.py b/kernels/x.py\n--- a/kernels/x.py\n+++ b/kernels/x.py\n@@ -1 +1 @@\n-a\n+b\n"
PATCH_SHA = hashlib.sha256(PATCH).hexdigest()


def blocks(index: int, pairs: int, control_seconds: float, ratio: float) -> tuple[Block, ...]:
    """Blocks of a round whose every pair has exactly this ratio, on both clocks; the pair's level wanders by 2 %."""
    rng = random.Random(index)
    found = []
    for pair in range(pairs):
        level = control_seconds * (1 + 0.02 * rng.random())
        arms = ("control", "treatment") if pair % 2 == 0 else ("treatment", "control")
        for place, arm in enumerate(arms):
            cpu = level if arm == "control" else level / ratio
            found.append(Block(arm, 2 * pair + place, pair, 1, 512, 1.01 * cpu, cpu, None, 3))
    return tuple(found)


def round_of(ledger: Ledger, plan: Plan, index: int, log_ratio: float, stage: str = "screen") -> Round:
    trials = tuple(
        Trial(
            id=f"{plan.id}-{stage}-{index}-{arm}",
            arm=arm,
            status="ok",
            log=ledger.keep(f"{arm} of round {index}\nsteady after 6 steps\n".encode(), ".log"),
            start_seconds=2.5,
            warmup_seconds=(0.2, 0.11, 0.1, 0.1, 0.1, 0.1),
            steady=True,
            memory=Memory(peak, process_peak_bytes=peak + 300 * MIB),
            loss=5.545,
            gradient_norm=1.25,
            fingerprint={"torch": "2.13.0"},
        )
        for arm, peak in (("control", 512 * MIB), ("treatment", 480 * MIB))
    )
    return Round(
        id=f"{plan.id}-{stage}-{index + 1:02d}",
        stage=stage,
        index=index,
        order=("control", "treatment"),
        trials=trials,
        surroundings=Surroundings(load=1.2),
        code="c0de",
        wall_seconds=30.0,
        timed_seconds=8.0,
        blocks=blocks(index, plan.protocol.pairs, 0.1, math.exp(log_ratio)),
    )


def with_trials(round_: Round, changes: dict[str, dict[str, Any]]) -> Round:
    """The round with these fields of its trials changed, by arm; a trial that failed leaves no blocks."""
    trials = tuple(replace(trial, **changes.get(trial.arm, {})) for trial in round_.trials)
    return replace(round_, trials=trials, blocks=round_.blocks if all(one.status == "ok" for one in trials) else ())


def effect(logs: Sequence[float], low: float, high: float, clock: str = "cpu") -> Effect:
    ratio, slow = math.exp(sum(logs) / len(logs)), 1.01 if clock == "wall" else 1.0
    return Effect(
        clock=clock, ratio=ratio, low=low, high=high, decision_low=low, decision_high=high, rounds=len(logs),
        sd_log=0.011547, total_ratio=ratio, round_ratios=tuple(math.exp(x) for x in logs),
        control_step_seconds=0.1 * slow, treatment_step_seconds=0.1 * slow / ratio,
        control_tokens_per_second=5120 / slow, treatment_tokens_per_second=5120 * ratio / slow,
        control_p99_seconds=0.102 * slow, treatment_p99_seconds=0.102 * slow / ratio,
        control_max_seconds=0.103 * slow, treatment_max_seconds=0.103 * slow / ratio,
    )  # fmt: skip


SAVED = MemoryChange(512 * MIB, 480 * MIB, 0.9375, 0.9375, 0.9375, exact=True, saved=True, grown=False)
# Alone e^.2 = 1.2214, with the stack against root e^.19 = 1.2092, on it e^.15 = 1.1618: interaction e^-.05 = 0.9512.
COMBINED = Combined(
    marginal=Contrast(1.161834, 1.145, 1.179, 6, 0.011547),
    isolated=Contrast(1.221403, 1.2, 1.243, 6, 0.011547),
    cumulative=Contrast(1.209250, 1.19, 1.229, 6, 0.011547),
    interaction=Contrast(0.951229, 0.93, 0.973, 6, 0.011547),
    word="redundancy",
    marginal_bytes=ByteChange(14 * MIB, 14 * MIB, 14 * MIB, exact=True),
    isolated_bytes=ByteChange(16 * MIB, 15 * MIB, 17 * MIB, exact=False),
    cumulative_bytes=ByteChange(-18 * MIB, -18 * MIB, -18 * MIB, exact=True),
    interaction_bytes=ByteChange(-2 * MIB, -3 * MIB, -1 * MIB, exact=False),
)
ACCEPTED = Verdict(
    ACCEPT, "faster", "The lower bound is above 1 and the estimate is above the threshold 1.030.", effect=None,
    memory=SAVED, look=1, alpha_spent=0.002, valid_rounds=4,
    warnings=("load 1.2 on 2 cores: close other programs",),
)  # fmt: skip


def add(
    ledger: Ledger,
    name: str,
    verdict: Verdict,
    logs: Sequence[float] = (),
    overrides: tuple[str, ...] = ("ops.prenorm=cpu",),
    claim: str = "Fusing residual, RMSNorm and scale saves two passes.",
    trials: dict[str, dict[str, Any]] | None = None,
    **changes: Any,
) -> Decision:
    """One more decision with its whole evidence."""
    sequence = ledger.next_sequence()
    plan = Plan(
        id=f"{name}-plan-{sequence}",
        campaign=ledger.folder.name,
        workload="hybrid_tiny",
        device="cpu",
        hypothesis=hypothesis(name, overrides, claim, 1.05),
        control=Arm("control", "root", "models.HybridStep", MODEL),
        treatment=Arm("treatment", f"root+{name}", "models.HybridStep", changed(MODEL, overrides)),
        protocol=changes.pop("protocol", protocol()),
        stack=changes.get("stack", ()),
        attempt=1,
        alpha=0.01,
        threshold=0.03,
        floor_id="floor-1",
        fingerprint={"host": "bench-1", "cpu": "Example CPU 2000", "torch": "2.13.0"},
        code="c0de",
        source=changes.get("source", {
            "status": "ok", "commit": "0123456789abcdef0123456789abcdef01234567", "branch": "main", "dirty": True,
            "patch_sha256": PATCH_SHA, "packages": {"torch": "2.13.0", "numpy": "2.4.6"},
        }),
        machine_line="Example CPU 2000, 2 cores, Linux 6.1, torch 2.13.0",
        command=f"python -m campaign hypothesis={name} workload=hybrid_tiny",
        registered_at="2026-12-01T12:00:00+00:00",
    )  # fmt: skip
    ledger.append("registered", plan.id, to_json(plan))
    ledger.keep(PATCH, ".patch")
    measured = tuple(round_of(ledger, plan, index, log) for index, log in enumerate(logs))
    if trials:
        measured = (*measured[:-1], with_trials(measured[-1], trials))
    arms = tuple(ArmProbe(role, "ok", (5.5, 5.4, 5.3), (1.2, 1.1, 1.0)) for role in ("control", "treatment"))
    probe = Probe(arms, ParityMeasure(False, 1e-6, 0.0, 2e-6, 2e-6), 4.0)
    ledger.append("probe", f"{plan.id}-probe", {"plan_id": plan.id, **to_json(probe)})
    for round_ in measured:
        write_round(ledger, plan, round_)
    decision = Decision(
        id=f"{plan.id}-decision",
        plan_id=plan.id,
        sequence=sequence,
        hypothesis=name,
        claim=claim,
        workload=plan.workload,
        device="cpu",
        predicted_ratio=1.05,
        verdict=verdict,
        stack=changes.get("stack", ()),
        overrides=overrides,
        attempt=1,
        parity="rounding: distance 2.0e-06, bound 1.0e-04",
        engagement="op:kernels::prenorm_cpu 0 -> 9",
        low_precision="emulated",
        machine_line=plan.machine_line,
        command=plan.command,
        decided_at=f"2026-12-01T12:{2 * sequence:02d}:00+00:00",
        wall_seconds=30.0 * len(measured) + 4,
        timed_seconds=8.0 * len(measured),
    )
    ledger.append("decision", decision.id, to_json(decision))
    return decision


def write_round(ledger: Ledger, plan: Plan, round_: Round) -> None:
    """The round's trials and blocks as a run writes them: blocks streamed, sealed by their hash, then named."""
    ids = [trial.id for trial in round_.trials]
    if round_.blocks:
        rows = "".join(json.dumps(to_json(block)) + "\n" for block in round_.blocks)
        ledger.inflight(round_.id).write_text(rows)
        round_ = replace(round_, blocks_file=ledger.seal(round_.id))
    for trial in round_.trials:
        ledger.append("trial", trial.id, {"plan_id": plan.id, "round_id": round_.id, **to_json(trial)})
    body = {key: value for key, value in to_json(round_).items() if key not in ("trials", "blocks")}
    ledger.append("blocks", round_.id, {"plan_id": plan.id, **body, "trial_ids": ids})


def prenorm(ledger: Ledger, **changes: Any) -> Decision:
    """The accepted decision of the module's docstring."""
    logs = (0.03, 0.05, 0.03, 0.05)
    verdict = replace(ACCEPTED, effect=effect(logs, 1.021862, 1.060111), beside=effect(logs, 1.011, 1.071, "wall"))
    return add(ledger, "prenorm_fusion", verdict, logs, **changes)


def parity_red(ledger: Ledger, **changes: Any) -> Decision:
    """A decision without a single round: the probe refused it."""
    return add(
        ledger, "precision_tail",
        Verdict(INVALID, "parity_red", "Gradients are 0.31 from control's, 1.25 times are allowed.",
                remedy="campaign ledger"),
        overrides=("model.precision.policy=bf16",), claim="The last layers can run in bf16.", **changes,
    )  # fmt: skip


def whole(root: Path, name: str = CAMPAIGN) -> Ledger:
    """Six decisions, one of each kind that a reviewer meets, open for writing as at the end of a run."""
    ledger = open_ledger(root, name, writable=True)
    prenorm(ledger)
    logs = (0.0, -0.01, 0.004, 0.002)
    add(
        ledger, "shared_activation_quant",
        Verdict(REJECT, "too_small", "The upper bound is below the threshold 1.030.", effect=effect(logs, 0.989, 1.009),
                look=1, alpha_spent=0.002, valid_rounds=4),
        logs, ("model.precision.policy=shared",), "Quantizing once for both GEMMs saves one pass.",
        stack=("prenorm_fusion",),
    )  # fmt: skip
    logs = (0.14, 0.16, 0.15, 0.13, 0.17, 0.15)
    add(
        ledger, "no_checkpointing",
        replace(ACCEPTED, effect=effect(logs, 1.145, 1.179), valid_rounds=6, look=2, alpha_spent=0.004,
                memory=MemoryChange(480 * MIB, 494 * MIB, 1.0292, 1.0292, 1.0292, True, False, True),
                combined=COMBINED),
        logs, ("model.checkpointing=none",), "Recomputation costs more than the memory is worth here.",
        stack=("prenorm_fusion",),
    )  # fmt: skip
    logs = (-0.02, 0.06, 0.03, 0.05) * 3
    add(
        ledger, "weight_cache",
        Verdict(INCONCLUSIVE, "looks_exhausted", "After 12 rounds neither bound decides; about 31 rounds would.",
                remedy="protocol.looks=[12,24,32]", effect=effect(logs, 0.997, 1.064), look=4, alpha_spent=0.01,
                valid_rounds=12, invalid_rounds=1),
        logs, ("ops.loss=fused",), "Casting weights once a step is enough.",
        stack=("prenorm_fusion", "no_checkpointing"),
    )  # fmt: skip
    parity_red(ledger, stack=("prenorm_fusion", "no_checkpointing"))
    add(
        ledger, "triton_prenorm",
        Verdict(UNAVAILABLE, "needs_cuda", "The kernel needs a CUDA device; this machine has none.",
                remedy="run it on a GPU"),
        overrides=("ops.prenorm=triton",), claim="The Triton kernel is faster.",
        stack=("prenorm_fusion", "no_checkpointing"),
    )  # fmt: skip
    return ledger
