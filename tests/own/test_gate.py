"""Who may stand at a gate, what a loop may do with its batches there, and what happens while it waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from campaign.copies import Checkout, foreign_programs
from campaign.errors import TrialFailed
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
