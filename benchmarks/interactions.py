"""Whether what is said of edits together is true, on planted effects and interactions.

Simulated (`--campaigns 500`): each campaign measures its floor by A/A rounds, decides on three edits in turn, each on
the stack so far with root and solo beside it, then leaves each accepted edit out, takes the whole against root, and a
factorial of all three; everything through `judge` and `find`, with blocks drawn by `benchmarks/simulated.py`. Shown:
how often each kind of estimate's 95 % interval holds the planted value (93 to 97 %), and how often the word is right
where the planted interaction is above twice the floor (at least 95 %). Then sweeps of ten edits that do nothing: the
share with a false accept (at most 5 %).

    python benchmarks/interactions.py --campaigns 500 --jobs 2

Real (`--real`): the same question asked of `campaign` itself, in real processes whose steps sleep or compute a planted
time; a few minutes each, on a quiet machine.

The floor of an interaction is the larger of d and what the rounds that were taken resolve: a row's interaction comes
from its published rounds, and twice as much variance as an effect (reference measurement 6).
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.simulated import Bench, Machine, plan_of, study_of
from campaign import effects
from campaign.config import load
from campaign.interactions import design, word
from campaign.records import ACCEPT, Combined, Contrast, Finding, Protocol, Verdict
from campaign.records.study import FACTORIAL, HEADLINE, LEAVE_ONE_OUT

ROOT = Path(__file__).resolve().parents[1]
MACHINES = {"quiet": Machine(process=0.007, block=0.04), "loud": Machine(process=0.02, block=0.08)}
# What an edit is worth on root and its interaction with each edit already there (logs). None lies on a word's border.
PLANTED = {
    "masked": (0.14, -0.14),
    "enabled": (0.00, 0.14),
    "redundancy": (0.25, -0.12),
    "synergy": (0.08, 0.12),
    "additive": (0.12, 0.00),
    "nothing": (0.00, 0.00),
}
FIRST = 0.15  # the first edit's log gain, on root
EDITS = ("a", "b", "c")
NULLS = 10
GENERAL = {"enabled": "synergy", "masked": "redundancy"}


@dataclass(frozen=True)
class Seen:
    """One estimate: its kind, whether its interval held the planted value, and how far off it was (log)."""

    kind: str
    held: bool
    error: float


@dataclass(frozen=True)
class Worded:
    """One word beside the one that the planted values earn, and whether the interaction was above twice the floor."""

    planted: str
    said: str
    large: bool


def game_of(rng: random.Random) -> tuple[dict[frozenset[str], float], list[str]]:
    """Planted main effects and pairwise interactions, and the kinds drawn for the second and third edit."""
    kinds = rng.choices(list(PLANTED), k=2)
    effects_of = {frozenset("a"): FIRST}
    for place, kind in enumerate(kinds, 1):
        alone, together = PLANTED[kind]
        effects_of[frozenset(EDITS[place])] = alone
        # The third edit meets the second only where that was accepted: all of its interaction is with the first.
        effects_of[frozenset("a" + EDITS[place])] = together * rng.uniform(0.9, 1.1)
    return effects_of, kinds


def true_log(effects_of: dict[frozenset[str], float], held: frozenset[str]) -> float:
    return sum(value for part, value in effects_of.items() if part <= held)


def simulated(seed: int, machine: Machine, protocol: Protocol) -> tuple[list[Seen], list[Worded]]:
    """One campaign, start to end."""
    effects_of, _ = game_of(random.Random(seed))

    def game(held: frozenset[str]) -> float:
        return true_log(effects_of, held)

    bench = Bench(machine, protocol, game, seed)
    d = measured_threshold(bench)
    stack: tuple[str, ...] = ()
    seen: list[Seen] = []
    words: list[Worded] = []
    for edit in EDITS:
        below, own = frozenset(stack), frozenset(edit)
        held = {"control": below, "treatment": below | own, "root": frozenset(), "solo": own}
        verdict = bench.decided(plan_of(edit, protocol, d, stack), held)
        if verdict.combined:
            truth = {
                "marginal": game(below | own) - game(below),
                "isolated": game(own),
                "cumulative": game(below | own),
                "interaction": game(below | own) - game(below) - game(own),
            }
            seen += [one(name, getattr(verdict.combined, name), value) for name, value in truth.items()]
            words.append(worded(verdict.combined, truth, d))
        if verdict.verdict == ACCEPT:
            stack += (edit,)
    if len(stack) > 1:
        seen += whole_stack(bench, stack, d)
    members, generators = design(EDITS)
    study = study_of(FACTORIAL, members, "root", protocol, d, protocol.confirm_rounds, generators)
    seen += factorial_seen(bench.found(study), effects_of)
    return seen, words


def measured_threshold(bench: Bench) -> float:
    """d as a campaign gets it: an A/A decision's floor against the protocol's least effect."""
    nothing = dict.fromkeys(("control", "treatment"), frozenset[str]())
    verdict = bench.decided(plan_of("aa_null", bench.protocol, bench.protocol.min_effect, null=True), nothing)
    return effects.threshold(bench.protocol, verdict.floor)


def one(kind: str, found: Contrast, truth: float) -> Seen:
    return Seen(kind, math.log(found.low) <= truth <= math.log(found.high), math.log(found.ratio) - truth)


def worded(found: Combined, truth: dict[str, float], d: float) -> Worded:
    """The word beside the one that exact numbers earn."""
    exact = {name: Contrast(*[math.exp(value)] * 3, 0, 0.0) for name, value in truth.items()}
    rounds, sd = found.marginal.rounds, found.marginal.sd_log
    floor = max(math.log1p(d), math.log1p(effects.resolves(sd, rounds)))
    large = abs(truth["interaction"]) > 2 * floor
    return Worded(word(exact["marginal"], exact["isolated"], exact["interaction"], d), found.word, large)


def whole_stack(bench: Bench, stack: tuple[str, ...], d: float) -> Iterator[Seen]:
    """Leave-one-out and the headline of the accepted stack."""
    protocol, game, whole = bench.protocol, bench.game, frozenset(stack)
    members = {"head": stack, **{f"without_{name}": tuple(n for n in stack if n != name) for name in stack}, "root": ()}
    found = bench.found(study_of(LEAVE_ONE_OUT, members, "head", protocol, d, protocol.confirm_rounds))
    for term in found.terms:
        yield one("leave-one-out", term.effect, game(whole) - game(whole - {term.name}))
    if found.total:
        yield one("whole stack", found.total, game(whole))
    last = bench.found(study_of(HEADLINE, {"root": (), "head": stack}, "root", protocol, d, protocol.looks[-1]))
    if last.total:
        yield one("headline", last.total, game(whole))


def factorial_seen(found: Finding, effects_of: dict[frozenset[str], float]) -> Iterator[Seen]:
    """Of a game of pairs: an edit's main effect and Shapley share are its own effect and half of its interactions."""
    for terms, kind in ((found.terms, "main effect"), (found.shares, "Shapley share")):
        for term in terms:
            names = frozenset(term.name.split(":"))
            if len(names) == 2:
                yield one("pairwise interaction", term.effect, effects_of.get(names, 0.0))
                continue
            together = sum(value for part, value in effects_of.items() if len(part) == 2 and names < part)
            yield one(kind, term.effect, effects_of[names] + together / 2)


