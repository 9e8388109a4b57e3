"""A loop of two lines: nothing outside a trial, whole steps inside one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

import campaign
from campaign.errors import TrialFailed
from tests.own.conftest import LOOP, alive, ask, loss_of_step

STEPS = LOOP + "for batch in campaign.steps([1.0, 1.0, 1.0], tokens=7):\n    train(batch)\n"
CONTEXT = LOOP + "while True:\n    with campaign.step(tokens=7):\n        train(1.0)\n"


def test_outside_a_trial_the_loader_comes_back_untouched():
    loader = [1, 2, 3]
    assert campaign.steps(loader, tokens=8) is loader
    iterator = iter(loader)
    assert campaign.steps(iterator, tokens=lambda batch: 1 / 0) is iterator


def test_outside_a_trial_a_step_is_one_and_the_same_context_and_what_is_recorded_is_let_go():
    assert campaign.step(tokens=1) is campaign.step(tokens=2)
    with campaign.step(tokens=8):
        campaign.record(loss=object())


def test_a_script_outside_a_trial_imports_neither_torch_nor_greenlet(tmp_path):
    (tmp_path / "train.py").write_text(
        STEPS + "print(len(losses), 'torch' in sys.modules, 'greenlet' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "3 False False\n"


@pytest.mark.parametrize("script", [STEPS, CONTEXT], ids=["steps", "step"])
def test_a_block_is_whole_steps_with_the_loss_of_the_last(trial, script):
    process = trial(script)
    first = ask(process, "block", steps=1)
    assert (first["steps"], first["tokens"], first["loss"]) == (1, 7, loss_of_step(1))
    block = ask(process, "block", steps=4, lead=2)
    assert (block["steps"], block["tokens"], block["lead_steps"]) == (4, 28, 2)
    assert block["loss"] == pytest.approx(loss_of_step(7))
    assert block["gradient_norm"] is None
    assert 0 < block["wall_seconds"] < 60


def test_the_probe_sees_the_losses_of_the_first_steps(trial):
    process = trial(STEPS)
    found = ask(process, "probe", steps=3, gradients=str(process.log.parent / "gradients.npz"))
    assert found["losses"] == pytest.approx([loss_of_step(1), loss_of_step(2), loss_of_step(3)])
    assert found["gradient_norms"] == []


def test_a_loop_that_records_nothing_tells_no_loss(trial):
    process = trial("import campaign\nfor batch in campaign.steps([1]): pass\n")
    assert ask(process, "block", steps=2)["loss"] is None
    assert ask(process, "memory")["loss"] is None


def test_batches_that_end_are_begun_again_within_their_step(trial):
    process = trial("import campaign\nfor batch in campaign.steps([1, 2, 3], tokens=lambda b: b): pass\n")
    assert [ask(process, "block", steps=1)["tokens"] for _ in range(7)] == [1, 2, 3, 1, 2, 3, 1]


def test_batches_that_cannot_be_begun_again_are_told_with_the_rule(trial):
    process = trial("import campaign\nfor batch in campaign.steps(iter([1, 2])): pass\n")
    with pytest.raises(TrialFailed, match="ended during 'block'; the command exited with 1") as failed:
        ask(process, "block", steps=5)
    assert failed.value.reason == "crashed"
    assert "cannot be begun again; give it a loader" in process.log.read_text()


def test_a_script_that_ends_by_itself_is_told_how_far_it_came(trial):
    process = trial(LOOP + "for step in range(5):\n    with campaign.step(): train(1.0)\n")
    with pytest.raises(TrialFailed, match="came to its end after 4 steps") as failed:
        ask(process, "block", steps=100)
    assert "raise its own limit of steps or epochs" in failed.value.remedy


def test_a_script_that_never_begins_a_step_is_told_so(trial):
    with pytest.raises(TrialFailed, match=r"never came to campaign\.steps"):
        trial("print('no loop at all')\n")


def test_what_a_script_raises_ends_the_trial_with_its_words_in_the_log(trial):
    process = trial(LOOP + "for b in campaign.steps([1.0]):\n    train(b)\n    if len(losses) == 3: 1 / 0\n")
    with pytest.raises(TrialFailed, match="exited with 1"):
        ask(process, "block", steps=10)
    assert "ZeroDivisionError" in process.log.read_text()


def test_a_loss_that_is_not_finite_ends_the_trial(trial):
    process = trial("import campaign\nfor b in campaign.steps([1]):\n    campaign.record(loss=float('nan'))\n")
    with pytest.raises(TrialFailed, match="loss is nan") as failed:
        ask(process, "block", steps=1)
    assert failed.value.reason == "garbage"


def test_a_step_on_another_thread_is_refused(trial):
    script = (
        "import campaign, threading\n"
        "with campaign.step(): pass\n"
        "def other():\n    with campaign.step(): pass\n"
        "thread = threading.Thread(target=other); thread.start(); thread.join()\n"
    )
    process = trial(script)
    with pytest.raises(TrialFailed, match="came to its end"):
        ask(process, "block", steps=1)
    assert "must begin on one thread" in process.log.read_text()


def test_the_loaders_workers_wait_while_it_is_the_other_arms_turn(trial):
    # A child that counts as fast as it can, each number in one write: between two commands it must stand still.
    counting = "import itertools, os\nfile = os.open('count', os.O_CREAT | os.O_WRONLY)\n"
    counting += "for n in itertools.count(): os.pwrite(file, b'%012d' % n, 0)"
    script = (
        "import campaign, subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {counting!r}])\n"
        "while not os.path.exists('count') or not open('count').read(): time.sleep(0.01)\n"
        "for batch in campaign.steps([1]): time.sleep(0.1)\n"
    )
    process = trial("import os\n" + script)
    count = process.log.parent / "count"
    ask(process, "block", steps=2)
    time.sleep(0.1)
    before = count.read_text()
    time.sleep(0.3)
    assert count.read_text() == before
    ask(process, "block", steps=2)
    assert int(count.read_text()) > int(before)


def test_the_gate_is_no_business_of_the_scripts_children(trial):
    script = (
        "import campaign, subprocess, sys\n"
        "for n, batch in enumerate(campaign.steps([1] * 3)):\n"
        "    inner = 'import campaign; print(campaign.steps([]) == [])'\n"
        "    print(subprocess.run([sys.executable, '-c', inner], capture_output=True, text=True).stdout, flush=True)\n"
    )
    process = trial(script)
    ask(process, "block", steps=1)
    assert "True" in process.log.read_text()


def test_leaving_the_trial_ends_the_script_before_what_comes_after_its_loop(trial):
    process = trial(STEPS + "open('after', 'w')\n")
    ask(process, "block", steps=1)
    ask(process, "exit")
    assert process._process.wait(10) == 0
    assert not (process.log.parent / "after").exists()


def test_a_killed_trial_leaves_nothing_in_the_temporary_folder(trial, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    process = trial(STEPS)
    process.kill()
    assert list((tmp_path / "tmp").iterdir()) == []
    with pytest.raises(TrialFailed):
        trial("1 / 0\n")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_worker_of_the_loader_that_is_paused_does_not_outlive_the_trial(trial, tmp_path):
    mark = str(tmp_path / "sleeper")
    sleeper = f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', {mark!r}])"
    process = trial(f"import campaign, subprocess, sys\n{sleeper}\nfor batch in campaign.steps([1]): pass\n")
    ask(process, "block", steps=1)
    assert len(alive(mark)) == 1
    os.kill(process.pid, signal.SIGKILL)  # the campaign is gone, and with it the trial's own process
    until = time.monotonic() + 30
    while alive(mark) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(mark)
