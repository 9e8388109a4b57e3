"""Edits of a training step through every way into a campaign: do the ways say the same?

    OMP_NUM_THREADS=1 python benchmarks/own_ways.py [--edits A,B] [--ways A,B] [--rounds N] [--out FILE] [--fill]

The project is benchmarks/own: one small model, trained by a loop, by Accelerate, by transformers' Trainer, by
Lightning, by torchrun on two processes, and as a class. Each cell is a real campaign (`campaign run`, its ledger in
benchmarks/own/runs); its decision goes into FILE as soon as it is made, and a cell that is there already is not run
again. Two ways agree where their ratios differ by no more than the sum of their intervals' halves, as logarithms.
`--fill` writes the tables into docs/results/own.md, from FILE alone where nothing is left to run.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROJECT = ROOT / "benchmarks" / "own"
PAGE = ROOT / "docs" / "results" / "own.md"
WAYS = {
    "command": "1 watched",
    "loop": "2 loop",
    "accelerate": "2 Accelerate",
    "trainer": "3 Trainer",
    "lightning": "3 Lightning",
    "class": "4 class",
    "ranks": "2 torchrun, 2 ranks",
}
ALONE = ("ranks",)  # its step is another one: two processes, and what they say to each other
EDITS = ("aa_null", "sdpa", "fused_adamw", "compile", "bf16", "checkpointing", "threads", "workers")
# Workers of OpenMP that spin on between two blocks are background work where control has none of them.
WITH: dict[str, dict[str, str]] = {"threads": {"OMP_WAIT_POLICY": "passive"}}
DECIDED = (0, 3)
Cell = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=_names(EDITS), default=list(EDITS))
    parser.add_argument("--ways", type=_names(WAYS), default=list(WAYS))
    parser.add_argument("--rounds", type=int, default=4, help="counted rounds of a cell (default 4)")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of blocks in a round (default 20)")
    parser.add_argument("--anyway", action="store_true", help="count rounds that other work disturbed, too")
    parser.add_argument("--out", type=Path, default=PROJECT / "runs" / "ways.json")
    parser.add_argument("--again", action="store_true", help="run cells that are there already, too")
    parser.add_argument("--fill", action="store_true", help=f"write the tables into {PAGE.relative_to(ROOT)}")
    given = parser.parse_args()
    cells: list[Cell] = json.loads(given.out.read_text()) if given.out.exists() else []
    for edit in given.edits:
        for way in given.ways:
            if not given.again and any((cell["edit"], cell["way"]) == (edit, way) for cell in cells):
                continue
            cells = [cell for cell in cells if (cell["edit"], cell["way"]) != (edit, way)]
            cells.append(measured(edit, way, given))
            given.out.parent.mkdir(parents=True, exist_ok=True)
            given.out.write_text(json.dumps(cells, indent=1) + "\n")
            print(f"{edit} x {way}: {said(cells[-1])} ({cells[-1]['seconds']:.0f} s)", file=sys.stderr, flush=True)
    tables = table(cells), agreements(cells)
    print("\n\n".join(tables))
    if given.fill:
        fill("ways", tables[0])
        fill("agreements", tables[1])
    return 0


def measured(edit: str, way: str, given: argparse.Namespace) -> Cell:
    """One cell's decision, by the command line in a process of its own."""
    words = [f"hypothesis={edit}", f"workload={way}", f"campaign.name=ways-{way}", "tracking=none"]
    words += [f"protocol.looks=[{given.rounds}]", "protocol.alpha_split=[1.0]", "protocol.beta_split=[1.0]"]
    words += [
        "lease.wait_seconds=3600",
        f"protocol.pairs={given.pairs}",
        "protocol.decisive=false",
        "protocol.min_effect=0.01",
    ]
    words += ["protocol.contention_limit=null", "protocol.steal_limit=1.0"] if given.anyway else []
    environment = {**os.environ, "CAMPAIGN_PROJECT": str(PROJECT), "OMP_NUM_THREADS": "1", **WITH.get(edit, {})}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "campaign", "run", *words, "--json"]
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)
    if done.returncode not in DECIDED:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    decision = json.loads(done.stdout)["decision"]
    verdict = decision["verdict"]
    effect = verdict["effect"] or {}
    return {
        "edit": edit,
        "way": way,
        **{name: verdict[name] for name in ("verdict", "reason", "sentence", "valid_rounds", "invalid_rounds")},
        **{name: effect.get(name) for name in ("ratio", "low", "high")},
        "memory": verdict["memory"],
        "parity": decision["parity"],
        "predicted": decision["predicted_ratio"],
        "machine": decision["machine_line"],
        "command": decision["command"],
        "decided_at": decision["decided_at"],
        "seconds": decision["wall_seconds"],
    }


