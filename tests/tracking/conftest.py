"""One MLflow database is created in a session, as a user's first decision does it, and copied for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaign.tracking import store, sync
from tests.tracking import campaigns, findings


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template")
    with store.writing(root):
        store.open_client(root).get_experiment("0")
    return root / "runs" / "mlflow.db"


@pytest.fixture
def root(tmp_path: Path, template: Path) -> Path:
    """A project's folder with an empty MLflow database."""
    project = tmp_path / "project"
    (project / "runs").mkdir(parents=True)
    shutil.copy(template, project / "runs" / "mlflow.db")
    return project


@pytest.fixture
def one(root: Path) -> Iterator[campaigns.Ledger]:
    """The ledger of a campaign with the accepted `prenorm_fusion` only, held open as at the end of a run."""
    with campaigns.open_ledger(root, campaigns.CAMPAIGN, writable=True) as ledger:
        campaigns.prenorm(ledger)
        yield ledger


@pytest.fixture(scope="session")
def mirrored(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Iterator[campaigns.Ledger]:
    """The ledger of a campaign of six decisions, all of them in MLflow. Tests only read it."""
    project = tmp_path_factory.mktemp("mirrored")
    (project / "runs").mkdir()
    shutil.copy(template, project / "runs" / "mlflow.db")
    with campaigns.whole(project) as ledger:
        assert len(sync(ledger)) == 6
        yield ledger


@pytest.fixture(scope="session")
def studied(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Iterator[campaigns.Ledger]:
    """The ledger of a campaign with one decision and a finding of every kind, all in MLflow. Tests only read it."""
    project = tmp_path_factory.mktemp("studied")
    (project / "runs").mkdir()
    shutil.copy(template, project / "runs" / "mlflow.db")
    with campaigns.open_ledger(project, campaigns.CAMPAIGN, writable=True) as ledger:
        decision = campaigns.prenorm(ledger)
        for study in (findings.leave_one_out, findings.headline, findings.factorial):
            study(ledger)
        findings.replay(ledger, decision)
        assert len(sync(ledger)) == 5
        yield ledger
