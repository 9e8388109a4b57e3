"""Profile evidence in the ledger: a diagnosis kept with its pages, and what every such line is stamped with.

Nothing here is read by a verdict, an effect or a finding. What a diagnosis says orders ideas, and strikes them.
"""

from __future__ import annotations

import hashlib
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from campaign import machine, provenance, tracking
from campaign.destination import NONE, is_server
from campaign.diagnosis.found import EVIDENCE, Diagnosis
from campaign.errors import TrackingFailed, Unavailable
from campaign.ledger import Ledger, Stamp, open_ledger
from campaign.report.diagnosis_json import diagnosis_json, values
from campaign.report.diagnosis_page import diagnosis_page
from campaign.report.json_text import finite
from campaign.tracking.address import of_campaign

Say = Callable[[str], None]
READ_BYTES = 1 << 20
# Of what has no bound in a trace, so much stands in the line itself; the rest is in the kept diagnosis.json.
KEPT = {
    "gaps": 10,
    "passes": 20,
    "metrics": 20,
    "kernels": 5,
    "unclassified": 10,
    "removing": 10,
    "halving": 10,
    "movers": 10,
    "notices": 20,
    "matched": 20,
    "unjoined": 20,
}
LEFT_OUT = ("masks_ns", "counters")


def record(
    root: Path, campaign: str, diagnoses: Sequence[Diagnosis], command: str, say: Say | None = None
) -> list[str]:
    """Write each diagnosis in the ledger of `campaign` with its JSON, Markdown and HTML, and mirror it; the ids of the
    lines. Raises CampaignError; MLflow's failing is said and no more.

    The trace itself is kept where `campaign profile` made it, known by its hash; of any other the line has name, size
    and hash. A trace from elsewhere is taken to be of the campaign's workload on its present stack.
    """
    say = say or _aside
    with open_ledger(root, campaign, writable=True) as ledger:
        bodies = [_body(ledger, one, command, say) for one in diagnoses]
        ledger.stamp = stamp_here(root, "", ledger)
        ids = [append(ledger, "diagnosis", body["trace"]["sha256"][:12], body) for body in bodies]
        mirror(ledger, ids, of_campaign(root, ledger), say)
        say(f"recorded in {ledger.file}: {', '.join(ids)}")
    return ids


def append(ledger: Ledger, kind: str, about: str, body: dict[str, Any]) -> str:
    """Write a line of profile evidence; its id."""
    id = f"{kind}-{about}-{time.strftime('%Y%m%dT%H%M%S')}-{uuid.uuid4().hex[:4]}"
    ledger.append(kind, id, body)
    return id


def mirror(ledger: Ledger, ids: list[str], store: str, say: Say) -> None:
    """Write these lines to MLflow, where `store` (a job's `tracking`) says so."""
    if store == NONE:
        return
    say("mirroring to MLflow" + (f" at {store}" if is_server(store) else ""))
    try:
        tracking.send(ledger, ids, store)
    except TrackingFailed as failure:
        say(f"warning: {failure}")


def stamp_here(root: Path, device: str, ledger: Ledger) -> Stamp:
    """This host and code, and this machine's fingerprint where `device` names one; a dirty tree's patch is kept."""
    snapshot = provenance.snapshot(root)
    if snapshot.patch:
        ledger.keep(snapshot.patch, ".patch")
    return Stamp(
        host=ledger.stamp.host,
        fingerprint=machine.fingerprint_hash(machine.fingerprint(device)) if device else "",
        commit=str(snapshot.source.get("commit") or ""),
        patch=str(snapshot.source.get("patch_sha256") or ""),
    )


def pages(ledger: Ledger, name: str, made: Mapping[str, Callable[[], str]], say: Say) -> list[dict[str, str]]:
    """Each form of an answer kept beside the ledger: `[{"name": "NAME.md", "raw": "raw/..."}]`. A form that this
    installation cannot make is said and left out."""
    kept = []
    for form, make in made.items():
        try:
            kept.append({"name": f"{name}.{form}", "raw": ledger.keep(make().encode(), f".{form}")})
        except Unavailable as missing:
            say(f"no {name}.{form}: {missing}")
    return kept


def shortened(found: Any, key: str = "") -> Any:
    """A record's JSON values bounded in size, whatever the trace was: see `KEPT`."""
    if isinstance(found, dict):
        return {name: shortened(value, name) for name, value in found.items() if name not in LEFT_OUT}
    if isinstance(found, list):
        return [shortened(value) for value in found[: KEPT.get(key)]]
    return found


def _body(ledger: Ledger, found: Diagnosis, command: str, say: Say) -> dict[str, Any]:
    trace = _described(Path(found.source.file))
    origin, role = _profile_of(ledger, trace["sha256"])
    place = ledger.place() or ("", "")
    body: dict[str, Any] = {
        "evidence": EVIDENCE,
        "workload": origin["workload"] if origin else place[0],
        "device": origin["device"] if origin else place[1],
        "stack": [row["hypothesis"] for row in ledger.stack_rows()],
        "profile": "",
        "arm": role,
        "trace": trace,
        "reports": [_described(Path(one.file)) for one in found.reports],
        "command": command,
    }
    if origin:
        edited = [origin["hypothesis"]] if role == "treatment" else []
        body |= {"profile": origin["id"], "stack": [*origin["stack"], *edited]}
        trace["raw"] = origin[role]["raw"]
    forms = {
        "json": lambda: diagnosis_json([found]),
        "md": lambda: diagnosis_page([found], "md"),
        "html": lambda: diagnosis_page([found], "html"),
    }
    body["documents"] = pages(ledger, "diagnosis", forms, say)
    body["diagnosis"] = finite(shortened(values(found)))
    return body


def _profile_of(ledger: Ledger, sha256: str) -> tuple[dict[str, Any] | None, str]:
    """The newest profile of this ledger that made the trace with this hash, and of which arm; (None, '') without."""
    for row in reversed(ledger.profile_rows()):
        for role in ("control", "treatment"):
            if row["kind"] == "profile" and Path(row[role]["raw"]).name.partition(".")[0] == sha256:
                return row, role
    return None, ""


def _described(path: Path) -> dict[str, Any]:
    """Name, size and hash of a file, read in pieces."""
    digest, size = hashlib.sha256(), 0
    for piece in _pieces(path):
        digest.update(piece)
        size += len(piece)
    return {"file": path.name, "sha256": digest.hexdigest(), "bytes": size}


def _pieces(path: Path) -> Iterable[bytes]:
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            yield piece


def _aside(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
