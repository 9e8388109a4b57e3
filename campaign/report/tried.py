"""What a try came to: for the terminal, as Markdown to paste under a pull request, and as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from campaign import units
from campaign.errors import EXIT_DECIDED, EXIT_NO_DECISION, EXIT_SLOWER
from campaign.records import Decision, Plan, Verdict
from campaign.report.json_text import as_line
from campaign.report.markup import code, prose, table
from campaign.report.plain import plain
from campaign.report.verdict_text import CLOCK_WORDS, decision_json, effect_line, memory_line

SCHEMA = 1
ANSWERS = {"slower": "slower", "not_slower": "not slower"}
CANT_TELL = "can't tell"
CODES = {"slower": EXIT_SLOWER, "not_slower": EXIT_DECIDED}


@dataclass(frozen=True)
class Answer:
    """A try as it is shown. `before` and `after` name the two sides, `files` changed between them, `ledger` is the file
    that it was written to."""

    before: str
    after: str
    files: tuple[str, ...]
    left_out: tuple[str, ...]
    decision: Decision
    plan: Plan
    ledger: str

    @property
    def word(self) -> str:
        """'slower', 'not slower', 'faster' (a not slower one whose 95 % interval lies above 1) or "can't tell"."""
        verdict, effect = self.decision.verdict, self.decision.verdict.effect
        if verdict.reason == "not_slower" and effect is not None and effect.low > 1:
            return "faster"
        return ANSWERS.get(verdict.reason, CANT_TELL)

    @property
    def exit_code(self) -> int:
        return CODES.get(self.decision.verdict.reason, EXIT_NO_DECISION)


def answer_json(answer: Answer) -> str:
    """`{"schema": 1, "answer": "slower", "exit_code": 1, "before": ..., "after": ..., "files": [...], "d": 0.03,
    "ledger": path, "decision": {...}}`."""
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "answer": answer.word,
        "exit_code": answer.exit_code,
        "before": answer.before,
        "after": answer.after,
        "files": list(answer.files),
        "left_out": list(answer.left_out),
        "d": answer.plan.threshold,
        "ledger": answer.ledger,
        "decision": json.loads(decision_json(answer.decision))["decision"],
    }
    return as_line(found)


def answer_text(answer: Answer) -> str:
    """The answer first, then what it rests on, one fact a line."""
    decision, verdict = answer.decision, answer.decision.verdict
    reason = (
        f" ({verdict.verdict}, {verdict.reason})" if answer.word == CANT_TELL and verdict.reason != "cant_tell" else ""
    )
    lines = [f"{answer.word.upper()}{reason}: {answer.after} against {answer.before}", _why(verdict), ""]
    facts = [
        ("measured", effect_line(verdict.effect) if verdict.effect else "no number: see the sentence above"),
        ("step", _step(answer)),
        ("memory", memory_line(verdict.memory) if verdict.memory else ""),
        ("d", f"{100 * answer.plan.threshold:.3g} %, {_floor(answer.plan)}"),
        ("workload", f"{decision.workload} on {decision.device}"),
        ("rounds", f"{verdict.valid_rounds} counted, {verdict.invalid_rounds} invalid and kept"),
        ("parity", decision.parity),
        ("files", _files(answer)),
        ("machine", decision.machine_line),
        ("took", units.seconds(decision.wall_seconds)),
        ("ledger", f"{answer.ledger} (#{decision.sequence})"),
    ]
    lines += [f"  {name:<10} {value}" for name, value in facts if value]
    lines += [f"  warning    {' '.join(text.split())}" for text in verdict.warnings]
    lines += [f"  next       {verdict.remedy}"] if verdict.remedy else []
    return plain("\n".join(lines))


def answer_markdown(answer: Answer) -> str:
    """A table with a heading and what it rests on, as GitHub shows it."""
    decision, verdict, effect = answer.decision, answer.decision.verdict, answer.decision.verdict.effect
    header = ["", prose(answer.before), prose(answer.after), "ratio"]
    lines = []
    if effect is not None:
        ratio = f"{units.ratio(effect.ratio)} {units.interval(effect.low, effect.high)}"
        sides = [units.seconds(effect.control_step_seconds), units.seconds(effect.treatment_step_seconds)]
        lines.append([f"step ({CLOCK_WORDS.get(effect.clock, effect.clock)})", *sides, ratio])
        rates = [units.rate(effect.control_tokens_per_second), units.rate(effect.treatment_tokens_per_second)]
        lines.append(["tokens", *rates, ""])
        tails = [units.seconds(effect.control_p99_seconds), units.seconds(effect.treatment_p99_seconds)]
        lines.append(["p99 step", *tails, ""])
    if (memory := verdict.memory) is not None:
        sizes = [units.size(memory.control_bytes), units.size(memory.treatment_bytes)]
        lines.append(["peak memory", *sizes, units.ratio(memory.ratio)])
    said = [f"**{prose(answer.word)}**: {prose(_why(verdict))}"]
    said += [table(header, lines, right=header[1:])] if lines else []
    said.append(
        f"{prose(decision.workload)} on {prose(decision.machine_line)}; {verdict.valid_rounds} rounds counted,"
        f" {verdict.invalid_rounds} invalid; d = {100 * answer.plan.threshold:.3g} % ({_floor(answer.plan)});"
        f" parity {prose(decision.parity)}; ratio above 1 is faster, in brackets 95 %. {code(decision.command)}"
    )
    return plain("\n\n".join(said))


def _why(verdict: Verdict) -> str:
    return " ".join(verdict.sentence.split())


def _step(answer: Answer) -> str:
    effect = answer.decision.verdict.effect
    if effect is None:
        return ""
    return (
        f"{units.seconds(effect.control_step_seconds)} -> {units.seconds(effect.treatment_step_seconds)};"
        f" {units.rate(effect.control_tokens_per_second)} -> {units.rate(effect.treatment_tokens_per_second)}"
    )


def _floor(plan: Plan) -> str:
    return f"by floor {plan.floor_id}" if plan.floor_id else "declared; no floor was measured here"


def _files(answer: Answer) -> str:
    shown = ", ".join(answer.files[:5]) + (f" and {len(answer.files) - 5} more" if len(answer.files) > 5 else "")
    return shown + (f"; not in it: {'; '.join(answer.left_out)}" if answer.left_out else "")