def said(cell: Cell | None) -> str:
    """A cell's ratio with its interval and its verdict, or why there is none."""
    if cell is None:
        return ""
    if cell["ratio"] is None:
        return f"{cell['verdict']}: {cell['reason']}"
    return f"{cell['ratio']:.3f} [{cell['low']:.3f}, {cell['high']:.3f}] {cell['verdict']}"


def table(cells: list[Cell]) -> str:
    ways = [way for way in WAYS if any(cell["way"] == way for cell in cells)]
    lines = ["| edit | predicted | " + " | ".join(WAYS[way] for way in ways) + " |", "|---" * (len(ways) + 2) + "|"]
    for edit in EDITS:
        found = {cell["way"]: cell for cell in cells if cell["edit"] == edit}
        if found:
            predicted = next(iter(found.values()))["predicted"]
            lines.append(f"| `{edit}` | {predicted:.2f} | " + " | ".join(said(found.get(way)) for way in ways) + " |")
    return "\n".join(lines)


def agreements(cells: list[Cell]) -> str:
    """For each edit: the farthest apart two tight ways are, then the farthest that way 1 is from one of them."""
    lines = [
        "| edit | pairs of ways 2 to 4 that agree | farthest apart | pairs with way 1 that agree | farthest apart |"
    ]
    lines.append("|---" * 5 + "|")
    for edit in EDITS:
        known = [one for one in cells if one["edit"] == edit and one["ratio"] is not None and one["way"] not in ALONE]
        tight = [cell for cell in known if cell["way"] != "command"]
        loose = [cell for cell in known if cell["way"] == "command"]
        if known:
            pairs = [(a, b) for number, a in enumerate(tight) for b in tight[:number]]
            with_one = [(a, b) for a in loose for b in tight]
            lines.append(
                f"| `{edit}` | {_counted(pairs)} | {_farthest(pairs)} | {_counted(with_one)} | {_farthest(with_one)} |"
            )
    return "\n".join(lines)


def apart(one: Cell, other: Cell) -> tuple[float, float]:
    """(the distance of two log ratios, the sum of their intervals' halves)."""
    halves = sum(math.log(cell["high"] / cell["low"]) / 2 for cell in (one, other))
    return abs(math.log(one["ratio"] / other["ratio"])), halves


def _counted(pairs: list[tuple[Cell, Cell]]) -> str:
    held = sum(distance <= halves for distance, halves in (apart(*pair) for pair in pairs))
    return f"{held} of {len(pairs)}" if pairs else ""


def _farthest(pairs: list[tuple[Cell, Cell]]) -> str:
    if not pairs:
        return ""
    one, other = max(pairs, key=lambda pair: apart(*pair)[0] / apart(*pair)[1])
    distance, halves = apart(one, other)
    return f"{WAYS[one['way']]} and {WAYS[other['way']]}: {100 * distance:.1f} % of {100 * halves:.1f} %"


def fill(name: str, text: str) -> None:
    """Put `text` between the page's marks `<!-- NAME -->` and `<!-- /NAME -->`."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(f"<!-- {name} -->")
    _, _, after = rest.partition(f"<!-- /{name} -->")
    if not after:
        raise SystemExit(f"{PAGE} has no marks <!-- {name} --> and <!-- /{name} -->")
    PAGE.write_text(f"{before}<!-- {name} -->\n\n{text}\n\n<!-- /{name} -->{after}", encoding="utf-8")


def _names(known: Any) -> Any:
    def read(text: str) -> list[str]:
        names = text.split(",")
        if unknown := set(names) - set(known):
            raise argparse.ArgumentTypeError(f"{sorted(unknown)}: known are {', '.join(known)}")
        return names

    return read


if __name__ == "__main__":
    sys.exit(main())
