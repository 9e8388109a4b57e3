"""What an installed wheel holds, and that a project without a group's file falls back on the packaged one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="the dev extra brings hatchling")
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content as a folder to import from; built from a copy so that the checkout stays clean."""
    copy = tmp_path_factory.mktemp("source")
    skip = shutil.ignore_patterns("__pycache__")
    for folder in ("campaign", "conf", "models", "kernels"):
        shutil.copytree(REPOSITORY / folder, copy / folder, ignore=skip)
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(REPOSITORY / name, copy / name)
    (copy / "README.md").write_text("campaign\n")
    built = copy / "dist"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)],
        cwd=copy,
        check=True,
        capture_output=True,
    )
    (wheel,) = built.glob("campaign-*.whl")
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)
    return site


def test_only_campaign_is_importable(installed):
    top = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert top == {"campaign"}


def test_template_is_this_repositorys_project(installed):
    template = installed / "campaign" / "template"
    for folder in ("conf", "models", "kernels"):
        here = {
            str(path.relative_to(REPOSITORY / folder))
            for path in (REPOSITORY / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        packed = {str(path.relative_to(template / folder)) for path in (template / folder).rglob("*") if path.is_file()}
        assert packed == here, folder


def test_installed_campaign_takes_from_the_template_what_a_project_lacks(installed, tmp_path):
    conf = tmp_path / "conf"
    (conf / "protocol").mkdir(parents=True)
    shutil.copy(REPOSITORY / "conf" / "config.yaml", conf / "config.yaml")
    text = (REPOSITORY / "conf/protocol/quick.yaml").read_text()
    (conf / "protocol" / "quick.yaml").write_text(text.replace("pairs: 12", "pairs: 14"))
    script = (
        "from pathlib import Path; from campaign.config import load\n"
        "job = load(Path.cwd(), ['protocol=quick', 'hypothesis=prenorm_fusion'])\n"
        "print(job.protocol.name, job.protocol.pairs, job.workload, job.arm('control', 'root', []).config['ops'])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.split(maxsplit=3)[:3] == ["quick", "14", "reference_cpu"], "the project's own file comes first"
    assert "'prenorm': 'reference'" in done.stdout


def test_an_installed_campaign_has_the_style_and_the_script_of_its_report(installed):
    for name in ("review.css", "review.js"):
        packed = (installed / "campaign" / "report" / name).read_bytes()
        assert packed == (REPOSITORY / "campaign" / "report" / name).read_bytes() and packed
