"""The page's findings: what each edit still adds to all the others, how edits interact, what was measured again."""

from __future__ import annotations

import math
from collections.abc import Sequence

from campaign import units
from campaign.interactions.words import FASTER, SLOWER, compared_word, headline_of
from campaign.records import Term, to_json
from campaign.records.study import FACTORIAL, HEADLINE, LEAVE_ONE_OUT, PARTS, REPLAY
from campaign.report import cells
from campaign.report.finding_text import term_name
from campaign.report.markup import Block, Forest, bullets, chain, code, prose, table
from campaign.report.replayed import compared_text
from campaign.report.reported import Reported, Reports, Studied

LEFT_OUT = ("edit", "adds to all the others", "memory", "word")
MOST_IN_A_MATRIX = 6  # subjects; more pairs are a list


def blocks(reports: Reports) -> list[Block]:
    """The sections Leave-one-out, Interactions and Measured again; those without a finding are left out, except the
    first of a stack of two edits or more."""
    found = _leave_one_out(reports)
    if factorials := reports.of_kind(FACTORIAL):
        found += ["## Interactions", *(block for one in factorials for block in _factorial(one))]
    if replays := reports.of_kind(REPLAY):
        found += ["## Measured again", _replays(reports, replays)]
    return found


def _leave_one_out(reports: Reports) -> list[Block]:
    newest = reports.newest(LEAVE_ONE_OUT)
    sets = reports.of_kind(PARTS)
    others = [one for one in reports.of_kind(LEAVE_ONE_OUT) if one is not newest]
    found: list[Block] = []
    if newest is not None:
        found += _terms(newest, "The stack without each edit against all of it", not newest.present)
    elif len(reports.stack) > 1:
        found.append(f"Not measured ({code('campaign revalidate')} does).")
    if others:
        lines = [f"finding {one.sequence}, on {chain(one.found.stack)}: {sentence(one)}" for one in others]
        found += ["Others:", bullets(lines)]
    by_id = {row.decision.id: row for row in reports.every}
    for one in sets:
        of = by_id.get(one.study.of)
        name = f"{code(of.label)} (decision {of.sequence})" if of else code(one.study.of)
        found += [f"### {name}, taken apart", *_terms(one, "The set without each part against all of it", False)]
    return ["## Leave-one-out", *found] if found else []


def _terms(one: Studied, what: str, stale: bool) -> list[Block]:
    """A leave-one-out finding: how it was measured, its table, what follows from it."""
    finding = one.found.finding
    if not finding.terms:
        return [f"{sentence(one)} ({_evidence(one)})."]
    said = f"{what}, in the same rounds ({_evidence(one)}). Above 1 is what the edit still adds."
    if stale:
        said += f" **Measured on {chain(one.found.stack)}; the stack is another since.**"
    lines = [
        (code(term.name), cells.ratio(term.effect), cells.bytes_change(term.memory) or cells.NONE, f"**{term.word}**")
        for term in finding.terms
    ]
    after = [
        f"Proposed for retirement: {', '.join(map(code, finding.retire))}." if finding.retire else "",
        f"Could not run: {'; '.join(f'{code(role)}: {prose(why)}' for role, why in finding.failed.items())}."
        if finding.failed
        else "",
        _against_whole(one),
    ]
    bars = tuple((term.name, term.effect.ratio, term.effect.low, term.effect.high) for term in finding.terms)
    text = " ".join(part for part in after if part)
    return [said, table(LEFT_OUT, lines), text, Forest(f"Leave-one-out, finding {one.sequence}", bars)]


def _against_whole(one: Studied) -> str:
    finding = one.found.finding
    if finding.total is None or finding.product is None or not finding.word:
        return ""
    return (
        f"In these rounds the whole is {cells.ratio(finding.total)}; its parts multiply to "
        f"{units.ratio(finding.product)}: {finding.word}."
    )


def _factorial(one: Studied) -> list[Block]:
    finding, study = one.found.finding, one.study
    base = next((arm.name for arm in study.arms if arm.role == study.base), study.base)
    names = ", ".join(map(code, study.subjects))
    design = f"a fraction ({prose(', '.join(study.generators))})" if study.generators else "every combination"
    said = (
        f"### {names} on {prose(base)}\n\n{design[0].upper()}{design[1:]}, {len(study.arms)} arms ({_evidence(one)})."
    )
    mains = [term for term in finding.terms if ":" not in term.name]
    pairs = [term for term in finding.terms if ":" in term.name]
    if not finding.terms:
        return [said, f"{sentence(one)}."]
    shares = {term.name: term for term in finding.shares}
    lines = [
        (code(term.name), cells.ratio(term.effect), term.word, cells.ratio(shares[term.name].effect)
         if term.name in shares else cells.NONE, _aliases(term))
        for term in mains
    ]  # fmt: skip
    if finding.total:
        multiplied = math.prod(term.effect.ratio for term in finding.shares)
        share = f"{units.ratio(multiplied)}, the product" if finding.shares else cells.NONE
        lines.append(("all together", f"**{cells.ratio(finding.total)}**", finding.word or cells.NONE, share, ""))
    header = (
        "edit",
        "main effect, averaged over the others",
        "word",
        "Shapley share of the whole",
        "cannot be told from",
    )
    keep = [place for place in range(5) if place < 4 or any(line[4] for line in lines)]
    listed = table([header[place] for place in keep], [[line[place] or "-" for place in keep] for line in lines])
    failed = "; ".join(f"{code(role)}: {prose(why)}" for role, why in finding.failed.items())
    bars = tuple((term_name(term), term.effect.ratio, term.effect.low, term.effect.high) for term in (*mains, *pairs))
    return [
        said,
        listed,
        _pairs(study.subjects, pairs),
        f"Could not run: {failed}." if failed else "",
        Forest(f"Main effects and interactions, finding {one.sequence}", bars),
    ]


