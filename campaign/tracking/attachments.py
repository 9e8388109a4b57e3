"""The files that go with a decision: its note, its evidence, both configurations, the environment, patch, figure, logs.

Laid out in a folder first, so that MLflow copies them in one call. Names end in what MLflow's UI previews: a patch is
`.patch.txt`, because `.patch` is not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from campaign.errors import BadInput
from campaign.records import Decision, Evidence, to_json
from campaign.tracking import mapping, note
from campaign.tracking.decided import Decided
from campaign.tracking.figure import decision_png

LOG_LIMIT_BYTES = 1_000_000  # of a log; a patch is copied whole, or it would not apply


def lay_out(folder: Path, ledger: Decided, decision: Decision, evidence: Evidence, revoked: bool) -> None:
    """Write every artifact of a decision under `folder`. A raw file that is gone is left out, never an error."""
    plan = evidence.plan
    (folder / "decision.md").write_text(note.decision_markdown(decision, evidence, revoked), encoding="utf-8")
    _write_json(folder / "evidence.json", {"plan": to_json(plan), "decision": to_json(decision)})
    for side in (plan.control, plan.treatment):
        resolved = {"target": side.target, "config": side.config, "environment": side.environment}
        _write_json(folder / "configs" / f"{side.role}.json", resolved)
    _write_json(
        folder / "environment.json",
        {
            "machine": plan.machine_line,
            "fingerprint": plan.fingerprint,
            "code": plan.code,
            "source": {key: value for key, value in plan.source.items() if key != "packages"},
            "packages": plan.source.get("packages", {}),
            "trials": {mapping.trial_name(r, t.arm): t.fingerprint for r in evidence.rounds for t in r.trials},
        },
    )
    if evidence.probe is not None:
        _write_json(folder / "probe.json", to_json(evidence.probe))
        for arm in evidence.probe.arms:
            if arm.log:
                _copy(ledger, arm.log, folder / "logs" / f"probe-{arm.arm}.txt")
    patch = plan.source.get("patch_sha256")
    if patch:
        _copy(ledger, f"raw/{patch}.patch", folder / "code.patch.txt", whole=True)
    png = decision_png(decision, evidence)
    if png is not None:
        (folder / "figures").mkdir()
        (folder / "figures" / "decision.png").write_bytes(png)
    for round_ in evidence.rounds:
        for trial in round_.trials:
            if trial.log:
                _copy(ledger, trial.log, folder / mapping.log_path(round_, trial))


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _copy(ledger: Decided, relative: str, target: Path, *, whole: bool = False) -> None:
    """Copy a file from beside the ledger; of a long one, unless `whole`, its end with a line that says so."""
    try:
        source = ledger.path(relative)
    except BadInput:
        return  # not a path inside the campaign's folder: written by hand, or by an older version
    if not source.is_file():
        return
    data = source.read_bytes()
    if len(data) > LOG_LIMIT_BYTES and not whole:
        data = f"... (the last {LOG_LIMIT_BYTES} of {len(data)} bytes)\n".encode() + data[-LOG_LIMIT_BYTES:]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
