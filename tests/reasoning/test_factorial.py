"""Factorials: which arms they take, and what main effects, interactions and Shapley shares come to by hand."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy
import pytest
from scipy import stats

from campaign.errors import BadInput
from campaign.interactions import find
from campaign.interactions.factorial import design, fraction, full, groups
from campaign.records import Finding, Need, Study, StudyEvidence
from tests.reasoning.made import study
from tests.reasoning.several import evidence_of, found, log_round

NAMES = tuple("ABCDEFGHI")


def factorial(subjects: tuple[str, ...], **changes) -> Study:
    members, generators = design(subjects)
    roles = tuple(members)
    values = {"members": members, "subjects": subjects, "generators": generators, "rounds": 2}
    return study(roles, base="root", **(values | changes))


def logs_of(of: Study, game) -> dict[str, float]:
    """Each arm's log by `game`, a function of the set of edits that it holds."""
    return {role: game(frozenset(held)) for role, held in of.members.items()}


def finding_of(of: Study, game, rounds: int = 2) -> Finding:
    return found(find(evidence_of(of, *[logs_of(of, game)] * rounds)))


def values(terms) -> dict[str, float]:
    return {term.name: math.log(term.effect.ratio) for term in terms}


def pairwise(subjects, seed: int = 0):
    """A game of random main effects and random pairwise interactions."""
    rng = numpy.random.default_rng(seed)
    mains = {name: rng.normal(0.05, 0.03) for name in subjects}
    pairs = {frozenset(pair): rng.normal(0, 0.03) for pair in combinations(subjects, 2)}
    return (
        mains,
        pairs,
        lambda held: sum(mains[name] for name in held) + sum(value for pair, value in pairs.items() if pair <= held),
    )


def shapley(subjects, game) -> dict[str, float]:
    """By its definition: what each edit adds when it joins, averaged over every order of joining."""
    added = dict.fromkeys(subjects, 0.0)
    orders = list(permutations(subjects))
    for order in orders:
        for place, name in enumerate(order):
            before = frozenset(order[:place])
            added[name] += (game(before | {name}) - game(before)) / len(orders)
    return added


def test_two_edits_come_apart_as_by_hand() -> None:
    # Logs: A .10, B .30, both .35. I = -.05; shares .10 - .025 = .075 and .30 - .025 = .275; main effects the same.
    game = {frozenset(): 0.0, frozenset("A"): 0.10, frozenset("B"): 0.30, frozenset("AB"): 0.35}
    finding = finding_of(factorial(("A", "B")), game.__getitem__)
    assert values(finding.terms) == pytest.approx({"A": 0.075, "B": 0.275, "A:B": -0.05})
    assert [term.word for term in finding.terms] == ["faster", "faster", "redundancy"]
    assert values(finding.shares) == pytest.approx({"A": 0.075, "B": 0.275})
    assert finding.total is not None and math.log(finding.total.ratio) == pytest.approx(0.35)
    assert finding.product == pytest.approx(math.exp(0.40))
    assert finding.sum == pytest.approx(1 + math.expm1(0.10) + math.expm1(0.30))
    assert finding.word == "redundancy"
    assert finding.sentence == (
        "together 1.419x [1.417, 1.422]; of which A 1.078x x B 1.317x; strongest interaction A:B 0.951x [0.950, 0.953]:"
        " redundancy"
    )


def test_three_edits_come_apart_as_by_hand() -> None:
    # The glove game, a tenth of a log: A has the left glove, B and C one right glove each. Shapley: 4/6, 1/6, 1/6.
    def game(held: frozenset[str]) -> float:
        return 0.1 if "A" in held and len(held) > 1 else 0.0

    finding = finding_of(factorial(("A", "B", "C")), game)
    assert values(finding.shares) == pytest.approx({"A": 0.4 / 6, "B": 0.1 / 6, "C": 0.1 / 6})
    # Main effects are plain means over what the others are: A adds 0, .1, .1, .1; B adds 0, .1, 0, 0.
    # A:B is .1 without C, 0 with it; B:C is 0 without A and -.1 with it.
    assert values(finding.terms) == pytest.approx(
        {"A": 0.075, "B": 0.025, "C": 0.025, "A:B": 0.05, "A:C": 0.05, "B:C": -0.05}
    )


