"""Trials really started, and really failing in each way that a trial can fail."""

from __future__ import annotations

import contextlib
import json
import os

import pytest

from campaign.executor import TrialProcess, run_probe, run_round
from campaign.executor.rounds import RoundRequest
from campaign.records import ParityClaim, Surroundings
from tests.builders import PROJECT, arm, hypothesis, plan, protocol


@contextlib.contextmanager
def unwatched(pids):
    yield Surroundings


def one_round(tmp_path, the_plan, order=("control", "treatment", "treatment", "control"), together=True, leads=()):
    arms = [arm for arm in (the_plan.control, the_plan.treatment) if arm.role in order]
    request = RoundRequest(
        id="round-1",
        stage="screen",
        index=0,
        arms=arms,
        order=order,
        code="c0de",
        root=PROJECT,
        logs=tmp_path,
        inflight=tmp_path / "inflight.jsonl",
        watch=unwatched,
        after_block=lambda done, of: None,
        together=together,
        leads=leads,
    )
    return run_round(the_plan, request)


def statuses(measured):
    return {trial.arm: trial.status for trial in measured.trials}


def test_a_round_times_each_block_in_the_declared_order_and_keeps_it_on_disk(tmp_path):
    measured = one_round(tmp_path, plan())
    assert statuses(measured) == {"control": "ok", "treatment": "ok"}
    assert [block.arm for block in measured.blocks] == ["control", "treatment", "treatment", "control"]
    assert [block.pair for block in measured.blocks] == [0, 0, 1, 1]
    assert all(block.tokens == 64 and block.wall_seconds > 0 for block in measured.blocks)
    rows = [json.loads(line) for line in (tmp_path / "inflight.jsonl").read_text().splitlines()]
    assert [row["wall_seconds"] for row in rows] == [block.wall_seconds for block in measured.blocks]


def test_steps_before_a_block_are_timed_apart_and_are_the_same_number_in_both_arms(tmp_path):
    plain = one_round(tmp_path, plan())
    led = one_round(tmp_path, plan(), leads=(2, 1))
    assert [(block.pair, block.lead_steps) for block in led.blocks] == [(0, 2), (0, 2), (1, 1), (1, 1)]
    assert all(block.steps == 1 and block.tokens == 64 for block in led.blocks)
    for block in led.blocks:
        assert block.lead_wall_seconds > 0 and block.turn_seconds > block.lead_wall_seconds + block.wall_seconds
        # Only the hand-over is left between the blocks: the steps before one are nobody's background work.
        assert block.idle_cpu_seconds < 0.05
    assert {block.lead_steps for block in plain.blocks} == {0}
    # Three steps more than without leads, of a training whose loss falls: the last timed step is later in it.
    assert led.trial("control").loss < plain.trial("control").loss


def test_a_timed_trial_repeats_the_probes_first_step_after_a_restart(tmp_path):
    the_plan = plan()
    measured = one_round(tmp_path, the_plan)
    probes, _ = run_probe(the_plan, PROJECT, tmp_path, lambda text: None)
    for role in ("control", "treatment"):
        trial, probed = measured.trial(role), probes[role]
        assert trial.restart_sha256 == probed.gradients_sha256 != ""
        assert (trial.restart_loss, trial.restart_gradient_norm) == (probed.losses[0], probed.gradient_norms[0])


def test_the_last_timed_step_is_read_before_any_other_step_is_taken(tmp_path):
    measured = one_round(tmp_path, plan())
    for role in ("control", "treatment"):
        last = [block for block in measured.blocks if block.arm == role][-1]
        trial = measured.trial(role)
        assert (trial.loss, trial.gradient_norm) == (last.loss, last.gradient_norm)
        assert trial.weighed_loss > trial.loss, "memory is measured a few steps after the restart"
        assert trial.unmoved == ()
    losses = [block.loss for block in measured.blocks if block.arm == "control"]
    assert losses[1] < losses[0]
    assert all(block.turn_seconds > block.wall_seconds and block.idle_cpu_seconds >= 0 for block in measured.blocks)


def test_a_planted_sleep_is_seen_on_the_wall_clock(tmp_path):
    slow = plan(treatment=arm("treatment", sleep=0.05))
    measured = one_round(tmp_path, slow)
    seconds = {role: min(b.wall_seconds for b in measured.blocks if b.arm == role) for role in ("control", "treatment")}
    assert seconds["treatment"] - seconds["control"] > 0.04


def test_memory_of_the_step_is_counted_to_the_byte_beside_what_was_alive(tmp_path):
    held = 1 << 20
    light, heavy = arm("control", tensors=True), arm("treatment", tensors=True, ballast=held)
    measured = one_round(tmp_path, plan(light, heavy))
    control, treatment = (measured.trial(role).memory.live_peak_bytes for role in ("control", "treatment"))
    assert treatment - control == 4 * held


