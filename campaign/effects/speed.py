"""From block times to a speed effect: the paired estimate and its interval over rounds.

Everything is in natural logarithms of speed ratios until it becomes a record: `log(base seconds per token / arm
seconds per token)`, above 0 is faster. A round gives one number per arm, the median over its pairs; the interval is
over rounds alone, because blocks of one round share their processes' luck. No block is dropped.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from campaign.effects.intervals import Array, interval, ratio_of
from campaign.records import Block, Effect, Round

CLOCKS = ("wall", "cpu", "device")


def seconds_per_token(one: Round, clock: str, arm: str) -> Array:
    """Shape [pairs]: seconds of each of `arm`'s blocks on `clock` over its tokens, in the order of the pairs."""
    blocks = _blocks(one, arm)
    return _seconds(blocks, clock) / numpy.array([block.tokens for block in blocks], float)


def pair_logs(one: Round, clock: str, base: str, arm: str) -> Array:
    """Shape [pairs]: log(base seconds per token / arm seconds per token) of neighbouring blocks.

    Raises ValueError when the arms' blocks do not pair up or a clock did not advance.
    """
    left, right = seconds_per_token(one, clock, base), seconds_per_token(one, clock, arm)
    if left.shape != right.shape or not left.size:
        raise ValueError(f"round {one.id}: {left.size} blocks of {base} against {right.size} of {arm}")
    if min(left.min(), right.min()) <= 0:
        raise ValueError(f"round {one.id}: a block took no time on the {clock} clock")
    return numpy.log(left) - numpy.log(right)


def round_logs(rounds: Sequence[Round], clock: str, base: str = "control") -> dict[str, Array]:
    """Per arm, shape [rounds]: the round's median of `pair_logs` against `base` (0 for `base` itself).

    Contrasts over more than two arms (interaction, leave-one-out, Shapley) are linear in these and are taken round by
    round before `interval`; a median of each contrast would break additivity (measurement 6, order of operations).
    """
    arms = sorted({trial.arm for one in rounds for trial in one.trials})
    return {arm: numpy.zeros(len(rounds)) if arm == base else _medians(rounds, clock, base, arm) for arm in arms}


def effect(
    rounds: Sequence[Round],
    clock: str,
    alpha: float,
    beta: float,
    control: str = "control",
    treatment: str = "treatment",
) -> Effect:
    """The speed ratio of `treatment` over `control` from at least two rounds, on `clock` (wall, cpu or device).

    `alpha` and `beta` are the look's one-sided levels. `sd_log` is the scatter that the interval uses. Step seconds
    and tokens per second are geometric means over rounds of each round's median block; p99 and maximum are over all
    blocks, per step. `total_ratio` is the geometric mean over rounds of total seconds per token, control over
    treatment.
    """
    medians = _medians(rounds, clock, control, treatment)
    found = interval(medians, alpha, beta)
    sides = {arm: _side(rounds, clock, arm) for arm in (control, treatment)}
    return Effect(
        clock=clock,
        ratio=ratio_of(found.mean),
        low=ratio_of(found.low),
        high=ratio_of(found.high),
        decision_low=ratio_of(found.decision_low),
        decision_high=ratio_of(found.decision_high),
        rounds=found.rounds,
        sd_log=found.sd,
        total_ratio=ratio_of(float(numpy.mean(sides[control].log_total - sides[treatment].log_total))),
        round_ratios=tuple(ratio_of(float(value)) for value in medians),
        control_step_seconds=sides[control].step_seconds,
        treatment_step_seconds=sides[treatment].step_seconds,
        control_tokens_per_second=sides[control].tokens_per_second,
        treatment_tokens_per_second=sides[treatment].tokens_per_second,
        control_p99_seconds=sides[control].p99,
        treatment_p99_seconds=sides[treatment].p99,
        control_max_seconds=sides[control].largest,
        treatment_max_seconds=sides[treatment].largest,
    )


def _medians(rounds: Sequence[Round], clock: str, base: str, arm: str) -> Array:
    return numpy.array([statistics.median(pair_logs(one, clock, base, arm).tolist()) for one in rounds])


def readable(rounds: Sequence[Round], clock: str) -> bool:
    """Whether every block of `rounds` has a positive time on `clock`."""
    readings = [getattr(block, f"{clock}_seconds") for one in rounds for block in one.blocks]
    return bool(readings) and all(value is not None and value > 0 for value in readings)


def level_drift(one: Round, clock: str, arm: str) -> float:
    """The arm's median time in the later half of the round against the earlier half, as a share above 0."""
    times = seconds_per_token(one, clock, arm)
    half = len(times) // 2
    if not half:
        return 0.0
    return math.expm1(abs(math.log(float(numpy.median(times[-half:])) / float(numpy.median(times[:half])))))


@dataclass(frozen=True)
class _Side:
    """One arm over all rounds; `log_total` has shape [rounds]: log of total seconds per token."""

    log_total: Array
    step_seconds: float
    tokens_per_second: float
    p99: float
    largest: float


def _side(rounds: Sequence[Round], clock: str, arm: str) -> _Side:
    totals, steps, tokens, every = [], [], [], []
    for one in rounds:
        blocks = _blocks(one, arm)
        seconds = _seconds(blocks, clock)
        counts = numpy.array([block.steps for block in blocks], float)
        tokens_of = numpy.array([block.tokens for block in blocks], float)
        totals.append(math.log(seconds.sum() / tokens_of.sum()))
        steps.append(math.log(statistics.median((seconds / counts).tolist())))
        tokens.append(math.log(statistics.median((seconds / tokens_of).tolist())))
        every.append(seconds / counts)
    pooled = numpy.concatenate(every)
    return _Side(
        log_total=numpy.array(totals),
        step_seconds=math.exp(float(numpy.mean(steps))),
        tokens_per_second=math.exp(-float(numpy.mean(tokens))),
        p99=float(numpy.percentile(pooled, 99)),
        largest=float(pooled.max()),
    )


def _blocks(one: Round, arm: str) -> list[Block]:
    return sorted((block for block in one.blocks if block.arm == arm), key=lambda block: block.pair)


def _seconds(blocks: Sequence[Block], clock: str) -> Array:
    if clock not in CLOCKS:
        raise ValueError(f"there is no clock {clock!r} (there is: {', '.join(CLOCKS)})")
    readings = [getattr(block, f"{clock}_seconds") for block in blocks]
    if None in readings:
        raise ValueError(f"the {clock} clock was not read in these blocks")
    return numpy.array(readings, float)
