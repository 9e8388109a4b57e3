"""Leave-one-out, headline and replay: what a study's rounds say, what is asked for next, and how a study ends."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy import stats

from campaign.interactions import active_roles, find
from campaign.interactions.leave_one_out import holm
from campaign.records import Need, StudyEvidence, Surroundings, from_json, to_json
from campaign.records.study import Finding
from tests.reasoning.made import MIB
from tests.reasoning.several import arms_round, evidence_of, found, left_out, log_round, two_arms

STOLEN = Surroundings(steal=0.5)


# Faster than root by: A .10, B .05, C .00, all of them .20, so .05 comes of their being together.
LOGS = {"root": 0.0, "head": 0.20, "without-A": 0.06, "without-B": 0.11, "without-C": 0.20}


def jittered(count: int, logs=LOGS, by: float = 0.002) -> list[dict[str, float]]:
    """Rounds around `logs`: every arm is off by `by`, up and down in turn."""
    return [
        {role: log + (by if (index + place) % 2 else -by) for place, (role, log) in enumerate(logs.items())}
        for index in range(count)
    ]


def test_leave_one_out_says_what_each_edit_adds_to_all_the_others() -> None:
    finding = found(find(evidence_of(left_out("A", "B", "C"), *[LOGS] * 4)))
    ratios = {term.name: math.log(term.effect.ratio) for term in finding.terms}
    assert ratios == pytest.approx({"A": 0.14, "B": 0.09, "C": 0.0}, abs=1e-12)
    assert [term.word for term in finding.terms] == ["pays", "pays", "no longer pays"]
    assert finding.retire == ("C",)
    assert finding.total is not None and math.log(finding.total.ratio) == pytest.approx(0.20)
    # .14 + .09 + 0 = .23 in logs against .20: exp(.03) = 1.0305 is just beyond 1.03
    assert finding.product == pytest.approx(math.exp(0.23))
    assert finding.sum == pytest.approx(1 + math.expm1(0.14) + math.expm1(0.09))
    assert finding.word == "synergy"
    assert finding.sentence == (
        "2 of 3 edits pay on the whole stack; no longer pays: C 1.000x [1.000, 1.000]; together 1.221x [1.221, 1.222],"
        " the leave-one-out gains multiply to 1.259x: synergy"
    )


def test_the_terms_intervals_are_over_rounds() -> None:
    rounds = [LOGS | {"without-A": 0.06 + bend} for bend in (0.02, -0.01, 0.00, 0.03)]
    (term, *_) = found(find(evidence_of(left_out("A", "B", "C"), *rounds))).terms
    reference = stats.ttest_1samp([0.12, 0.15, 0.14, 0.11], 0).confidence_interval(0.95)
    assert (math.log(term.effect.low), math.log(term.effect.high)) == pytest.approx((reference.low, reference.high))


def test_the_weakest_is_proposed_for_retirement_first() -> None:
    logs = {"root": 0.0, "head": 0.2, "without-A": 0.205, "without-B": 0.198, "without-C": 0.1, "without-D": 0.25}
    rounds = [logs | {"without-B": 0.198 + bend} for bend in (0.005, -0.005, -0.005, 0.005)]
    finding = found(find(evidence_of(left_out("A", "B", "C", "D"), *rounds)))
    assert finding.retire == ("D", "A", "B")


def test_an_edit_that_is_small_and_shown_to_pay_stays() -> None:
    # 1 % is below d = 3 %, but the lower bound is above 1.
    finding = found(find(evidence_of(left_out("A"), *[{"root": 0.0, "head": 0.01, "without-A": 0.0}] * 4)))
    assert [term.word for term in finding.terms] == ["pays"] and finding.retire == ()


def test_holm_asks_more_of_one_edit_among_many() -> None:
    # .05 / 3 = .0167, .05 / 2 = .025, .05: the third fails its own, and an order of one's own does not matter
    assert holm({"a": 0.024, "b": 0.016, "c": 0.051}, 0.05) == {"a", "b"}
    # the first fails, so the others are not asked although .03 is below .05
    assert holm({"a": 0.018, "b": 0.03, "c": 0.04}, 0.05) == set()
    assert holm({}, 0.05) == set()


def test_the_same_rounds_pay_alone_and_are_unresolved_in_a_family() -> None:
    # Logs of .08, .02, .02, .04: t = .04 / (.0283 / 2) = 2.83 on 3 degrees of freedom, one-sided p of .033.
    bends = (0.04, -0.02, -0.02, 0.00)
    assert 0.025 < stats.ttest_1samp([0.08, 0.02, 0.02, 0.04], 0, alternative="greater").pvalue < 0.05
    alone = [{"root": 0.0, "head": 0.04 + bend, "without-A": 0.0} for bend in bends]
    assert [term.word for term in found(find(evidence_of(left_out("A"), *alone))).terms] == ["pays"]
    rounds = [
        {"root": 0.0, "head": 0.04, "without-A": -bend, "without-B": -other}
        for bend, other in zip(bends, (-0.02, 0.04, 0.00, -0.02), strict=True)
    ]
    finding = found(find(evidence_of(left_out("A", "B"), *rounds)))
    assert [term.word for term in finding.terms] == ["unresolved", "unresolved"]
    assert any(said.startswith("A is unresolved: about ") for said in finding.warnings)


def test_an_edit_that_saves_memory_at_equal_speed_pays_for_memory() -> None:
    logs = {"root": 0.0, "head": 0.1, "without-A": 0.1, "without-B": 0.0}
    peaks = {"root": 500 * MIB, "head": 400 * MIB, "without-A": 460 * MIB, "without-B": 400 * MIB}
    finding = found(find(evidence_of(left_out("A", "B", rounds=3), *[logs] * 3, peaks=peaks)))
    first = finding.terms[0]
    assert first.word == "pays for memory" and finding.retire == ()
    assert first.memory is not None and (first.memory.bytes, first.memory.exact) == (-60 * MIB, True)


@pytest.mark.parametrize("saved, without", [(4, 0.1), (60, 0.15)])
def test_memory_saved_below_its_threshold_or_at_a_slowdown_does_not_pay(saved: int, without: float) -> None:
    logs = {"root": 0.0, "head": 0.1, "without-A": without, "without-B": 0.0}
    peaks = {"root": 500 * MIB, "head": 400 * MIB, "without-A": (400 + saved) * MIB, "without-B": 400 * MIB}
    finding = found(find(evidence_of(left_out("A", "B"), *[logs] * 4, peaks=peaks)))
    assert finding.terms[0].word == "no longer pays"


def test_one_edit_is_the_whole_stack_and_has_nothing_to_combine_with() -> None:
    finding = found(find(evidence_of(left_out("A"), *[{"root": 0.0, "head": 0.1, "without-A": 0.0}] * 4)))
    assert finding.total is not None and finding.product == pytest.approx(finding.total.ratio)
    assert finding.word == ""


def test_the_parts_of_a_set_are_taken_apart_in_the_same_way() -> None:
    # Neither is worth anything without the other.
    logs = {"root": 0.0, "head": 0.2, "without-A": 0.0, "without-B": 0.0}
    finding = found(find(evidence_of(left_out("A", "B", kind="parts"), *[logs] * 4)))
    assert [term.word for term in finding.terms] == ["pays", "pays"]
    assert finding.word == "synergy"
    assert finding.sentence.startswith("2 of 2 parts pay on the whole set; together 1.221x")


def test_groups_take_turns_until_each_has_its_rounds() -> None:
    two = left_out("A", "B", groups=(("head", "root", "without-A"), ("head", "without-B")), rounds=2)
    first = {role: LOGS[role] for role in ("head", "root", "without-A")}
    second = {role: LOGS[role] for role in ("head", "without-B")}
    taken: list = []
    asked = []
    while isinstance(answer := find(StudyEvidence(two, tuple(taken))), Need):
        asked.append((answer.stage, answer.rounds))
        logs = first if answer.stage == "group-1" else second
        taken.append(log_round(logs, stage=answer.stage, index=answer.rounds - 1))
    assert asked == [("group-1", 1), ("group-2", 1), ("group-1", 2), ("group-2", 2)]
    assert {term.name: math.log(term.effect.ratio) for term in answer.terms} == pytest.approx({"A": 0.14, "B": 0.09})
    assert (answer.valid_rounds, answer.blocks) == (4, 8)


def test_a_finding_never_needs_fewer_than_two_rounds() -> None:
    once = left_out("A", rounds=1)
    logs = {"root": 0.0, "head": 0.1, "without-A": 0.0}
    assert find(evidence_of(once, logs)) == Need("group-1", 2)
    assert isinstance(find(evidence_of(once, logs, logs)), Finding)


def test_rounds_beyond_those_wanted_change_nothing() -> None:
    wanted = evidence_of(left_out("A", "B", "C"), *jittered(4))
    more = replace(wanted, rounds=(*wanted.rounds, log_round(dict.fromkeys(LOGS, 0.0), index=9)))
    assert find(more) == find(wanted)


def test_an_arm_that_fails_is_left_out_and_costs_its_own_number() -> None:
    whole = left_out("A", "B", "C")
    broken = log_round(
        LOGS,
        trials={
            "without-B": {"status": "out_of_memory", "message": "no room for it"},
            **{role: {"status": "interrupted"} for role in LOGS if role != "without-B"},
        },
    )
    evidence = StudyEvidence(whole, (replace(broken, blocks=()),))
    assert active_roles(evidence, 0) == ("head", "root", "without-A", "without-C")
    assert active_roles(evidence, "group-1") == active_roles(evidence, 0)
    assert find(evidence) == Need("group-1", 1)
    rest = {role: log for role, log in LOGS.items() if role != "without-B"}
    rounds = [log_round(rest, index=index) for index in range(1, 5)]
    finding = found(find(replace(evidence, rounds=(*evidence.rounds, *rounds))))
    assert finding.failed == {"without-B": "out_of_memory: no room for it"}
    assert [term.name for term in finding.terms] == ["A", "C"]
    assert (finding.product, finding.sum, finding.word) == (None, None, "")
    assert finding.invalid_rounds == 0
    assert finding.retire == ("C",)
    assert "B: not measured, the arm without it did not run" in finding.warnings


def test_an_interrupted_round_is_no_failure_of_any_arm() -> None:
    cut = replace(log_round(LOGS, trials={role: {"status": "interrupted"} for role in LOGS}), blocks=())
    evidence = StudyEvidence(left_out("A", "B", "C"), (cut,))
    assert active_roles(evidence, 0) == ("head", "root", "without-A", "without-B", "without-C")
    assert find(evidence) == Need("group-1", 1)


def test_a_study_whose_base_arm_fails_ends_without_numbers() -> None:
    broken = log_round(LOGS, trials={"head": {"status": "crashed", "message": "boom"}})
    finding = found(find(StudyEvidence(left_out("A", "B", "C"), (broken,))))
    assert finding.sentence == "no finding: the head arm could not run (crashed: boom)"
    assert (finding.terms, finding.total) == ((), None)


def test_a_study_with_no_arm_left_beside_its_base_ends_without_numbers() -> None:
    alone = two_arms("leave_one_out", "head", "without-A")
    broken = log_round({"head": 0.0, "without-A": 0.0}, trials={"without-A": {"status": "hung"}})
    assert found(find(StudyEvidence(alone, (broken,)))).sentence.startswith("no finding: no arm is left")


def test_too_many_invalid_rounds_end_a_study_and_a_few_are_replaced() -> None:
    good = [log_round(LOGS, index=index) for index in range(4)]
    bad = [log_round(LOGS, index=10 + index, surroundings=STOLEN) for index in range(2)]
    whole = left_out("A", "B", "C")
    finding = found(find(StudyEvidence(whole, (*good[:2], bad[0], *good[2:]))))
    assert (finding.valid_rounds, finding.invalid_rounds) == (4, 1) and finding.terms
    # most_invalid(4, .2) is 1, so the second invalid one ends it, before or after the rounds are whole
    ended = found(find(StudyEvidence(whole, (*good[:3], *bad))))
    assert ended.sentence.startswith("no finding: 2 rounds of 5 were invalid, mostly steal (the hypervisor took 50%")
    assert ended.terms == () and any("quieter hour" in said for said in ended.warnings)


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"code": "other"}, "ran code other"),
        ({"trials": {"root": {"fingerprint": {"torch": "1.0", "device": "cpu"}}}}, "differ beyond the edit: torch"),
    ],
)
def test_rounds_that_could_not_be_compared_end_a_study_at_once(changes, said: str) -> None:
    finding = found(find(evidence_of(left_out("A", "B", "C"), LOGS, **changes)))
    assert finding.sentence.startswith("no finding: ") and said in finding.sentence


def test_a_round_that_lacks_an_arm_which_has_not_failed_does_not_count() -> None:
    part = {role: log for role, log in LOGS.items() if role != "without-C"}
    answer = find(evidence_of(left_out("A", "B", "C"), part, LOGS))
    assert answer == Need("group-1", 2)


def test_the_drift_of_the_base_arm_is_shown() -> None:
    rising = {"head": (1.0, 1.0, 1.4, 1.4), "root": (1.2, 1.2, 1.68, 1.68)}
    made = [arms_round(rising, index=index, pairs=4) for index in range(4)]
    steady = two_arms("headline", "root", "head")
    finding = found(find(StudyEvidence(steady, tuple(made))))
    assert finding.drift == pytest.approx(0.4)
    assert "root's own level moved by 40% within a round; taking turns cancels it" in finding.warnings
    assert finding.total is not None and finding.total.ratio == pytest.approx(1.2)


def test_a_study_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no study of kind 'hunch'"):
        find(StudyEvidence(replace(left_out("A"), kind="hunch")))


def test_a_finding_survives_its_json() -> None:
    finding = found(find(evidence_of(left_out("A", "B", "C"), *jittered(4))))
    assert from_json(Finding, to_json(finding)) == finding