def null_sweep(seed: int, machine: Machine, protocol: Protocol) -> Counter[str]:
    """The verdicts on ten edits that do nothing; an accepted one joins the stack, as in a sweep."""
    bench = Bench(machine, protocol, lambda held: 0.0, seed)
    d = measured_threshold(bench)
    nothing = dict.fromkeys(("control", "treatment", "root", "solo"), frozenset[str]())
    stack: tuple[str, ...] = ()
    verdicts: Counter[str] = Counter()
    for number in range(NULLS):
        verdict: Verdict = bench.decided(plan_of(f"null{number}", protocol, d, stack), nothing)
        verdicts[verdict.verdict] += 1
        if verdict.verdict == ACCEPT:
            stack += (f"null{number}",)
    return verdicts


def of_seed(work: tuple[str, int, str, Protocol]) -> tuple[list[Seen], list[Worded], Counter[str]]:
    what, seed, machine, protocol = work
    if what == "sweep":
        return [], [], null_sweep(seed, MACHINES[machine], protocol)
    return *simulated(seed, MACHINES[machine], protocol), Counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=500)
    parser.add_argument("--sweeps", type=int, help="sweeps of ten nulls (default: as many as campaigns)")
    parser.add_argument("--machine", choices=[*MACHINES, "both"], default="both")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--real", action="store_true", help="real campaigns instead of simulated ones")
    parser.add_argument("--campaign", default=time.strftime("planted-%Y%m%dT%H%M%S"), help="names the real ones")
    given = parser.parse_args()
    if given.real:
        from benchmarks.planted_campaigns import real

        return real(given.campaign)
    protocol = load(ROOT, ["hypothesis=aa_null"]).protocol
    machines = list(MACHINES) if given.machine == "both" else [given.machine]
    for machine in machines:
        simulate(machine, protocol, given)


