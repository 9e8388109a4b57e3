"""Main effects, pairwise interactions and Shapley shares of a factorial, on the log of step time.

With v(S) the per-round log of the arm that holds the edits S, and k edits, round by round (measurement 6):

- main effect of i: the mean over S without i of v(S + i) - v(S), which is twice the coded coefficient (Jain 1991,
  ch. 17);
- interaction of i and j: the mean over S without both of v(S + i + j) - v(S + i) - v(S + j) + v(S); its word is
  `synergy` or `redundancy` only where Holm's step-down over the finding's pairs refuses "no interaction" at .05
  (two-sided), since the strongest of many is read first;
- share of i: sum over S without i of s! (k - s - 1)! / k! (v(S + i) - v(S)) (Shapley 1953); shares sum to the whole.

A fraction takes main effects and interactions from its coded columns; pairs that share a column are one number, and
one term, named after the first of them. With at most pairwise interactions its main
effects are the Shapley values; what they leave of the measured whole is given to the edits in equal parts (the additive
efficient normalization of Ruiz, Valenciano and Zarzuelo 1998), and a remainder beyond d makes the attribution
approximate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from campaign import units
from campaign.effects.intervals import Array, t_share
from campaign.interactions.contrasts import contrast, rounds_hint, weighted
from campaign.interactions.factorial import in_fraction
from campaign.interactions.leave_one_out import ALPHA, holm
from campaign.interactions.taken import Taken, shown
from campaign.interactions.words import (
    REDUNDANCY,
    SYNERGY,
    UNRESOLVED,
    departure_word,
    effect_word,
    interaction_word,
)
from campaign.records import Contrast, Finding, Term

ALIAS_ORDER = 3  # aliases beyond three-factor interactions are not listed
Weights = dict[str, float]


def attribution(taken: Taken) -> Finding:
    """The finding of a factorial study. Shares need every arm of the design; a main effect or an interaction of a full
    design is averaged over the arms that ran, and left out where none of its pairs did."""
    table, d = Table(taken), taken.study.threshold
    mains = tuple(table.terms(1))
    pairs = tuple(table.pairs())
    shares, remainder = table.shares()
    whole = table.whole
    alone = [table.roles.get(frozenset({subject})) for subject in table.subjects]
    isolated = [taken.logs[role] - taken.logs[table.root] for role in alone if role is not None and table.root]
    complete = len(isolated) == len(table.subjects)
    departure = whole - sum(isolated) if whole is not None and complete else None
    ratios = [contrast(values).ratio for values in isolated]
    finding = replace(
        taken.finding("", table.warnings(pairs, remainder)),
        terms=(*mains, *pairs),
        shares=shares,
        total=contrast(whole) if whole is not None else None,
        product=math.prod(ratios) if complete else None,
        sum=1 + sum(ratio - 1 for ratio in ratios) if complete else None,
        word=departure_word(contrast(departure), d) if departure is not None else "",
    )
    return replace(finding, sentence=_sentence(finding, pairs))


@dataclass(frozen=True)
class Table:
    """The arms of a factorial that ran, by what they hold, with the weights of its contrasts."""

    taken: Taken

    @property
    def subjects(self) -> tuple[str, ...]:
        return self.taken.study.subjects

    @cached_property
    def roles(self) -> dict[frozenset[str], str]:
        members = self.taken.study.members
        return {frozenset(members[role]): role for role in members if role in self.taken.logs}

    @cached_property
    def root(self) -> str | None:
        return self.roles.get(frozenset())

    @cached_property
    def whole(self) -> Array | None:
        """Per round, every edit against none; None where either did not run."""
        head = self.roles.get(frozenset(self.subjects))
        return None if head is None or self.root is None else self.taken.logs[head] - self.taken.logs[self.root]

    @cached_property
    def runs(self) -> dict[str, tuple[int, ...]]:
        """The levels (-1 or 1 by subject) of every arm of the design proper, ran or not."""
        study = self.taken.study
        found = {
            role: tuple(1 if subject in held else -1 for subject in self.subjects)
            for role, held in study.members.items()
        }
        return {role: levels for role, levels in found.items() if in_fraction(levels, study.generators)}

    @cached_property
    def missing(self) -> list[str]:
        """The runs of the design that are not there."""
        return [role for role in self.runs if role not in self.taken.logs]

    @property
    def fractional(self) -> bool:
        return bool(self.taken.study.generators)

    def terms(self, order: int) -> Iterator[Term]:
        """The main effects (`order` 1) or the pairwise interactions (2) that the arms allow."""
        say = effect_word if order == 1 else interaction_word
        for subjects in combinations(self.subjects, order):
            weights = self._coded(subjects) if self.fractional else self._averaged(subjects)
            if weights:
                found = contrast(weighted(self.taken.logs, weights))
                word = say(found, self.taken.study.threshold)
                yield Term(":".join(subjects), found, word, aliases=self._aliases(subjects))

    def pairs(self) -> Iterator[Term]:
        """The pairwise interactions, those that share a column once, with words that hold over all of them."""
        classes: list[Term] = []
        for term in self.terms(2):
            if not any(term.name in paired(one) for one in classes):
                classes.append(term)
        apart = holm({term.name: _p_value(term.effect) for term in classes}, ALPHA)
        for term in classes:
            claimed = term.word in (SYNERGY, REDUNDANCY) and term.name not in apart
            yield replace(term, word=UNRESOLVED) if claimed else term

    def shares(self) -> tuple[tuple[Term, ...], Array | None]:
        """The Shapley attribution, and what a fraction's main effects left of the whole in each round."""
        if self.missing or self.whole is None:
            return (), None
        if not self.fractional:
            logs = {name: weighted(self.taken.logs, self._shapley(name)) for name in self.subjects}
            return tuple(Term(name, contrast(values)) for name, values in logs.items()), None
        logs = {name: weighted(self.taken.logs, self._coded((name,))) for name in self.subjects}
        remainder = self.whole - sum(logs.values())
        evenly = remainder / len(self.subjects)
        return tuple(Term(name, contrast(values + evenly)) for name, values in logs.items()), remainder

    def warnings(self, pairs: tuple[Term, ...], remainder: Array | None) -> list[str]:
        d, said = self.taken.study.threshold, []
        if self.missing:
            said.append(
                f"no attribution: {', '.join(self.missing)} did not run"
                + ("" if self.fractional else "; effects are averaged over the arms that did")
            )
        left = contrast(remainder) if remainder is not None else None
        if left is not None and abs(math.log(left.ratio)) > math.log1p(d):
            said.append(
                f"attribution approximate: the main effects miss the measured whole by {units.ratio(left.ratio)}"
                f" {units.interval(left.low, left.high)}, given to the edits in equal parts; more than pairs interact,"
                " or the rounds scatter"
            )
        for term in pairs:
            others = paired(term)[1:]
            if others and abs(math.log(term.effect.ratio)) > math.log1p(d):
                said.append(
                    f"attribution approximate: {shown(term)} cannot be told from {', '.join(others)}; measure the"
                    f" suspects alone: {' and '.join(self._commands(term))}"
                )
        open_pairs = [term for term in pairs if term.word == UNRESOLVED]
        if open_pairs:
            widest = max(open_pairs, key=lambda term: term.effect.sd_log)
            said.append(f"{widest.name} is unresolved: {rounds_hint(widest.effect, d)}")
        return said

    def _commands(self, term: Term) -> Iterator[str]:
        """What tells the pairs of a term apart: two at a time, which have no edit in common, so that each is a full
        design; larger ones would be fractions again."""
        for two in _twos(paired(term)):
            names = {name for pair in two for name in pair.split(":")}
            yield f"campaign interactions {' '.join(name for name in self.subjects if name in names)}"

    def _averaged(self, subjects: tuple[str, ...]) -> Weights:
        """The mean over what the other edits may be of the alternating sum over `subjects`, where all of it ran."""
        others = [name for name in self.subjects if name not in subjects]
        cells = []
        for held in _subsets(others):
            signs = {held | part: (-1) ** (len(subjects) - len(part)) for part in _subsets(subjects)}
            if all(cell in self.roles for cell in signs):
                cells.append(signs)
        return _summed((self.roles[cell], sign / len(cells)) for signs in cells for cell, sign in signs.items())

    def _coded(self, subjects: tuple[str, ...]) -> Weights:
        """2 / N x_i for a main effect and 4 / N x_i x_j for an interaction, over the N runs."""
        if self.missing:
            return {}
        scale = 2 ** len(subjects) / len(self.runs)
        return {role: scale * self._column(levels, subjects) for role, levels in self.runs.items()}

    def _shapley(self, subject: str) -> Weights:
        count = len(self.subjects)
        others = [name for name in self.subjects if name != subject]
        weights = []
        for held in _subsets(others):
            size = len(held)
            share = math.factorial(size) * math.factorial(count - size - 1) / math.factorial(count)
            weights += [(self.roles[held | {subject}], share), (self.roles[held], -share)]
        return _summed(weights)

    def _aliases(self, subjects: tuple[str, ...]) -> tuple[str, ...]:
        """Effects of up to three edits whose column is this one or its negative; '-' before the latter."""
        if not self.fractional:
            return ()
        own = [self._column(levels, subjects) for levels in self.runs.values()]
        found = []
        for order in range(1, ALIAS_ORDER + 1):
            for other in combinations(self.subjects, order):
                column = [self._column(levels, other) for levels in self.runs.values()]
                if other != subjects and column in (own, [-level for level in own]):
                    found.append(("" if column == own else "-") + ":".join(other))
        return tuple(found)

    def _column(self, levels: tuple[int, ...], subjects: tuple[str, ...]) -> int:
        return math.prod(levels[self.subjects.index(name)] for name in subjects)


