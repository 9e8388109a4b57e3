"""A finding's numbers as CSV: its terms, and every round of its arms. MLflow's page shows both as tables. Pure."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterable, Sequence

from campaign.records import FACTORIAL, ByteChange, Contrast, Finding, StudyEvidence, Term

TERM_COLUMNS = (
    *("what", "name", "ratio", "low", "high", "rounds", "word"),
    *("memory_bytes", "memory_low_bytes", "memory_high_bytes", "memory_exact", "aliases"),
)
ROUND_COLUMNS = (
    *("stage", "round", "arm", "status", "blocks"),
    *("median_step_wall_seconds", "median_step_cpu_seconds", "peak_bytes", "load"),
)


def terms_csv(finding: Finding) -> str:
    """One line a term: main effects and interactions of a factorial, shares, what is left out, and the whole."""
    rows = [_term(what_is(finding, term), term) for term in finding.terms]
    rows += [_term("share", term) for term in finding.shares]
    if finding.total is not None:
        rows.append(_row("total", "all", finding.total, finding.word))
    for what, value in (("product of the parts", finding.product), ("sum of the parts", finding.sum)):
        if value is not None:
            rows.append([what, "all", value, *[""] * 9])
    rows += [["failed", role, "", "", "", "", why, *[""] * 5] for role, why in finding.failed.items()]
    return _csv(TERM_COLUMNS, rows)


def what_is(finding: Finding, term: Term) -> str:
    """'main effect' or 'interaction' of a factorial, else 'adds to all the others'."""
    if finding.kind != FACTORIAL:
        return "adds to all the others"
    return "interaction" if ":" in term.name else "main effect"


def rounds_csv(evidence: StudyEvidence) -> str:
    """One line an arm of each round, invalid rounds too."""
    rows = []
    for one in evidence.rounds:
        for trial in one.trials:
            own = [block for block in one.blocks if block.arm == trial.arm and block.steps]
            wall = statistics.median(block.wall_seconds / block.steps for block in own) if own else ""
            cpu = statistics.median(block.cpu_seconds / block.steps for block in own) if own else ""
            peak = trial.memory.live_peak_bytes if trial.memory else ""
            load = one.surroundings.load
            rows.append([one.stage, one.index + 1, trial.arm, trial.status, len(own), wall, cpu, peak, load])
    return _csv(ROUND_COLUMNS, rows)


def _term(what: str, term: Term) -> list[object]:
    return _row(what, term.name, term.effect, term.word, term.memory, term.aliases)


def _row(
    what: str,
    name: str,
    effect: Contrast,
    word: str,
    memory: ByteChange | None = None,
    aliases: Sequence[str] = (),
) -> list[object]:
    sizes: list[object] = [memory.bytes, memory.low, memory.high, memory.exact] if memory else [""] * 4
    return [what, name, effect.ratio, effect.low, effect.high, effect.rounds, word, *sizes, " ".join(aliases)]


def _csv(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()
