"""The decision as it is shown at the end of a run: the verdict in words first, then what it rests on."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

from campaign import units
from campaign.records import (
    ACCEPT,
    INCONCLUSIVE,
    INVALID,
    REJECT,
    UNAVAILABLE,
    Decision,
    Effect,
    Floor,
    MemoryChange,
    Verdict,
    to_json,
)
from campaign.report.cells import joint_line
from campaign.report.json_text import as_line
from campaign.report.plain import plain

SCHEMA = 1
WORDS = {
    ACCEPT: "ACCEPTED",
    REJECT: "REJECTED",
    INCONCLUSIVE: "INCONCLUSIVE",
    INVALID: "INVALID, nothing is decided",
    UNAVAILABLE: "UNAVAILABLE, not run on this machine",
}
CLOCK_WORDS = {"wall": "wall time", "cpu": "CPU time", "device": "device time"}


def decision_json(decision: Decision, *, revoked: bool = False) -> str:
    """`{"schema": 1, "revoked": false, "decision": {...}}`: the record as in the ledger, not-finite numbers null."""
    return as_line({"schema": SCHEMA, "revoked": revoked, "decision": to_json(decision)})


def decision_text(decision: Decision, ledger_file: Path | str | None = None, *, revoked: bool = False) -> str:
    """The final block of a run, one fact a line. `ledger_file` is runs/<campaign>/ledger.jsonl."""
    verdict = decision.verdict
    lines = [
        f"#{decision.sequence} {decision.hypothesis}: {WORDS.get(verdict.verdict, verdict.verdict)}"
        + (f" ({verdict.reason})" if verdict.reason else "")
        + (", REVOKED later: no longer in the stack" if revoked else ""),
        _flat(verdict.sentence),
        "",
    ]
    facts = [
        ("claim", _flat(decision.claim)),
        ("suspect", verdict.suspect),
        ("measured", effect_line(verdict.effect) if verdict.effect else _no_number(verdict)),
        ("predicted", _predicted(decision)),
        ("step", _steps(verdict.effect) if verdict.effect else ""),
        ("beside", f"{effect_line(verdict.beside)}; does not decide" if verdict.beside else ""),
        ("screening", f"{effect_line(verdict.screening)}; not the published number" if verdict.screening else ""),
        ("together", joint_line(verdict.combined) if verdict.combined else ""),
        ("memory", memory_line(verdict.memory) if verdict.memory else "not compared"),
        ("control", "+".join(("root", *decision.stack)) + f", {decision.workload} on {decision.device}"),
        ("rounds", _rounds(decision)),
        ("parity", decision.parity),
        ("engaged", decision.engagement),
        ("precision", _precision(decision.low_precision)),
        ("floor", _floor(decision)),
        ("machine", decision.machine_line),
        ("took", _took(decision)),
        ("log", str(Path(ledger_file).parent / decision.log) if ledger_file and decision.log else decision.log),
        ("ledger", str(ledger_file) if ledger_file else ""),
    ]
    lines += [f"  {name:<10} {value}" for name, value in facts if value]
    lines += [f"  warning    {_flat(warning)}" for warning in verdict.warnings]
    lines.append(f"  next       {_next(decision, ledger_file)}")
    return plain("\n".join(lines))


def _no_number(verdict: Verdict) -> str:
    if verdict.valid_rounds:
        return "nothing is published: the result was not decided by the rounds that counted"
    return "no round counted, so there is no number"


def effect_line(effect: Effect) -> str:
    """'1.042x [1.031, 1.053] (95 %), 4 rounds, CPU time'."""
    sure = f" {units.interval(effect.low, effect.high)} (95 %)" if math.isfinite(effect.low) else ", no interval"
    rounds = f"{effect.rounds} round" + ("s" if effect.rounds != 1 else "")
    return f"{units.ratio(effect.ratio)}{sure}, {rounds}, {CLOCK_WORDS.get(effect.clock, effect.clock)}"


def memory_line(memory: MemoryChange) -> str:
    """'24.0 MiB -> 20.0 MiB (-4.0 MiB, 0.833x), the same in every round'."""
    change = units.signed_size(memory.treatment_bytes - memory.control_bytes)
    surely = (
        "the same in every round"
        if memory.exact
        else f"{units.interval(memory.low, memory.high)} (95 %)"
        if math.isfinite(memory.low)
        else "no interval"
    )
    word = ", saved" if memory.saved else ", grown" if memory.grown else ""
    return (
        f"{units.size(memory.control_bytes)} -> {units.size(memory.treatment_bytes)} "
        f"({change}, {units.ratio(memory.ratio)}), {surely}{word}"
    )


def _predicted(decision: Decision) -> str:
    said = units.ratio(decision.predicted_ratio)
    effect = decision.verdict.effect
    if effect is None or not math.isfinite(effect.low):
        return said
    if effect.low <= decision.predicted_ratio <= effect.high:
        return f"{said}, inside the measured interval"
    less = "less" if effect.high < decision.predicted_ratio else "more"
    return f"{said}; measured {less} than predicted"


def _steps(effect: Effect) -> str:
    """Per arm; tokens a second are shown on the wall clock alone, since processor time says nothing of them."""

    def both(control: float, treatment: float) -> str:
        return f"{units.seconds(control)} -> {units.seconds(treatment)}"

    said = (
        f"control -> treatment {both(effect.control_step_seconds, effect.treatment_step_seconds)}"
        f" (p99 {both(effect.control_p99_seconds, effect.treatment_p99_seconds)}, "
        f"longest {both(effect.control_max_seconds, effect.treatment_max_seconds)})"
    )
    if effect.clock == "cpu":
        return said
    return f"{said}; {units.rate(effect.control_tokens_per_second)} -> {units.rate(effect.treatment_tokens_per_second)}"


def _rounds(decision: Decision) -> str:
    verdict = decision.verdict
    said = f"{verdict.valid_rounds} counted, {verdict.invalid_rounds} invalid and kept; "
    said += f"look {verdict.look}" if verdict.look else "no look taken"
    said += f", alpha spent {verdict.alpha_spent:.4g}"
    return said + (f"; attempt {decision.attempt} at this candidate" if decision.attempt > 1 else "")


def _precision(low_precision: str) -> str:
    if low_precision == "emulated":
        return "low precision is emulated here: the numerics are real, the speed of real low precision is not shown"
    if low_precision == "unknown":
        return "the workload does not say whether low precision is emulated"
    return {"hardware": "low precision in hardware", "none": "", "": ""}.get(low_precision, f"low: {low_precision}")


def _floor(decision: Decision) -> str:
    floor = decision.verdict.floor
    if floor is None:
        return ""
    return (
        f"rounds scatter by {100 * floor.between_rounds_sd:.2f} %, pairs within one by "
        f"{100 * floor.within_round_sd:.2f} % ({CLOCK_WORDS.get(floor.clock, floor.clock)}); {resolved(floor)}"
    )


def resolved(floor: Floor) -> str:
    """'5 rounds resolve 3.3 %, 12 rounds 1.5 %': at the rounds it was measured with and at the most."""
    counts = sorted(
        {count for count in map(int, floor.resolves) if count in (floor.rounds, max(map(int, floor.resolves)))}
    )
    said = [f"{count} rounds {'resolve ' if not place else ''}{100 * floor.resolves[str(count)]:.2g} %"
            for place, count in enumerate(counts)]  # fmt: skip
    return ", ".join(said)


def _took(decision: Decision) -> str:
    if decision.wall_seconds <= 0:
        return ""
    said = units.seconds(decision.wall_seconds)
    share = 100 * decision.timed_seconds / decision.wall_seconds
    return f"{said}, of which {units.seconds(decision.timed_seconds)} timed ({share:.0f} %)"


def _next(decision: Decision, ledger_file: Path | str | None) -> str:
    verdict = decision.verdict
    if verdict.remedy:
        return _flat(verdict.remedy)
    name = Path(ledger_file).parent.name if ledger_file else "default"
    campaign = "" if name == "default" else f" --campaign {shlex.quote(name)}"
    return f"campaign stack{campaign}" if verdict.verdict == ACCEPT else f"campaign ledger{campaign}"


def _flat(text: str) -> str:
    return " ".join(text.split())
