"""How often the protocol is fooled, and how small a gain it finds.

1. Real A/A: campaigns of an edit that changes nothing, judged by the ordinary rules; none may be accepted.
2. Simulated A/A: 200 campaigns drawn from the rounds that (1) recorded. A round is drawn at random, its arms' names
   are swapped by a fair coin, and the campaign goes on until the rules stop; at most 2 % may be accepted.
3. Planted sleeps of 2, 5 and 10 % of a step, on the wall clock: real campaigns that remove the sleep, then 200 drawn
   from their rounds (names not swapped). Shown: how often it is found, and after how many rounds.

    python benchmarks/false_accepts.py --real 10 --planted 2 --simulations 200

Rounds drawn from the same few are not independent machines or days: (2) checks the rules on this machine's noise, with
the labels' randomness exact. The real campaigns go to runs/<--campaign>-*, which can be read with `campaign ledger`.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

from campaign import verdicts
from campaign.cli import main as campaign
from campaign.errors import EXIT_DECIDED, EXIT_NO_DECISION
from campaign.ledger import open_ledger
from campaign.records import Evidence, Need, Plan, Round, Verdict

ROOT = Path(__file__).resolve().parents[1]
SHARES = (0.02, 0.05, 0.10)
SEARCH = f"hydra.searchpath=[file://{ROOT / 'benchmarks' / 'conf'}]"
OTHER = {"control": "treatment", "treatment": "control"}


def swapped(one: Round) -> Round:
    """The same round with its arms' names exchanged."""
    return replace(
        one,
        order=tuple(OTHER[role] for role in one.order),
        trials=tuple(replace(trial, arm=OTHER[trial.arm]) for trial in one.trials),
        blocks=tuple(replace(block, arm=OTHER[block.arm]) for block in one.blocks),
    )


def simulate(evidence: Evidence, draw: Callable[[], Round]) -> Verdict:
    """One campaign of rounds from `draw`, to its verdict. The probe and the plan are the recorded ones."""
    rounds: list[Round] = []
    while isinstance(answer := verdicts.judge(replace(evidence, rounds=tuple(rounds))), Need):
        index = sum(one.stage == answer.stage for one in rounds)
        rounds.append(replace(draw(), stage=answer.stage, index=index, id=f"{answer.stage}-{index}"))
    return answer


def run(*words: str) -> None:
    """One real campaign; what it prints goes to standard error, the table has standard output to itself.

    Raises SystemExit when it was interrupted or could not start.
    """
    with redirect_stdout(sys.stderr):
        code = campaign([SEARCH, "tracking=none", *words])
    if code not in (EXIT_DECIDED, EXIT_NO_DECISION):
        raise SystemExit(code)


def measured(name: str) -> list[tuple[Verdict, Evidence]]:
    """The decided campaigns in the ledger of campaign `name`."""
    with open_ledger(ROOT, name, writable=False) as ledger:
        return [(decision.verdict, ledger.evidence(decision.plan_id)) for decision in ledger.decisions()]


def pool(found: list[tuple[Verdict, Evidence]]) -> tuple[Plan, list[Round]]:
    """The first plan, and every round of all of them as if measured under it."""
    plan = found[0][1].plan
    return plan, [replace(one, code=plan.code) for _, evidence in found for one in evidence.rounds]


def row(label: str, outcomes: list[Verdict]) -> str:
    counts = Counter(one.verdict for one in outcomes)
    rounds = statistics.mean(one.valid_rounds for one in outcomes)
    shares = " | ".join(f"{counts[name]} ({counts[name] / len(outcomes):.1%})" for name in ("accept", "reject"))
    others = len(outcomes) - counts["accept"] - counts["reject"]
    return f"| {label} | {len(outcomes)} | {shares} | {others} | {rounds:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=int, default=10)
    parser.add_argument("--planted", type=int, default=2, help="real campaigns for each planted share")
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--campaign", default=time.strftime("fooled-%Y%m%dT%H%M%S"))
    given = parser.parse_args()
    rng = random.Random(1)
    print("| campaigns | how many | accepted | rejected | other | rounds, mean |\n|---|---|---|---|---|---|")

    name = f"{given.campaign}-nothing"
    for number in range(given.real):
        edit = f"hypothesis.edit.environment={{CAMPAIGN_NOTHING: '{number}'}}"
        run(f"campaign.name={name}", "hypothesis=nothing", edit)
    found = measured(name)
    print(row("A/A, real", [verdict for verdict, _ in found]))
    plan, rounds = pool(found)
    evidence = replace(found[0][1], plan=plan)

    def either_way() -> Round:
        one = rng.choice(rounds)
        return swapped(one) if rng.random() < 0.5 else one

    print(
        row(f"A/A, drawn from {len(rounds)} rounds", [simulate(evidence, either_way) for _ in range(given.simulations)])
    )
    step = statistics.median(v.effect.control_step_seconds for v, _ in found if v.effect is not None)

    for share in SHARES:
        name = f"{given.campaign}-{share:.2f}".replace(".", "_")
        for number in range(given.planted):
            stall = f"workload.stall_seconds={share * step:.6f}"
            run(f"campaign.name={name}-{number}", "workload=planted", "hypothesis=no_stall", stall)
        found = [one for number in range(given.planted) for one in measured(f"{name}-{number}")]
        print(row(f"sleep of {share:.0%}, real", [verdict for verdict, _ in found]))
        plan, rounds = pool(found)
        evidence = replace(found[0][1], plan=plan)
        drawn = [simulate(evidence, lambda rounds=rounds: rng.choice(rounds)) for _ in range(given.simulations)]
        print(row(f"sleep of {share:.0%}, drawn from {len(rounds)} rounds", drawn))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
