"""Times the sides of each contest in turns and prints the tables of `benchmarks/kernels.py`, which says how."""

from __future__ import annotations

import argparse
import ctypes
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
from benchmarks.kernel_sides import Contest, Run, contests, recurrence_inputs, recurrence_side, streaming

AT_LEAST_SECONDS = 0.02
OF_COPY = 1.5
MODULES = {
    "prenorm": "kernels.prenorm",
    "quantize": "kernels.quantize",
    "gated": "kernels.gated",
    "fp4": "kernels.fp4",
    "recurrence": "kernels.recurrence_forms",
}


def seconds(run: Run, times: int, device: str) -> float:
    """Seconds a call over `times` calls: process CPU time, or event time on CUDA."""
    if device == "cuda":
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        for _ in range(times):
            run()
        ended.record()
        ended.synchronize()
        return begun.elapsed_time(ended) / 1e3 / times
    start = time.process_time_ns()
    for _ in range(times):
        run()
    return (time.process_time_ns() - start) / 1e9 / times


def in_turns(sides: Mapping[str, Run], rounds: int, device: str) -> dict[str, list[float]]:
    """Seconds a call of every side, one value a round."""
    times = {}
    for name, run in sides.items():
        seconds(run, 3, device)  # compiles, and fills caches
        times[name] = max(1, round(AT_LEAST_SECONDS / max(seconds(run, 3, device), 1e-7)))
    found: dict[str, list[float]] = {name: [] for name in sides}
    rng = random.Random(1)
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for name in rng.sample(list(sides), len(sides)):
            found[name].append(seconds(sides[name], times[name], device))
    gc.enable()
    return found


def ratio(others: list[float], ours: list[float]) -> dict[str, float]:
    """others / ours: the geometric mean over rounds with its 95 % Student-t interval."""
    logs = numpy.log(numpy.array(others) / numpy.array(ours))
    half = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / len(logs) ** 0.5
    shifts = {"ratio": 0.0, "low": -half, "high": half}
    return {name: float(numpy.exp(logs.mean() + shift)) for name, shift in shifts.items()}


def speed_row(contest: Contest, rounds: int, device: str) -> dict[str, Any]:
    found = in_turns({name: make() for name, make in contest.sides.items()}, rounds, device)
    ratios = {name: ratio(times, found["ours"]) for name, times in found.items() if name != "ours"}
    return {
        "family": contest.family,
        "size": contest.size,
        "microseconds": 1e6 * float(numpy.median(found["ours"])),
        **ratios,
        "met": all(ratios[name]["ratio"] >= aim for name, aim in contest.aims.items()),
    }


def streaming_row(contest: Contest, rounds: int, device: str) -> dict[str, Any]:
    """The kernel's time over the time that a copy takes to move as many bytes. Both make their outputs anew."""
    source = torch.zeros(6 << 20 if device == "cpu" else 128 << 20, device=device)
    found = in_turns({"ours": contest.sides["ours"](), "copy": source.clone}, rounds, device)
    per_byte = [one / (8 * source.numel()) for one in found["copy"]]
    of_copy = ratio(found["ours"], [one * contest.bytes_moved for one in per_byte])
    return {
        "family": contest.family,
        "size": contest.size,
        "mebibytes": contest.bytes_moved / 2**20,
        "copy_gigabytes_per_second": 1e-9 / float(numpy.median(per_byte)),
        "of_copy": of_copy,
        "met": of_copy["ratio"] <= OF_COPY,
    }


