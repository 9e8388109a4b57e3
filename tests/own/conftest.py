"""Training scripts of a person's own, and a trial's process that runs one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from campaign.executor.process import TrialProcess, build_request
from campaign.records import Arm

SECONDS = 60.0

# Plain gradient descent on a fixed vector, in python: its losses are known, and it starts at once.
LOOP = """
import sys
import campaign

weight, losses = 1.0, []
def train(batch):
    global weight
    loss = weight * weight * batch
    weight -= 0.1 * 2 * weight
    losses.append(loss)
    campaign.record(loss=loss)
"""


def loss_of_step(step: int) -> float:
    """What `LOOP` computes at a 1-based step on batches of 1.0: the weight shrinks by a factor of 0.8 each step."""
    return 0.8 ** (2 * (step - 1))


@pytest.fixture
def trial(tmp_path):
    """Starts a trial of a workload node, built, with its script in the project's folder; ended at the test's end."""
    open_ = []

    def start(script: str = "", *, target: str = "campaign.launch.Script", build: bool = True, **node):
        (tmp_path / "train.py").write_text(script)
        config = {"name": "own", "device": "cpu", "command": "python train.py", **node}
        process = TrialProcess(Arm("control", "root", target, config), tmp_path / "trial.log")
        open_.append(process)
        process.__enter__()
        if build:
            process.built = ask(process, "build", **build_request(process.arm, tmp_path, "", {}))
        return process

    yield start
    for process in open_:
        process.__exit__(None, None, None)


def ask(process: TrialProcess, command: str, **arguments):
    return process.ask(command, SECONDS, **arguments)


def alive(word: str) -> list[int]:
    """The pids of the processes with `word` in their command line, without this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            said = path.read_bytes()
        except OSError:
            continue
        if word.encode() in said and str(sys.executable).encode() in said:
            found.append(int(path.parent.name))
    return found
