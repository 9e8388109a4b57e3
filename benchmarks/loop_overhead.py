"""What the two lines cost a training loop outside a campaign: seconds a step, against the same loop without them.

    python -m benchmarks.loop_overhead

Both sides run in this process in turn, `REPEATS` times; the table has the median difference a step and its range, in
nanoseconds, beside the resolution of the clock.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import campaign

STEPS = 200_000
REPEATS = 15


def bare(batches: list[int]) -> None:
    for _ in batches:
        pass


def steps(batches: list[int]) -> None:
    for _ in campaign.steps(batches, tokens=1):
        pass


def step(batches: list[int]) -> None:
    for _ in batches:
        with campaign.step(tokens=1):
            pass


def steps_and_record(batches: list[int]) -> None:
    loss = 1.0
    for _ in campaign.steps(batches, tokens=1):
        campaign.record(loss=loss)


def seconds(loop: Callable[[list[int]], None], batches: list[int]) -> float:
    began = time.perf_counter()
    loop(batches)
    return time.perf_counter() - began


def main() -> None:
    batches = list(range(STEPS))
    sides = (steps, step, steps_and_record)
    added: dict[str, list[float]] = {side.__name__: [] for side in sides}
    for _ in range(REPEATS):
        for side in sides:
            before = seconds(bare, batches)
            with_it = seconds(side, batches)
            after = seconds(bare, batches)
            added[side.__name__].append((with_it - (before + after) / 2) / STEPS * 1e9)
    print("| in the loop | added a step, median (range) |")
    print("|---|---|")
    for name, found in added.items():
        print(f"| `campaign.{name}` | {statistics.median(found):.0f} ns ({min(found):.0f} to {max(found):.0f}) |")
    resolution = time.get_clock_info("perf_counter").resolution * 1e9
    print(f"\n{REPEATS} repeats of {STEPS:,} steps; resolution of the clock {resolution:g} ns")


if __name__ == "__main__":
    main()
