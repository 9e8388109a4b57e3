"""What an installed wheel holds and lays down, and what a project takes from it that it lacks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="the dev extra brings hatchling")
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def built_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel; built from a copy so that the checkout stays clean."""
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
    return wheel


@pytest.fixture(scope="module")
def installed(built_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content as a folder to import from."""
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(built_wheel).extractall(site)
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


def laid_down(python: str, path: str, folder: Path) -> list[list[str]]:
    """`campaign init` and what a project there offers: where campaign is, then the names of each group."""
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("CAMPAIGN_PROJECT", None)

    def run(*words: str) -> str:
        done = subprocess.run(
            [python, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), (words, done.stdout, done.stderr)
        return done.stdout

    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    said = run("-m", "campaign", "init")
    assert "train_example.py" in said and "\n  campaign try " in said
    assert "one already: nothing was changed" in run("-m", "campaign", "init")
    assert "steps: 1000000" in run("-m", "campaign", "run", "--cfg", "job", "-p", "workload")
    script = (
        "import json, campaign; from pathlib import Path; from campaign.cli.usage import options\n"
        "from campaign.config import jobs; found = jobs(Path.cwd(), ['-m', 'hypothesis=glob(*)'])\n"
        "names = [options('workload'), options('protocol'), sorted(job.hypothesis.name for job in found)]\n"
        "print(json.dumps([[campaign.__file__], *names]))"
    )
    return json.loads(run("-c", script))


OFFERED = [["own"], ["own", "quick", "standard"], ["aa_null", "fused_optimizer", "two_threads"]]


def test_a_wheel_lays_down_a_project_that_offers_what_fits_there(installed, tmp_path):
    (place,), *offered = laid_down(sys.executable, str(installed), tmp_path)
    assert Path(place).is_relative_to(installed)
    assert offered == OFFERED


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_same_after_pip_has_installed_the_wheel_into_an_empty_environment(built_wheel, tmp_path):
    """What campaign depends on comes from this environment by a path: pip would take minutes to install torch."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    (site,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    before = {path.name for path in site.iterdir()}
    pip = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(built_wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    new = {path.name for path in site.iterdir()} - before
    assert {name for name in new if not name.endswith(".dist-info")} == {"campaign"} and len(new) == 2
    assert (tmp_path / "venv/bin/campaign").is_file()
    folder = tmp_path / "mine"
    folder.mkdir()
    # Behind the environment's own packages, so that campaign itself is the one that pip installed.
    (site / "dependencies.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    (place,), *offered = laid_down(str(python), "", folder)
    assert Path(place).is_relative_to(site)
    assert offered == OFFERED


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


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_printed_commands_measure_the_example(installed, tmp_path):
    """In few and short rounds: what is looked at is that both arms run, compare and are counted, not how fast."""
    folder = tmp_path / "mine"
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(installed), "TMPDIR": str(tmp_path)}  # its lease is its own
    environment.pop("CAMPAIGN_PROJECT", None)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    run("git", "init", "-q")
    for key in ("user.name", "user.email"):
        run("git", "config", key, "me")
    short = ["tracking=none", "protocol.contention_limit=null", "protocol.warmup_tolerance=9", "protocol.pairs=2",
             "protocol.looks=[2]", "protocol.alpha_split=[1.0]", "protocol.beta_split=[1.0]"]  # fmt: skip
    said = json.loads(run(sys.executable, "-m", "campaign", "init", "--json").stdout)
    null, idea, commit, tried = [one["command"] for one in said["next"]]
    assert run("sh", "-c", commit).returncode == 0
    with (folder / "train_example.py").open("a") as file:
        file.write("# an edit that does nothing\n")
    for command in (null, idea, tried):
        words = [sys.executable, "-m", *command.split(), "--json", *short]
        if command == tried:
            words.remove("tracking=none")
        done = run(*words)
        assert done.returncode in (0, 1, 3), (command, done.stderr[-2000:])
        decision = json.loads(done.stdout)["decision"]
        verdict = decision["verdict"]
        assert verdict["verdict"] not in ("invalid", "unavailable"), (command, verdict)
        rounds = (verdict["screening"] or verdict["effect"])["round_ratios"]
        assert len(rounds) == 2 and " ok" in decision["parity"], (command, decision)
