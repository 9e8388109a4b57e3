"""What a run in MLflow is called, and its status there. Pure; imports no MLflow."""

from __future__ import annotations

import math

from campaign import units
from campaign.reading import label
from campaign.records import ACCEPT, INVALID, UNAVAILABLE, Decision, Trial


def headline(decision: Decision) -> str:
    """How much, in a word: '+4.2 %', '-2.99 GiB' for an accept for memory, or '' when nothing was measured."""
    verdict = decision.verdict
    if verdict.verdict == ACCEPT and verdict.memory and verdict.memory.saved and verdict.reason.startswith("memory"):
        return units.signed_size(verdict.memory.treatment_bytes - verdict.memory.control_bytes)
    if verdict.effect is None or not math.isfinite(verdict.effect.ratio):
        return ""
    return units.percent(verdict.effect.ratio - 1)


def run_name(decision: Decision, revoked: bool = False) -> str:
    """'03 ACCEPT +4.2 % prenorm_fusion'; a revoked decision reads '03 REVOKED accept +4.2 % prenorm_fusion', a swept
    one '04 REJECT -0.3 % register_cap registers=8'."""
    word = f"REVOKED {decision.verdict.verdict}" if revoked else decision.verdict.verdict.upper()
    word += " SUSPECT" if decision.verdict.suspect else ""
    parts = (f"{decision.sequence:02d}", word, headline(decision), label(decision.hypothesis, decision.command))
    return " ".join(part for part in parts if part)


def run_status(decision: Decision) -> str:
    """FINISHED for a decision, FAILED where the evidence could not decide, KILLED where someone stopped it."""
    if decision.verdict.reason == "interrupted":
        return "KILLED"
    return "FAILED" if decision.verdict.verdict in (INVALID, UNAVAILABLE) else "FINISHED"


def trial_status(trial: Trial) -> str:
    """FINISHED, KILLED (someone or something stopped it) or FAILED."""
    if trial.status == "ok":
        return "FINISHED"
    return "KILLED" if trial.status in ("killed", "interrupted", "hung") else "FAILED"


def verdict_word(decision: Decision, revoked: bool) -> str:
    """'accept', or 'revoked (accept)' once it was taken back."""
    return f"revoked ({decision.verdict.verdict})" if revoked else decision.verdict.verdict
