"""Which cores the processes of a script may run on."""

from __future__ import annotations

import json
import os

import pytest

from tests.own.conftest import ask

SCRIPT = """
import json, os, campaign
for step in range(100):
    with campaign.step():
        if not (child := os.fork()):
            with open(f"{step}.json", "w") as file:
                json.dump([sorted(os.sched_getaffinity(0)), sorted(os.sched_getaffinity(os.getppid()))], file)
            os._exit(0)
        os.waitpid(child, 0)
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core")
def test_a_loaders_workers_are_not_held_to_the_cores_of_the_loop(trial):
    process = trial(SCRIPT)
    everywhere = sorted(os.sched_getaffinity(0))
    ask(process, "pin", cores=everywhere[-1:])
    ask(process, "block", steps=2)
    told = [json.loads((process.log.parent / f"{step}.json").read_text()) for step in range(2)]
    assert told == [[everywhere, everywhere[-1:]]] * 2
