"""Arms with code of their own import their own copy: real worktrees, real interpreters, a real editable install."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import campaign
from campaign.copies import foreign
from campaign.provenance import Checkout, checkout
from campaign.records import Code

Git = Callable[..., str]
HARNESS = Path(campaign.__file__).resolve().parent
LOOK = """
import json, sys
from campaign.copies import foreign
import importlib
for name in sys.argv[2:]:
    importlib.import_module(name)
files = {name: sys.modules[name].__file__ for name in sys.argv[2:]}
wrong = foreign(**json.loads(sys.argv[1]))
print(json.dumps({"files": files, "campaign": sys.modules["campaign"].__file__, "foreign": wrong}))
"""


def commit(git: Git, project: Path) -> Code:
    git(project, "add", "-A")
    git(project, "commit", "-qm", "more")
    return Code(git(project, "rev-parse", "HEAD").strip())


def package(folder: Path, text: str = "") -> None:
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(text)


def imported(place: Checkout, *names: str, path: str = "") -> dict:
    """What a process that starts as a trial's does imports."""
    paths = os.pathsep.join([*place.paths, *filter(None, [path])])
    command = [sys.executable, "-P", "-c", LOOK, json.dumps(place.question()), *names]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, cwd=place.root, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_an_arm_imports_its_worktree_first_and_the_installed_campaign(project: Path, git: Git) -> None:
    package(project / "ours")
    package(project / "campaign", "raise ImportError('this is the code that is measured, not what measures')")
    with checkout(project, commit(git, project), []) as place:
        said = imported(place, "ours", path=str(project))
        assert said["files"] == {"ours": str(place.root / "ours" / "__init__.py")}
        assert Path(said["campaign"]).resolve() == HARNESS / "__init__.py"
        # What a killed process leaves goes with the worktree, which the next one removes.
        assert Path(place.paths[0]).parent == place.tree.parent
        assert said["foreign"] == []
        assert "ours" in place.names and "campaign" not in place.names
    assert not place.tree.exists()


def test_an_editable_install_of_the_repository_leads_into_the_worktree(
    project: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(project / "src" / "laid_out")
    package(project / "libs" / "mapped")
    code = commit(git, project)
    # As pip install -e leaves it: a folder on the path by a .pth file, or a finder with a mapping.
    monkeypatch.setattr(sys, "path", [*sys.path, str(project / "src")])
    finder = type(sys)("__editable___mapped_1_0_finder")
    finder.MAPPING = {"mapped": str(project / "libs" / "mapped")}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, finder.__name__, finder)
    user = os.pathsep.join([str(project / "src"), str(project / "libs")])
    with checkout(project, code, []) as place:
        said = imported(place, "laid_out", "mapped", path=user)
        assert {Path(file).is_relative_to(place.tree) for file in said["files"].values()} == {True}
        assert said["foreign"] == []


def test_a_module_of_the_users_own_tree_is_named(project: Path, git: Git) -> None:
    package(project / "src" / "laid_out")
    with checkout(project, commit(git, project), []) as place:
        said = imported(place, "laid_out", path=str(project / "src"))
        assert said["foreign"] == [f"laid_out ({project / 'src' / 'laid_out' / '__init__.py'})"]


def test_a_module_of_an_environment_or_of_runs_is_no_copy_of_the_project(project: Path, git: Git) -> None:
    package(project / "src" / "laid_out")
    code = commit(git, project)
    (project / ".venv").mkdir()
    (project / ".venv" / "pyvenv.cfg").touch()
    places = {
        "beside": project / ".venv" / "lib",
        "generated": project / "runs" / "c",
        "installed": project / "env" / "site-packages",
    }
    for name, folder in places.items():
        package(folder / name)
    path = os.pathsep.join(map(str, places.values()))
    with checkout(project, code, []) as place:
        assert imported(place, *places, path=path)["foreign"] == []


def test_an_installed_copy_of_a_package_that_the_worktree_holds_is_named_wherever_it_lies(
    tmp_path: Path, project: Path, git: Git
) -> None:
    package(project / "src" / "laid_out")
    code = commit(git, project)
    package(tmp_path / "elsewhere" / "site-packages" / "laid_out")
    with checkout(project, code, []) as place:
        said = imported(place, "laid_out", path=str(tmp_path / "elsewhere" / "site-packages"))
        assert len(said["foreign"]) == 1 and said["foreign"][0].startswith("laid_out (")


def test_a_project_below_the_top_of_its_repository_runs_below_the_top(project: Path, git: Git) -> None:
    package(project / "inner" / "ours")
    code = commit(git, project)
    with checkout(project / "inner", code, []) as place:
        assert place.root == place.tree / "inner" and (place.tree / "models" / "block.py").is_file()
        assert place.own == project and place.own_runs == project / "inner" / "runs"
        assert imported(place, "ours")["foreign"] == []


def test_this_very_process_holds_nothing_of_an_empty_tree(tmp_path: Path) -> None:
    assert foreign(str(tmp_path), str(tmp_path / "tree"), str(tmp_path / "runs"), []) == []
