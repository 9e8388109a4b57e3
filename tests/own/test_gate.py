"""Who may stand at a gate, what a loop may do with its batches there, and what happens while it waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from campaign.callbacks.stepping import Stepping
from campaign.copies import Checkout, foreign_programs
from campaign.errors import TrialFailed
from campaign.executor.process import TrialProcess, build_request
from campaign.launch.script import PORTS, _port
from campaign.records import Arm
from tests.own.conftest import LOOP, alive, ask, loss_of_step

STRANGER = """
import os, subprocess, sys, time
address = os.environ.get("CAMPAIGN_GATE", "")
import campaign
for n, batch in enumerate(campaign.steps([1])):
    if n == 3:
        subprocess.Popen([sys.executable, "train.py"], env={**os.environ, "CAMPAIGN_GATE": address})
    time.sleep(0.01)
"""


def test_a_process_that_comes_to_the_gate_later_is_refused_with_its_pid(trial):
    process = trial(STRANGER)
    with pytest.raises(TrialFailed, match=r"another process \(pid \d+\) came to the gate as rank 0 of 1") as failed:
        for _ in range(300):
            ask(process, "block", steps=20)
    assert failed.value.reason == "garbage"


def test_a_forked_child_passes_every_gate_and_tells_nothing(trial):
    child = (
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        with campaign.step(tokens=9): campaign.record(loss=9.0)\n"
        "        os._exit(7)\n"
        "    print('child', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)\n"
    )
    process = trial(f"import os\n{LOOP}\nfor batch in campaign.steps([1.0], tokens=2):\n{child}    train(batch)\n")
    block = ask(process, "block", steps=3)
    assert (block["tokens"], block["loss"]) == (3 * 2, pytest.approx(loss_of_step(3)))
    assert process.log.read_text().count("child 7") == 3


def test_a_loop_may_ask_its_loader_for_what_it_has_and_take_batches_by_hand(trial):
    script = (
        f"{LOOP}\nclass Loader(list):\n    dataset = 'tokens'\n"
        "batches = campaign.steps(Loader([1.0, 1.0]))\n"
        "assert len(batches) == 2 and batches and batches.dataset == 'tokens'\n"
        "while True: train(next(batches))\n"
    )
    assert ask(trial(script), "block", steps=3)["loss"] == pytest.approx(loss_of_step(3))


def test_tokens_may_be_counted_in_a_tensor(trial):
    pytest.importorskip("torch")
    script = "import campaign, torch\nfor b in campaign.steps([3, 4], tokens=lambda b: torch.tensor(b)): pass\n"
    assert ask(trial(script), "block", steps=4)["tokens"] == 14


def test_what_a_signal_raises_while_the_script_waits_ends_the_trial(trial):
    script = (
        "import campaign, signal\ndef late(*_): raise TimeoutError('the alarm')\n"
        "signal.signal(signal.SIGALRM, late)\nsignal.setitimer(signal.ITIMER_REAL, 1.5)\n"
        "for batch in campaign.steps([1]): pass\n"
    )
    process = trial(script)
    time.sleep(2.0)
    with pytest.raises(TrialFailed) as failed:
        ask(process, "block", steps=1)
    assert failed.value.reason in ("crashed", "killed")
    said = process.log.read_text()
    assert "raised while the script waited for its turn" in said and "the alarm" in said


def test_a_script_that_closed_its_output_ends_as_others_do(trial):
    process = trial("import campaign, sys\nsys.stdout.close()\nfor batch in campaign.steps([1]): pass\n")
    ask(process, "block", steps=1)
    ask(process, "exit")
    assert process._process.wait(10) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["terminated", "killed"])
def test_the_script_goes_with_its_trial_however_that_ends(trial, tmp_path, number):
    mark = f"--of={tmp_path}"
    process = trial("import campaign\nfor batch in campaign.steps([1]): pass\n", command=f"python train.py {mark}")
    ask(process, "block", steps=1)
    assert len(alive(mark)) == 1
    os.kill(process.pid, number)
    until = time.monotonic() + 30
    while alive(mark) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(mark)


def test_a_watched_command_that_runs_the_users_own_file_is_told_from_the_worktrees(tmp_path):
    own, tree = tmp_path / "own", tmp_path / "tree"
    for folder in (own, tree):
        folder.mkdir()
        (folder / "train.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(600)\n")
    question = Checkout(tree, tree, own, own / "runs", (), ()).question()
    commands = {"its own": "train.py", "the user's": str(own / "train.py")}
    found = {}
    for name, script in commands.items():
        with subprocess.Popen([sys.executable, script], cwd=tree, stdout=subprocess.PIPE) as running:
            assert running.stdout and running.stdout.readline() == b"up\n"
            found[name] = foreign_programs(question, [str(running.pid)])
            running.kill()
    assert found == {"its own": [], "the user's": [str(own / "train.py")]}


def test_what_is_recorded_in_several_calls_of_one_step_is_put_together_and_the_model_before_all(trial):
    script = (
        "import campaign, itertools, torch\nmodel = torch.nn.Linear(2, 1)\ncampaign.record(model=model)\n"
        "for n, batch in enumerate(campaign.steps([1]), 1):\n"
        "    model(torch.ones(1, 2)).sum().backward()\n"
        "    campaign.record(loss=n)\n    campaign.record(gradient_norm=10 * n)\n"
    )
    process = trial(script)
    block = ask(process, "block", steps=3)
    assert (block["loss"], block["gradient_norm"]) == (3.0, 30.0)
    found = ask(process, "probe", steps=2, gradients=str(process.log.parent / "gradients.npz"))
    assert found["losses"] == [4.0, 5.0] and found["facts"]["parameters"] == 3


def test_a_step_that_records_nothing_does_not_tell_an_earlier_ones_loss(trial):
    script = (
        "import campaign\nfor n, _ in enumerate(campaign.steps([1]), 1):\n    if n % 3 == 0: campaign.record(loss=n)\n"
    )
    process = trial(script)
    assert [ask(process, "block", steps=1)["loss"] for _ in range(7)] == [None, None, 3.0, None, None, 6.0, None]


def test_an_edit_of_the_import_path_reaches_the_trial_and_a_variable_that_is_null_is_not_set(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "beside.py").write_text("")
    script = "import beside, campaign, os\nassert 'N' not in os.environ\nfor batch in campaign.steps([1]): pass\n"
    (tmp_path / "train.py").write_text(script)
    node = {"name": "own", "device": "cpu", "command": "python train.py", "environment": {"N": None}}
    arm = Arm("treatment", "x", "campaign.launch.Script", node, {"PYTHONPATH": str(tmp_path / "lib")})
    with TrialProcess(arm, tmp_path / "trial.log") as process:
        ask(process, "build", **build_request(arm, tmp_path, "", {}))
        assert ask(process, "block", steps=2)["steps"] == 2


def test_a_port_that_the_person_says_stands(monkeypatch):
    for name in PORTS:
        monkeypatch.delenv(name, raising=False)
    assert set(_port({})) == set(PORTS)
    assert set(_port({"MASTER_PORT": "29501"})) == {"PET_MASTER_PORT"}
    monkeypatch.setenv("PET_MASTER_PORT", "29502")
    assert set(_port({})) == {"MASTER_PORT"}


class _OfADevice:
    """A count that must not be read while a clock runs."""

    def __radd__(self, other):
        return self

    def __bool__(self):
        raise AssertionError("it was waited for")

    __gt__ = __lt__ = __int__ = lambda self, other=0: self.__bool__()


def test_a_count_of_tokens_on_a_device_is_not_read_by_a_callback(monkeypatch):
    told = []
    gate = SimpleNamespace(arrive=lambda: None, count=told.append, record=lambda *_: None)
    monkeypatch.setattr("campaign.callbacks.stepping.entered", lambda: gate)
    count = _OfADevice()
    stepping = Stepping(lambda batch: count)
    stepping.begin()
    stepping.add([1], None)
    stepping.end(None)
    assert told == [count]