@pytest.mark.parametrize("count", [3, 4])
def test_shares_are_shapleys_and_sum_to_the_measured_whole(count: int) -> None:
    subjects = NAMES[:count]
    rng = numpy.random.default_rng(count)
    table = {frozenset(held): rng.normal(0, 0.1) for size in range(count + 1) for held in combinations(subjects, size)}
    base = table[frozenset()]
    finding = finding_of(factorial(subjects), lambda held: table[held] - base)
    assert values(finding.shares) == pytest.approx(shapley(subjects, table.__getitem__))
    assert finding.total is not None
    assert math.prod(term.effect.ratio for term in finding.shares) == pytest.approx(finding.total.ratio)


def test_the_published_four_arm_example_comes_out_as_published() -> None:
    # measurement 6: S_X 1.098, S_Y 1.455, S_XY 1.492; exp(I) .934, Shapley 1.061 x 1.406 = 1.492, product 1.598
    logs = {frozenset(): 1.0, frozenset("X"): 1.098, frozenset("Y"): 1.455, frozenset("XY"): 1.492}
    finding = finding_of(factorial(("X", "Y")), lambda held: math.log(logs[held]))
    ratios = {term.name: term.effect.ratio for term in (*finding.shares, finding.terms[2])}
    assert ratios == pytest.approx({"X": 1.061, "Y": 1.406, "X:Y": 0.934}, abs=6e-4)
    assert finding.product == pytest.approx(1.598, abs=1e-3)


def test_intervals_are_over_rounds_and_shares_sum_in_each() -> None:
    of = factorial(("A", "B"), rounds=4)
    bends = (0.02, -0.01, 0.00, 0.03)
    rounds = [{"root": 0.0, "A": 0.1, "B": 0.3, "A+B": 0.35 + bend} for bend in bends]
    finding = found(find(evidence_of(of, *rounds)))
    interaction = finding.terms[2].effect
    reference = stats.ttest_1samp([-0.05 + bend for bend in bends], 0).confidence_interval(0.95)
    assert (math.log(interaction.low), math.log(interaction.high)) == pytest.approx((reference.low, reference.high))
    # half of the bend goes to each share: a sd of half the interaction's
    assert [share.effect.sd_log for share in finding.shares] == pytest.approx([interaction.sd_log / 2] * 2)


def test_an_interaction_that_the_rounds_leave_open_says_what_would_tell() -> None:
    of = factorial(("A", "B"), rounds=4)
    rounds = [{"root": 0.0, "A": 0.1, "B": 0.3, "A+B": 0.35 + bend} for bend in (0.06, -0.06, 0.06, -0.06)]
    finding = found(find(evidence_of(of, *rounds)))
    assert finding.terms[2].word == "unresolved"
    assert "A:B is unresolved: about 10 rounds like these would tell" in finding.warnings


def test_a_full_design_takes_every_combination_with_root_first() -> None:
    assert full(("A", "B")) == {"root": (), "A": ("A",), "B": ("B",), "A+B": ("A", "B")}
    assert list(full(("b", "a", "c"))) == ["root", "b", "a", "c", "b+a", "b+c", "a+c", "b+a+c"]
    assert design(NAMES[:4]) == (full(NAMES[:4]), ()) and len(full(NAMES[:4])) == 16


@pytest.mark.parametrize("count, runs", [(5, 17), (6, 16), (7, 16), (8, 16), (9, 33)])
def test_a_fraction_holds_root_and_the_whole_and_is_balanced(count: int, runs: int) -> None:
    subjects = NAMES[:count]
    members, generators = design(subjects)
    assert len(members) == runs and len(generators) == count - (5 if count == 9 else 4)
    assert next(iter(members)) == "root" and tuple(members.values())[-1] == subjects
    # the whole is an extra arm where the count is odd
    fractional = [held for role, held in members.items() if runs % 2 == 0 or held != subjects]
    for name in subjects:
        assert sum(name in held for held in fractional) == len(fractional) / 2
    for pair in combinations(subjects, 2):  # resolution above III: every pair of columns is orthogonal
        assert sum(set(pair) <= set(held) for held in fractional) == len(fractional) / 4
    for three in combinations(subjects, 3):  # and so is every three: no main effect lies on a pair
        assert sum(set(three) <= set(held) for held in fractional) == len(fractional) / 8


