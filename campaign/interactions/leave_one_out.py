"""What each edit still adds to all the others, and whether it pays (measurement 6; DESIGN 5).

Of each subject: seconds without it over seconds with everything, above 1 is worth keeping. `pays`: faster by a
one-sided t test, Holm over the subjects at .05 (Holm 1979), since the whole family is read at once. `pays for memory`:
it saves memory by the memory rule and its one-sided 95 % lower bound is above 1 / (1 + memory_noninferiority).
`no longer pays`: none of these, and its one-sided 95 % upper bound is below 1 + d; proposed for retirement. Otherwise
`unresolved`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy

from campaign import units
from campaign.effects import interval, memory_change
from campaign.effects.intervals import Array, t_share
from campaign.interactions.contrasts import bounds, byte_change, contrast, peaks_of, rounds_hint
from campaign.interactions.taken import Taken, shown
from campaign.interactions.words import NO_LONGER_PAYS, PAYS, PAYS_FOR_MEMORY, UNRESOLVED, departure_word
from campaign.records import Finding, Term
from campaign.records.study import PARTS

ALPHA = 0.05


def leave_one_out(taken: Taken) -> Finding:
    """The finding of a leave-one-out study, or of the parts of a set: the same question inside the set."""
    study = taken.study
    head = taken.role(study.subjects)
    if head is None:
        return taken.finding("no finding: the arm with every edit did not run")
    without = {subject: taken.role([s for s in study.subjects if s != subject]) for subject in study.subjects}
    logs = {name: taken.logs[head] - taken.logs[role] for name, role in without.items() if role is not None}
    paying = holm({name: _p_value(values) for name, values in logs.items()}, ALPHA)
    terms = tuple(_term(taken, name, str(without[name]), head, name in paying, logs[name]) for name in logs)
    root = taken.role(())
    whole = taken.logs[head] - taken.logs[root] if root is not None else None
    complete = len(terms) == len(study.subjects)
    ratios = [term.effect.ratio for term in terms]
    several = complete and len(terms) > 1
    departure = numpy.sum(list(logs.values()), axis=0) - whole if several and whole is not None else None
    gone = sorted((term for term in terms if term.word == NO_LONGER_PAYS), key=lambda term: term.effect.ratio)
    finding = replace(
        taken.finding("", _hints(taken, terms, without)),
        terms=terms,
        total=contrast(whole) if whole is not None else None,
        product=math.prod(ratios) if complete else None,
        sum=1 + sum(ratio - 1 for ratio in ratios) if complete else None,
        word=departure_word(contrast(departure), study.threshold) if departure is not None else "",
        retire=tuple(term.name for term in gone),
    )
    return replace(finding, sentence=_sentence(finding))


def holm(p_values: Mapping[str, float], alpha: float) -> set[str]:
    """The names whose null is refused by Holm's step-down at familywise `alpha`: the i-th smallest of k p-values (from
    0) against alpha / (k - i), up to the first that fails."""
    refused: set[str] = set()
    for place, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        if p_values[name] > alpha / (len(p_values) - place):
            break
        refused.add(name)
    return refused


def _p_value(logs: Array) -> float:
    """One-sided, of the null that the mean is not above 0."""
    found = interval(logs, ALPHA, ALPHA)
    return t_share(-found.mean / (found.sd / math.sqrt(found.rounds)), found.rounds - 1)


def _term(taken: Taken, name: str, without: str, head: str, pays: bool, logs: Array) -> Term:
    study = taken.study
    rounds = taken.rounds_of(without, head)
    peaks = [(1, peaks_of(rounds, head)), (-1, peaks_of(rounds, without))]
    low, high = bounds(logs, ALPHA)
    change = memory_change(
        rounds, study.protocol, ALPHA, control=without, treatment=head, least_bytes=study.memory_floor_bytes
    )
    word = UNRESOLVED
    if pays:
        word = PAYS
    elif change is not None and change.saved and low > 1 / (1 + study.protocol.memory_noninferiority):
        word = PAYS_FOR_MEMORY
    elif high < 1 + study.threshold:
        word = NO_LONGER_PAYS
    return Term(name, contrast(logs), word, byte_change(peaks) if all(values for _, values in peaks) else None)


def _hints(taken: Taken, terms: tuple[Term, ...], without: Mapping[str, str | None]) -> list[str]:
    said = [
        f"{term.name} is unresolved: {rounds_hint(term.effect, taken.study.threshold)}"
        for term in terms
        if term.word == UNRESOLVED
    ]
    return said + [
        f"{name}: not measured, the arm without it did not run" for name, role in without.items() if not role
    ]


def _sentence(finding: Finding) -> str:
    whole = "set" if finding.kind == PARTS else "stack"
    noun = "part" if finding.kind == PARTS else "edit"
    pay = sum(term.word in (PAYS, PAYS_FOR_MEMORY) for term in finding.terms)
    said = f"{pay} of {units.counted(len(finding.subjects), noun)} {'pays' if pay == 1 else 'pay'} on the whole {whole}"
    if finding.retire:
        named = {term.name: term for term in finding.terms}
        said += f"; no longer {'pays' if len(finding.retire) == 1 else 'pay'}: "
        said += ", ".join(shown(named[name]) for name in finding.retire)
    if finding.total is not None:
        said += f"; together {units.ratio(finding.total.ratio)} {units.interval(finding.total.low, finding.total.high)}"
        if finding.product is not None and finding.word:
            said += f", the leave-one-out gains multiply to {units.ratio(finding.product)}: {finding.word}"
    return said
