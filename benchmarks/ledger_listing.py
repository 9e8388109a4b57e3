"""`campaign ledger` on 1,000 decisions against `python -c pass`: at most 8 times its wall time is wanted.

The ledger holds, as a real campaign's would, a registered plan, 8 rounds of 2 trials and a decision for each of the
1,000. The commands run in turn, in random order; the table shows medians of wall time and the median of their paired
ratios. The first listing after the ledger changed reads it; later ones take the view that the first one kept.

    python benchmarks/ledger_listing.py --repeats 15
"""

from __future__ import annotations

import argparse
import compileall
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import campaign
from campaign.ledger import open_ledger
from campaign.records import Decision, Effect, Memory, MemoryChange, Plan, Round, Surroundings, Trial, Verdict, to_json
from tests.builders import plan

PASS, FIRST, AGAIN = "python -c pass", "campaign ledger, the ledger just changed", "campaign ledger"
DECISIONS = 1000
ROUNDS = 8


def round_of(registered: Plan, index: int) -> Round:
    arms = (registered.control, registered.treatment)
    trials = tuple(
        Trial(f"{registered.id}-{index}-{arm.role}", arm.role, "ok", warmup_seconds=(0.05,) * 12, steady=True,
              memory=Memory(23 << 20, 370 << 20), loss=5.0, gradient_norm=1.0, fingerprint={"torch": "2.13.0"})
        for arm in arms
    )  # fmt: skip
    order = ("control", "treatment", "treatment", "control") * 20
    return Round(f"{registered.id}-{index}", "screen", index, order, trials, Surroundings(), "c0de", 9.0, 4.4)


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


def fill(root: Path) -> tuple[int, int]:
    """A campaign `many` under `root`; returns its ledger's lines and bytes."""
    (root / "conf").mkdir()
    (root / "conf" / "config.yaml").write_text("")
    with open_ledger(root, "many", writable=True) as ledger:
        for number in range(DECISIONS):
            registered = replace(plan(), id=f"idea_{number:04d}")
            ledger.append("registered", registered.id, to_json(registered))
            for index in range(ROUNDS):
                measured = round_of(registered, index)
                for trial in measured.trials:
                    body = {"plan_id": registered.id, "round_id": measured.id, **to_json(trial)}
                    ledger.append("trial", trial.id, body)
                body = to_json(replace(measured, trials=()))
                body |= {"plan_id": registered.id, "trial_ids": [trial.id for trial in measured.trials]}
                del body["trials"], body["blocks"]
                ledger.append("blocks", measured.id, body)
            decision = decision_of(registered)
            ledger.append("decision", decision.id, to_json(decision))
            if number % 100 == 99:
                print(f"{number + 1} of {DECISIONS} decisions written", file=sys.stderr)
        data = (ledger.folder / "ledger.jsonl").read_bytes()
        return data.count(b"\n"), len(data)


def seconds(command: list[str], cwd: Path) -> float:
    begun = time.perf_counter()
    subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, check=True, env=dict(os.environ))
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    given = parser.parse_args()
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        lines, size = fill(root)
        listing = [sys.executable, "-m", "campaign", "ledger", "--campaign", "many"]
        sides = {PASS: [sys.executable, "-c", "pass"], FIRST: listing, AGAIN: listing}
        taken: dict[str, list[float]] = {side: [] for side in sides}
        compileall.compile_dir(campaign.__path__[0], quiet=1)  # as an installation does
        for _ in range(given.repeats):
            for side in rng.sample(list(sides), len(sides)):
                if side == FIRST:
                    (root / "runs" / "many" / ".listing.json").unlink(missing_ok=True)
                else:
                    seconds(sides[side], root)  # AGAIN finds the view; PASS is as warm as the others
                taken[side].append(seconds(sides[side], root))
    print(f"{DECISIONS} decisions, {lines} lines, {size / 2**20:.1f} MiB\n")
    print("| command | median ms | ratio, median | repeats |\n|---|---|---|---|")
    for side in sides:
        ratios = [a / b for a, b in zip(taken[side], taken[PASS], strict=True)]
        milliseconds = 1e3 * statistics.median(taken[side])
        print(f"| {side} | {milliseconds:.1f} | {statistics.median(ratios):.2f} | {given.repeats} |")


if __name__ == "__main__":
    main()