@pytest.mark.parametrize("count", [5, 6, 7, 8, 9])
def test_main_effects_of_a_fraction_are_the_shapley_values_where_only_pairs_interact(count: int) -> None:
    subjects = NAMES[:count]
    mains, pairs, game = pairwise(subjects, seed=count)
    finding = finding_of(factorial(subjects), game)
    # Of a game of pairs the Shapley value is the main effect and half of each interaction (Shapley 1953, linearity).
    by_hand = {name: mains[name] + sum(value for pair, value in pairs.items() if name in pair) / 2 for name in subjects}
    assert values(finding.shares) == pytest.approx(by_hand, abs=1e-12)
    assert {name: value for name, value in values(finding.terms).items() if ":" not in name} == pytest.approx(
        by_hand, abs=1e-12
    )
    assert finding.total is not None
    assert sum(by_hand.values()) == pytest.approx(math.log(finding.total.ratio))
    assert not [said for said in finding.warnings if "miss the measured whole" in said]


def test_five_edits_have_pairs_clear_of_each_other() -> None:
    _, pairs, game = pairwise(NAMES[:5])
    finding = finding_of(factorial(NAMES[:5]), game)
    found_pairs = {frozenset(name.split(":")): value for name, value in values(finding.terms).items() if ":" in name}
    assert found_pairs == pytest.approx(pairs, abs=1e-12)
    aliases = {term.name: term.aliases for term in finding.terms}
    assert aliases["A:B"] == ("-C:D:E",) and aliases["A"] == ()


def test_six_edits_have_pairs_that_share_a_column_and_say_which() -> None:
    # E = ABC, F = BCD: AB = CE, AC = BE, AE = BC = DF, AD = EF, AF = DE, BD = CF, BF = CD (NIST 5.3.3.4.7)
    game = {frozenset("AB"): 0.05, frozenset("CE"): 0.03}
    finding = finding_of(factorial(NAMES[:6]), lambda held: sum(v for pair, v in game.items() if pair <= held))
    terms = {term.name: term for term in finding.terms}
    of_pairs = {name: {alias for alias in term.aliases if alias.count(":") == 1} for name, term in terms.items()}
    assert of_pairs["A:B"] == {"C:E"} and of_pairs["A:E"] == {"B:C", "D:F"} and of_pairs["B:F"] == {"C:D"}
    # fifteen pairs in seven columns: each column is one number, named once
    assert [name for name in terms if ":" in name] == ["A:B", "A:C", "A:D", "A:E", "A:F", "B:D", "B:F"]
    assert {"B:C:E", "D:E:F"} == {alias for alias in terms["A"].aliases}
    assert math.log(terms["A:B"].effect.ratio) == pytest.approx(0.08)  # the sum of the two
    (said,) = [said for said in finding.warnings if said.startswith("attribution approximate")]
    assert "cannot be told from C:E" in said and said.endswith(
        "measure the suspects alone: campaign interactions A B C E"
    )
    assert "strongest interaction A:B 1.083x [1.081, 1.085] (or C:E): synergy" in finding.sentence


def test_more_than_pairs_make_the_attribution_approximate_and_it_still_sums() -> None:
    # Worth .3 only with all six: the fraction's main effects are 2/16 x .3 each, .225 of .3 in all.
    subjects = NAMES[:6]
    finding = finding_of(factorial(subjects), lambda held: 0.3 if len(held) == 6 else 0.0)
    mains = {name: value for name, value in values(finding.terms).items() if ":" not in name}
    assert mains == pytest.approx(dict.fromkeys(subjects, 0.0375))
    assert values(finding.shares) == pytest.approx(dict.fromkeys(subjects, 0.05))
    said = " ".join(finding.warnings)
    assert "attribution approximate: the main effects miss the measured whole by 1.078x" in said  # exp(.075)


