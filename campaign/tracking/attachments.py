"""The files that go with a decision or a finding: its note, its evidence, every configuration, the environment, patch,
figure, tables, logs.

Laid out in a folder first, so that MLflow copies them in one call. Names end in what MLflow's UI previews: a patch is
`.patch.txt`, because `.patch` is not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from campaign.errors import BadInput
from campaign.records import Decision, Evidence, Found, Plan, Round, Study, StudyEvidence, to_json
from campaign.tracking import finding_note, note, tables, trials
from campaign.tracking.decided import Decided, Standing
from campaign.tracking.figure import decision_png
from campaign.tracking.finding_figure import finding_png

LOG_LIMIT_BYTES = 1_000_000  # of a log; a patch is copied whole, or it would not apply


def lay_out(folder: Path, ledger: Decided, decision: Decision, evidence: Evidence, standing: Standing) -> None:
    """Write every artifact of a decision under `folder`. A raw file that is gone is left out, never an error."""
    (folder / "decision.md").write_text(note.decision_markdown(decision, evidence, standing), encoding="utf-8")
    _write_json(folder / "evidence.json", {"plan": to_json(evidence.plan), "decision": to_json(decision)})
    if evidence.probe is not None:
        _write_json(folder / "probe.json", to_json(evidence.probe))
        for arm in evidence.probe.arms:
            if arm.log:
                copied(ledger, arm.log, folder / "logs" / f"probe-{arm.arm}.txt")
    _write_declared(folder, ledger, evidence.plan, evidence.rounds)
    _write_picture(folder / "figures" / "decision.png", decision_png(decision, evidence))


def lay_out_finding(
    folder: Path, ledger: Decided, found: Found, evidence: StudyEvidence, recorded: Decision | None
) -> None:
    """The same of a finding, its terms and rounds as tables. `recorded` is the decision that a replay is of."""
    (folder / "finding.md").write_text(finding_note.finding_markdown(found, evidence, recorded), encoding="utf-8")
    _write_json(folder / "evidence.json", {"study": to_json(evidence.study), "finding": to_json(found)})
    (folder / "terms.csv").write_text(tables.terms_csv(found.finding), encoding="utf-8", newline="")
    (folder / "rounds.csv").write_text(tables.rounds_csv(evidence), encoding="utf-8", newline="")
    _write_declared(folder, ledger, evidence.study, evidence.rounds)
    _write_picture(folder / "figures" / "finding.png", finding_png(found, evidence.study, recorded))


def _write_declared(folder: Path, ledger: Decided, plan: Plan | Study, rounds: Sequence[Round]) -> None:
    """What was declared, on what, and what each trial said."""
    for arm in plan.arms:
        resolved = {"target": arm.target, "config": arm.config, "environment": arm.environment}
        _write_json(folder / "configs" / f"{arm.role}.json", resolved)
    _write_json(
        folder / "environment.json",
        {
            "machine": plan.machine_line,
            "fingerprint": plan.fingerprint,
            "code": plan.code,
            "source": {key: value for key, value in plan.source.items() if key != "packages"},
            "packages": plan.source.get("packages", {}),
            "trials": {trials.trial_name(r, t.arm): t.fingerprint for r in rounds for t in r.trials},
        },
    )
    patch = plan.source.get("patch_sha256")
    if patch:
        copied(ledger, f"raw/{patch}.patch", folder / "code.patch.txt", whole=True)
    for round_ in rounds:
        for trial in round_.trials:
            if trial.log:
                copied(ledger, trial.log, folder / trials.log_path(round_, trial))


def _write_picture(path: Path, png: bytes | None) -> None:
    if png is not None:
        path.parent.mkdir()
        path.write_bytes(png)


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def copied(ledger: Decided, relative: str, target: Path, *, whole: bool = False) -> None:
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
