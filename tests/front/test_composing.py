"""What a run is made of: defaults, what the device fills in, and whose value wins."""

from __future__ import annotations

import json

import pytest

from campaign.config import load
from campaign.errors import BadInput
from campaign.records import Edit, Protocol, from_json, to_json


def test_bare_run_is_the_null_on_the_cpu_workload(project):
    job = load(project, [])
    assert (job.hypothesis.name, job.hypothesis.null, job.hypothesis.edit) == ("aa_null", True, Edit())
    assert (job.workload, job.device, job.campaign, job.tracking) == ("reference_cpu", "cpu", "default", "mlflow")
    assert (job.lease_wait_seconds, job.json, job.overrides) == (0.0, False, ())
    assert job.root == project


def test_null_is_looked_at_once_after_ten_rounds(project):
    protocol = load(project, []).protocol
    assert (protocol.looks, protocol.alpha_split, protocol.beta_split) == ((10,), (1.0,), (1.0,))


def test_cpu_protocol_is_the_declared_one(project):
    # DESIGN.md section 5 and the CPU column of the measurement study's table 0.
    assert load(project, ["hypothesis=prenorm_fusion"]).protocol == Protocol(
        name="standard",
        decisive=True,
        clock="cpu",
        looks=(4, 6, 8, 12),
        alpha=0.01,
        beta=0.05,
        alpha_split=(0.2, 0.2, 0.2, 0.4),
        beta_split=(0.2, 0.2, 0.2, 0.4),
        min_effect=0.03,
        pairs=40,
        block_steps=1,
        block_minimum_seconds=0.05,
        warmup_minimum_steps=5,
        warmup_window_steps=5,
        warmup_tolerance=0.05,
        warmup_limit_steps=50,
        confirm_rounds=6,
        confirm_alpha=0.025,
        invalid_share_limit=0.2,
        contention_limit=1.3,
        gate_alpha=0.001,
        memory_min_effect=0.02,
        memory_min_bytes=8 * 1024**2,
        memory_noninferiority=0.03,
        memory_margin=0.05,
        probe_steps=4,
        start_deadline_seconds=180.0,
        reply_deadline_seconds=120.0,
        seed=20260101,
        suspect_ratio=1.5,
        arms=4,
        lead_steps=1,
    )


def test_cuda_protocol_takes_the_other_devices_values(project):
    job = load(project, ["workload=reference_1b", "hypothesis=prenorm_fusion"])
    protocol = job.protocol
    assert (job.device, protocol.clock) == ("cuda", "wall")
    assert (protocol.looks, protocol.alpha_split) == ((3, 5, 8), (0.2, 0.3, 0.5))
    assert (protocol.pairs, protocol.block_steps, protocol.block_minimum_seconds) == (10, 2, 0.0)
    assert (protocol.min_effect, protocol.memory_min_effect, protocol.memory_min_bytes) == (0.01, 0.01, 0)
    assert (protocol.memory_noninferiority, protocol.warmup_minimum_steps) == (0.01, 10)
    assert (protocol.start_deadline_seconds, protocol.reply_deadline_seconds, protocol.confirm_rounds) == (900, 300, 4)


@pytest.mark.parametrize(("workload", "rounds"), [("reference_cpu", 3), ("reference_1b", 2)])
def test_quick_looks_once_and_never_decides(project, workload, rounds):
    protocol = load(project, ["protocol=quick", "hypothesis=prenorm_fusion", f"workload={workload}"]).protocol
    assert (protocol.name, protocol.decisive) == ("quick", False)
    assert (protocol.looks, protocol.alpha_split, protocol.beta_split) == ((rounds,), (1.0,), (1.0,))
    assert protocol.pairs == 12


def test_quick_null_keeps_the_nulls_ten_rounds_and_still_never_decides(project):
    protocol = load(project, ["protocol=quick"]).protocol
    assert (protocol.looks, protocol.decisive) == ((10,), False)


@pytest.mark.parametrize("workload", ["reference_cpu", "reference_1b"])
def test_typed_value_wins_over_the_devices_on_any_device(project, workload):
    assert load(project, [f"workload={workload}", "protocol.pairs=20"]).protocol.pairs == 20


def test_typed_value_wins_over_what_the_workload_and_the_hypothesis_declare(project):
    protocol = load(project, ["protocol.clock=wall", "protocol.looks=[6]", "hypothesis=aa_null"]).protocol
    assert (protocol.clock, protocol.looks) == ("wall", (6,))


def test_order_of_overrides_on_the_command_line_does_not_matter_for_groups(project):
    one = load(project, ["protocol.pairs=20", "protocol=quick", "hypothesis=prenorm_fusion"])
    other = load(project, ["hypothesis=prenorm_fusion", "protocol=quick", "protocol.pairs=20"])
    assert one.protocol == other.protocol
    assert one.protocol.pairs == 20


