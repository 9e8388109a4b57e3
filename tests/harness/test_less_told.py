"""Workloads that tell no gradients, no norms or no losses, from the probe to the pages."""

from __future__ import annotations

import csv
import io
import json

import numpy
import pytest

from campaign.cli import main
from campaign.parity import measure
from campaign.probe import probe_workload, restarted_step, unmoved_parameters
from campaign.records import ArmProbe, ParityClaim
from campaign.timing import timed_block
from campaign.tracking.state import mirror_state
from campaign.worker import Worker, answer

LOSS = ParityClaim("loss", bound=0.02)
QUIET = """
from tiny import Tiny


class Quiet:
    low_precision = "unknown"

    def __init__(self, *, tells=True, **config):
        self.tiny, self.tells = Tiny(**config), tells
        self.device, self.tokens_per_step = self.tiny.device, self.tiny.tokens_per_step
        self.step, self.synchronize, self.facts = self.tiny.step, self.tiny.synchronize, self.tiny.facts

    def last_step(self):
        return {"loss": self.tiny.loss if self.tells else None, "gradient_norm": None}

    def gradients(self):
        return {}

    def close(self):
        pass
"""
SMALL = ["protocol=own", "protocol.decisive=false", "protocol.probe_steps=3", "protocol.looks=[2]", "protocol.pairs=4"]


class Silent:
    """A step that tells nothing at all."""

    device, low_precision, tokens_per_step = "cpu", "unknown", 1

    def step(self):
        self.loss = None

    def synchronize(self):
        pass

    def last_step(self):
        return {"loss": None}

    def gradients(self):
        return {}

    def facts(self):
        return {}


def test_what_is_not_told_is_left_out_of_the_probe_and_is_none_in_the_block(tmp_path):
    workload = Silent()
    reply = probe_workload(workload, 3, tmp_path / "g.npz")
    assert (reply["losses"], reply["gradient_norms"]) == ([], [])
    block = timed_block(workload, 2)
    assert (block["loss"], block["gradient_norm"]) == (None, None)
    assert restarted_step(workload) == {"loss": None, "gradient_norm": None, "gradients_sha256": ""}
    assert unmoved_parameters(workload) == []
    told = dict(losses=(), gradient_norms=(), gradients_sha256=reply["gradients_sha256"])
    probes = {role: ArmProbe(role, "ok", **told) for role in ("control", "treatment")}
    found = measure(probes, {role: tmp_path / "g.npz" for role in probes}, LOSS)
    assert found.untold == ("loss", "gradient norm", "gradients")
    assert (found.bitwise, found.loss_difference, found.gradient_distance) == (False, None, None)


def arms(control, treatment):
    made = {"control": control, "treatment": treatment}
    return {role: ArmProbe(role, "ok", **fields) for role, fields in made.items()}


def save(path, **arrays):
    with path.open("wb") as file:
        numpy.savez(file, **arrays)
    return path


def test_without_a_reference_treatment_is_compared_with_control_step_by_step(tmp_path):
    probes = arms(
        {"losses": (4.0, 2.0), "gradient_norms": (1.0, 1.0), "gradients_sha256": "a"},
        {"losses": (4.0, 2.05), "gradient_norms": (1.0, 0.75), "gradients_sha256": "b"},
    )
    files = {
        "control": save(tmp_path / "c", w=numpy.array([3.0, 4.0])),
        "treatment": save(tmp_path / "t", w=numpy.array([3.0, 4.5])),
    }
    found = measure(probes, files, LOSS)
    assert found.loss_apart == pytest.approx((0.0, 0.025)) and found.norm_apart == pytest.approx((0.0, 0.25))
    assert found.gradient_distance == pytest.approx(0.5 / 5)
    assert (found.untold, found.unlike, found.control_distance) == ((), (), None)


def test_what_one_arm_tells_and_the_other_does_not_is_named(tmp_path):
    control = {"losses": (4.0, 2.0), "gradient_norms": (1.0,), "gradients_sha256": "a"}
    found = measure(arms(control, {"losses": (4.0,)}), {}, LOSS)
    assert found.unlike == (
        "treatment tells the loss of 1 probed steps, control of 2",
        "treatment tells the gradient norm of 0 probed steps, control of 1",
        "control tells its gradients, treatment does not",
    )
    assert (found.loss_apart, found.norm_apart, found.untold, found.bitwise) == ((), (), (), False)


def test_a_parameter_of_another_size_has_no_distance_and_is_named(tmp_path):
    probes = arms({"losses": (1.0,), "gradients_sha256": "a"}, {"losses": (1.0,), "gradients_sha256": "b"})
    files = {
        "control": save(tmp_path / "c", w=numpy.ones(2), same=numpy.ones(1)),
        "treatment": save(tmp_path / "t", w=numpy.ones(3), same=numpy.ones(1)),
    }
    found = measure(probes, files, LOSS)
    assert (found.gradient_distance, found.message) == (None, "the arms train different parameters: w")


def test_a_workload_without_a_reference_says_what_to_claim_instead(tmp_path):
    (tmp_path / "bare.py").write_text("class Bare:\n    pass\n")
    request = {"command": "build", "root": str(tmp_path), "target": "bare.Bare", "config": {}, "variant": "reference"}
    reply = answer(Worker(), {**request, "excluded": [], "probing": True})
    assert (reply["ok"], reply["kind"]) == (False, "crashed")
    assert "Bare has no `reference`" in reply["message"] and "parity.kind=loss" in reply["remedy"]


