"""The red team's project: this repository's `conf/` with the networks and their hypotheses beside, and the main job."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign.cli import main
from campaign.ledger import open_ledger
from tests.builders import laid_down

PROJECT = Path(__file__).with_name("project")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The project's root, which is the working directory. Its lease is its own, so that no real campaign waits."""
    root = laid_down(PROJECT, tmp_path, monkeypatch)
    # The networks say that they have one thread; numpy's library reads this in the trials' processes.
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    return root


@pytest.fixture
def decide(project):
    """Runs the main job on `workload=network` with more words and returns its decision's verdict."""

    def decided(*words):
        main(["workload=network", "hypothesis=cheat", "tracking=none", *words])
        with open_ledger(project, "default", writable=False) as ledger:
            (decision,) = ledger.decisions()
        print(decision.verdict.sentence)
        return decision.verdict

    return decided


@pytest.fixture
def networks(monkeypatch):
    """The project's module `cheats`, imported as a trial's process does."""
    monkeypatch.syspath_prepend(str(PROJECT))
    import cheats

    return cheats
