"""A project laid down for a test, and records for tests of the harness over the tiny workload of tests/project."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from campaign.records import Arm, Edit, ExpectedChange, Hypothesis, ParityClaim, Plan, Protocol

REPOSITORY = Path(__file__).resolve().parents[1]
PROJECT = Path(__file__).parent / "project"


def laid_down(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a new project, `project` over this repository's `conf/`, made the working directory. Its lease is its
    own, so that no real campaign waits."""
    root = tmp_path / "project"
    shutil.copytree(REPOSITORY / "conf", root / "conf")
    shutil.copytree(project, root, dirs_exist_ok=True)
    (root / "runs").mkdir()
    leases = tmp_path / "leases"
    leases.mkdir()
    monkeypatch.setenv("TMPDIR", str(leases))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(root)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    return root


def protocol(**changes: Any) -> Protocol:
    values: dict[str, Any] = {
        "name": "test",
        "decisive": True,
        "clock": "wall",
        "looks": (4, 6),
        "alpha": 0.01,
        "beta": 0.05,
        "alpha_split": (0.5, 0.5),
        "beta_split": (0.5, 0.5),
        "min_effect": 0.03,
        "pairs": 4,
        "block_steps": 1,
        "block_minimum_seconds": 0.0,
        "warmup_minimum_steps": 2,
        "warmup_window_steps": 2,
        "warmup_tolerance": 10.0,
        "warmup_limit_steps": 10,
        "confirm_rounds": 2,
        "confirm_alpha": 0.05,
        "invalid_share_limit": 0.2,
        "contention_limit": 100.0,
        "gate_alpha": 0.001,
        "memory_min_effect": 0.02,
        "memory_min_bytes": 8 << 20,
        "memory_noninferiority": 0.03,
        "memory_margin": 0.05,
        "probe_steps": 3,
        "start_deadline_seconds": 60.0,
        "reply_deadline_seconds": 30.0,
        "seed": 7,
    }
    return Protocol(**(values | changes))


def hypothesis(**changes: Any) -> Hypothesis:
    values: dict[str, Any] = {
        "name": "less_work",
        "claim": "Doing less is faster.",
        "mechanism": "fewer multiplications",
        "acts_on": "elementwise",
        "edit": Edit(overrides=("workload.work=5",)),
        "predicted_ratio": 1.5,
        "parity": ParityClaim("bitwise"),
        "predicted_evidence": (ExpectedChange("op:aten::mul", "falls"),),
    }
    return Hypothesis(**(values | changes))


def arm(role: str, **config: Any) -> Arm:
    return Arm(role, role, "tiny.Tiny", config)


def plan(control: Arm | None = None, treatment: Arm | None = None, **changes: Any) -> Plan:
    values: dict[str, Any] = {
        "id": "less_work-1",
        "campaign": "test",
        "workload": "tiny",
        "device": "cpu",
        "hypothesis": hypothesis(),
        "control": control or arm("control"),
        "treatment": treatment or arm("treatment", work=5),
        "protocol": protocol(),
        "stack": (),
        "attempt": 1,
        "alpha": 0.01,
        "threshold": 0.03,
        "floor_id": "",
        "fingerprint": {"host": "here"},
        "code": "c0de",
        "source": {"status": "no_repository"},
        "machine_line": "a machine",
        "command": "python -m campaign hypothesis=less_work",
        "registered_at": "2026-12-01T12:00:00+00:00",
    }
    return Plan(**(values | changes))
