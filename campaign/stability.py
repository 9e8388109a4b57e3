"""Which rounds can be compared: the gates on one round, and how many invalid rounds a result survives.

A gate says that a round is not about the edit. Gates look at control and at the surroundings only, so that an edit
cannot be excused by its own waiting, power or recompilation; what they would have seen in treatment is a warning in
the verdict. One gate is about both: `trend` (see `_trend`). No gate looks at how fast treatment is.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy
from scipy.stats import kendalltau, theilslopes, ttest_ind

from campaign.effects import pair_logs, readable, seconds_per_token
from campaign.records import Plan, Round, Study, Trial
from campaign.traits import ranks, threads

PAIRS_FOR_TESTS = 8  # fewer say nothing about order or trend
ROUNDING = 1e-12  # a scatter of logs below it is arithmetic, not measurement
HARMLESS_THROTTLES = ("powercap", "idle", "clockssetting", "syncboost", "displayclock")
FATAL_FAULTS = ("code_changed", "fingerprint")  # a replacement round could not be compared either


@dataclass(frozen=True)
class Fault:
    """Why a round is invalid: a code, a sentence with the numbers, and what to do."""

    code: str
    sentence: str
    remedy: str


def round_faults(one: Round, plan: Plan | Study) -> tuple[Fault, ...]:
    """Every gate that `one` fails, most telling first; empty for a valid round. Gates look at the plan's base, and of a
    hypothesis's plan at the two arms alone that its verdict is about.

    Codes: a trial's failure, `code_changed`, `fingerprint`, `incomplete`, `timer`, `foreign_work`, `throttled`,
    `steal`, `contention`, `not_steady`, `recompiled`, `order_effect`, `trend`.
    """
    base = plan.base
    if isinstance(plan, Plan):
        one = one.only((plan.control.role, plan.treatment.role))
    failed = [_trial_failure(trial, plan) for trial in one.trials if trial.status != "ok"]
    if failed:
        return tuple(sorted(failed, key=lambda fault: fault.code == "interrupted"))
    whole = _whole(one, plan, base)
    if whole:
        return tuple(whole)
    found = (
        *_surroundings(one, plan),
        *_contention(one, plan, base),
        *_settled(one, plan, base),
        *_order_effect(one, plan, base),
        *_trend(one, plan, base),
    )
    return tuple(found)


def most_invalid(rounds: int, limit: float) -> int:
    """How many invalid rounds `rounds` valid ones survive: the largest i with i / (i + rounds) <= `limit`, and at
    least one, so that a single bad round never ends a result."""
    if limit >= 1:
        raise ValueError(f"invalid_share_limit={limit}: a share below 1")
    return max(1, math.floor(rounds * limit / (1 - limit) + 1e-9))


def most_frequent(faults: Sequence[tuple[Fault, ...]]) -> Fault | None:
    """The first fault with the code that most rounds have; the earliest of equals. None without faults."""
    first = {fault.code: fault for found in reversed(faults) for fault in reversed(found)}
    counts = Counter(code for found in faults for code in dict.fromkeys(fault.code for fault in found))
    return first[counts.most_common(1)[0][0]] if counts else None


def wall_per_cpu(one: Round, arm: str) -> float | None:
    """The median over blocks of wall time / process CPU time; None where CPU time was not read."""
    blocks = [block for block in one.blocks if block.arm == arm and block.cpu_seconds > 0]
    return statistics.median(block.wall_seconds / block.cpu_seconds for block in blocks) if blocks else None


def harmful_throttles(reasons: Sequence[str]) -> list[str]:
    """The clock event reasons that spoil a round: thermal, hardware slowdown, power brake. A software power cap,
    an idle clock and a clock setting are reported, not judged (measurement 5.5)."""

    def plain(reason: str) -> str:
        return "".join(letter for letter in reason.lower() if letter.isalnum())

    return [reason for reason in reasons if not any(word in plain(reason) for word in HARMLESS_THROTTLES)]


def _trial_failure(trial: Trial, plan: Plan | Study) -> Fault:
    said = f": {trial.message}" if trial.message else ""
    return Fault(
        trial.status,
        f"the {trial.arm} trial ended as {trial.status}{said} (log: {trial.log or 'none'})",
        trial.remedy or f"read {trial.log or 'the trial log'}, mend the cause and run again: {plan.command}",
    )


def _whole(one: Round, plan: Plan | Study, base: str) -> list[Fault]:
    """Faults after which the blocks should not be looked at."""
    found = []
    if one.code != plan.code:
        found.append(
            Fault(
                "code_changed",
                f"round {one.id} ran code {one.code[:12]}, the plan was registered with {plan.code[:12]}",
                f"leave the sources alone while a campaign runs, and run again: {plan.command}",
            )
        )
    found += _fingerprints(one, plan, base)
    counts = Counter(block.arm for block in one.blocks)
    arms = [trial.arm for trial in one.trials]
    if base not in arms or len(arms) < 2 or len(one.blocks) < len(one.order) or len({counts[arm] for arm in arms}) != 1:
        found.append(
            Fault(
                "incomplete",
                f"round {one.id} has {len(one.blocks)} of {len(one.order)} blocks",
                f"run again: {plan.command}",
            )
        )
    elif not readable([one], plan.protocol.clock):
        found.append(
            Fault(
                "timer",
                f"a block of round {one.id} took no time on the {plan.protocol.clock} clock",
                "raise protocol.block_minimum_seconds, or use protocol.clock=wall",
            )
        )
    return found


def _fingerprints(one: Round, plan: Plan | Study, base: str) -> list[Fault]:
    remedy = f"run both arms on one machine in one environment, and run again: {plan.command}"
    control = next((trial.fingerprint for trial in one.trials if trial.arm == base), {})
    found = []
    for trial in one.trials:
        odd = _difference(control, trial.fingerprint)
        if odd and trial.arm != base:
            found.append(Fault("fingerprint", f"{base} and {trial.arm} differ beyond the edit: {odd}", remedy))
    shared = control.keys() & plan.fingerprint.keys()
    odd = _difference({key: plan.fingerprint[key] for key in shared}, {key: control[key] for key in shared})
    if odd:
        found.append(Fault("fingerprint", f"round {one.id} is not from the plan's machine: {odd}", remedy))
    return found


def _difference(left: Mapping[str, object], right: Mapping[str, object]) -> str:
    keys = sorted(key for key in left.keys() | right.keys() if left.get(key) != right.get(key))
    shown = ", ".join(f"{key} {left.get(key)!r} against {right.get(key)!r}" for key in keys[:3])
    return f"{shown}, and {len(keys) - 3} more" if len(keys) > 3 else shown


def _surroundings(one: Round, plan: Plan | Study) -> list[Fault]:
    seen, found = one.surroundings, []
    if seen.foreign:
        found.append(
            Fault(
                "foreign_work",
                f"other processes ran on {plan.device}: {', '.join(seen.foreign[:3])}",
                f"stop them, or wait for them, and run again: {plan.command}",
            )
        )
    throttled = harmful_throttles(seen.throttled)
    if throttled:
        found.append(
            Fault(
                "throttled",
                f"the device's clock was held down: {', '.join(throttled)}",
                f"let it cool, or lock its clocks (nvidia-smi -pm 1; nvidia-smi -lgc MHZ), then: {plan.command}",
            )
        )
    if plan.device == "cpu" and seen.steal is not None and seen.steal > plan.protocol.steal_limit:
        found.append(
            Fault(
                "steal",
                f"the hypervisor took {seen.steal:.0%} of the window; the limit is {plan.protocol.steal_limit:.0%}",
                f"use a machine that is not shared, or a quieter hour, and run again: {plan.command}",
            )
        )
    return found


def _contention(one: Round, plan: Plan | Study, base: str) -> list[Fault]:
    """Control's wall / CPU time (measurement 2.3). With several threads or ranks the ratio says nothing about
    neighbours, and a step that waits by design (for its data, a disk, another process) has no limit: the protocol says
    so beforehand with None, and only a warning tells the ratio."""
    trial, limit = one.trial(base), plan.protocol.contention_limit
    if plan.device != "cpu" or threads(trial) != 1 or ranks(trial.facts) != 1 or limit is None:
        return []
    shared = wall_per_cpu(one, base)
    if shared is None or shared <= limit:
        return []
    return [
        Fault(
            "contention",
            f"{base} took {shared:.2f} s of wall time for each second of CPU time; the limit is {limit:.2f}",
            f"stop what else runs on these cores and run again: {plan.command}"
            " (a step that waits by design, for its data or a disk, is not contention: protocol.contention_limit=null)",
        )
    ]


def _settled(one: Round, plan: Plan | Study, base: str) -> list[Fault]:
    trial, found = one.trial(base), []
    if not trial.steady:
        found.append(
            Fault(
                "not_steady",
                f"{base} was not steady after {len(trial.warmup_seconds)} warm-up steps:"
                f" two windows of {plan.protocol.warmup_window_steps} differ by more than"
                f" {plan.protocol.warmup_tolerance:.0%}",
                f"raise protocol.warmup_limit_steps (now {plan.protocol.warmup_limit_steps}), or quieten the machine",
            )
        )
    if trial.recompiled:
        found.append(
            Fault(
                "recompiled",
                f"{base} compiled {trial.recompiled} graphs inside the timed window",
                "keep shapes fixed, or raise protocol.warmup_minimum_steps so that all are compiled before it",
            )
        )
    return found


def _order_effect(one: Round, plan: Plan | Study, base: str) -> list[Fault]:
    """Control's time by whether it ran in the first or the second half of its turn: Welch's p below `gate_alpha` and
    a difference of mean logs above d. The middle of an odd number of arms is left out. Where whole processes alternated
    no block ran after the other arm's, and there is nothing to look at."""
    if not one.together:
        return []
    turns: dict[int, list[tuple[int, str]]] = {}
    for block in one.blocks:
        turns.setdefault(block.pair, []).append((block.position, block.arm))
    middle = (len(one.trials) - 1) / 2
    places = numpy.array([[arm for _, arm in sorted(turns[pair])].index(base) for pair in sorted(turns)])
    logs = numpy.log(seconds_per_token(one, plan.protocol.clock, base))
    first, second = logs[places < middle], logs[places > middle]
    if len(logs) < PAIRS_FOR_TESTS or min(len(first), len(second)) < 2:
        return []
    apart = float(second.mean() - first.mean())
    if abs(apart) <= math.log1p(plan.threshold) or not _welch_p(first, second) < plan.protocol.gate_alpha:
        return []
    return [
        Fault(
            "order_effect",
            f"{base} is {math.expm1(abs(apart)):.1%} {'slower' if apart > 0 else 'faster'} when it runs after the other"
            f" arm: the arms disturb each other",
            f"longer blocks (protocol.block_steps) let the other arm's traces fade; then run again: {plan.command}",
        )
    ]


