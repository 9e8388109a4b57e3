"""Seconds a step inside the protocol against the same steps in a bare loop: at most 1.01 is wanted.

Two processes of the reference workload run the same arm, pinned to one core as in a round. Each repeat times STEPS
steps as the protocol does (one-step blocks, the two processes taking turns over their pipes) and STEPS steps of the
same two processes in bare loops (one command, one pair of clock readings), in random order. The ratio of the two is
taken per repeat; the table shows the median with its 95 % bootstrap interval. What lies between two blocks (the
hand-over, untimed by the protocol) is shown apart.

    python benchmarks/harness_overhead.py --repeats 20
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy
from scipy.stats import bootstrap

from campaign.config import load
from campaign.executor import TrialProcess
from campaign.executor.process import build_request

ROOT = Path(__file__).resolve().parents[1]
STEPS = 20
DEADLINE = 120.0


def in_turns(processes: list[TrialProcess], clock: str) -> tuple[float, float]:
    """(seconds in blocks, wall seconds from the first block's start to the last one's end) for STEPS steps each."""
    begun = time.perf_counter()
    blocks = [one.ask("block", DEADLINE, steps=1) for _ in range(STEPS) for one in processes]
    return sum(block[f"{clock}_seconds"] for block in blocks), time.perf_counter() - begun


def bare(processes: list[TrialProcess], clock: str) -> float:
    """Seconds of STEPS steps in a row in each process."""
    return sum(one.ask("block", DEADLINE, steps=STEPS)[f"{clock}_seconds"] for one in processes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    arm = load(ROOT, []).arm("control", "root", [])
    rng = random.Random(1)
    rows: dict[str, list[float]] = {"wall": [], "cpu": []}
    between = []
    with tempfile.TemporaryDirectory() as logs:
        with TrialProcess(arm, Path(logs) / "a") as first, TrialProcess(arm, Path(logs) / "b") as second:
            processes = [first, second]
            for one in processes:
                one.ask("build", DEADLINE, **build_request(arm, ROOT, "", {}))
                one.ask("pin", DEADLINE, cores=sorted(os.sched_getaffinity(0))[-1:])
                one.ask("block", DEADLINE, steps=STEPS)
                one.ask("settle", DEADLINE)
            for repeat in range(given.repeats):
                for clock in rows:
                    taken = {}
                    for side in rng.sample(["turns", "bare"], 2):
                        if side == "turns":
                            taken[side], whole = in_turns(processes, clock)
                            if clock == "wall":
                                between.append((whole - taken[side]) / (2 * STEPS))
                        else:
                            taken[side] = bare(processes, clock)
                    rows[clock].append(taken["turns"] / taken["bare"])
                print(f"repeat {repeat + 1} of {given.repeats}", file=sys.stderr)
    print("| seconds a step, protocol / bare loop | median | 95 % interval | repeats |")
    print("|---|---|---|---|")
    for clock, ratios in rows.items():
        low, high = bootstrap((numpy.array(ratios),), numpy.median, rng=1).confidence_interval
        print(f"| {clock} | {numpy.median(ratios):.4f} | [{low:.4f}, {high:.4f}] | {len(ratios)} |")
    print(f"\nbetween two blocks, outside the timed part: {1e6 * float(numpy.median(between)):.0f} us")


if __name__ == "__main__":
    main()
