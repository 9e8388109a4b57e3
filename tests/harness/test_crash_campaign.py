"""A sweep killed at random instants and given again each time comes out as one that nobody disturbed.

A step of 1 ms; a null, a clear gain, and a clear loss on top of it (in four arms). SIGKILL goes to the parent's whole
process group, at an instant drawn over what a command does once Python and Hydra have started, since a process that
dies before has touched nothing; its trials have groups of their own and find out. The count is `KILLS`; the test prints
what came of them.

    pytest -m slow -s tests/harness/test_crash_campaign.py
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from campaign.ledger import LEDGER_FILE, Ledger, open_ledger
from campaign.report.check import check
from tests.builders import REPOSITORY

KILLS = 300
SEED = 20261202
WORDS = [
    "workload=tiny",
    "tracking=none",
    "workload.sleep=0.001",
    "protocol.confirm_rounds=3",
    "protocol.suspect_ratio=1000",
]
EDITS = {"no_wait": "workload.sleep=0.0", "long_nap": "workload.nap=0.01"}
NULL = ("aa_null", "inconclusive", "floor", ())
GAIN = ("no_wait", "accept", "faster", ())
LOSS_ON_ROOT = ("long_nap", "reject", "slowdown", ())
LOSS_ON_GAIN = ("long_nap", "reject", "slowdown", ("no_wait",))


@dataclass
class Killed:
    """What the kills of one test came to. `seen` counts the kinds of the ledger's last line at each kill."""

    kills: int = 0
    commands: int = 0
    campaigns: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    interrupted_rounds: int = 0
    torn_tails: int = 0

    def text(self) -> str:
        last = ", ".join(f"{kind} {count}" for kind, count in self.seen.most_common())
        return (
            f"{self.kills} kills over {self.campaigns} campaigns and {self.commands} commands; last line at the kill: "
            f"{last}; {self.interrupted_rounds} rounds in flight dropped, {self.torn_tails} torn tails cut"
        )


@pytest.fixture
def planted(project: Path) -> Path:
    """The project with its two planted edits as hypotheses.

    Its workload says that it has two threads: what one more may use between blocks is far above a preempted hand-over,
    which on a busy machine makes a round of 1-ms blocks invalid now and then, killed or not.
    """
    code = (project / "tiny.py").read_text()
    assert '"threads": 1' in code
    (project / "tiny.py").write_text(code.replace('"threads": 1', '"threads": 2'))
    folder = project / "conf" / "hypothesis"
    text = (folder / "no_sleep.yaml").read_text()
    for name, override in EDITS.items():
        (folder / f"{name}.yaml").write_text(text.replace("no_sleep", name).replace("workload.sleep=0.0", override))
    return project


