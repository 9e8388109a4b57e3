"""Every file of `conf/` composes; a new hypothesis, workload or protocol is picked up here by being there."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign.config import load
from campaign.records import Edit

CONF = Path(__file__).resolve().parents[2] / "conf"


def options(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


@pytest.mark.parametrize("hypothesis", options("hypothesis"))
@pytest.mark.parametrize("protocol", options("protocol"))
def test_every_hypothesis_composes_under_every_protocol(project, hypothesis, protocol):
    job = load(project, [f"hypothesis={hypothesis}", f"protocol={protocol}"])
    assert (job.hypothesis.name, job.protocol.name) == (hypothesis, protocol)
    if not job.hypothesis.null:
        assert job.hypothesis.predicted_evidence, "a hypothesis predicts what a probe must see"


@pytest.mark.parametrize("workload", options("workload"))
@pytest.mark.parametrize("protocol", options("protocol"))
def test_every_workload_composes_under_every_protocol(project, workload, protocol):
    job = load(project, [f"workload={workload}", f"protocol={protocol}"])
    arm = job.arm("root", "root", [Edit()])
    assert arm.target.startswith("models.")
    assert (job.workload, arm.config["name"], arm.config["device"]) == (workload, workload, job.device)