def simulate(machine: str, protocol: Protocol, given: argparse.Namespace) -> None:
    seeds = range(given.seed, given.seed + given.campaigns)
    sweeps = range(given.seed, given.seed + (given.campaigns if given.sweeps is None else given.sweeps))
    work = [("campaign", seed, machine, protocol) for seed in seeds]
    work += [("sweep", seed, machine, protocol) for seed in sweeps]
    seen: list[Seen] = []
    words: list[Worded] = []
    swept: list[Counter[str]] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for done, (estimates, said, verdicts) in enumerate(pool.map(of_seed, work), 1):
            seen += estimates
            words += said
            swept += [verdicts] if verdicts else []
            if done % 20 == 0:
                print(f"\r{machine}: {done} of {len(work)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"\n{len(seeds)} campaigns on a {machine} machine: {MACHINES[machine]}")
    coverage(seen)
    confusion(words)
    false = sum(bool(one[ACCEPT]) for one in swept)
    print(f"\n{len(swept)} sweeps of {NULLS} nulls: {false} with a false accept ({false / max(1, len(swept)):.1%}),")
    print(f"verdicts: {dict(sum(swept, Counter()))}", flush=True)


def coverage(seen: list[Seen]) -> None:
    kinds: dict[str, list[Seen]] = defaultdict(list)
    for estimate in seen:
        kinds[estimate.kind].append(estimate)
    print("\n| estimate | how many | 95 % interval holds the planted value | mean error |\n|---|---|---|---|")
    for kind, found in [*kinds.items(), ("all", seen)]:
        share, bias = sum(s.held for s in found) / len(found), sum(s.error for s in found) / len(found)
        print(f"| {kind} | {len(found)} | {share:.1%} | {bias:+.2%} |")


def confusion(words: list[Worded]) -> None:
    large = [one for one in words if one.large]
    right = sum(one.planted == one.said for one in large)
    true = sum(one.said in (one.planted, GENERAL.get(one.planted)) for one in large)
    of = max(1, len(large))
    print(
        f"\nabove twice the floor the word is the planted one in {right} of {len(large)} ({right / of:.1%}); it or the"
    )
    print(f"wider one that is also true (synergy of an enabled edit, redundancy of a masked one) in {true / of:.1%}")
    print("\n| planted | above twice the floor | said |\n|---|---|---|")
    for planted, above in sorted({(one.planted, one.large) for one in words}):
        said = Counter(one.said for one in words if (one.planted, one.large) == (planted, above))
        print(f"| {planted} | {'yes' if above else 'no'} | {', '.join(f'{k} {n}' for k, n in said.most_common())} |")


if __name__ == "__main__":
    main()
