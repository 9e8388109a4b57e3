"""What `import campaign` offers: no more and no less than `__all__`, all of it documented, typed, and for nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types

import pytest

import campaign
from tests.builders import REPOSITORY

SNIPPET = """
from collections.abc import Callable

import campaign
from campaign import Comparison, Setup, measure


def step() -> float:
    return 1.0


def make() -> Callable[[], float]:
    return step


found: Comparison = campaign.measure(step, Setup(make), name=("a", "b"), settings={"looks": [2]}, ledger="runs/a")
ratio: float | None = found.ratio
verdict: str = found.verdict
bounds: tuple[float, float] | None = found.interval
again: Comparison = Comparison.from_json(found.to_json())
found.figure().savefig("figure.png")
seconds: float = found.evidence.rounds[0].blocks[0].wall_seconds
found.ratio = 2.0
measure(step)
measure(lambda batch: batch, step)
"""


def test_the_public_surface_is_what_all_says():
    for name in campaign.__all__:
        assert getattr(campaign, name) is not None
    public = {
        name
        for name, value in vars(campaign).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert public - {"TYPE_CHECKING"} == set(campaign.__all__)
    assert list(campaign.__all__) == sorted(campaign.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'measuer'"):
        _ = campaign.measuer


def test_the_page_about_the_library_names_all_of_it_and_nothing_else():
    page = (REPOSITORY / "docs/library.md").read_text()
    named = set(re.findall(r"`campaign\.(\w+)", page)) - {"errors"}
    assert named == set(campaign.__all__)


def test_every_argument_and_every_part_of_the_result_is_documented():
    page = (REPOSITORY / "docs/library.md").read_text()
    _, _, arguments = page.partition("## Arguments")
    arguments, _, result = arguments.partition("## The result")
    wanted = set(campaign.measure.__kwdefaults__)
    assert wanted == set(
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", arguments, re.MULTILINE)))
    )
    offered = {name for name in dir(campaign.Comparison) if not name.startswith("_")} - {"control", "treatment"}
    assert offered <= set(re.findall(r"`(\w+)", result))


def test_importing_it_imports_nothing_but_itself():
    script = "import sys; before = set(sys.modules); import campaign; print(sorted(set(sys.modules) - before))"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([sys.executable, "-S", "-c", script], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "['campaign']", done.stderr


@pytest.mark.slow
def test_a_users_strictly_checked_code_sees_the_types(tmp_path):
    (tmp_path / "mine.py").write_text(SNIPPET)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "mine.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    mine = [line for line in done.stdout.splitlines() if line.startswith("mine.py")]
    lines = SNIPPET.splitlines()
    wrong = {lines[int(line.split(":")[1]) - 1] for line in mine if ": error:" in line}
    assert wrong == {"found.ratio = 2.0", "measure(step)", "measure(lambda batch: batch, step)"}, done.stdout
