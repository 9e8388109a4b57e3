"""What a run in MLflow is called, and its status there. Pure; imports no MLflow."""

from __future__ import annotations

import math

from campaign import units
from campaign.reading import label
from campaign.records import ACCEPT, HEADLINE, INVALID, UNAVAILABLE, Decision, Found, Trial
from campaign.tracking.decided import AS_DECIDED, Standing

SUBJECTS_SHOWN = 4


def headline(decision: Decision) -> str:
    """How much, in a word: '+4.2 %', '-2.99 GiB' for an accept for memory, or '' when nothing was measured."""
    verdict = decision.verdict
    if verdict.verdict == ACCEPT and verdict.memory and verdict.memory.saved and verdict.reason.startswith("memory"):
        return units.signed_size(verdict.memory.treatment_bytes - verdict.memory.control_bytes)
    if verdict.effect is None or not math.isfinite(verdict.effect.ratio):
        return ""
    return units.percent(verdict.effect.ratio - 1)


def run_name(decision: Decision, standing: Standing = AS_DECIDED) -> str:
    """'03 ACCEPT +4.2 % prenorm_fusion'; a revoked decision reads '03 REVOKED accept +4.2 % prenorm_fusion', a ruled
    one '04 RULED ACCEPT reject +1.2 % head_fp16', a swept one '04 REJECT -0.3 % register_cap registers=8'."""
    verdict = decision.verdict.verdict
    word = verdict.upper()
    if standing.revoked:
        word = f"REVOKED {verdict}"
    elif standing.ruling:
        word = f"RULED {standing.ruling.upper()} {verdict}"
    word += " STALE" if decision.verdict.reason == "stale" else ""
    word += " SUSPECT" if decision.verdict.suspect else ""
    parts = (f"{decision.sequence:02d}", word, headline(decision), label(decision.hypothesis, decision.command))
    return " ".join(part for part in parts if part)


def finding_name(found: Found) -> str:
    """'F02 LEAVE ONE OUT +10.7 % prenorm_fusion, shared_activation_quant': findings are counted by themselves."""
    total = found.finding.total
    gain = units.percent(total.ratio - 1) if total is not None else ""
    return " ".join(part for part in (f"F{found.sequence:02d}", kind(found).upper(), gain, about(found)) if part)


def kind(found: Found) -> str:
    """'leave one out'."""
    return found.finding.kind.replace("_", " ")


def about(found: Found) -> str:
    """The edits that a finding is about: the stack of a headline, the decision's of a replay."""
    names = found.stack if found.finding.kind == HEADLINE else found.finding.subjects
    shown = ", ".join(names[:SUBJECTS_SHOWN])
    return shown + (f" and {len(names) - SUBJECTS_SHOWN} more" if len(names) > SUBJECTS_SHOWN else "")


def finding_status(found: Found) -> str:
    """FINISHED, or FAILED where the evidence gave no number."""
    finding = found.finding
    return "FINISHED" if finding.terms or finding.total or finding.effect else "FAILED"


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


def verdict_word(decision: Decision, standing: Standing = AS_DECIDED) -> str:
    """'accept', 'revoked (accept)' once it was taken back, 'ruled accept (reject)' where a person decided."""
    word = decision.verdict.verdict
    if standing.revoked:
        return f"revoked ({word})"
    return f"ruled {standing.ruling} ({word})" if standing.ruling else word
