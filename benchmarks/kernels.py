"""Each compiled CPU kernel against eager torch and torch.compile: seconds forward and backward, and their errors.

All sides of a contest run in this process on one thread and one core, in turns: in each round every side runs once in
random order, as often as makes 20 ms, on process CPU time. A ratio is taken per round; the table shows the geometric
mean over rounds with its 95 % Student-t interval. Above 1 means that our kernel is the faster one. Before anything is
timed each kernel's cases are checked against its reference in float64; no speed is printed of a family that is red.

    python benchmarks/kernels.py                       # everything, as Markdown
    python benchmarks/kernels.py --family prenorm --rounds 20 --json
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy
import torch
from scipy import stats

from benchmarks.kernel_errors import error_rows
from benchmarks.kernel_sides import CONTESTS, STREAMING, Contest, Run, recurrence_inputs, recurrence_side

AT_LEAST_SECONDS = 0.02
MODULES = {
    "prenorm": "kernels.prenorm",
    "quantize": "kernels.quantize",
    "gated": "kernels.gated",
    "recurrence": "kernels.recurrence_forms",
}


def seconds(run: Run, times: int) -> float:
    """Process CPU seconds a call, over `times` calls."""
    begun = time.process_time_ns()
    for _ in range(times):
        run()
    return (time.process_time_ns() - begun) / 1e9 / times


def in_turns(sides: Mapping[str, Run], rounds: int) -> dict[str, list[float]]:
    """Seconds a call of every side, one value a round."""
    times = {}
    for name, run in sides.items():
        seconds(run, 2)  # compiles, and fills caches
        times[name] = max(1, round(AT_LEAST_SECONDS / max(seconds(run, 3), 1e-7)))
    found: dict[str, list[float]] = {name: [] for name in sides}
    rng = random.Random(1)
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for name in rng.sample(list(sides), len(sides)):
            found[name].append(seconds(sides[name], times[name]))
    gc.enable()
    return found


def ratio(others: list[float], ours: list[float]) -> dict[str, float]:
    """others / ours: the geometric mean over rounds with its 95 % Student-t interval."""
    logs = numpy.log(numpy.array(others) / numpy.array(ours))
    half = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / len(logs) ** 0.5
    return {
        name: float(numpy.exp(logs.mean() + shift)) for name, shift in (("ratio", 0), ("low", -half), ("high", half))
    }


def shown(found: Mapping[str, float]) -> str:
    return f"{found['ratio']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"


def speed_row(contest: Contest, rounds: int) -> dict[str, Any]:
    found = in_turns(contest.sides, rounds)
    ours = found[contest.ours]
    row = {"family": contest.family, "size": contest.size, "microseconds": 1e6 * float(numpy.median(ours))}
    return row | {name: ratio(times, ours) for name, times in found.items() if name != contest.ours}


def streaming_row(contest: Contest, rounds: int) -> dict[str, Any]:
    """The kernel's time over the time that a copy takes to move as many bytes."""
    source = torch.zeros(16 << 20)
    target = torch.zeros_like(source)
    found = in_turns({"ours": contest.sides[contest.ours], "copy": lambda: target.copy_(source)}, rounds)
    per_byte = [one / (8 * source.numel()) for one in found["copy"]]
    copying = [one * contest.bytes_moved for one in per_byte]
    return {
        "family": contest.family,
        "size": contest.size,
        "mebibytes": contest.bytes_moved / 2**20,
        "copy_gigabytes_per_second": 1e-9 / float(numpy.median(per_byte)),
        "of_copy": ratio(found["ours"], copying),
    }


def length_rows(rounds: int) -> list[dict[str, Any]]:
    """Nanoseconds a token of the recurrence, forward and backward, by sequence length."""
    rows = []
    for tokens in (512, 1024, 2048, 4096, 8192):
        inputs = recurrence_inputs(tokens)
        sides = {name: recurrence_side(name, inputs) for name in ("cpu", "chunked")}
        found = in_turns(sides, max(3, rounds // 3))
        rows.append({"tokens": tokens} | {name: 1e9 * float(numpy.median(t)) / tokens for name, t in found.items()})
    return rows


def naive_rows(rounds: int) -> list[dict[str, Any]]:
    """The sequential recurrence against the chunked forms."""
    rows = []
    for tokens in (192, 1920):
        inputs = recurrence_inputs(tokens)
        sides = {name: recurrence_side(name, inputs) for name in ("reference", "chunked", "cpu")}
        found = in_turns(sides, max(3, rounds // 3))
        row: dict[str, Any] = {"tokens": tokens}
        rows.append(row | {name: ratio(found["reference"], found[name]) for name in ("chunked", "cpu")})
    return rows


def markdown(told: Mapping[str, Any]) -> str:
    """Every table that was measured, errors first."""
    lines = _table(
        "kernel | implementation | cases | error / allowed: outputs | gradients |  ",
        [
            f"{one['family']} | {one['implementation']} | {one['cases']} | {one['outputs']:.2g} |"
            f" {'-' if one['gradients'] is None else format(one['gradients'], '.2g')} |"
            f" {'green' if one['green'] else 'RED'}"
            for one in told["errors"]
        ],
    )
    lines += _table(
        "kernel | size | us a call | eager / ours | torch.compile / ours",
        [
            f"{one['family']} | {one['size']} | {one['microseconds']:.1f} | {shown(one['eager'])} |"
            f" {shown(one['torch.compile'])}"
            for one in told["speed"]
        ],
    )
    lines += _table(
        "streaming kernel | size | MiB moved | copy GB/s | its time / the copy's",
        [
            f"{one['family']} | {one['size']} | {one['mebibytes']:.0f} | {one['copy_gigabytes_per_second']:.1f} |"
            f" {shown(one['of_copy'])}"
            for one in told["streaming"]
        ],
    )
    naive = [f"{one['tokens']} | {shown(one['chunked'])} | {shown(one['cpu'])}" for one in told["naive"]]
    lines += _table("tokens | naive / chunked torch | naive / compiled", naive)
    length = [f"{one['tokens']} | {one['cpu']:.0f} | {one['chunked']:.0f}" for one in told["length"]]
    lines += _table("tokens | compiled, ns a token | chunked torch, ns a token", length)
    return "\n".join(lines)


def _table(head: str, rows: list[str]) -> list[str]:
    if not rows:
        return []
    return [f"| {head} |", "|" + "---|" * (head.count("|") + 1), *(f"| {row} |" for row in rows), ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--family", choices=tuple(MODULES), action="append", help="only these")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    families = given.family or list(MODULES)
    errors = [row for family in families for row in error_rows(family, MODULES[family])]
    red = {row["family"] for row in errors if not row["green"]}
    told: dict[str, Any] = {"errors": errors, "speed": [], "streaming": [], "naive": [], "length": []}
    for family in (one for one in families if one not in red):
        for make in CONTESTS[family]:
            contest = make()
            print(f"{contest.family}, {contest.size}", file=sys.stderr)
            told["speed"].append(speed_row(contest, given.rounds))
        if family in STREAMING:
            told["streaming"].append(streaming_row(STREAMING[family](), max(5, given.rounds // 2)))
        if family == "recurrence":
            told["naive"], told["length"] = naive_rows(given.rounds), length_rows(given.rounds)
    print(json.dumps(told, indent=1) if given.json else markdown(told))
    if red:
        raise SystemExit(f"red, so no speed is shown: {', '.join(sorted(red))}")


if __name__ == "__main__":
    main()
