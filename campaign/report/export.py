"""A campaign as a page for a pull request, as CSV, or as JSON. All are views: the ledger has everything in them.

JSON, schema 1 (keys are only ever added under one schema number; numbers that are not finite are null):

    {"schema": 1, "campaign": str, "version": str,
     "totals": {"decisions", "tests", "first_looks", "nulls", "without_a_look": int, "alpha_spent": float,
                "verdicts": {verdict: int}, "predictions": {word: int}, "unfinished": [plan id, ...]},
     "stack": [hypothesis, ...], "does_not_show": [sentence, ...],
     "decisions": [{"revoked": bool, "revoked_why": str, "superseded_by": int or null, "label": str,
                    "parameters": str, "prediction": "held", "optimistic", "pessimistic" or "",
                    "counts_predicted": int, "counts_held": int,
                    "decision": the ledger's record,
                    "plan": {"protocol", "alpha", "threshold", "floor_id", "attempt", "source", "code", "null", "needs",
                             "fingerprint", "registered_at"}}, ...]}
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from campaign import __version__
from campaign.errors import UnknownName
from campaign.reading import counts, parameters
from campaign.records import Effect, to_json
from campaign.report.json_text import as_text, finite
from campaign.report.limits import not_shown
from campaign.report.markdown import page
from campaign.report.reported import Reported, Reports, gather

if TYPE_CHECKING:
    from campaign.ledger import Ledger

SCHEMA = 1


def export(ledger: Ledger, form: str) -> str:
    """The campaign in `form`: md, csv or json. Raises UnknownName, LedgerDamaged."""
    if form not in FORMS:
        raise UnknownName("export form", form, FORMS, remedy="campaign ledger --export md")
    return FORMS[form](gather(ledger))


def as_json(reports: Reports) -> str:
    """The document of this module's docstring."""
    rows = reports.rows
    return as_text(
        {
            "schema": SCHEMA,
            "campaign": reports.campaign,
            "version": __version__,
            "totals": {
                "decisions": len(rows),
                "tests": sum(row.is_test for row in rows),
                "first_looks": sum(row.decision.verdict.look > 0 and not row.plan.protocol.decisive for row in rows),
                "nulls": sum(row.plan.hypothesis.null for row in rows),
                "without_a_look": sum(row.decision.verdict.look == 0 for row in rows),
                "alpha_spent": reports.alpha_spent,
                "verdicts": dict(Counter(row.decision.verdict.verdict for row in rows)),
                "predictions": dict(Counter(row.prediction for row in rows if row.prediction)),
                "unfinished": list(reports.unfinished),
            },
            "stack": [decision.hypothesis for decision in reports.stack],
            "does_not_show": not_shown(reports),
            "decisions": [_json_row(row) for row in rows],
        }
    )


def _json_row(row: Reported) -> dict[str, Any]:
    plan = row.plan
    declared = {
        "protocol": to_json(plan.protocol),
        "alpha": plan.alpha,
        "threshold": plan.threshold,
        "floor_id": plan.floor_id,
        "attempt": plan.attempt,
        "null": plan.hypothesis.null,
        "needs": list(plan.hypothesis.needs),
        "source": plan.source,
        "code": plan.code,
        "fingerprint": plan.fingerprint,
        "registered_at": plan.registered_at,
    }
    return {
        "revoked": row.revoked,
        "revoked_why": row.revoked_why,
        "superseded_by": row.superseded_by,
        "label": row.label,
        "parameters": parameters(row.decision.hypothesis, row.decision.command),
        "prediction": row.prediction,
        "counts_predicted": counts(row.decision.engagement)[1],
        "counts_held": counts(row.decision.engagement)[0],
        "decision": to_json(row.decision),
        "plan": declared,
    }


def as_csv(reports: Reports) -> str:
    """One row a decision, header first, RFC 4180. Units are in the columns' names, numbers are unrounded, and what was
    not measured is empty. Tokens a second are empty where CPU time decided: they would not be tokens on the wall."""
    flat = [csv_row(reports.campaign, row) for row in reports.rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS)
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