def test_groups_hold_root_and_split_the_others_evenly() -> None:
    roles = list(full(NAMES[:4]))
    found_groups = groups(roles, "root")
    assert [len(group) for group in found_groups] == [6, 6, 6]
    assert all(group[0] == "root" for group in found_groups)
    assert [role for group in found_groups for role in group[1:]] == roles[1:]
    assert groups(["head", "root", "x"], "head") == (("head", "root", "x"),)


@pytest.mark.parametrize("count", range(2, 34))
def test_no_group_is_larger_than_a_round_may_be(count: int) -> None:
    roles = [f"r{place}" for place in range(count)]
    made = groups(roles, "r0")
    assert max(len(group) for group in made) <= 8
    assert sorted(role for group in made for role in group[1:]) == sorted(roles[1:])
    assert max(map(len, made)) - min(map(len, made)) <= 1
    assert len(made) == math.ceil((count - 1) / 7)


def test_groups_without_their_base_or_without_another_arm_are_refused() -> None:
    for roles in (["a", "b"], ["root"]):
        with pytest.raises(ValueError, match="'root' in each"):
            groups(roles, "root")


def test_arms_of_several_groups_make_one_replicate_whatever_the_level_of_each_round() -> None:
    # Four edits in three groups; round by round the machine's own level is another.
    subjects = NAMES[:4]
    _, _, game = pairwise(subjects, seed=4)
    whole = factorial(subjects)
    of = factorial(subjects, groups=groups(list(whole.members), "root"))
    logs, rounds, level = logs_of(of, game), [], 0.0
    while isinstance(answer := find(StudyEvidence(of, tuple(rounds))), Need):
        level += 0.37
        there = of.groups[int(answer.stage[-1]) - 1]
        rounds.append(log_round({role: logs[role] + level for role in there}, stage=answer.stage, index=len(rounds)))
    assert len(rounds) == 6
    assert values(answer.shares) == pytest.approx(shapley(subjects, game))


def test_an_arm_that_cannot_run_leaves_what_the_others_say() -> None:
    of = factorial(("A", "B", "C"))
    _, _, game = pairwise(of.subjects, seed=7)
    logs = logs_of(of, game)
    broken = log_round(logs, trials={"A+B+C": {"status": "out_of_memory", "message": "full"}})
    rest = {role: log for role, log in logs.items() if role != "A+B+C"}
    finding = found(find(StudyEvidence(of, (broken, log_round(rest, index=1), log_round(rest, index=2)))))
    assert (finding.shares, finding.total) == ((), None)
    # A's effect is averaged over no other, B and C; A:B is what it is without C
    mean = numpy.mean([logs["A"], logs["A+B"] - logs["B"], logs["A+C"] - logs["C"]])
    assert values(finding.terms)["A"] == pytest.approx(mean)
    assert values(finding.terms)["A:B"] == pytest.approx(logs["A+B"] - logs["A"] - logs["B"])
    assert any("A+B+C did not run; effects are averaged over the arms that did" in said for said in finding.warnings)


def test_a_fraction_without_one_of_its_runs_says_no_numbers_but_the_wholes() -> None:
    of = factorial(NAMES[:6])
    _, _, game = pairwise(of.subjects)
    logs = logs_of(of, game)
    lost = next(role for role, held in of.members.items() if len(held) == 3)
    broken = log_round(logs, trials={lost: {"status": "crashed"}})
    rest = {role: log for role, log in logs.items() if role != lost}
    finding = found(find(StudyEvidence(of, (broken, log_round(rest, index=1), log_round(rest, index=2)))))
    assert (finding.terms, finding.shares) == ((), ())
    assert finding.total is not None and math.log(finding.total.ratio) == pytest.approx(game(frozenset(of.subjects)))
    assert f"no attribution: {lost} did not run" in finding.warnings


@pytest.mark.parametrize(
    "subjects, said",
    [(("A",), "at least two edits, got 1"), (tuple("ABCDEFGHIJ"), "10 edits"), (("A", "B", "A"), "A is named twice")],
)
def test_a_factorial_that_cannot_be_is_refused(subjects, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        design(subjects)


def test_a_fraction_of_four_edits_is_refused() -> None:
    with pytest.raises(BadInput, match="5 to 9 edits, got 4"):
        fraction(NAMES[:4])
