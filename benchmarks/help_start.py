"""How long `campaign --help` takes beside `python -c pass`, in one run: at most 6 times wanted.

    python benchmarks/help_start.py [--repeats N]

Sides take turns, so that the machine's mood is shared. Medians of wall time, and of the ratios of neighbours.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIDES = {
    "python -c pass": ("-c", "pass"),
    "campaign --help": ("-m", "campaign", "--help"),
    "campaign ledger --help": ("-m", "campaign", "ledger", "--help"),
    "campaign completion bash": ("-m", "campaign", "completion", "bash"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    times: dict[str, list[float]] = {name: [] for name in SIDES}
    for turn in range(repeats + 1):
        for name, words in SIDES.items():
            seconds = timed(words)
            if turn:  # the first turn writes byte code and fills the disk's cache
                times[name].append(seconds)
    base = times["python -c pass"]
    print("| command | median ms | ratio, median | repeats |\n|---|---|---|---|")
    for name, found in times.items():
        ratio = statistics.median(one / other for one, other in zip(found, base, strict=True))
        print(f"| {name} | {1000 * statistics.median(found):.1f} | {ratio:.2f} | {repeats} |")


def timed(words: tuple[str, ...]) -> float:
    """Seconds of one process, in the repository."""
    begun = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
