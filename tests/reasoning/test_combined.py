"""An edit alone and on the stack, from rounds of four arms with planted logs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy import stats

from campaign import verdicts
from campaign.interactions import combined
from campaign.records import Arm, Evidence, Plan, Round, Verdict
from tests.reasoning.made import MIB, PLAN, probe, with_protocol
from tests.reasoning.several import arms_round, log_round

ROOT = Arm("root", "root", "models.Workload", {"ops": "reference", "seed": 0})
SOLO = Arm("solo", "root+fusion", "models.Workload", {"ops": "cpu", "seed": 0})
FOUR: Plan = replace(PLAN, stack=("base",), root=ROOT, solo=SOLO)
# Faster than root by: the stack .20, the edit alone .10, both .25; so the interaction is .25 - .20 - .10 = -.05.
LOGS = {"root": 0.0, "solo": 0.10, "control": 0.20, "treatment": 0.25}


def rounds(count: int, logs: dict[str, float] | None = None, stage: str = "screen", **made) -> list[Round]:
    return [
        replace(log_round(logs or LOGS, stage=stage, index=index, **made), id=f"{stage}-{index}")
        for index in range(count)
    ]


def test_planted_logs_come_out_as_marginal_isolated_cumulative_and_interaction() -> None:
    found = combined(rounds(4), FOUR)
    assert found is not None
    logs = {
        name: math.log(getattr(found, name).ratio) for name in ("marginal", "isolated", "cumulative", "interaction")
    }
    assert logs == pytest.approx({"marginal": 0.05, "isolated": 0.10, "cumulative": 0.25, "interaction": -0.05})
    assert found.word == "redundancy"  # exp(-.05) = .951 is below 1 / 1.03


def test_each_interval_is_over_the_rounds_own_contrasts() -> None:
    # Round by round the interaction is -.05, -.03, -.07, -.05 although every arm's level moves by far more.
    levels, bends = (0.0, 0.3, -0.2, 0.1), (0.0, 0.02, -0.02, 0.0)
    made = [
        log_round(
            {role: log + level + (bend if role == "treatment" else 0.0) for role, log in LOGS.items()}, index=index
        )
        for index, (level, bend) in enumerate(zip(levels, bends, strict=True))
    ]
    found = combined(made, FOUR)
    assert found is not None
    reference = stats.ttest_1samp([-0.05, -0.03, -0.07, -0.05], 0).confidence_interval(0.95)
    shown = found.interaction
    assert (math.log(shown.low), math.log(shown.high)) == pytest.approx((reference.low, reference.high))
    assert shown.sd_log == pytest.approx(0.016330, rel=1e-4)  # sqrt((.02^2 + .02^2) / 3)


def test_contrasts_are_linear_in_round_medians_and_no_medians_of_contrasts() -> None:
    # Pairs' logs against control: treatment 0, .1, .5 (median .1), solo 0, .3, .2 (median .2), root 0.
    made = [
        arms_round(
            {
                "control": (1.0, 1.0, 1.0),
                "treatment": tuple(math.exp(-log) for log in (0.0, 0.1, 0.5)),
                "root": (1.0, 1.0, 1.0),
                "solo": tuple(math.exp(-log) for log in (0.0, 0.3, 0.2)),
            },
            index=index,
        )
        for index in range(2)
    ]
    found = combined(made, FOUR)
    assert found is not None
    assert math.log(found.marginal.ratio) == pytest.approx(0.1)
    assert math.log(found.isolated.ratio) == pytest.approx(0.2)
    # the pairs' own contrasts are 0, -.2 and .3, whose median 0 would not be the difference of the two
    assert math.log(found.interaction.ratio) == pytest.approx(0.1 - 0.2)
    assert found.interaction.ratio == pytest.approx(found.marginal.ratio / found.isolated.ratio)


def test_bytes_are_the_same_contrasts() -> None:
    peaks = {"root": 400 * MIB, "solo": 424 * MIB, "control": 380 * MIB, "treatment": 410 * MIB}
    found = combined(rounds(3, peaks=peaks), FOUR)
    assert found is not None
    changes = [found.marginal_bytes, found.isolated_bytes, found.cumulative_bytes, found.interaction_bytes]
    assert [change and change.bytes for change in changes] == [30 * MIB, 24 * MIB, 10 * MIB, 6 * MIB]
    assert all(change and change.exact for change in changes)


def test_memory_that_one_arm_did_not_measure_is_missing_where_it_would_be_needed() -> None:
    made = rounds(3, trials={"solo": {"memory": None}})
    found = combined(made, FOUR)
    assert found is not None
    assert (found.isolated_bytes, found.interaction_bytes) == (None, None)
    assert found.marginal_bytes is not None and found.cumulative_bytes is not None


@pytest.mark.parametrize("role", ["root", "solo", "treatment"])
def test_one_arm_that_failed_in_one_round_leaves_nothing_to_combine(role: str) -> None:
    made = rounds(4)
    made[2] = log_round(LOGS, index=2, trials={role: {"status": "crashed"}})
    assert combined(made, FOUR) is None


def test_two_arms_or_one_round_combine_to_nothing() -> None:
    assert combined(rounds(4, {"control": 0.0, "treatment": 0.1}), FOUR) is None
    assert combined(rounds(1), FOUR) is None
    assert combined([], FOUR) is None


def test_the_clock_is_the_plans() -> None:
    made = [replace(one, blocks=tuple(replace(block, cpu_seconds=1.0) for block in one.blocks)) for one in rounds(3)]
    found = combined(made, with_protocol(FOUR, clock="cpu"))
    assert found is not None and found.cumulative.ratio == pytest.approx(1.0)


def judged(made: list[Round]) -> Verdict:
    answer = verdicts.judge(Evidence(FOUR, probe(), tuple(made)))
    assert isinstance(answer, Verdict), answer
    return answer


def test_an_accept_carries_what_its_confirmation_rounds_say_and_not_the_screening() -> None:
    screened = rounds(4, LOGS | {"treatment": 0.35})
    verdict = judged([*screened, *rounds(4, stage="confirm")])
    assert (verdict.verdict, verdict.reason) == ("accept", "faster")
    assert verdict.combined is not None and verdict.effect is not None
    assert math.log(verdict.combined.interaction.ratio) == pytest.approx(-0.05)
    assert verdict.combined.marginal.ratio == verdict.effect.ratio
    assert verdict.combined.marginal.low == pytest.approx(verdict.effect.low)


def test_a_rejected_edit_that_was_worth_it_alone_is_masked() -> None:
    verdict = judged(rounds(4, {"root": 0.0, "solo": 0.10, "control": 0.20, "treatment": 0.20}))
    assert verdict.verdict == "reject"
    assert verdict.combined is not None and verdict.combined.word == "masked"


def test_an_edit_that_is_worth_it_only_on_the_stack_is_enabled() -> None:
    logs = {"root": 0.0, "solo": 0.0, "control": 0.20, "treatment": 0.30}
    verdict = judged([*rounds(4, logs), *rounds(4, logs, stage="confirm")])
    assert verdict.verdict == "accept"
    assert verdict.combined is not None and verdict.combined.word == "enabled"


def test_root_and_solo_decide_nothing() -> None:
    slow = LOGS | {"root": 0.9, "solo": -0.9}
    with_four = judged([*rounds(4, slow), *rounds(4, slow, stage="confirm")])
    two = {role: LOGS[role] for role in ("control", "treatment")}
    with_two = judged([*rounds(4, two), *rounds(4, two, stage="confirm")])
    assert with_two.combined is None
    assert replace(with_four, combined=None, warnings=()) == replace(with_two, warnings=())


def test_a_round_without_solo_among_the_published_ones_leaves_the_verdict_and_takes_the_combination() -> None:
    confirm = rounds(4, stage="confirm")
    confirm[3] = confirm[3].only(("control", "treatment"))
    verdict = judged([*rounds(4), *confirm])
    assert verdict.verdict == "accept" and verdict.combined is None


def test_an_unresolved_interaction_says_what_would_resolve_it() -> None:
    # The interaction is -.05 +- .06 by round: no word, and t(.975, R - 1) .0693 / sqrt(R) is below .05 first at R = 10
    bends = (0.06, -0.06, 0.06, -0.06)
    confirm = [
        replace(log_round(LOGS | {"solo": 0.10 + bend}, stage="confirm", index=index), id=f"confirm-{index}")
        for index, bend in enumerate(bends)
    ]
    verdict = judged([*rounds(4), *confirm])
    assert verdict.combined is not None and verdict.combined.word == "unresolved"
    (hint,) = [said for said in verdict.warnings if "unresolved" in said]
    assert "0.951x" in hint and hint.endswith("about 10 rounds like these would tell")
