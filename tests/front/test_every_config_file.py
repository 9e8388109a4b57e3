"""Every file of `conf/` composes; a new hypothesis, workload or protocol is picked up here by being there."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign.config import load
from campaign.config.evidence import check_counter
from campaign.config.hypothesis import NEEDS

CONF = Path(__file__).resolve().parents[2] / "conf"


# The table of the reference campaign: an edit that is renamed or lost leaves a hole in it.
CAMPAIGN = {
    "prenorm_fusion": ("norm", "rounding"),
    "shared_activation_quant": ("quantization", "bitwise"),
    "fused_activation_quant": ("pointwise", "rounding"),
    "cached_quantized_weights": ("quantization", "bitwise"),
    "register_cap": ("recurrent", "bitwise"),
    "phase_split": ("recurrent", "rounding"),
    "live_state": ("recurrent", "rounding"),
    "precision_tail": ("gemm", "precision"),
    "recompute_trade": ("recompute", "bitwise"),
    "compile": ("pointwise", "rounding"),
    "graph_replay": ("dispatch", "rounding"),
}


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
    arm = job.arm("root", "root", [])
    assert arm.target.startswith("models.")
    assert (job.workload, arm.config["name"], arm.config["device"]) == (workload, workload, job.device)


@pytest.mark.parametrize("name", CAMPAIGN)
def test_every_edit_of_the_reference_campaign_is_there_with_its_family_and_parity(project, name):
    hypothesis = load(project, [f"hypothesis={name}"]).hypothesis
    assert (hypothesis.acts_on, hypothesis.parity.kind) == CAMPAIGN[name]


@pytest.mark.parametrize("workload", options("workload"))
@pytest.mark.parametrize("hypothesis", options("hypothesis"))
def test_every_hypothesis_makes_a_treatment_that_differs_from_root_on_every_workload(project, hypothesis, workload):
    job = load(project, [f"hypothesis={hypothesis}", f"workload={workload}"])
    root, treatment = (
        job.arm("root", "root", []),
        job.arm("treatment", "edited", [(job.hypothesis.name, job.hypothesis.edit)]),
    )
    assert (treatment.hash != root.hash) is not job.hypothesis.null
    if job.hypothesis.null:
        return
    assert set(job.hypothesis.needs) <= set(NEEDS)
    for expected in job.hypothesis.predicted_evidence:
        check_counter(expected.counter, "counter")
        compiled = {"reference_cpu": "cpu", "reference_1b": "triton"}[workload]
        other = {"cpu": "triton", "triton": "cpu"}[compiled]
        if expected.counter.startswith("op:kernels::"):
            assert compiled in expected.counter.split("_") and other not in expected.counter.split("_")
        before, after = expected.control, expected.treatment
        if before is not None and after is not None:
            rising = expected.change in ("appears", "rises")
            assert before < after if rising else before > after, f"{expected.counter} {expected.change}"


@pytest.mark.parametrize("hypothesis", options("hypothesis"))
def test_every_hypothesis_that_conflicts_is_named_by_the_other_side_too(project, hypothesis):
    for other in load(project, [f"hypothesis={hypothesis}"]).hypothesis.conflicts:
        assert hypothesis in load(project, [f"hypothesis={other}"]).hypothesis.conflicts


def test_all_edits_of_the_reference_campaign_but_the_conflicting_ones_stack(project):
    jobs = [load(project, [f"hypothesis={name}"]) for name in CAMPAIGN if name not in ("live_state", "graph_replay")]
    head = jobs[0].arm("head", "all", [(job.hypothesis.name, job.hypothesis.edit) for job in jobs])
    assert head.config["quant"]["weights"] == "cached" and head.config["quant"]["activations"] == "shared"
    assert head.config["ops"]["recurrence_backward"] == "phase_split" and head.config["precision"]["tail"] == []
    assert head.config["checkpoint"] == {"policy": "full", "fraction": 0.5}
