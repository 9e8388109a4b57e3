"""A line of profile evidence as MLflow sees it: a run without a single metric, so that no chart can show a profiled
time beside a decision's. Pure; imports no MLflow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from campaign import units
from campaign.tracking import mapping
from campaign.tracking.attachments import copied
from campaign.tracking.decided import Decided

Row = Mapping[str, Any]

KIND = "profile"  # of MLflow's runs: both kinds of lines
NOT_A_DECISION = "Profile evidence: it says where time goes and what ran, and no effect or verdict comes from it."
ABOUT_THE_LINE = ("kind", "id", "line", "time", "commit", "sequence")


def name(row: Row) -> str:
    """'P01 PROFILE prenorm_fusion', 'P02 DIAGNOSIS control of prenorm_fusion': counted by themselves."""
    return f"P{row['sequence']:02d} {row['kind'].upper()} {_about(row)}"


def tags(row: Row) -> dict[str, str]:
    """The tags of the run: what a reviewer filters by."""
    found = {
        "campaign.kind": KIND,
        "campaign.evidence": "profile",
        "verdict": "profile",
        "reason": "two traces" if row["kind"] == "profile" else "diagnosis",
        "hypothesis": row.get("hypothesis", "-"),
        "workload": row["workload"] or "not known",
        "device": row["device"] or "not known",
        "stack": " + ".join(row["stack"]) or "root",
        "sequence": f"P{row['sequence']:02d}",
        "mlflow.note.content": note(row),
        **mapping.source_tags(row["command"], {"commit": row["commit"]}),
    }
    return {key: mapping.cut(value, mapping.TAG_LIMIT) for key, value in found.items()}


def note(row: Row) -> str:
    """What the run is, in a few sentences."""
    if row["kind"] == "profile":
        said = (
            f"{units.counted(row['steps'], 'whole step')} of {row['control']['name']} and of "
            f"{row['treatment']['name']} under torch.profiler {row['torch']} ({', '.join(row['activities'])}). "
            "Both traces are among the artifacts, with their comparison."
        )
    else:
        said = f"{_sentence(row)}The whole diagnosis is among the artifacts."
        said += "" if "raw" in row["trace"] else " The trace itself is not kept; its hash is in the ledger."
    return f"{said}\n\n{NOT_A_DECISION} Ask again: `{row['command']}`."


def lay_out(folder: Path, ledger: Decided, row: Row) -> None:
    """Write every artifact under `folder`: the line, its pages, and the traces. What is gone is left out."""
    line = {key: value for key, value in row.items() if key not in ABOUT_THE_LINE}
    (folder / f"{row['kind']}_line.json").write_text(json.dumps(line, indent=2) + "\n", encoding="utf-8")
    for page in row["documents"]:
        copied(ledger, page["raw"], folder / Path(page["name"]).name, whole=True)
    if row["kind"] == "profile":
        for role in ("control", "treatment"):
            copied(ledger, row[role]["raw"], folder / "traces" / f"{role}.json.gz", whole=True)
    elif "raw" in row["trace"]:
        copied(ledger, row["trace"]["raw"], folder / "traces" / f"{row['arm']}.json.gz", whole=True)


def _about(row: Row) -> str:
    if row["kind"] == "profile":
        return str(row["hypothesis"])
    return f"{row['arm']} of {row['profile']}" if row["profile"] else str(row["trace"]["file"])


def _sentence(row: Row) -> str:
    dispatch = row["diagnosis"].get("dispatch") or {}
    said = " ".join(str(dispatch.get("sentence") or "").split())
    return f"{said[:1].upper()}{said[1:].rstrip('.')}. " if said else ""
