"""How fast and how small the reading of a trace is: `campaign` against HTA, traceinsight, and one msgspec decode.

Makes a synthetic Kineto trace in a temporary folder, its gzip, and one four times as long. Each side answers where a
device was idle and which kernels took its time, in a process of its own: CPU time of the work (all threads and child
processes, imports left out), peak resident memory of the process (with its imports). The sides take turns in random
order; figures are medians over the repeats. The decode is of the file's bytes at once into the reader's own struct.

    python benchmarks/trace_reading.py --hta HTA/bin/python --traceinsight TI/bin/python
    python benchmarks/trace_reading.py --events 100000 --repeats 3        # smaller, without the others

Environments for the others: python -m venv HTA && HTA/bin/pip install HolisticTraceAnalysis==0.5.0, and traceinsight.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.synthetic_trace import write

CAMPAIGN, GZIP, LONGER = "campaign: read, idle, families", "the same, .json.gz", "the same, 4x as many events"
WHOLE, DECODE = "campaign: the whole diagnosis", "one msgspec decode, read and decoded at once"
HTA, TRACEINSIGHT = "HolisticTraceAnalysis", "traceinsight"
MEASURED = """
import json, os, re, sys, time
from pathlib import Path
path = Path(sys.argv[1])
{imports}
before = os.times()
{work}
after = os.times()
seconds = sum(after[:4]) - sum(before[:4])
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
Path(sys.argv[2]).write_text(json.dumps([seconds, peak / 1024, answer]))
"""
READ = (
    "from campaign.traces import open_profile\n"
    "from campaign.diagnosis.busy import sweep\n"
    "from campaign.diagnosis.families import Classifier\n"
    "from campaign.diagnosis.question import Question\n"
    "from campaign.diagnosis.whole import diagnose, share_out",
    "classifier = Classifier()\n"
    "timeline = open_profile(path)\n"
    "busy = sweep(timeline, classifier.family)\n"
    "families = share_out(busy, timeline.names, classifier.titles)\n"
    "answer = [busy.idle_ns, sum(use.events for use in busy.devices), len(families.shares)]",
)
DIAGNOSE = (READ[0], "found = diagnose(open_profile(path), [], Question())\nanswer = found.dispatch.devices[0].idle_ns")
AT_ONCE = (
    "import msgspec\nfrom campaign.traces._kineto_events import Event\n"
    "class Whole(msgspec.Struct):\n    traceEvents: list[Event]",
    "answer = len(msgspec.json.decode(path.read_bytes(), type=Whole).traceEvents)",
)
OTHER = (
    "from hta.trace_analysis import TraceAnalysis",
    "analysis = TraceAnalysis(trace_files={0: str(path)})\n"
    "idle, _ = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)\n"
    "kinds, kernels = analysis.get_gpu_kernel_breakdown(visualize=False)\n"
    "answer = [float(idle['idle_time'].sum()), len(kernels)]",
)


@dataclass(frozen=True)
class Side:
    name: str
    python: str
    code: tuple[str, str]
    path: Path
    repeats: int


@dataclass(frozen=True)
class Taken:
    cpu_seconds: float
    peak_mib: float
    answer: object


def run(side: Side, folder: Path) -> Taken:
    out = folder / "measured.json"
    script = MEASURED.format(imports=side.code[0], work=side.code[1])
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "MPLBACKEND": "Agg"}
    command = [side.python, "-c", script, str(side.path), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    if done.returncode:
        raise SystemExit(f"{side.name} failed:\n{done.stderr[-3000:]}")
    return Taken(*json.loads(out.read_text()))


def pack(path: Path) -> Path:
    """The file as `gzip` would make it."""
    packed = path.with_name(path.name + ".gz")
    with path.open("rb") as plain, gzip.open(packed, "wb", compresslevel=6) as file:
        shutil.copyfileobj(plain, file, 1 << 20)
    return packed


def table(taken: dict[str, list[Taken]]) -> str:
    cpu = {name: statistics.median(one.cpu_seconds for one in rows) for name, rows in taken.items()}
    lines = ["| side | CPU s | against campaign | peak MiB | runs |", "|---|---|---|---|---|"]
    for name, rows in taken.items():
        peak = max(one.peak_mib for one in rows)
        lines.append(f"| {name} | {cpu[name]:.2f} | {cpu[name] / cpu[CAMPAIGN]:.2f} | {peak:.0f} | {len(rows)} |")
    return "\n".join(lines)


def aims(taken: dict[str, list[Taken]]) -> str:
    cpu = {name: statistics.median(one.cpu_seconds for one in rows) for name, rows in taken.items()}
    peak = {name: max(one.peak_mib for one in rows) for name, rows in taken.items()}
    found = [
        ("CPU against one decode", cpu[CAMPAIGN] / cpu[DECODE], "at most 2"),
        (".json.gz against plain, CPU", cpu[GZIP] / cpu[CAMPAIGN], "at most 1.5"),
        ("peak MiB", peak[CAMPAIGN], "under 250"),
        ("peak MiB with 4x as many events", peak[LONGER], "under 250, and flat"),
    ]
    for name in (HTA, TRACEINSIGHT):
        if name in taken:
            found.insert(0, (f"CPU of {name} against campaign", cpu[name] / cpu[CAMPAIGN], "at least 15"))
    return "\n".join(
        ["| figure | value | wanted |", "|---|---|---|", *(f"| {a} | {b:.2f} | {c} |" for a, b, c in found)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000, help="device events of the trace")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--hta", help="a Python that has HolisticTraceAnalysis")
    parser.add_argument("--traceinsight", help="a Python that has traceinsight")
    parser.add_argument("--others-repeats", type=int, default=1, help="how often the two others run")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="campaign-reading-") as name:
        folder = Path(name)
        plain, longer = folder / "trace.json", folder / "longer.json"
        size = write(plain, given.events)
        write(longer, 4 * given.events)
        packed = pack(plain)
        here, repeats = sys.executable, given.repeats
        sides = [
            Side(CAMPAIGN, here, READ, plain, repeats),
            Side(GZIP, here, READ, packed, repeats),
            Side(LONGER, here, READ, longer, max(1, repeats // 2)),
            Side(WHOLE, here, DIAGNOSE, plain, repeats),
            Side(DECODE, here, AT_ONCE, plain, repeats),
        ]
        if given.hta:
            sides.append(Side(HTA, given.hta, OTHER, plain, given.others_repeats))
        if given.traceinsight:
            sides.append(Side(TRACEINSIGHT, given.traceinsight, OTHER, plain, given.others_repeats))
        run(sides[0], folder)  # so that all find the modules compiled and the file in the page cache
        taken: dict[str, list[Taken]] = {side.name: [] for side in sides}
        turns = [side for side in sides for _ in range(side.repeats)]
        for number, side in enumerate(random.Random(1).sample(turns, len(turns)), 1):
            taken[side.name].append(run(side, folder))
            last = taken[side.name][-1]
            print(f"{number} of {len(turns)}: {side.name}: {last.cpu_seconds:.2f} s", file=sys.stderr)
        ratio = packed.stat().st_size / size
        print(f"{given.events:,} device events, {size / 1e6:,.0f} MB, gzip to {100 * ratio:.0f} %\n")
        print(table(taken), aims(taken), sep="\n\n")
        print("\nanswers:", {name: rows[-1].answer for name, rows in taken.items()}, file=sys.stderr)


if __name__ == "__main__":
    main()
