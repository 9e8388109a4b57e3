"""Real campaigns on `benchmarks/interacting.py`: what `campaign` says of planted interactions, beside what was planted.

Two campaigns, one whose steps sleep and one whose steps compute. Each decides on three edits in turn, leaves each
accepted one out, measures the whole against root, and takes a factorial of all three. Called by
`benchmarks/interactions.py --real`.
"""

from __future__ import annotations

import math
import sys
from contextlib import redirect_stdout
from pathlib import Path

from benchmarks.false_accepts import ROOT, SEARCH
from campaign.cli import main as campaign
from campaign.config import load
from campaign.errors import EXIT_DECIDED, EXIT_NO_DECISION
from campaign.ledger import open_ledger
from campaign.records import Contrast, Finding, Verdict

CONF = f"file://{ROOT / 'benchmarks' / 'conf'}"
WORKLOADS = ("interacting_sleep", "interacting_compute")
EDITS = ("a", "b", "c")


def real(name: str, *more: str) -> None:
    """Both campaigns and their table; `more` are overrides for all of it. The ledgers are runs/<name>-<workload>."""
    for workload in WORKLOADS:
        here = f"{name}-{workload}"
        words = [SEARCH, "tracking=none", f"workload={workload}", f"campaign.name={here}", *more]
        asked(*words, "hypothesis=aa_null")
        for edit in EDITS:
            asked(*words, f"hypothesis=plant_{edit}")
        asked("revalidate", *words)
        asked("interactions", *(f"plant_{edit}" for edit in EDITS), "--yes", *words)
        table(here, planted(workload))


def asked(*words: str) -> None:
    """One command; what it prints goes to standard error. Raises SystemExit when it was refused or interrupted."""
    with redirect_stdout(sys.stderr):
        code = campaign(list(words))
    if code not in (EXIT_DECIDED, EXIT_NO_DECISION):
        raise SystemExit(code)


def planted(workload: str) -> dict[frozenset[str], float]:
    """The log gains of edits and of pairs, from the workload's file."""
    config = (
        load(ROOT, [f"workload={workload}", "hypothesis=plant_a"], searchpath=[CONF]).arm("root", "root", []).config
    )
    return {frozenset(name): value for name, value in (config["gains"] | config["together"]).items()}


def table(name: str, gains: dict[frozenset[str], float]) -> None:
    def log(names: object) -> float:
        held = frozenset(str(one).removeprefix("plant_") for one in names)  # type: ignore[attr-defined]
        return sum(value for part, value in gains.items() if part <= held)

    print(f"\n{name}: runs/{name}\n\n| what | planted | measured | 95 % interval | holds it | word |")
    print("|---|---|---|---|---|---|")
    with open_ledger(Path(ROOT), name, writable=False) as ledger:
        for decision in ledger.decisions():
            of_decision(decision.hypothesis, decision.verdict, decision.stack, log)
        for found in ledger.findings():
            of_finding(found.finding, log, gains)


def of_decision(edit: str, verdict: Verdict, stack: tuple[str, ...], log) -> None:
    if verdict.combined is None:
        if verdict.effect is not None and edit != "aa_null":
            found = verdict.effect
            row(f"{edit} on root, {verdict.verdict}", found, log([edit]), verdict.reason)
        return
    both = (*stack, edit)
    row(f"{edit} on the stack, {verdict.verdict}", verdict.combined.marginal, log(both) - log(stack), "")
    row(f"{edit} on root", verdict.combined.isolated, log([edit]), "")
    row(f"{'+'.join(both)}", verdict.combined.cumulative, log(both), "")
    interaction = log(both) - log(stack) - log([edit])
    row(f"interaction of {edit} with the stack", verdict.combined.interaction, interaction, verdict.combined.word)


def of_finding(finding: Finding, log, gains: dict[frozenset[str], float]) -> None:
    names = finding.subjects
    for term in finding.terms:
        if finding.kind == "factorial":
            own = frozenset(name.removeprefix("plant_") for name in term.name.split(":"))
            halves = sum(value for part, value in gains.items() if own < part) / 2 if len(own) == 1 else 0.0
            row(f"{finding.kind}: {term.name}", term.effect, gains.get(own, 0.0) + halves, term.word)
        else:
            rest = [name for name in names if name != term.name]
            row(f"{finding.kind}: {term.name}", term.effect, log(names) - log(rest), term.word)
    if finding.total is not None:
        row(f"{finding.kind}, all of {'+'.join(names)}", finding.total, log(names), finding.word)


def row(what: str, found: Contrast | object, truth: float, word: str) -> None:
    ratio, low, high = (getattr(found, name) for name in ("ratio", "low", "high"))
    held = "yes" if low <= math.exp(truth) <= high else "no"
    print(f"| {what} | {math.exp(truth):.3f} | {ratio:.3f} | [{low:.3f}, {high:.3f}] | {held} | {word} |", flush=True)
