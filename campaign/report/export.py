"""A campaign as a page (Markdown or HTML), as rows (CSV or Parquet), or as JSON. All are views: the ledger has
everything in them.

JSON, schema 1 (keys are only ever added under one schema number; numbers that are not finite are null):

    {"schema": 1, "campaign": str, "version": str,
     "totals": {"decisions", "tests", "first_looks", "nulls", "without_a_look": int, "alpha_spent": float,
                "verdicts": {verdict: int}, "predictions": {word: int}, "unfinished": [plan id, ...]},
     "stack": [hypothesis, ...], "does_not_show": [sentence, ...],
     "filtered": str, empty where nothing was left out; totals are always those of the whole campaign,
     "findings": [{"present": bool, whether the stack is still the one it was declared on, "finding": the ledger's
                   record, "study": {"kind", "subjects", "groups", "rounds", "base", "generators", "of", "threshold",
                                     "protocol", "source", "code", "fingerprint", "registered_at"}}, ...],
     "decisions": [{"revoked": bool, "revoked_why": str, "in_stack": bool, "ruling": "accept", "reject" or "",
                    "ruled_why": str, "superseded_by": int or null, "label": str,
                    "parameters": str, "prediction": "held", "optimistic", "pessimistic" or "",
                    "counts_predicted": int, "counts_held": int,
                    "decision": the ledger's record,
                    "plan": {"protocol", "alpha", "threshold", "floor_id", "attempt", "source", "code", "null", "needs",
                             "fingerprint", "two_arms", "registered_at"}}, ...]}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from campaign import __version__
from campaign.errors import UnknownName
from campaign.reading import counts, parameters
from campaign.records import to_json
from campaign.report.flat import as_csv, as_parquet
from campaign.report.html import document
from campaign.report.json_text import as_text
from campaign.report.limits import not_shown
from campaign.report.markdown import page
from campaign.report.reported import Reported, Reports, Studied, gather

if TYPE_CHECKING:
    from campaign.ledger import Ledger
    from campaign.report.filters import Filters

SCHEMA = 1


def export(ledger: Ledger, form: str, filters: Filters | None = None) -> str:
    """The campaign as text in `form`, a key of `FORMS`. Raises UnknownName, LedgerDamaged, and Unavailable where a
    package for the form is missing."""
    if form not in FORMS:
        raise UnknownName("export form", form, (*FORMS, *BINARY), remedy="campaign ledger --export md")
    return FORMS[form](gather(ledger, filters))


def export_file(ledger: Ledger, form: str, filters: Filters | None = None) -> bytes:
    """The bytes of the campaign as a file in `form`, a key of `FORMS` (UTF-8) or `BINARY`. Raises as `export`."""
    if form in BINARY:
        return BINARY[form](gather(ledger, filters))
    return export(ledger, form, filters).encode()


def as_json(reports: Reports) -> str:
    """The document of this module's docstring."""
    rows = reports.every
    return as_text(
        {
            "schema": SCHEMA,
            "campaign": reports.campaign,
            "version": __version__,
            "totals": {
                "decisions": len(rows),
                "tests": sum(row.is_test for row in rows),
                "first_looks": sum(row.decision.verdict.look > 0 and not row.plan.protocol.decisive for row in rows),
                "nulls": sum(row.null for row in rows),
                "without_a_look": sum(row.decision.verdict.look == 0 for row in rows),
                "alpha_spent": reports.alpha_spent,
                "verdicts": dict(Counter(row.decision.verdict.verdict for row in rows)),
                "predictions": dict(Counter(row.prediction for row in rows if row.prediction)),
                "unfinished": list(reports.unfinished),
            },
            "stack": list(reports.head),
            "does_not_show": not_shown(reports),
            "filtered": reports.filtered,
            "findings": [_json_finding(one) for one in reports.findings],
            "decisions": [_json_row(row) for row in reports.rows],
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
        "two_arms": plan.two_arms,
        "registered_at": plan.registered_at,
    }
    return {
        "revoked": row.revoked,
        "revoked_why": row.revoked_why,
        "in_stack": row.in_stack,
        "ruling": row.ruling,
        "ruled_why": row.ruled_why,
        "superseded_by": row.superseded_by,
        "label": row.label,
        "parameters": parameters(row.decision.hypothesis, row.decision.command),
        "prediction": row.prediction,
        "counts_predicted": counts(row.decision.engagement)[1],
        "counts_held": counts(row.decision.engagement)[0],
        "decision": to_json(row.decision),
        "plan": declared,
    }


DECLARED = (
    *("kind", "subjects", "groups", "rounds", "base", "generators", "of", "threshold", "protocol", "source", "code"),
    *("fingerprint", "registered_at"),
)


def _json_finding(one: Studied) -> dict[str, Any]:
    study = to_json(one.study)
    declared = {name: study[name] for name in DECLARED}
    return {"present": one.present, "finding": to_json(one.found), "study": declared}


FORMS: dict[str, Callable[[Reports], str]] = {"md": page, "html": document, "csv": as_csv, "json": as_json}
BINARY: dict[str, Callable[[Reports], bytes]] = {"parquet": as_parquet}
