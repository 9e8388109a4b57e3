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
from campaign.report.plain import plain

SCHEMA = 1
HEADER = ("job", "hypothesis", "verdict", "ratio", "95 % interval", "predicted", "low precision", "why")
RIGHT = frozenset({"job", "ratio"})
WHY = 100  # characters of a reason in the table; the JSON has all
REFUSED, FAULT, INTERRUPTED, NOT_STARTED, NONE = "refused", "fault", "interrupted", "not started", "no decision"
NOT_TRIED = "not tried"  # a sibling of the same hypothesis was accepted before its turn


@dataclass(frozen=True)
class Ended:
    """One job of a sweep. `label` is the hypothesis with what was swept, `row` its decision as in `listing.row`; None
    where none was made, and then `ended` says what came instead and `why` the reason. `code` is the exit code it had
    alone, None when it was not started or tried. `tests` are its decisive looks at an edit, `false_accepts` how many
    accepts to expect of them were the edit to change nothing; `before` says that an interrupted sweep had decided it
    already, and `note` what is to be known of that.
    """

    label: str
    code: int | None
    row: Mapping[str, Any] | None = None
    ended: str = ""
    why: str = ""
    tests: int = 0
    false_accepts: float = 0.0
    before: bool = False
    note: str = ""


def summary(jobs: Sequence[Ended]) -> str:
    """The table of a sweep, then how many were decided, how many false accepts to expect and how the predictions
    turned out."""
    lines = [_cells(place, job) for place, job in enumerate(jobs, 1)]
    under = (_count(jobs), _false_accepts(jobs), outcomes_text(_predictions(jobs)))
    return plain("\n".join([*columns(HEADER, lines, RIGHT), "", *(said for said in under if said)]))


def summary_json(jobs: Sequence[Ended]) -> str:
    """`{"schema": 1, "sweep": [{"label", "exit_code", "verdict", "reason", "why", "ratio", "ratio_low", "ratio_high",
    "predicted_ratio", "prediction", "counts", "low_precision", "suspect", "sequence", "before", "note"}, ...],
    "decided", "jobs", "tests", "false_accepts_expected"}` on one line; what a job does not have is null. `verdict` is
    `refused`, `fault`, `interrupted`, `not started`, `not tried` or `no decision` for a job without one. `before` and
    `note`: see `Ended`."""
    return as_line(sweep_object(jobs))


def sweep_object(jobs: Sequence[Ended]) -> dict[str, Any]:
    """What `summary_json` writes."""
    return {
        "schema": SCHEMA,
        "sweep": [_object(job) for job in jobs],
        "decided": _decided(jobs),
        "jobs": len(jobs),
        "tests": sum(job.tests for job in jobs),
        "false_accepts_expected": sum(job.false_accepts for job in jobs),
    }


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
        "before": job.before,
        "note": job.note,
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
        _short(f"{job.note}: {row['sentence']}" if job.note else row["sentence"]),
    )


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= WHY else flat[: WHY - 4].rstrip() + " ..."


def _decided(jobs: Sequence[Ended]) -> int:
    return sum(job.code == EXIT_DECIDED for job in jobs)


def _count(jobs: Sequence[Ended]) -> str:
    left = [f"{job.label} (exit {job.code})" for job in jobs if job.code]
    left += [f"{job.label} ({job.ended})" for job in jobs if job.code is None]
    said = f"{_decided(jobs)} of {len(jobs)} decided"
    before = sum(job.before for job in jobs)
    said += f", {before} of them before the interruption" if before else ""
    return f"{said}; without a decision: {', '.join(left)}" if left else said


def _false_accepts(jobs: Sequence[Ended]) -> str:
    """An edit that does nothing is accepted only if it passes the screen at its alpha (halved by each repeat) and then
    fresh rounds at confirm_alpha."""
    tests, expected = sum(job.tests for job in jobs), sum(job.false_accepts for job in jobs)
    if not tests:
        return ""
    return (
        f"False accepts to expect if no edit does anything: {expected:.3g}, the sum of alpha x confirm_alpha over "
        f"{tests} test{'s' * (tests > 1)}."
    )


def _predictions(jobs: Sequence[Ended]) -> list[str]:
    return [job.row["prediction"] for job in jobs if job.row]
