"""A run whose disk fills up, and the same command once there is room."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import pytest

from campaign.cli import main
from tests.builders import REPOSITORY

WORDS = ["workload=tiny", "tracking=none", "hypothesis=half_nap", "workload.nap=0.02"]


LIMIT_BYTES = 14_000  # more than what is declared and probed takes


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [2, 40], ids=["at a line of the ledger", "at a block"])
def test_a_run_that_the_disk_refuses_ends_loudly_and_the_same_command_goes_on(project, capsys, pairs):
    command = [*WORDS, f"protocol.pairs={pairs}"]

    def limited():
        # The kernel's limit on file sizes refuses a write part of the way, as a full disk does.
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, resource.RLIM_INFINITY))

    refused = subprocess.run(
        [sys.executable, "-m", "campaign", *command],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        preexec_fn=limited,
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 3, refused.stderr
    assert "File too large" in refused.stderr and "df -h" in refused.stderr and "Traceback" not in refused.stderr
    assert main([*command, "lease.wait_seconds=20"]) == 0
    assert "going on with" in capsys.readouterr().out
    lines = (project / "runs" / "default" / "ledger.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert (kinds.count("registered"), kinds.count("decision")) == (1, 1)
    assert main(["ledger", "--check"]) == 0