def _pairs(subjects: Sequence[str], pairs: Sequence[Term]) -> str:
    """The pairwise interactions: a matrix of few subjects, else a list. Above 1: more together than the product."""
    if not pairs:
        return ""
    if len(subjects) > MOST_IN_A_MATRIX or any(term.aliases for term in pairs):
        lines = [
            (code(term.name.replace(":", " x ")), cells.ratio(term.effect), term.word, _aliases(term) or "-")
            for term in sorted(pairs, key=lambda term: -abs(math.log(term.effect.ratio)))
        ]
        return table(("pair", "interaction", "word", "cannot be told from"), lines)
    found = {frozenset(term.name.split(":")): term for term in pairs}
    matrix: list[tuple[str, ...]] = []
    for row in subjects[:-1]:
        cells_of = []
        for column in subjects[1:]:
            after = subjects.index(column) > subjects.index(row)
            term = found.get(frozenset((row, column))) if after else None
            cells_of.append(f"{cells.ratio(term.effect)} {term.word}" if term else "")
        matrix.append((code(row), *cells_of))
    return table(("interaction of", *map(code, subjects[1:])), matrix)


def _aliases(term: Term) -> str:
    return ", ".join(code(alias.replace(":", " x ")) for alias in term.aliases)


def _replays(reports: Reports, replays: Sequence[Studied]) -> str:
    """What a decision recorded beside what its arms gave when they were measured again."""
    by_id = {row.decision.id: row for row in reports.every}
    lines: list[tuple[str, ...]] = []
    for one in replays:
        row, again = by_id.get(one.study.of), one.found.finding.total
        recorded = row.decision.verdict.effect if row else None
        lines.append(
            (
                f"{row.sequence} {code(row.label)}" if row else code(one.study.of),
                cells.ratio(recorded),
                cells.ratio(again) if again else sentence(one),
                _compared(row, one),
                f"finding {one.sequence}",
            )
        )
    return table(("decision", "recorded", "again", "", "evidence"), lines)


def _compared(row: Reported | None, one: Studied) -> str:
    again = one.found.finding.total
    recorded = row.decision.verdict.effect if row else None
    if row is None or again is None or recorded is None:
        return cells.NONE
    word = compared_word(again, recorded, row.plan.threshold)
    said = compared_text(word, row.plan.threshold)
    said = f"**{said}**" if word in (FASTER, SLOWER) else said
    if one.study.fingerprint != row.plan.fingerprint:
        said += "; another machine or environment: a ratio may travel, seconds do not"
    return said


def sentence(one: Studied) -> str:
    """What a finding says, in Markdown."""
    finding = one.found.finding
    said = headline_of(to_json(finding)) if finding.kind == HEADLINE else finding.sentence
    return prose(said.rstrip("."))


def _evidence(one: Studied) -> str:
    """'finding 2, study `leave_one_out-...`, 12 rounds counted, 1 invalid, the level moved by at most 12 %'."""
    finding = one.found.finding
    said = f"finding {one.sequence}, study {code(one.study.id)}, {units.counted(finding.valid_rounds, 'round')} counted"
    said += f", {finding.invalid_rounds} invalid" if finding.invalid_rounds else ""
    return said + (f", {code(one.study.base)}'s level moved by at most {100 * finding.drift:.0f} % within one")


def details(findings: Sequence[Studied]) -> str:
    """How to make and check each finding."""
    lines = []
    for one in findings:
        study, found = one.study, one.found
        lines.append(f"- finding {one.sequence} {code(study.id)}: {sentence(one)}")
        facts = [
            f"on {chain(found.stack)}; arms {', '.join(code(arm.role) for arm in study.arms)}; base {code(study.base)}",
            f"{units.counted(found.finding.valid_rounds, 'round')} counted, {found.finding.invalid_rounds} invalid, "
            f"{found.finding.blocks} blocks of {code(study.base)}; {units.seconds(found.wall_seconds)}, of which "
            f"{units.seconds(found.timed_seconds)} timed; {found.decided_at}",
            code(found.command),
        ]
        lines += [f"  - {fact}" for fact in facts]
    return "\n".join(lines)
