"""One row a decision, flat: CSV for a spreadsheet, Parquet for a program. Units are in the columns' names, numbers are
unrounded, and what was not measured is empty. Tokens a second are empty where CPU time decided: they would not be
tokens on the wall."""

from __future__ import annotations

import csv
import io
from typing import Any

from campaign.errors import Unavailable
from campaign.reading import counts, parameters
from campaign.records import ByteChange, Contrast, Effect
from campaign.report.json_text import finite
from campaign.report.plain import plain
from campaign.report.reported import Reported, Reports


def as_csv(reports: Reports) -> str:
    """Header first, RFC 4180. A text that a spreadsheet would take for a formula begins with an apostrophe."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(COLUMNS))
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in _rows(reports))
    return text.getvalue()


def _rows(reports: Reports) -> list[dict[str, Any]]:
    places = {row.decision.id: place for place, row in enumerate(reports.stack, 1)}
    return [flat_row(reports.campaign, row, places.get(row.decision.id)) for row in reports.rows]


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return plain(f"'{value}" if value.startswith(FORMULA) else value)
    return value


def as_parquet(reports: Reports) -> bytes:
    """The same rows as an Apache Parquet file, each column of one type: text, whole numbers, numbers, flags; what is
    missing is null. Raises Unavailable without pandas and pyarrow."""
    rows = _rows(reports)
    data = io.BytesIO()
    try:
        import pandas

        columns = {
            name: pandas.array([row.get(name) for row in rows], dtype=PANDAS[kind]) for name, kind in COLUMNS.items()
        }
        pandas.DataFrame(columns).to_parquet(data, engine="pyarrow", index=False)
    except ImportError as error:
        raise Unavailable(f"Parquet needs pandas and pyarrow: {error}", remedy="pip install pandas pyarrow") from error
    return data.getvalue()


FORMULA = ("=", "+", "-", "@", "\t", "\r")
PANDAS = {str: "string", int: "Int64", float: "Float64", bool: "boolean"}
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
# Of `Combined`; the marginal ratio is the published one.
JOINT = {"ratio": "ratio", "low": "ratio_low_95", "high": "ratio_high_95"}
JOINT_BYTES = {"bytes": "bytes", "low": "bytes_low_95", "high": "bytes_high_95", "exact": "bytes_exact"}
CONTRASTS = ("isolated", "cumulative", "interaction")
TEXT = (
    *("decision_id", "plan_id", "campaign", "hypothesis", "parameters", "claim", "workload", "device", "verdict"),
    *("reason", "sentence", "suspect", "ruling", "ruled_why", "prediction", "clock", "beside_clock", "screening_clock"),
    *("interaction", "two_arms", "protocol", "floor_id", "parity", "engagement", "low_precision", "stack", "overrides"),
    *("machine", "commit", "patch_sha256", "code_sha256", "registered_at", "decided_at", "command"),
)
WHOLE = (
    *("sequence", "superseded_by", "place_in_stack", "counts_predicted", "counts_held", "ratio_rounds"),
    *("beside_rounds", "screening_rounds", "control_peak_bytes", "treatment_peak_bytes", "rounds_valid"),
    *("rounds_invalid", "look", "attempt"),
    *(f"{name}_{column}" for name in CONTRASTS for column in JOINT_BYTES.values() if column != "bytes_exact"),
)
FLAGS = (
    *("revoked", "memory_exact", "memory_saved", "memory_grown", "decisive", "null", "dirty"),
    *(f"{name}_bytes_exact" for name in CONTRASTS),
)
ORDER = (
    *("sequence", "decision_id", "plan_id", "campaign", "hypothesis", "parameters", "claim", "workload", "device"),
    *("verdict", "reason", "sentence", "suspect", "revoked", "ruling", "ruled_why", "place_in_stack", "superseded_by"),
    *("predicted_ratio", "prediction", "counts_predicted", "counts_held", "clock"),
    *EFFECT_COLUMNS.values(),
    *(f"{kind}_{name}" for kind in ("beside", "screening") for name in BRIEF.values()),
    "interaction",
    *(f"{name}_{column}" for name in CONTRASTS for column in (*JOINT.values(), *JOINT_BYTES.values())),
    "two_arms",
    *("control_peak_bytes", "treatment_peak_bytes", "memory_ratio", "memory_ratio_low_95", "memory_ratio_high_95"),
    *("memory_exact", "memory_saved", "memory_grown", "rounds_valid", "rounds_invalid", "look", "alpha"),
    *("alpha_spent", "threshold_fraction", "attempt", "protocol", "decisive", "null", "floor_id"),
    *("parity", "engagement", "low_precision", "stack", "overrides", "machine", "commit", "dirty", "patch_sha256"),
    *("code_sha256", "registered_at", "decided_at", "wall_seconds", "timed_seconds", "command"),
)
COLUMNS = {name: str if name in TEXT else int if name in WHOLE else bool if name in FLAGS else float for name in ORDER}


def flat_row(campaign: str, row: Reported, place_in_stack: int | None = None) -> dict[str, Any]:
    """The row's values by `COLUMNS`; what is missing is left out."""
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
        "revoked": row.revoked,
        "ruling": row.ruling or None,
        "ruled_why": row.ruled_why or None,
        "place_in_stack": place_in_stack,
        "superseded_by": row.superseded_by,
        "predicted_ratio": decision.predicted_ratio,
        "prediction": row.prediction or None,
        "counts_predicted": predicted,
        "counts_held": held if predicted else None,
        "clock": row.clock,
        "two_arms": plan.two_arms or None,
        "rounds_valid": verdict.valid_rounds,
        "rounds_invalid": verdict.invalid_rounds,
        "look": verdict.look,
        "alpha": plan.alpha,
        "alpha_spent": verdict.alpha_spent,
        "threshold_fraction": plan.threshold,
        "attempt": plan.attempt,
        "protocol": plan.protocol.name,
        "decisive": plan.protocol.decisive,
        "null": plan.hypothesis.null,
        "floor_id": plan.floor_id or None,
        "parity": decision.parity,
        "engagement": decision.engagement,
        "low_precision": decision.low_precision,
        "stack": " ".join(decision.stack),
        "overrides": " ".join(decision.overrides),
        "machine": decision.machine_line,
        "commit": plan.source.get("commit"),
        "dirty": plan.source.get("dirty"),
        "patch_sha256": plan.source.get("patch_sha256") or None,
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
    if found := verdict.combined:
        cells["interaction"] = found.word
        for name in CONTRASTS:
            cells |= _fields(name, getattr(found, name), JOINT)
            cells |= _fields(name, getattr(found, f"{name}_bytes"), JOINT_BYTES)
    if memory:
        cells |= {
            "control_peak_bytes": memory.control_bytes,
            "treatment_peak_bytes": memory.treatment_bytes,
            "memory_ratio": memory.ratio,
            "memory_ratio_low_95": memory.low,
            "memory_ratio_high_95": memory.high,
            "memory_exact": memory.exact,
            "memory_saved": memory.saved,
            "memory_grown": memory.grown,
        }
    return {name: value for name, value in finite(cells).items() if value is not None}


def _brief(kind: str, effect: Effect | None) -> dict[str, Any]:
    return _fields(kind, effect, BRIEF)


def _fields(kind: str, of: Effect | Contrast | ByteChange | None, names: dict[str, str]) -> dict[str, Any]:
    return {f"{kind}_{column}": getattr(of, name) for name, column in names.items()} if of else {}
