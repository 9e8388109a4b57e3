"""Seconds a step inside the protocol against the same steps in a bare loop: at most 1.01 is wanted.

The protocol's side is its worker processes, each running the same arm and pinned to one core as in a round, asked over
their pipes for one-step blocks: `in turns`, two that take them alternately as in a round, each block after the
protocol's `lead_steps`; `cold`, the same without those, where a step finds the caches full of the other arm's data; and
`alone`, one process that takes all the blocks. The bare side is one process of `bare_loop.py`, which knows nothing of
`campaign`: as many steps in a `for` loop, on the same core, with the collector on. One side steps at a time, in random
order in each repeat; the ratio of seconds a step is taken per repeat, and the table shows the median with its 95 %
bootstrap interval. What lies between two `cold` blocks (the hand-over, untimed by the protocol) is shown apart.

The worker tells glibc to keep freed pages, which makes the step itself faster. That is no part of the harness's cost,
so the bare process gets the same two thresholds, through MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_.

    python benchmarks/harness_overhead.py --repeats 20
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy
from scipy.stats import bootstrap

from campaign.config import load
from campaign.executor import TrialProcess
from campaign.executor.process import build_request
from campaign.records import Arm

ROOT = Path(__file__).resolve().parents[1]
STEPS = 20
SIDES = ("in turns", "cold", "alone")
DEADLINE = 120.0
THRESHOLDS = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "2147483647"}


class BareLoop:
    """A process of `bare_loop.py` that has built `arm`, pinned to `cores`."""

    def __init__(self, arm: Arm, cores: Sequence[int]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(ROOT / "benchmarks" / "bare_loop.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **arm.environment, **THRESHOLDS},
            text=True,
        )
        answer = self._ask(json.dumps({"root": str(ROOT), "target": arm.target, "config": arm.config}))
        if answer != "ready":
            raise SystemExit(f"bare_loop.py did not build the workload: {answer or 'see its traceback above'}")
        for thread in os.listdir(f"/proc/{self._process.pid}/task"):
            os.sched_setaffinity(int(thread), cores)

    def run(self, steps: int) -> tuple[float, float]:
        """(wall seconds, CPU seconds) of `steps` steps."""
        wall, cpu = map(float, self._ask(str(steps)).split())
        return wall, cpu

    def _ask(self, line: str) -> str:
        commands, answers = self._process.stdin, self._process.stdout
        assert commands is not None and answers is not None
        commands.write(f"{line}\n")
        commands.flush()
        return answers.readline().strip()

    def __enter__(self) -> BareLoop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()


def in_turns(processes: Sequence[TrialProcess], lead: int) -> tuple[float, float, float]:
    """(wall seconds in blocks, CPU seconds in blocks, wall seconds from the first block's start to the last one's end)
    of STEPS one-step blocks of each process, each after `lead` steps."""
    begun = time.perf_counter()
    blocks = [one.ask("block", DEADLINE, steps=1, lead=lead) for _ in range(STEPS) for one in processes]
    whole = time.perf_counter() - begun
    return sum(block["wall_seconds"] for block in blocks), sum(block["cpu_seconds"] for block in blocks), whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    job = load(ROOT, [])
    arm, lead = job.arm("control", "root", []), job.protocol.lead_steps
    cores = sorted(os.sched_getaffinity(0))[-1:]
    rng = random.Random(1)
    ratios: dict[tuple[str, str], list[float]] = {(side, clock): [] for side in SIDES for clock in ("wall", "cpu")}
    between, steps = [], 2 * STEPS
    with tempfile.TemporaryDirectory() as logs:
        with TrialProcess(arm, Path(logs) / "a") as first, TrialProcess(arm, Path(logs) / "b") as second:
            for one in (first, second):
                one.ask("build", DEADLINE, **build_request(arm, ROOT, "", {}))
                one.ask("pin", DEADLINE, cores=cores)
                one.ask("block", DEADLINE, steps=STEPS)
                one.ask("settle", DEADLINE)
            with BareLoop(arm, cores) as bare:
                bare.run(STEPS)
                for repeat in range(given.repeats):
                    seconds: dict[str, tuple[float, float]] = {}
                    for side in rng.sample(["bare", *SIDES], 1 + len(SIDES)):
                        if side == "bare":
                            seconds[side] = bare.run(steps)
                            continue
                        both = (first, first) if side == "alone" else (first, second)
                        wall, cpu, whole = in_turns(both, lead if side == "in turns" else 0)
                        seconds[side] = (wall, cpu)
                        if side == "cold":
                            between.append((whole - wall) / steps)
                    for side in SIDES:
                        for place, clock in enumerate(("wall", "cpu")):
                            ratios[side, clock].append(seconds[side][place] / seconds["bare"][place])
                    print(f"repeat {repeat + 1} of {given.repeats}", file=sys.stderr)
    print("| seconds a step, protocol / bare loop | clock | median | 95 % interval | repeats |")
    print("|---|---|---|---|---|")
    for (side, clock), found in ratios.items():
        low, high = bootstrap((numpy.array(found),), numpy.median, rng=1).confidence_interval
        print(f"| {side} | {clock} | {numpy.median(found):.4f} | [{low:.4f}, {high:.4f}] | {len(found)} |")
    print(f"\nbetween two blocks, outside the timed part: {1e6 * float(numpy.median(between)):.0f} us")


if __name__ == "__main__":
    main()
