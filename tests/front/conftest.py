"""A project to run in: this repository's `conf/`, copied; a test that writes in it gets a copy of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaign.cli import main

REPOSITORY = Path(__file__).resolve().parents[2]


def _copy(root: Path) -> Path:
    shutil.copytree(REPOSITORY / "conf", root / "conf")
    (root / "runs").mkdir()
    return root


@pytest.fixture(scope="session")
def shared_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _copy(tmp_path_factory.mktemp("front") / "project")


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a copied project, which is the working directory too."""
    root = _copy(tmp_path / "project") if "add" in request.fixturenames else request.getfixturevalue("shared_project")
    monkeypatch.chdir(root)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    return root


@pytest.fixture(scope="session")
def lent_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _copy(tmp_path_factory.mktemp("lent") / "project")


@pytest.fixture
def lent(lent_project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project to write in but for its `conf/`, made the working directory. It is one root for all, which has what it
    composed before at hand; what an earlier test wrote is gone."""
    for path in lent_project.iterdir():
        if path.name != "conf":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (lent_project / "runs").mkdir()
    monkeypatch.chdir(lent_project)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    before = _times(lent_project / "conf")
    yield lent_project
    assert _times(lent_project / "conf") == before, "what was composed before holds no longer"


def _times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.fixture
def add(project: Path):
    """Writes a file under the project's `conf/`: `add('hypothesis/x.yaml', text)`."""

    def write(name: str, text: str) -> Path:
        path = project / "conf" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.fixture
def add_hypothesis(add):
    """Writes `conf/hypothesis/<name>.yaml` with these override edits and further lines of the hypothesis node."""

    def write(name: str, *edits: str, more: str = "") -> Path:
        listed = "".join(f"\n      - {edit}" for edit in edits)
        return add(
            f"hypothesis/{name}.yaml",
            "# @package _global_\n"
            "hypothesis:\n"
            "  claim: it is faster\n"
            "  mechanism: fewer bytes\n"
            "  acts_on: norm\n"
            f"  edit:\n    overrides:{listed or ' []'}\n"
            "  predicted_ratio: 1.1\n"
            "  parity: {kind: rounding}\n" + more,
        )

    return write


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A plain folder to work in."""
    root = tmp_path / "mine"
    root.mkdir()
    monkeypatch.chdir(root)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    return root


@pytest.fixture
def init(folder, capsys):
    """Runs `campaign init --json` with further words; what it answers."""

    def run(*words: str) -> dict:
        assert main(["init", *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run
