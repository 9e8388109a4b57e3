"""A light answer imports nothing heavy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
HEAVY = (
    "torch",
    "pandas",
    "mlflow",
    "hydra",
    "omegaconf",
    "numpy",
    "scipy",
    "git",
    "matplotlib",
    "rich",
    "yaml",
    "click",
    "sqlalchemy",
)
SCRIPT = """
import sys
from campaign.cli import main
code = main(sys.argv[1:])
print("HEAVY", code, sorted({name.split(".")[0] for name in sys.modules} & set(%r)))
"""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["ledgr"], 2),
        (["ledger", "--help"], 0),
        (["try", "--help"], 0),
        (["try", "--json", "--export", "md"], 2),
        (["stack", "--help"], 0),
        (["ui", "--help"], 0),
        (["sync", "--help"], 0),
        (["ledger"], 0),
        (["ledger", "--json"], 0),
        (["ledger", "--verdict", "accept,reject", "--since", "3d"], 0),
        (["stack"], 0),
        (["show", "--help"], 0),
        (["show", "1"], 2),
        (["diagnose", "--help"], 0),
        (["diagnose"], 2),
        (["diagnose", "nope.json", "--target", "0.5"], 2),
        (["feasibility", "--help"], 0),
        (["feasibility", "--days", "soon"], 2),
        (["feasibility", "--tokens-per-second", "14.08k", "--token-budget", "20B", "--days", "7", "--json"], 0),
        (["compare", "--help"], 0),
        (["completion", "bash"], 0),
        (["completion", "tcsh"], 2),
        (["init"], 0),
        (["init", "--script", "nothing.py"], 2),
        (["doctor", "--help"], 0),
        (["doctor", "--full", "--no-floor"], 2),
        (["compare", "one.json"], 2),
    ],
)
def test_light_answer_imports_nothing_heavy(project, words, code):
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT % (HEAVY,), *words],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == f"HEAVY {code} []", done.stderr