def _welch_p(first: numpy.ndarray, second: numpy.ndarray) -> float:
    if max(first.std(), second.std()) < ROUNDING:
        return 0.0 if abs(first.mean() - second.mean()) > ROUNDING else 1.0
    return float(ttest_ind(first, second, equal_var=False).pvalue)


def _trend(one: Round, plan: Plan | Study, base: str) -> list[Fault]:
    """A steady drift of the pairs' log ratio over the round: Kendall's p below `gate_alpha` and a total drift (the
    Theil-Sen slope times the round's length) above d.

    The one gate that looks at both arms. A drift of control alone is what interleaving cancels and spoils nothing; a
    drift between the arms means that at least one of them is not in a steady state, and then the round's median is
    the effect at no particular time. It cannot excuse an edit: an invalid result is never an accept, and the sentence
    says which arm moved. Rank methods, so that one stall at an end is not taken for a slope. It holds for whole
    processes in turn too: each arm's k-th blocks are as far into their own process.
    """
    for arm in (trial.arm for trial in one.trials if trial.arm != base):
        logs = pair_logs(one, plan.protocol.clock, base, arm)
        if len(logs) < PAIRS_FOR_TESTS or numpy.ptp(logs) <= math.log1p(plan.threshold):
            continue
        turn = numpy.arange(len(logs))
        drift = _drift(logs)
        if abs(drift) <= math.log1p(plan.threshold) or not kendalltau(turn, logs).pvalue < plan.protocol.gate_alpha:
            continue
        own = {name: _drift(numpy.log(seconds_per_token(one, plan.protocol.clock, name))) for name in (base, arm)}
        moved = max(own, key=lambda name: abs(own[name]))
        return [
            Fault(
                "trend",
                f"{base} / {arm} drifted by {math.expm1(drift):+.1%} within the round; {moved} moved most"
                f" ({math.expm1(own[moved]):+.1%} in time): not in a steady state",
                f"raise protocol.warmup_minimum_steps (now {plan.protocol.warmup_minimum_steps}), or look for what"
                f" grows from step to step in {moved}",
            )
        ]
    return []


def _drift(logs: numpy.ndarray) -> float:
    return float(theilslopes(logs, numpy.arange(len(logs))).slope) * (len(logs) - 1)
