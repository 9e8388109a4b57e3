"""Pairwise interactions: those that a fraction cannot tell apart, and words that hold over all of them."""

from __future__ import annotations

from campaign.interactions import find
from campaign.records import Term
from campaign.report.finding_text import term_name
from tests.reasoning.several import evidence_of, found
from tests.reasoning.test_factorial import NAMES, factorial, finding_of, logs_of

BENDS = (0.0145, 0.0, -0.0145)


def bent_pair(subjects: tuple[str, ...]) -> Term:
    """The term A:B, alone of all effects: mean .05 over three rounds, sd .0145, so t = 5.97 and p = .027."""
    of = factorial(subjects, rounds=len(BENDS))
    rounds = [logs_of(of, lambda held, bend=bend: (0.05 + bend) * ({"A", "B"} <= held)) for bend in BENDS]
    (term,) = [term for term in found(find(evidence_of(of, *rounds))).terms if term.name == "A:B"]
    return term


def test_three_pairs_in_a_column_are_told_apart_by_two_full_designs() -> None:
    # A:E = B:C = D:F (see test_factorial): what D and F do together shows under the name of the first
    finding = finding_of(factorial(NAMES[:6]), lambda held: 0.08 if {"D", "F"} <= held else 0.0)
    (said,) = [said for said in finding.warnings if said.startswith("attribution approximate: A:E")]
    assert "cannot be told from B:C, D:F" in said
    assert said.endswith("campaign interactions A B C E and campaign interactions D F")
    (term,) = [term for term in finding.terms if term.word == "synergy"]
    assert term_name(term) == "A x E (or B x C, D x F)"


def test_one_of_many_pairs_earns_its_word_by_holm_over_all_of_them() -> None:
    # .027 is below .05 and above .05 / 6, the first step over the six pairs of four edits
    alone, among_six = bent_pair(("A", "B")), bent_pair(NAMES[:4])
    for term in (alone, among_six):
        assert term.effect.low > 1 and term.effect.ratio > 1.03
    assert (alone.word, among_six.word) == ("synergy", "unresolved")