EFFECT_COLUMNS = {
    "ratio": "ratio",
    "low": "ratio_low_95",
    "high": "ratio_high_95",
    "decision_low": "ratio_decision_low",
    "decision_high": "ratio_decision_high",
    "total_ratio": "ratio_total_time",
    "sd_log": "sd_log_ratio",
    "rounds": "ratio_rounds",
    "control_step_seconds": "control_step_seconds",
    "treatment_step_seconds": "treatment_step_seconds",
    "control_p99_seconds": "control_p99_seconds",
    "treatment_p99_seconds": "treatment_p99_seconds",
    "control_max_seconds": "control_max_seconds",
    "treatment_max_seconds": "treatment_max_seconds",
    "control_tokens_per_second": "control_tokens_per_second",
    "treatment_tokens_per_second": "treatment_tokens_per_second",
}
BRIEF = {"clock": "clock", "ratio": "ratio", "low": "ratio_low_95", "high": "ratio_high_95", "rounds": "rounds"}
CSV_COLUMNS = (
    *("sequence", "decision_id", "plan_id", "campaign", "hypothesis", "parameters", "claim", "workload", "device"),
    *("verdict", "reason", "sentence", "suspect", "revoked", "superseded_by", "predicted_ratio"),
    *("prediction", "counts_predicted", "counts_held", "clock"),
    *EFFECT_COLUMNS.values(),
    *(f"{kind}_{name}" for kind in ("beside", "screening") for name in BRIEF.values()),
    *("control_peak_bytes", "treatment_peak_bytes", "memory_ratio", "memory_ratio_low_95", "memory_ratio_high_95"),
    *("memory_exact", "memory_saved", "memory_grown", "rounds_valid", "rounds_invalid", "look", "alpha"),
    *("alpha_spent", "threshold_fraction", "attempt", "protocol", "decisive", "null", "floor_id"),
    *("parity", "engagement", "low_precision", "stack", "overrides", "machine", "commit", "dirty", "patch_sha256"),
    *("code_sha256", "registered_at", "decided_at", "wall_seconds", "timed_seconds", "command"),
)


def csv_row(campaign: str, row: Reported) -> dict[str, Any]:
    """The row's cells by `CSV_COLUMNS`; what is missing is left out."""
    decision, plan, verdict, memory = row.decision, row.plan, row.decision.verdict, row.decision.verdict.memory
    held, predicted = counts(decision.engagement)
    cells: dict[str, Any] = {
        "sequence": decision.sequence,
        "decision_id": decision.id,
        "plan_id": plan.id,
        "campaign": campaign,
        "hypothesis": decision.hypothesis,
        "parameters": parameters(decision.hypothesis, decision.command) or None,
        "claim": decision.claim,
        "workload": decision.workload,
        "device": decision.device,
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "sentence": verdict.sentence,
        "suspect": verdict.suspect or None,
        "revoked": _flag(row.revoked),
        "superseded_by": row.superseded_by,
        "predicted_ratio": decision.predicted_ratio,
        "prediction": row.prediction or None,
        "counts_predicted": predicted,
        "counts_held": held if predicted else None,
        "clock": row.clock,
        "rounds_valid": verdict.valid_rounds,
        "rounds_invalid": verdict.invalid_rounds,
        "look": verdict.look,
        "alpha": plan.alpha,
        "alpha_spent": verdict.alpha_spent,
        "threshold_fraction": plan.threshold,
        "attempt": plan.attempt,
        "protocol": plan.protocol.name,
        "decisive": _flag(plan.protocol.decisive),
        "null": _flag(plan.hypothesis.null),
        "floor_id": plan.floor_id,
        "parity": decision.parity,
        "engagement": decision.engagement,
        "low_precision": decision.low_precision,
        "stack": " ".join(decision.stack),
        "overrides": " ".join(decision.overrides),
        "machine": decision.machine_line,
        "commit": plan.source.get("commit"),
        "dirty": _flag(plan.source.get("dirty")),
        "patch_sha256": plan.source.get("patch_sha256"),
        "code_sha256": plan.code,
        "registered_at": plan.registered_at,
        "decided_at": decision.decided_at,
        "wall_seconds": decision.wall_seconds,
        "timed_seconds": decision.timed_seconds,
        "command": decision.command,
    }
    if verdict.effect:
        cells |= {column: getattr(verdict.effect, name) for name, column in EFFECT_COLUMNS.items()}
        if row.clock == "cpu":
            cells |= {"control_tokens_per_second": None, "treatment_tokens_per_second": None}
    cells |= _brief("beside", verdict.beside) | _brief("screening", verdict.screening)
    if memory:
        cells |= {
            "control_peak_bytes": memory.control_bytes,
            "treatment_peak_bytes": memory.treatment_bytes,
            "memory_ratio": memory.ratio,
            "memory_ratio_low_95": memory.low,
            "memory_ratio_high_95": memory.high,
            "memory_exact": _flag(memory.exact),
            "memory_saved": _flag(memory.saved),
            "memory_grown": _flag(memory.grown),
        }
    return {name: value for name, value in finite(cells).items() if value is not None}


def _brief(kind: str, effect: Effect | None) -> dict[str, Any]:
    return {f"{kind}_{column}": getattr(effect, name) for name, column in BRIEF.items()} if effect else {}


def _flag(value: Any) -> str | None:
    return None if value is None else "true" if value else "false"


FORMS: dict[str, Callable[[Reports], str]] = {"md": page, "csv": as_csv, "json": as_json}
