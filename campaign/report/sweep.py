"""What a sweep came to: one line a job, refused and interrupted ones too, as a table or as one line of JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from campaign import units
from campaign.errors import EXIT_DECIDED
from campaign.reading import outcomes_text
from campaign.report.json_text import as_line
from campaign.report.listing import columns, verdict_cell

SCHEMA = 1
HEADER = ("job", "hypothesis", "verdict", "ratio", "95 % interval", "predicted", "low precision", "why")
RIGHT = frozenset({"job", "ratio"})
WHY = 100  # characters of a reason in the table; the JSON has all
REFUSED, FAULT, INTERRUPTED, NOT_STARTED, NONE = "refused", "fault", "interrupted", "not started", "no decision"


@dataclass(frozen=True)
class Ended:
    """One job of a sweep. `label` is the hypothesis with what was swept, `row` its decision as in `listing.row`; None
    where none was made, and then `ended` says what came instead and `why` the reason. `code` is the exit code it had
    alone, None when it was not started."""

    label: str
    code: int | None
    row: Mapping[str, Any] | None = None
    ended: str = ""
    why: str = ""


def summary(jobs: Sequence[Ended]) -> str:
    """The table of a sweep, then how many were decided and how the predictions turned out."""
    lines = [_cells(place, job) for place, job in enumerate(jobs, 1)]
    under = [said for said in (_count(jobs), outcomes_text(_predictions(jobs))) if said]
    return "\n".join([*columns(HEADER, lines, RIGHT), "", *under])


def summary_json(jobs: Sequence[Ended]) -> str:
    """`{"schema": 1, "sweep": [{"label", "exit_code", "verdict", "reason", "why", "ratio", "ratio_low", "ratio_high",
    "predicted_ratio", "prediction", "counts", "low_precision", "suspect", "sequence"}, ...], "decided", "jobs"}` on
    one line; what a job does not have is null. `verdict` is `refused`, `fault`, `interrupted`, `not started` or
    `no decision` for a job without one."""
    return as_line(
        {"schema": SCHEMA, "sweep": [_object(job) for job in jobs], "decided": _decided(jobs), "jobs": len(jobs)}
    )


def _object(job: Ended) -> dict[str, Any]:
    row = job.row or {}
    same = ("ratio", "ratio_low", "ratio_high", "predicted_ratio", "prediction", "counts", "low_precision", "suspect")
    return {
        "label": job.label,
        "exit_code": job.code,
        "verdict": row.get("verdict", job.ended),
        "reason": row.get("reason", job.ended),
        "why": row.get("sentence", job.why),
        **{key: row.get(key) for key in same},
        "sequence": row.get("sequence"),
    }


def _cells(place: int, job: Ended) -> tuple[str, ...]:
    row = job.row
    if row is None:
        return (str(place), job.label, job.ended, "-", "-", "-", "-", _short(job.why))
    low, high = row["ratio_low"], row["ratio_high"]
    return (
        str(place),
        job.label,
        verdict_cell(row["verdict"], row["reason"], row["revoked"]) + (" SUSPECT" if row["suspect"] else ""),
        "-" if row["ratio"] is None else units.ratio(row["ratio"]),
        "-" if low is None or high is None else units.interval(low, high),
        f"{units.ratio(row['predicted_ratio'])} {row['prediction']}".rstrip() if row["predicted_ratio"] else "-",
        row["low_precision"] or "-",
        _short(row["sentence"]),
    )


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= WHY else flat[: WHY - 4].rstrip() + " ..."


def _decided(jobs: Sequence[Ended]) -> int:
    return sum(job.code == EXIT_DECIDED for job in jobs)


def _count(jobs: Sequence[Ended]) -> str:
    left = [f"{job.label} (exit {job.code})" for job in jobs if job.code]
    left += [f"{job.label} (not started)" for job in jobs if job.code is None]
    said = f"{_decided(jobs)} of {len(jobs)} decided"
    return f"{said}; without a decision: {', '.join(left)}" if left else said


def _predictions(jobs: Sequence[Ended]) -> list[str]:
    return [job.row["prediction"] for job in jobs if job.row]
