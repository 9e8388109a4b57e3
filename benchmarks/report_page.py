"""How long `campaign report` takes and how large its page is: at most 5 s and 2 MB wanted for 200 decisions.

    python benchmarks/report_page.py [--decisions 200] [--repeats 5]

The ledger is one as a machine makes it, written by `campaign.ledger` and judged by the real rules: an A/A null, every
third idea worth something, the rest noise, root and the edit alone timed beside each, drift within rounds, memory that
moves, a headline, a factorial, diagnoses before and after. Each decision has its own plan, probe, rounds and raw block
times. A process is timed from its start to its end; it writes the page and every figure as SVG and PNG.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
PASS, REPORT = ("-c", "pass"), ("-m", "campaign", "report", "--campaign", "demo", "--json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = made(Path(folder), given.decisions)
        timed(project, REPORT)  # byte code and the fonts' cache are written once
        bare, whole, busy = [], [], []
        for _ in range(given.repeats):
            bare.append(timed(project, PASS)[0])
            before = processor()
            seconds, answer = timed(project, REPORT)
            whole.append(seconds)
            busy.append(processor() - before)
        said = json.loads(answer)
        figures = [file["bytes"] for figure in said["figures"] for file in figure["files"]]
        ledger = (project / "runs/demo/ledger.jsonl").stat().st_size
    print(
        "| decisions | ledger MB | median s | slowest s | median CPU s | page MB | figures | their files MB | repeats |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    taken = f"{statistics.median(whole):.2f} | {max(whole):.2f} | {statistics.median(busy):.2f}"
    large = f"{said['bytes'] / 1e6:.2f} | {len(said['figures'])} | {sum(figures) / 1e6:.2f}"
    print(f"| {said['decisions']} | {ledger / 1e6:.1f} | {taken} | {large} | {given.repeats} |")
    print(f"\npython -c pass beside it: {1e3 * statistics.median(bare):.0f} ms; {os.cpu_count()} cores, load {load()}")


def made(root: Path, decisions: int) -> Path:
    """A project with a campaign `demo` of so many decisions or up to two more."""
    from tests.report import figured, together, written

    shutil.copytree(ROOT / "conf", root / "conf")
    with mock.patch("os.fsync"), written.opened(root) as ledger:
        figured.lively(ledger, -(-(decisions - 1) // 3), blocks=20)
        together.factorial(ledger)
    return root


def timed(project: Path, words: tuple[str, ...]) -> tuple[float, str]:
    """Seconds of one process in the project, and what it said."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, *words], cwd=project, env=environment, check=True, stdout=subprocess.PIPE)
    return time.perf_counter() - begun, done.stdout.decode()


def processor() -> float:
    """CPU seconds of every process that has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    main()