@dataclass(frozen=True)
class Sweep:
    """The command that is given over and over, and what comes of it undisturbed."""

    project: Path
    words: tuple[str, ...]
    decided: tuple[tuple[object, ...], ...]

    @property
    def said(self) -> Path:
        """What the commands print, one after another."""
        return self.project / "said.txt"

    def start(self, name: str) -> subprocess.Popen[bytes]:
        """`python -m campaign -m ...` as the leader of a process group of its own, once it said its first word."""
        paths = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
        listed = ",".join(str(row[0]) for row in self.decided)
        with self.said.open("ab") as said:
            before = said.tell()
            process = subprocess.Popen(
                [sys.executable, "-m", "campaign", "-m", *self.words, f"campaign.name={name}", f"hypothesis={listed}"],
                cwd=self.project,
                env={**os.environ, "PYTHONPATH": paths},
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        while self.said.stat().st_size == before and process.poll() is None:
            time.sleep(0.002)
        return process

    def ended(self, name: str) -> bool:
        """Whether the ledger says that every job was gone through; given again, it would be a new sweep."""
        if not (self.project / "runs" / name / LEDGER_FILE).exists():
            return False
        with open_ledger(self.project, name, writable=False) as ledger:
            return any(body["state"] == "ended" for body in ledger.sweeps())


def rows(project: Path, name: str) -> list[tuple[object, ...]]:
    """What was decided, as far as it does not depend on the machine's mood: in order, each with its rounds."""
    with open_ledger(project, name, writable=False) as ledger:
        return [
            (one.hypothesis, one.verdict.verdict, one.verdict.reason, one.stack, one.attempt, one.verdict.valid_rounds)
            for one in ledger.decisions()
        ]


def assert_sound(ledger: Ledger) -> None:
    """Every line, every raw file and every decision holds, and no round counts twice."""
    check(ledger)
    rounds = [entry.body for entry in ledger.store.entries({"blocks"})]
    places = Counter((one["plan_id"], one["stage"], one["index"]) for one in rounds)
    assert set(places.values()) <= {1}, places
    counted = [one["blocks_file"] for one in rounds if one["blocks_file"]]
    assert len(set(counted)) == len(counted)
    dropped = {entry.body["raw"] for entry in ledger.store.entries({"note"}) if "round_id" in entry.body}
    assert not dropped & set(counted)


def run_with_kills(sweep: Sweep, name: str, lives: Iterator[float], killed: Killed) -> None:
    """The sweep to its end by the same command over and over, each killed after its life while there are more."""
    while not sweep.ended(name):
        process = sweep.start(name)
        killed.commands += 1
        try:
            process.wait(next(lives, None))
            assert process.returncode == 0, sweep.said.read_text()[-3000:]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            killed.kills += 1
            killed.seen[last_line(sweep.project, name)] += 1


def last_line(project: Path, name: str) -> str:
    """The kind of the last line, once the whole ledger was found sound; 'none' before the first."""
    if not (project / "runs" / name / LEDGER_FILE).exists():
        return "none"
    with open_ledger(project, name, writable=False) as ledger:
        assert_sound(ledger)
        return [entry.kind for entry in ledger.store.entries()][-1]


def crash(sweep: Sweep, kills: int, share: float) -> Killed:
    """Campaigns killed until `kills` are reached, the last one left to end; each compared with an undisturbed one.

    A started command lives for at most this share of what the undisturbed one takes: some jobs end, most do not.
    """
    draw, killed, begun = random.Random(SEED), Killed(), time.monotonic()
    run_with_kills(sweep, "calm", iter(()), Killed())
    longest = share * (time.monotonic() - begun)
    calm = rows(sweep.project, "calm")
    assert tuple(row[:4] for row in calm) == sweep.decided
    lives = iter(lambda: draw.uniform(0, longest) if killed.kills < kills else None, None)
    while killed.kills < kills:
        killed.campaigns += 1
        name = f"killed_{killed.campaigns}"
        run_with_kills(sweep, name, lives, killed)
        assert rows(sweep.project, name) == calm
        with open_ledger(sweep.project, name, writable=True) as ledger:
            killed.torn_tails += (ledger.folder / f"{LEDGER_FILE}.torn").exists()
            assert ledger.recover_inflight() == [] and ledger.unfinished() == []
            assert_sound(ledger)
            killed.interrupted_rounds += sum("round_id" in one.body for one in ledger.store.entries({"note"}))
    return killed


@pytest.mark.slow
def test_a_few_kills_change_nothing(planted: Path) -> None:
    words = (*WORDS, "protocol.looks=[2]", "protocol.pairs=4")
    killed = crash(Sweep(planted, words, (LOSS_ON_ROOT,)), 5, share=0.3)
    assert killed.kills == 5


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_no_decision_is_lost_doubled_or_changed_by_kills_at_random_instants(planted: Path) -> None:
    begun = time.monotonic()
    words = (*WORDS, "protocol.looks=[3]", "protocol.pairs=20")
    killed = crash(Sweep(planted, words, (NULL, GAIN, LOSS_ON_GAIN)), KILLS, share=0.3)
    print(f"\n{killed.text()}; {(time.monotonic() - begun) / 60:.0f} min")
    assert killed.kills == KILLS