@pytest.fixture
def quiet(project):
    """The project with a workload that tells its losses alone, or nothing."""
    (project / "quiet.py").write_text(QUIET)
    tiny = (project / "conf" / "workload" / "tiny.yaml").read_text()
    assert "_target_: tiny.Tiny" in tiny
    told = tiny.replace("_target_: tiny.Tiny", "_target_: quiet.Quiet\n  tells: true")
    (project / "conf" / "workload" / "quiet.yaml").write_text(told)
    return project


def run(capsys, *words):
    capsys.readouterr()
    main([*words, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert "decision" in answer, answer
    return answer["decision"]


@pytest.mark.slow
def test_losses_alone_decide_parity_and_every_view_says_what_nobody_looked_at(quiet, capsys):
    words = ["workload=quiet", "hypothesis=half_sleep", "hypothesis.parity.kind=loss", *SMALL, "tracking=mlflow"]
    found = run(capsys, *words)
    assert found["verdict"]["reason"] in ("promising", "not_promising"), found["verdict"]
    assert found["parity"].startswith("loss: ok; equal to the bit")
    said = "gradient norms and gradients were not looked at: the workload does not tell them"
    assert said in found["parity"] and said in found["verdict"]["warnings"]
    assert any("no restart()" in one for one in found["verdict"]["warnings"])
    for view in ("ledger", "show"):
        assert main([view, *([found["id"]] if view == "show" else [])]) == 0
        assert "None" not in capsys.readouterr().out
    main(["ledger", "--export", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["parity"] for row in rows] == [found["parity"]]
    main(["ledger", "--export", "html"])
    assert said in capsys.readouterr().out
    assert main(["ledger", "--check"]) == 0
    assert mirror_state(quiet, "default", [found["id"]])[1] == 0, "MLflow has it too"


def test_a_workload_that_tells_nothing_is_invalid_with_the_remedy_and_its_null_still_gives_a_floor(quiet, capsys):
    words = ["workload=quiet", "workload.tells=false", *SMALL, "tracking=none"]
    found = run(capsys, *words, "hypothesis=half_sleep", "hypothesis.parity.kind=loss")
    assert (found["verdict"]["verdict"], found["verdict"]["reason"]) == ("invalid", "parity")
    assert "campaign.record(loss=loss)" in found["verdict"]["remedy"]
    found = run(capsys, *words, "protocol.decisive=true")
    assert found["verdict"]["reason"] in ("floor", "biased")
    assert any(one.startswith("losses, gradient norms and gradients") for one in found["verdict"]["warnings"])


TRAIN = """
import argparse, itertools, time

words = argparse.ArgumentParser()
words.add_argument("--wait", type=float)
wait = words.parse_args().wait
for step in itertools.count(1):
    time.sleep(wait)
    print(f"step {step} loss {2 + 1 / step:.6f}", flush=True)
"""
WATCHED = """# @package _global_
workload:
  _target_: campaign.launch.Command
  name: watched
  device: cpu
  command: python train.py
  flags: {wait: 0.02}
  steps: {from: output, pattern: 'step (?P<step>\\d+) loss (?P<loss>[\\d.]+)'}
  tokens: 0
protocol: {looks: [2], alpha_split: [1.0], beta_split: [1.0], confirm_rounds: 2, pairs: 4, block_minimum_seconds: 0.0,
  warmup_minimum_steps: 2, warmup_window_steps: 2, warmup_tolerance: 10.0, steal_limit: 1.0, gate_alpha: 1.0e-30}
"""


@pytest.fixture
def watched(project):
    """The project with a training script that is only watched, and an edit of one of its flags."""
    (project / "train.py").write_text(TRAIN)
    (project / "conf" / "workload" / "watched.yaml").write_text(WATCHED)
    edit = (project / "conf" / "hypothesis" / "half_sleep.yaml").read_text()
    assert "workload.sleep=0.01" in edit and "kind: bitwise" in edit
    edit = edit.replace("half_sleep", "half_wait").replace("workload.sleep=0.01", "workload.flags.wait=0.01")
    (project / "conf" / "hypothesis" / "half_wait.yaml").write_text(edit.replace("kind: bitwise", "kind: loss"))
    return project


@pytest.mark.slow
def test_a_watched_command_is_decided_and_its_verdict_names_the_weaker_protocol_and_its_floor(watched, capsys):
    words = ["workload=watched", "hypothesis=half_wait", "protocol=own", "protocol.decisive=false", "tracking=none"]
    found = run(capsys, *words, "protocol.probe_steps=3")
    assert found["verdict"]["reason"] == "promising", found["verdict"]
    weaker = next(one for one in found["verdict"]["warnings"] if one.startswith("the weaker protocol"))
    assert "its floor here: rounds scatter by" in weaker and "2 rounds of them resolve" in weaker
    assert found["parity"].startswith("loss: ok; equal to the bit")
    main(["ledger", "--export", "md"])
    page = capsys.readouterr().out
    assert "the weaker protocol" in page and "Drift of the machine cancelled block by block" in page
    assert main(["ledger", "--check"]) == 0
