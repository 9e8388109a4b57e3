from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import campaign
from campaign import provenance

ROOT = Path(campaign.__file__).parent.parent


def test_gitpython_is_imported_only_when_asked() -> None:
    code = "import sys, campaign.provenance; print('git' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"


def test_the_code_hash_follows_content_and_names_of_sources_only(project: Path) -> None:
    first = provenance.code_hash(project)
    assert first == provenance.code_hash(project) and len(first) == 64
    (project / "models" / "notes.txt").write_text("not code\n")
    (project / "models" / "__pycache__").mkdir()
    (project / "models" / "__pycache__" / "block.py").write_text("cache\n")
    (project / "elsewhere.py").write_text("not imported by a trial\n")
    assert provenance.code_hash(project) == first
    seen = {first}
    for name in ("models/new.py", "kernels/k.cpp", "kernels/k.cu", "conf/config.yaml"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("1\n")
        seen.add(provenance.code_hash(project))
    (project / "models" / "new.py").rename(project / "models" / "renamed.py")
    seen.add(provenance.code_hash(project))
    (project / "models" / "renamed.py").write_text("2\n")
    seen.add(provenance.code_hash(project))
    assert len(seen) == 7


def test_the_code_hash_does_not_raise_for_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "gone.py").symlink_to("nowhere")
    (tmp_path / "models" / "loop.py").symlink_to("loop.py")
    (tmp_path / "conf").write_text("a file, not a folder\n")
    assert len(provenance.code_hash(tmp_path)) == 64
    assert len(provenance.code_hash(tmp_path / "nowhere")) == 64


def test_the_parts_of_the_hash_tell_which_folder_changed_and_the_files_which_file(project: Path) -> None:
    (project / "conf").mkdir()
    (project / "conf" / "config.yaml").write_text("a: 1\n")
    (project / "own.py").write_text("x = 1\n")
    other = project.with_name("other")
    shutil.copytree(project, other)
    targets = ["own.Workload", "torch.nn.Linear"]
    first = provenance.code_parts(project, targets)
    assert set(first) == {"campaign", "models", "conf", "own.py"}
    assert provenance.code_parts(other, targets) == first and provenance.differing(project, other, targets) == []
    (other / "models" / "block.py").write_text("changed\n")
    (other / "models" / "new.py").touch()
    second = provenance.code_parts(other, targets)
    assert {name for name in first if first[name] != second[name]} == {"models"}
    assert provenance.differing(project, other, targets) == ["models/block.py", "models/new.py"]


def test_the_hash_can_be_that_of_another_campaign(project: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "campaign", tmp_path / "campaign", ignore=shutil.ignore_patterns("__pycache__"))
    assert provenance.code_hash(project, package=tmp_path / "campaign") == provenance.code_hash(project)
    (tmp_path / "campaign" / "worker.py").write_text("an older one\n")
    assert provenance.code_hash(project, package=tmp_path / "campaign") != provenance.code_hash(project)


def test_packages_are_the_installed_distributions() -> None:
    from importlib.metadata import version

    found = provenance.packages()
    assert found["pytest"] == version("pytest") and list(found) == sorted(found)


def test_a_launched_command_may_run_any_source_of_the_project(tmp_path):
    launched = ["campaign.launch.Script"]
    (tmp_path / "train.py").write_text("a = 1\n")
    before = provenance.code_hash(tmp_path, launched)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "model.py").write_text("b = 1\n")
    with_model = provenance.code_hash(tmp_path, launched)
    assert before != with_model
    for left_out in ("runs/own/log.yaml", "venv/lib/x.py", ".cache/y.py", "lib/__pycache__/z.py"):
        path = tmp_path / left_out
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("c = 1\n")
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    assert provenance.code_hash(tmp_path, launched) == with_model
    assert provenance.code_hash(tmp_path, ["models.workload.W"]) != with_model