def test_protocol_survives_the_ledger(project):
    protocol = load(project, []).protocol
    assert from_json(Protocol, json.loads(json.dumps(to_json(protocol)))) == protocol


def test_references_in_a_hypothesis_are_resolved_to_the_workloads_compiled_kernel(project):
    hypothesis = load(project, ["hypothesis=prenorm_fusion", "workload=reference_1b"]).hypothesis
    assert hypothesis.edit.overrides == ("workload.ops.prenorm=triton",)
    assert hypothesis.predicted_evidence[0].counter == "op:kernels::prenorm_triton"
    assert (hypothesis.parity.kind, hypothesis.parity.bound, hypothesis.parity.factor) == ("rounding", 1e-4, 1.25)


def test_arm_is_the_root_with_the_edit_and_nothing_else(project):
    job = load(project, ["hypothesis=prenorm_fusion", "workload.seed=7"])
    control = job.arm("control", "root", [])
    treatment = job.arm("treatment", "root+prenorm_fusion", [(job.hypothesis.name, job.hypothesis.edit)])
    assert control.target == treatment.target == "models.workload.ReferenceWorkload"
    assert "_target_" not in control.config
    assert control.config["ops"]["prenorm"] == "reference"
    assert treatment.config["ops"]["prenorm"] == "cpu"
    assert control.config["seed"] == treatment.config["seed"] == 7
    differing = {key for key in control.config if control.config[key] != treatment.config[key]}
    assert differing == {"ops"}
    assert control.hash != treatment.hash


def test_changing_an_arms_config_does_not_change_the_next_arm(project):
    job = load(project, [])
    job.arm("control", "root", []).config["ops"]["prenorm"] = "broken"
    assert job.arm("control", "root", []).config["ops"]["prenorm"] == "reference"


def test_command_repeats_the_overrides_quoted_for_a_shell(project):
    job = load(project, ["hypothesis=prenorm_fusion", "hypothesis.claim='two words'"])
    assert job.command == """python -m campaign hypothesis=prenorm_fusion 'hypothesis.claim='"'"'two words'"'"''"""


def test_config_without_the_package_header_means_the_same(project, add):
    add(
        "hypothesis/plain.yaml",
        "claim: c\nmechanism: m\nacts_on: norm\nedit: {overrides: ['workload.ops.prenorm=cpu']}\n"
        "predicted_ratio: 1.2\nparity: {kind: bitwise}\n",
    )
    job = load(project, ["hypothesis=plain"])
    assert (job.hypothesis.name, job.hypothesis.predicted_ratio) == ("plain", 1.2)


def test_environment_numbers_are_written_as_text(project, add):
    add(
        "hypothesis/threads.yaml",
        "claim: c\nmechanism: m\nacts_on: norm\nedit: {environment: {OMP_NUM_THREADS: 2, MODE: fast}}\n"
        "predicted_ratio: 1.2\nparity: {kind: bitwise}\n",
    )
    job = load(project, ["hypothesis=threads"])
    assert job.hypothesis.edit == Edit((), {"OMP_NUM_THREADS": "2", "MODE": "fast"})
    treatment = job.arm("treatment", "root+threads", [(job.hypothesis.name, job.hypothesis.edit)])
    assert treatment.environment == {"OMP_NUM_THREADS": "2", "MODE": "fast"}
    assert treatment.config == job.arm("control", "root", []).config


def test_cpu_time_may_not_decide_for_several_threads_or_a_gpu(project):
    with pytest.raises(BadInput, match="2 threads") as caught:
        load(project, ["workload.threads=2"])
    assert caught.value.remedy == "protocol.clock=wall"
    with pytest.raises(BadInput, match="device cuda"):
        load(project, ["workload=reference_1b", "protocol.clock=cpu"])
    assert load(project, ["workload.threads=2", "protocol.clock=wall"]).protocol.clock == "wall"


@pytest.mark.parametrize(
    "acts_on", ["gemm", "gemm_fp8", "dispatch", "nothing", "kernel:recurrent_.*<256>", "tokenizer"]
)
def test_an_edit_acts_on_a_family_a_group_a_kernel_or_a_family_of_the_projects_own(
    project, add, add_hypothesis, acts_on
):
    add("diagnosis.yaml", "families: [{family: tokenizer, pattern: '^tok_'}]\n")
    path = add_hypothesis("x", "workload.seed=3")
    path.write_text(path.read_text().replace("acts_on: norm", f"acts_on: '{acts_on}'"))
    assert load(project, ["hypothesis=x"]).hypothesis.acts_on == acts_on