@pytest.mark.parametrize(
    ("fault", "status", "says"),
    [
        ("raise", "crashed", "ValueError: the step was told to fail"),
        ("memory", "out_of_memory", "more than there is"),
        ("allocate", "out_of_memory", "allocate"),
        ("kill", "killed", "SIGKILL"),
        ("exit", "crashed", "exited with 7"),
        ("garbage", "garbage", "not json"),
        ("unavailable", "unavailable", "a device that no machine has"),
    ],
)
def test_a_failing_trial_is_recorded_with_its_kind_and_its_log(tmp_path, fault, status, says):
    measured = one_round(tmp_path, plan(treatment=arm("treatment", fault=fault, fault_step=3)), ["treatment"] * 2)
    assert statuses(measured) == {"treatment": status}
    failed = measured.trial("treatment")
    assert says in failed.message
    assert failed.log.startswith(str(tmp_path))


def test_the_arm_beside_a_failing_one_is_recorded_as_interrupted(tmp_path):
    measured = one_round(tmp_path, plan(treatment=arm("treatment", fault="raise", fault_step=3)))
    assert statuses(measured) == {"control": "interrupted", "treatment": "crashed"}
    assert measured.trial("control").message == "ended because treatment failed"


def test_a_hanging_trial_meets_its_deadline(tmp_path):
    hanging = plan(
        treatment=arm("treatment", fault="hang", fault_step=3), protocol=protocol(reply_deadline_seconds=2.0)
    )
    measured = one_round(tmp_path, hanging, ["treatment"])
    assert measured.trial("treatment").status == "hung"
    assert "within 2 s" in measured.trial("treatment").message


def test_a_trial_that_closes_its_answers_and_lives_on_is_hung(tmp_path, monkeypatch):
    monkeypatch.setattr("campaign.executor.process.BURIAL_SECONDS", 1.0)
    measured = one_round(tmp_path, plan(treatment=arm("treatment", fault="deaf", fault_step=3)), ["treatment"])
    assert measured.trial("treatment").status == "hung"
    assert "closed its answers" in measured.trial("treatment").message


def test_a_loss_that_is_not_a_number_is_garbage(tmp_path):
    measured = one_round(tmp_path, plan(treatment=arm("treatment", fault="nan", fault_step=3)), ["treatment"])
    assert measured.trial("treatment").status == "garbage"
    assert "loss is nan" in measured.trial("treatment").message


def test_chatter_on_standard_output_goes_to_the_log_and_harms_nothing(tmp_path):
    measured = one_round(tmp_path, plan(treatment=arm("treatment", fault="chatter", fault_step=3)), ["treatment"])
    assert statuses(measured) == {"treatment": "ok"}
    assert "}{ not json" in (tmp_path / "round-1-treatment.log").read_text()


def test_leaving_the_block_kills_the_trial_and_its_children(tmp_path):
    with TrialProcess(arm("control"), tmp_path / "log") as process:
        pid = process.pid
        assert os.path.exists(f"/proc/{pid}")
    with pytest.raises(ProcessLookupError):
        os.killpg(pid, 0)


def test_the_probe_counts_operators_and_compares_gradients_to_the_bit(tmp_path):
    light = plan(arm("control", tensors=True), arm("treatment", tensors=True, work=5))
    probes, files = run_probe(light, PROJECT, tmp_path, lambda text: None)
    assert set(probes) == set(files) == {"control", "treatment"}
    assert probes["control"].counters["op:aten::mul"] == 20 + 1 + 1
    assert probes["treatment"].counters["op:aten::mul"] == 5 + 1 + 1
    assert probes["control"].gradients_sha256 == probes["treatment"].gradients_sha256
    assert len(probes["control"].losses) == 3


def test_a_rounding_claim_probes_the_reference_and_the_exact_treatment(tmp_path):
    claim = plan(hypothesis=hypothesis(parity=ParityClaim("rounding")))
    probes, files = run_probe(claim, PROJECT, tmp_path, lambda text: None)
    assert set(files) == {"control", "treatment", "reference", "exact"}
    assert all(probe.status == "ok" for probe in probes.values())


def test_a_failing_probe_stops_before_the_later_arms(tmp_path):
    broken = plan(treatment=arm("treatment", fault="raise"), hypothesis=hypothesis(parity=ParityClaim("rounding")))
    probes, _ = run_probe(broken, PROJECT, tmp_path, lambda text: None)
    assert set(probes) == {"control", "treatment"}
    assert probes["treatment"].status == "crashed"


def test_arms_that_do_not_fit_together_run_whole_one_after_another(tmp_path):
    alone = plan(control=arm("control", alone=True), treatment=arm("treatment", alone=True, work=5))
    assert "out_of_memory" in statuses(one_round(tmp_path, alone)).values()
    measured = one_round(tmp_path, alone, together=False)
    assert statuses(measured) == {"control": "ok", "treatment": "ok"}
    assert [block.arm for block in measured.blocks] == ["control", "control", "treatment", "treatment"]
    assert [(block.position, block.pair) for block in measured.blocks] == [(0, 0), (3, 1), (1, 0), (2, 1)]
    assert not measured.together
