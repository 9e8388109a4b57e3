"""Several planted edits in one project, and what its ledger says of studies of them."""

from __future__ import annotations

import json

import pytest

from campaign.ledger import open_ledger
from tests.builders import PROJECT, laid_down

# Root waits 80 ms a step; half_sleep and half_nap leave 10 ms of each half. So much, and three rounds, so that a busy
# machine's scatter leaves nothing open.
ROUNDS = ["protocol.pairs=4", "protocol.looks=[3]", "protocol.confirm_rounds=3", "protocol.suspect_ratio=9"]
WAITS = ["workload=tiny", "tracking=none", "workload.sleep=0.04", "workload.nap=0.04", *ROUNDS]
HYPOTHESIS = """\
# @package _global_
hypothesis:
  claim: A claim for a test.
  mechanism: a planted change
  acts_on: dispatch
  predicted_ratio: 1.3
  parity: {kind: bitwise}
"""
BOTH = """\
  parts:
    sleep: {overrides: [workload.sleep=0.01]}
    nap: {overrides: [workload.nap=0.01]}
"""


def edit(*overrides: str, more: str = "") -> str:
    return f"{HYPOTHESIS}  edit: {{overrides: [{', '.join(overrides)}]}}\n{more}"


FILES = {
    "more_work": edit("workload.work=9000"),
    "both": HYPOTHESIS + BOTH,
    "padded": edit("workload.ballast=1000"),
    "fragile": edit("workload.nap=0.01", "workload.fault=needs_less_sleep"),
    "leaning": edit("workload.work=19", more="  requires: [half_sleep]\n"),
    "apart": edit("workload.work=18", more="  conflicts: [half_sleep]\n"),
}


def lay_down(tmp_path, monkeypatch):
    root = laid_down(PROJECT, tmp_path, monkeypatch)
    for name, text in FILES.items():
        (root / "conf" / "hypothesis" / f"{name}.yaml").write_text(text)
    return root


def standing(project):
    with open_ledger(project, "default", writable=False) as ledger:
        return [one.hypothesis for one in ledger.stack()]


def findings(project):
    with open_ledger(project, "default", writable=False) as ledger:
        return ledger.findings()


def kinds(project):
    lines = (project / "runs" / "default" / "ledger.jsonl").read_text().splitlines()
    return [json.loads(line)["kind"] for line in lines]


def terms(found):
    return {term.name: term for term in found.finding.terms}


def near(value):
    return pytest.approx(value, rel=0.2)


def interrupt(*_):
    raise KeyboardInterrupt