def length_rows(rounds: int, device: str) -> list[dict[str, Any]]:
    """Nanoseconds a token of the recurrence, forward and backward, by sequence length."""
    rows = []
    for tokens in (512, 1024, 2048, 4096, 8192):
        inputs = recurrence_inputs(tokens, device)
        sides = {name: recurrence_side(name, inputs) for name in ("triton" if device == "cuda" else "cpu", "chunked")}
        found = in_turns(sides, max(3, rounds // 3), device)
        medians = [1e9 * float(numpy.median(times)) / tokens for times in found.values()]
        rows.append({"tokens": tokens, "ours": medians[0], "chunked": medians[1]})
    return rows


def backward_rows(rounds: int, device: str) -> list[dict[str, Any]]:
    """The recurrence with each variant of its backward pass, and under register caps, against the fused one without."""
    ours, caps = ("triton", (168, 128)) if device == "cuda" else ("cpu", (24, 16, 12, 8, 6))
    variants = [("phase_split", 0), ("live_state", 0), *(("fused", cap) for cap in caps)]
    rows = []
    for tokens in (192, 1920):
        inputs = recurrence_inputs(tokens, device)
        names = {(backward, cap): f"{backward}, {f'cap {cap}' if cap else 'no cap'}" for backward, cap in variants}
        sides = {name: recurrence_side(ours, inputs, *variant) for variant, name in names.items()}
        found = in_turns({"fused": recurrence_side(ours, inputs), **sides}, rounds, device)
        rows += [{"tokens": tokens, "variant": name, "ratio": ratio(found["fused"], found[name])} for name in sides]
    return rows


def naive_rows(rounds: int, device: str) -> list[dict[str, Any]]:
    """The sequential recurrence against the chunked forms."""
    rows = []
    for tokens in (192, 1920):
        inputs, ours = recurrence_inputs(tokens, device), "triton" if device == "cuda" else "cpu"
        sides = {name: recurrence_side(name, inputs) for name in ("reference", "chunked", ours)}
        found = in_turns(sides, max(3, rounds // 3), device)
        shown = {"chunked": ratio(found["reference"], found["chunked"]), "ours": ratio(found["reference"], found[ours])}
        rows.append({"tokens": tokens, **shown, "met": shown["chunked"]["ratio"] >= 5})
    return rows


def shown(found: Mapping[str, float]) -> str:
    return f"{found['ratio']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"


def markdown(told: Mapping[str, Any]) -> str:
    """Every table that was measured, errors first."""
    lines = _table(
        "kernel | implementation | cases | largest error / allowed |  ",
        [
            f"{one['family']} | {one['implementation']} | {one['cases']} |"
            f" {', '.join(f'{name} {share:.2g}' for name, share in one['shares'].items())} |"
            f" {'green' if one['green'] else 'RED'}"
            for one in told["errors"]
        ],
    )
    lines += _table(
        "kernel | size | us a call | eager / ours | torch.compile / ours | aim",
        [
            f"{one['family']} | {one['size']} | {one['microseconds']:.1f} | {shown(one['eager'])} |"
            f" {shown(one['torch.compile'])} | {_met(one)}"
            for one in told["speed"]
        ],
    )
    lines += _table(
        "streaming kernel | size | MiB moved | copy GB/s | its time / the copy's | aim",
        [
            f"{one['family']} | {one['size']} | {one['mebibytes']:.0f} | {one['copy_gigabytes_per_second']:.1f} |"
            f" {shown(one['of_copy'])} | {_met(one)}"
            for one in told["streaming"]
        ],
    )
    naive = [f"{one['tokens']} | {shown(one['chunked'])} | {shown(one['ours'])} | {_met(one)}" for one in told["naive"]]
    lines += _table("tokens | naive / chunked torch | naive / compiled | aim", naive)
    length = [f"{one['tokens']} | {one['ours']:.0f} | {one['chunked']:.0f}" for one in told["length"]]
    lines += _table("tokens | compiled, ns a token | chunked torch, ns a token", length)
    backward = [f"{one['tokens']} | {one['variant']} | {shown(one['ratio'])}" for one in told["backward"]]
    lines += _table("tokens | recurrent backward | fused without a cap / it", backward)
    return "\n".join(lines)


def _met(row: Mapping[str, Any]) -> str:
    return "met" if row["met"] else "MISSED"


def _table(head: str, rows: list[str]) -> list[str]:
    if not rows:
        return []
    return [f"| {head} |", "|" + "---|" * (head.count("|") + 1), *(f"| {row} |" for row in rows), ""]


def settle(device: str) -> None:
    """One thread, one core, and glibc told to keep freed pages, as a trial's process is."""
    torch.set_num_threads(1)
    if device == "cpu":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
        libc = ctypes.CDLL(None)
        libc.mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD; glibc takes no more
        libc.mallopt(-1, (1 << 31) - 1)  # M_TRIM_THRESHOLD


def main(description: str) -> None:
    """Measure what the command line asks for. Raises SystemExit where a family is red."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--family", choices=tuple(MODULES), action="append", help="only these")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    device, rounds = given.device, given.rounds
    settle(device)
    families = given.family or list(MODULES)
    errors = [row for family in families for row in error_rows(family, MODULES[family], device)]
    red = {row["family"] for row in errors if not row["green"]}
    told: dict[str, Any] = {"errors": errors, "speed": [], "streaming": [], "naive": [], "length": [], "backward": []}
    for family in (one for one in families if one not in red):
        for contest in contests(family, device):
            print(f"{contest.family}, {contest.size}", file=sys.stderr)
            told["speed"].append(speed_row(contest, rounds, device))
        told["streaming"] += [streaming_row(one, max(5, rounds // 2), device) for one in streaming(family, device)]
        if family == "recurrence":
            told["naive"], told["length"] = naive_rows(rounds, device), length_rows(rounds, device)
            told["backward"] = backward_rows(rounds, device)
    print(json.dumps(told, indent=1) if given.json else markdown(told))
    if red:
        raise SystemExit(f"red, so no speed is shown: {', '.join(sorted(red))}")
