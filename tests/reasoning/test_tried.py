"""What a try says: slower, not slower, or that it can't tell. d is 3 %, so the limit is 1 / 1.03 = 0.97087."""

from __future__ import annotations

from dataclasses import replace

import numpy
import pytest

from campaign import verdicts
from campaign.records import Evidence, Need, ParityClaim, ParityMeasure, Verdict
from campaign.records.plan import SLOWER
from tests.reasoning.made import (
    MIB,
    PLAN,
    Memory,
    evidence,
    made_round,
    probe,
    ratio_round,
    with_clock,
    with_hypothesis,
    with_protocol,
)

TRY = replace(
    with_protocol(
        with_hypothesis(
            PLAN, name="try", asks=SLOWER, predicted_evidence=(), predicted_ratio=1.0, parity=ParityClaim("bitwise")
        ),
        alpha=0.05,
        beta=0.01,
    ),
    alpha=0.05,  # the plan's, which is the protocol's at a first attempt
)
GREEN = probe(ParityMeasure(True, 0.0))


def tried(*ratios: float, plan=TRY, **changes) -> Verdict | Need:
    return verdicts.judge(evidence(ratios, plan=plan, of=GREEN, **changes))


@pytest.mark.parametrize(
    ("ratios", "verdict", "reason"),
    [
        ((0.95, 0.951, 0.949, 0.95), "reject", "slower"),
        ((1.0, 1.001, 0.999, 1.0), "inconclusive", "not_slower"),
        # 2 % slower, surely: less than d.
        ((0.98, 0.9801, 0.9799, 0.98), "inconclusive", "not_slower"),
        # A gain is never an accept, and needs no confirmation.
        ((1.2, 1.21, 1.19, 1.2), "inconclusive", "not_slower"),
        # log 0.93 = -0.0726 and log 1.06 = 0.0583: the mean is 0.9929, and the bounds reach 0.97 and 1 after 12 rounds.
        ((0.93, 1.06) * 6, "inconclusive", "cant_tell"),
        # Slower for certain (below 1), and whether by d nobody knows: the estimate 0.9720 is above the limit.
        ((0.966, 0.978) * 6, "inconclusive", "cant_tell"),
    ],
)
def test_the_three_answers(ratios, verdict, reason) -> None:
    found = tried(*ratios)
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.look == {4: 1, 12: 4}[len(ratios)]


def test_the_looks_go_on_until_one_of_the_answers_is_known() -> None:
    assert tried() == Need("screen", 4)
    assert tried(*(0.93, 1.06) * 2) == Need("screen", 6)
    assert tried(*(0.93, 1.06) * 3) == Need("screen", 8)
    assert tried(*(0.93, 1.06) * 4) == Need("screen", 12)


def test_memory_decides_nothing_in_a_try_and_stalls_that_a_median_hides_do() -> None:
    grown = {"treatment_trial": {"memory": Memory(900 * MIB, limit_bytes=8192 * MIB)}}
    assert tried(1.0, 1.001, 0.999, 1.0, **grown).reason == "not_slower"
    # Two of three pairs equal, one step of treatment five times as long: the median says 1, the total 3 / 7.
    rounds = [made_round((1.0, 1.0, 1.0), (1.0, 1.0, 5.0), index=index) for index in range(4)]
    found = verdicts.judge(Evidence(TRY, GREEN, tuple(rounds)))
    assert (found.verdict, found.reason) == ("inconclusive", "tail") and "0.429x" in found.sentence


def test_a_try_that_cannot_tell_says_what_would_help() -> None:
    found = tried(*(0.93, 1.06) * 6)
    assert "'protocol.looks=[4,6,8,24]'" in found.remedy and "campaign doctor" in found.remedy


def test_by_chance_it_accuses_in_at_most_one_of_a_hundred_and_passes_what_is_slower_by_d_in_at_most_five() -> None:
    draw = numpy.random.default_rng(7)
    count = {}
    for name, mean in (("equal", 0.0), ("slower by d", -numpy.log(1.03))):
        answers = []
        for _ in range(400):
            ratios = numpy.exp(draw.normal(mean, 0.02, 12)).tolist()
            answers.append(tried(*ratios).reason)
        count[name] = {reason: answers.count(reason) for reason in ("slower", "not_slower", "cant_tell")}
    # 400 tries at 1 %: 4 expected at most, and 11 or more have a chance below 0.3 %. At 5 %: 20, and 34 likewise.
    assert count["equal"]["slower"] < 11, count
    assert count["slower by d"]["not_slower"] < 34, count
    assert count["equal"]["not_slower"] > 200, count


def timed(wall: float, cpu: tuple[float, ...]) -> Evidence:
    """Rounds of a try that CPU time decides: every pair with these ratios of it, and one of wall time."""
    pairs = [with_clock(ratio_round(wall, index=i), "cpu", (one,) * 2, (1.0, 1.0)) for i, one in enumerate(cpu)]
    return Evidence(replace(TRY, protocol=replace(TRY.protocol, clock="cpu")), GREEN, tuple(pairs))


def test_cpu_time_that_is_not_slower_does_not_pass_a_change_that_waits() -> None:
    """The scatter of CPU time is such that an experiment could not decide yet, and a try can."""
    found = verdicts.judge(timed(0.8, (0.99, 1.01, 0.99, 1.01)))
    assert (found.verdict, found.reason) == ("inconclusive", "clocks") and "wall says 0.800x" in found.sentence
    assert verdicts.judge(timed(1.0, (0.99, 1.01, 0.99, 1.01))).reason == "not_slower"


def test_a_try_of_an_earlier_version_is_judged_as_it_was_then() -> None:
    then = timed(0.8, (0.99, 1.01, 0.99, 1.01))
    assert verdicts.judge(replace(then, plan=replace(then.plan, rules=2))).reason == "not_slower"
