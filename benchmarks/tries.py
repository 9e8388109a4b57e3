"""Does `campaign try` find a slowdown that a commit planted, and leave a commit alone that does nothing?

On a clone of this repository, two branches are committed: in one the quantizer's CPU kernel is called again so often
that a whole step of the reference workload takes 5 % longer (how often is measured first), in the other a comment is
added to the same file. Each is tried against its base, `campaign try --base BASE`, and the exit codes are counted:

    python benchmarks/tries.py --tries 10
    python benchmarks/tries.py --tries 10 --floor     # after an A/A null, whose floor then sets d

Wanted: 1 (slower) each time for the first, 0 (not slower) each time for the second. Without a floor d is 3 %, as
declared. A try takes one to four minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNEL = "kernels/quantize_cpu.py"
CALL = "    function(at, rows, columns, group, transposed, payload.data_ptr(), scale.data_ptr())\n"
PLANTED = f"""\
{CALL}    global _owed
    _owed += EXTRA_CALLS
    while _owed >= 1:
        _owed -= 1
{CALL.replace("    function", "        function")}"""
SLOWDOWN = 0.05
WORDS = ("workload=reference_cpu", "lease.wait_seconds=3600")
# In turns, so that what drifts falls on both: the CPU seconds of a step without more calls, and with three for each.
CALIBRATE = """
import json, statistics, sys, time
sys.path.insert(0, sys.argv[1])
from campaign.config import jobs
from pathlib import Path
job = jobs(Path(sys.argv[1]), ["workload=reference_cpu", "tracking=none"])[0]
arm = job.arm("root", "root", [])
from kernels import quantize_cpu
from models.workload import ReferenceWorkload
workload = ReferenceWorkload(**arm.config)
times = {0.0: [], 3.0: []}
for turn in range(int(sys.argv[2])):
    for extra in times:
        quantize_cpu.EXTRA_CALLS = extra
        began = time.process_time()
        workload.step()
        if turn >= 10:
            times[extra].append(time.process_time() - began)
print(json.dumps({str(extra): statistics.median(found) for extra, found in times.items()}))
"""
TURNS = 60


def git(clone: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-C", str(clone), "-c", "user.name=bench", "-c", "user.email=b@example.org", *words], check=True
    )


def planted(extra: float, source: str) -> str:
    """The kernel's file with that many calls more for each call."""
    if CALL not in source:
        raise SystemExit(f"{KERNEL} no longer calls its kernel as this script expects")
    head, _, rest = source.partition("\n\ndef _quantize")
    return f"{head}\n\nEXTRA_CALLS = {extra!r}\n_owed = 0.0\n\n\ndef _quantize{rest.replace(CALL, PLANTED, 1)}"


def calibrated(clone: Path, source: str) -> float:
    """How many calls more for each call make a step `SLOWDOWN` longer."""
    (clone / KERNEL).write_text(planted(0.0, source))
    command = [sys.executable, "-c", CALIBRATE, str(clone), str(TURNS)]
    said = subprocess.run(command, cwd=clone, check=True, capture_output=True, text=True).stdout
    (clone / KERNEL).write_text(source)
    found = json.loads(said.splitlines()[-1])
    base, more = found["0.0"], found["3.0"]
    extra = SLOWDOWN * base / ((more - base) / 3)
    print(f"a step takes {1e3 * base:.1f} ms of CPU; {extra:.3f} calls more for each call add 5 %", file=sys.stderr)
    return extra


def tried(clone: Path, base: str, more: list[str]) -> tuple[int, float | None]:
    """The exit code of one try of the branch that is checked out, and the ratio."""
    command = [sys.executable, "-m", "campaign", "try", "--base", base, *WORDS, *more, "--json"]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    said = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}
    effect = said.get("decision", {}).get("verdict", {}).get("effect")
    why = said.get("decision", {}).get("verdict", {}).get("sentence") or done.stderr.strip()
    print(f"exit {done.returncode}: {why}", file=sys.stderr, flush=True)
    return done.returncode, effect["ratio"] if effect else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=10, help="of each commit (default 10)")
    parser.add_argument("--floor", action="store_true", help="measure the A/A null first, so that its floor sets d")
    parser.add_argument("words", nargs="*", help="overrides of each try, for example protocol.contention_limit=3")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="campaign-tries-") as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        git(clone, "switch", "-q", "-c", "base")
        source = (clone / KERNEL).read_text()
        changes = {
            "5 % slower": planted(calibrated(clone, source), source),
            "nothing": f"{source.rstrip()}\n# A comment, which changes nothing.\n",
        }
        for place, text in enumerate(changes.values()):
            git(clone, "switch", "-q", "-c", f"change-{place}", "base")
            (clone / KERNEL).write_text(text)
            git(clone, "commit", "-qam", f"change {place}")
        if given.floor:
            command = [sys.executable, "-m", "campaign", *WORDS, "tracking=none"]
            subprocess.run(command, cwd=clone, check=True, stdout=sys.stderr)
        found: dict[str, list[tuple[int, float | None]]] = {name: [] for name in changes}
        began = time.monotonic()
        for _ in range(given.tries):
            for place, name in enumerate(changes):
                git(clone, "switch", "-q", f"change-{place}")
                found[name].append(tried(clone, "base", given.words))
        minutes = (time.monotonic() - began) / 60
    print("| commit | tries | exit 1, slower | exit 0, not slower | exit 3, can't tell | ratio, median [least, most] |")
    print("|---|---:|---:|---:|---:|---|")
    for name, answers in found.items():
        codes, ratios = Counter(code for code, _ in answers), [ratio for _, ratio in answers if ratio is not None]
        spread = f"{statistics.median(ratios):.3f} [{min(ratios):.3f}, {max(ratios):.3f}]" if ratios else "none"
        print(f"| {name} | {len(answers)} | {codes[1]} | {codes[0]} | {codes[3]} | {spread} |")
        if others := {code: count for code, count in codes.items() if code not in (0, 1, 3)}:
            print(f"\nother exit codes of {name}: {others}")
    print(f"\n{minutes:.0f} minutes for {sum(map(len, found.values()))} tries")


if __name__ == "__main__":
    main()
