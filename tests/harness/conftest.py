"""A project of its own: this repository's `conf/` with the tiny workload and its hypotheses beside."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from campaign.cli import main
from tests.builders import PROJECT, REPOSITORY, laid_down
from tests.harness import studied


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


@pytest.fixture
def study_project(tmp_path, monkeypatch):
    """A project with several planted edits (`studied.FILES`), which is the working directory."""
    return studied.lay_down(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def stacked_runs(tmp_path_factory):
    """A ledger in which more_work was rejected on root, then half_sleep and half_nap accepted."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        root = studied.lay_down(tmp_path_factory.mktemp("stacked"), monkeypatch)
        for name in ("more_work", "half_sleep", "half_nap"):
            assert main([*studied.WAITS, f"hypothesis={name}", "protocol.arms=2"]) == 0
    return root / "runs"


@pytest.fixture
def stacked(study_project, stacked_runs):
    """A project with that ledger, from which each test goes on by itself."""
    shutil.copytree(stacked_runs, study_project / "runs", dirs_exist_ok=True)
    assert studied.standing(study_project) == ["half_sleep", "half_nap"]
    return study_project