def paired(term: Term) -> list[str]:
    """The pairs that a term stands for: its own, then those among its aliases, whatever their sign."""
    return [term.name, *(alias.lstrip("-") for alias in term.aliases if alias.count(":") == 1)]


def _twos(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[place : place + 2] for place in range(0, len(names), 2))


def _p_value(found: Contrast) -> float:
    """Two-sided, of the null that the contrast's ratio is 1."""
    t = abs(math.log(found.ratio)) * math.sqrt(found.rounds) / found.sd_log
    return 2 * t_share(-t, found.rounds - 1)


def _subsets(names: Sequence[str]) -> Iterator[frozenset[str]]:
    for size in range(len(names) + 1):
        for chosen in combinations(names, size):
            yield frozenset(chosen)


def _summed(weights: Iterable[tuple[str, float]]) -> Weights:
    found: Weights = {}
    for role, weight in weights:
        found[role] = found.get(role, 0.0) + weight
    return found


def _sentence(finding: Finding, pairs: tuple[Term, ...]) -> str:
    said = []
    if finding.total is not None:
        total = finding.total
        said.append(f"together {units.ratio(total.ratio)} {units.interval(total.low, total.high)}")
    if finding.shares:
        shares = " x ".join(f"{term.name} {units.ratio(term.effect.ratio)}" for term in finding.shares)
        said.append(f"of which {shares}")
    if pairs:
        strongest = max(pairs, key=lambda term: abs(math.log(term.effect.ratio)))
        others = f" (or {', '.join(paired(strongest)[1:])})" if len(paired(strongest)) > 1 else ""
        said.append(f"strongest interaction {shown(strongest)}{others}: {strongest.word}")
    return "; ".join(said) or "no finding: too few of the arms ran"
