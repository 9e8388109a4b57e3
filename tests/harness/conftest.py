"""A project of its own: this repository's `conf/` with the tiny workload and its hypotheses beside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.builders import PROJECT, REPOSITORY, laid_down


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The project's root, which is the working directory. Its lease is its own, so that no real campaign waits."""
    return laid_down(PROJECT, tmp_path, monkeypatch)


@pytest.fixture
def command(project):
    """Starts `python -m campaign WORDS` on the tiny workload in the project, as a person would."""
    started = []

    def start(*words):
        line = [sys.executable, "-m", "campaign", "workload=tiny", "tracking=none", *words]
        paths = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
        process = subprocess.Popen(
            line,
            cwd=project,
            env={**os.environ, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # Where the tests run in the background of a shell, SIGINT is ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
