"""`campaign ledger` on many decisions against `python -c pass`: its wall time and its peak memory.

The ledger holds, as a real campaign's would, a registered plan, 6 or 7 rounds of 2 trials and a decision for each, and
a raw file of 80 block times for each round, 500 for a decision on average. The commands run in turn, in random order;
the table shows medians of wall time, the median of their paired ratios, and the largest peak resident memory. The first
listing after the ledger changed reads it; later ones take the view that the first one kept. Nothing is synced to the
disk while the ledger is made.

    python benchmarks/ledger_listing.py                       # 1,000 decisions: at most 8 times python is wanted
    python benchmarks/ledger_listing.py --decisions 10000     # at most 1 s warm and 200 MB; takes 2 GB of disk
"""

from __future__ import annotations

import argparse
import compileall
import json
import random
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from unittest import mock

import campaign
from campaign.ledger import open_ledger
from campaign.records import (
    Block,
    Decision,
    Effect,
    Memory,
    MemoryChange,
    Plan,
    Round,
    Surroundings,
    Trial,
    Verdict,
    to_json,
)
from tests.builders import plan

PASS, FIRST, AGAIN = "python -c pass", "campaign ledger, the ledger just changed", "campaign ledger"
# A process counts the memory of the one it was forked from as its own, so a bare interpreter does it and not this one.
LAUNCHER = """
import os, sys, time
begun = time.perf_counter()
pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(pid, 0)
print(time.perf_counter() - begun, used.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
ORDER = ("control", "treatment", "treatment", "control") * 20


def round_of(registered: Plan, index: int) -> Round:
    arms = (registered.control, registered.treatment)
    trials = tuple(
        Trial(f"{registered.id}-{index}-{arm.role}", arm.role, "ok", warmup_seconds=(0.05,) * 12, steady=True,
              memory=Memory(23 << 20, 370 << 20), loss=5.0, gradient_norm=1.0, fingerprint={"torch": "2.13.0"})
        for arm in arms
    )  # fmt: skip
    return Round(f"{registered.id}-{index}", "screen", index, ORDER, trials, Surroundings(), "c0de", 9.0, 4.4)


def raw_of(rng: random.Random) -> bytes:
    """The rows of a round's blocks as the executor writes them, each with times of its own."""
    row = json.dumps(to_json(Block("ROLE", 0, 0, 1, 192, 0.5, 0.5, None, 3, 0.0, 5.1, 1.2, 0.052)))
    row = row.replace("ROLE", "%s").replace("0.5,", "%.9f,")
    return "".join(f"{row % (role, rng.gauss(0.05, 0.003), rng.gauss(0.05, 0.002))}\n" for role in ORDER).encode()


def decision_of(registered: Plan) -> Decision:
    effect = Effect("cpu", 1.04, 1.03, 1.05, 1.02, 1.06, 4, 0.003, 1.04, (1.04,) * 4, *((0.05,) * 8))
    verdict = Verdict("accept", "faster", "1.040x [1.030, 1.050] over 4 fresh rounds", effect=effect, screening=effect,
                      beside=effect, memory=MemoryChange(23 << 20, 22 << 20, 0.99, 0.98, 1.0, True, False, False),
                      look=1, alpha_spent=0.002, valid_rounds=8)  # fmt: skip
    return Decision(
        id=f"{registered.id}-decision", plan_id=registered.id, sequence=0, hypothesis=registered.id, claim="Faster.",
        workload="reference_cpu", device="cpu", predicted_ratio=1.04, verdict=verdict, stack=(), overrides=("a.b=c",),
        attempt=1, parity="rounding: ok", engagement="appears: 0 -> 34", low_precision="emulated", machine_line="here",
        command="python -m campaign hypothesis=x", decided_at="2026-12-01T12:00:00.000Z", wall_seconds=80.0,
        timed_seconds=36.0,
    )  # fmt: skip


def fill(root: Path, decisions: int) -> tuple[int, int, int]:
    """A campaign `many` under `root`; returns its ledger's lines and bytes, and its block times."""
    (root / "conf").mkdir()
    (root / "conf" / "config.yaml").write_text("")
    rng, rounds = random.Random(1), 0
    with open_ledger(root, "many", writable=True) as ledger:
        for number in range(decisions):
            registered = replace(plan(), id=f"idea_{number:05d}")
            ledger.append("registered", registered.id, to_json(registered))
            for index in range(7 if number % 4 == 3 else 6):
                measured = replace(round_of(registered, index), blocks_file=ledger.keep(raw_of(rng), ".jsonl"))
                rounds += 1
                for trial in measured.trials:
                    body = {"plan_id": registered.id, "round_id": measured.id, **to_json(trial)}
                    ledger.append("trial", trial.id, body)
                body = to_json(replace(measured, trials=()))
                body |= {"plan_id": registered.id, "trial_ids": [trial.id for trial in measured.trials]}
                del body["trials"], body["blocks"]
                ledger.append("blocks", measured.id, body)
            decision = decision_of(registered)
            ledger.append("decision", decision.id, to_json(decision))
            if number % 500 == 499:
                print(f"{number + 1} of {decisions} decisions written", file=sys.stderr)
    with (root / "runs" / "many" / "ledger.jsonl").open("rb") as file:
        return sum(1 for _ in file), file.tell(), rounds * len(ORDER)


def run(command: list[str], cwd: Path) -> tuple[float, float]:
    """Wall seconds and peak resident MiB of one command."""
    launch = [sys.executable, "-I", "-S", "-c", LAUNCHER, *command]
    said = subprocess.run(launch, cwd=cwd, capture_output=True, check=True, text=True).stderr.split()[-2:]
    return float(said[0]), int(said[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=15)
    given = parser.parse_args()
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        with mock.patch("os.fsync"):
            lines, size, blocks = fill(root, given.decisions)
        listing = [sys.executable, "-m", "campaign", "ledger", "--campaign", "many"]
        sides = {PASS: [sys.executable, "-c", "pass"], FIRST: listing, AGAIN: listing}
        taken: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
        compileall.compile_dir(campaign.__path__[0], quiet=1)  # as an installation does
        for _ in range(given.repeats):
            for side in rng.sample(list(sides), len(sides)):
                if side == FIRST:
                    (root / "runs" / "many" / ".listing.json").unlink(missing_ok=True)
                else:
                    run(sides[side], root)  # AGAIN finds the view; PASS is as warm as the others
                taken[side].append(run(sides[side], root))
    print(f"{given.decisions} decisions, {lines} lines, {size / 2**20:.1f} MiB, {blocks} block times\n")
    print("| command | median ms | ratio, median | peak MiB | repeats |\n|---|---|---|---|---|")
    for side in sides:
        ratios = [ours[0] / bare[0] for ours, bare in zip(taken[side], taken[PASS], strict=True)]
        milliseconds = 1e3 * statistics.median(one[0] for one in taken[side])
        peak = max(one[1] for one in taken[side])
        print(f"| {side} | {milliseconds:.1f} | {statistics.median(ratios):.2f} | {peak:.1f} | {given.repeats} |")


if __name__ == "__main__":
    main()
