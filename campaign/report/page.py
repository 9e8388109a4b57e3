"""The campaign page, in the order in which a reviewer wants it: headline, protocol, machine, accepted, rejected,
inconclusive, invalid and unavailable, leave-one-out, interactions, totals, what it does not show."""

from __future__ import annotations

import re

from campaign import units
from campaign.interactions.words import headline_of
from campaign.records import VERDICTS, to_json
from campaign.records.study import HEADLINE
from campaign.report import decided, declared, studied, whole
from campaign.report.cells import ratio
from campaign.report.limits import not_shown
from campaign.report.listing import row as listed
from campaign.report.markup import Block, Fold, bullets, chain, code, prose, table
from campaign.report.reported import Reported, Reports, Studied, counted, numbered

NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?!\w|\.\d)")
PARTS = ("the parts", "sum", "product", "root against head, measured", "together")


def blocks(reports: Reports) -> list[Block]:
    """Everything that the page says, in order; empty Markdown left out."""
    if not reports.every and not reports.findings:
        found: list[Block] = ["No decision has been made yet."]
    else:
        found = [
            *headline(reports),
            *declared.blocks(reports),
            *decided.blocks(reports),
            *studied.blocks(reports),
            *closing(reports),
        ]
    found += ["## What this does not show", bullets([prose(line) for line in not_shown(reports)])]
    return [title(reports), *(block for block in found if block)]


def title(reports: Reports) -> str:
    """'# Campaign `default`: `reference_cpu`'."""
    places = dict.fromkeys(code(one.plan.workload) for one in reports.every)
    return f"# Campaign {code(reports.campaign)}" + (f": {', '.join(places)}" if places else "")


def headline(reports: Reports) -> list[Block]:
    """The section Headline: the measured whole, the parts beside it, the verdicts counted, the stack."""
    found = [*_whole(reports), *_beside(reports)]
    verdicts = [row.decision.verdict.verdict for row in reports.every]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in VERDICTS if name in verdicts)
    said = f"{units.counted(len(verdicts), 'decision')}" + (f": {counts}. " if counts else ". ")
    said += f"The accepted stack: {chain(reports.head)}. " if reports.stack else "Nothing is in the accepted stack. "
    return ["## Headline", *found, prose(reports.filtered), said + LEGEND]


LEGEND = (
    "Ratios are control seconds / treatment seconds of whole training steps in matched, unprofiled, interleaved "
    "rounds: above 1 is faster. In brackets the 95 % interval."
)


def _whole(reports: Reports) -> list[Block]:
    """The measured headline, or what there is in its place."""
    if not reports.stack:
        return []
    one = reports.newest(HEADLINE)
    if one is None:
        lines = whole.lines(_rows(reports), [])
        return [prose(lines[0])]
    head = chain(one.found.stack)
    sentence = prose(headline_of(to_json(one.found.finding)))
    said = f"**{sentence}**"
    if not one.present:
        said = f"Not measured since the stack moved. Before, on {head}: {sentence}"
    return [f"{said} (`root` against {head}; {code(one.study.id)}, finding {one.sequence})"]


def _beside(reports: Reports) -> list[Block]:
    """The sum and the product of the parts beside the measured whole, with the word that they earn."""
    found = _findings(reports)
    measured = whole.measured(found)
    parts = whole.parts(_rows(reports), found)
    if not parts:
        return []
    numbers = {one.sequence: one for one in reports.findings}
    lines = []
    for part in parts:
        one = numbers.get(part.finding or (measured["sequence"] if measured else 0))
        cell = f"{ratio(one.found.finding.total)}, finding {one.sequence}" if one else "not measured"
        by = f"finding {part.finding}" if part.finding else numbered(reports.stack)
        name = f"{part.kind.replace('_', '-')}: {part.how} ({by})"
        if part.product is None:
            lacking = f"not known: {', '.join(map(code, part.lacking))} was not measured so"
            lines.append((name, "-", "-", cell, lacking))
        else:
            word = f"**{part.word}**: {part.meaning}" if part.word else "-"
            lines.append((name, units.ratio(part.sum), units.ratio(part.product), cell, word))
    note = "Sums and products are arithmetic, not measurements: gains neither add nor multiply."
    return [table(PARTS, lines), note]


def _rows(reports: Reports) -> list[dict]:
    return [listed(to_json(row.decision), False) for row in reports.stack]


def _findings(reports: Reports) -> list[dict]:
    return [
        {**to_json(one.found), "present": one.present, "threshold": one.study.threshold} for one in reports.findings
    ]


def closing(reports: Reports) -> list[Block]:
    """The sections Warnings and details, and Totals."""
    return [
        "## Warnings and details",
        _warnings(reports),
        Fold("Edits, parity, engagement, commands of every decision", decided.details(reports.rows)),
        Fold("Arms, rounds, commands of every finding", studied.details(reports.findings)) if reports.findings else "",
        "## Totals",
        _totals(reports),
    ]


def _warnings(reports: Reports) -> str:
    """Each warning once, with the decisions and findings that have it; those that differ in their numbers alone
    together, with the numbers' range."""
    found: dict[str, list[tuple[str, Reported | Studied]]] = {}
    given: list[tuple[Reported | Studied, tuple[str, ...]]] = [
        *((row, row.decision.verdict.warnings) for row in reports.rows),
        *((one, one.found.finding.warnings) for one in reports.findings),
    ]
    for one, warnings in given:
        for warning in warnings:
            found.setdefault(NUMBER.sub("0", warning), []).append((warning, one))
    return bullets(
        [
            f"{prose(_ranged([text for text, _ in told]))} ({numbered([one for _, one in told])})"
            for told in found.values()
        ]
    )


def _ranged(texts: list[str]) -> str:
    """Texts that differ in their numbers alone as one: 'the load reached 1.2 to 1.8 on 2 cores'."""
    numbers = [NUMBER.findall(text) for text in texts]
    ranges = []
    for same in zip(*numbers, strict=True):
        low, high = min(same, key=float), max(same, key=float)
        ranges.append(low if float(low) == float(high) else f"{low} to {high}")
    left = iter(ranges)
    return NUMBER.sub(lambda _: next(left), texts[0])


def _totals(reports: Reports) -> str:
    rows = reports.every
    tests = [row for row in rows if row.is_test]
    firsts = sum(row.decision.verdict.look > 0 and not row.plan.protocol.decisive for row in rows)
    nulls = [row for row in rows if row.null]
    unlooked = sum(row.decision.verdict.look == 0 for row in rows)
    lines = [
        f"Tests run: {len(tests)}. Besides: {counted(firsts, 'first look')}, {counted(len(nulls), 'A/A null')}, "
        f"{counted(unlooked, 'decision')} without a look at the ratio.",
        f"Alpha spent: {reports.alpha_spent:.4g}. Were every edit without effect, at most that many false accepts "
        "would be expected.",
    ]
    if reports.predictions:
        lines.append(f"{reports.predictions} A/A nulls predict nothing.")
    if reports.unfinished:
        lines.append(f"Registered and come to no end: {', '.join(code(name) for name in reports.unfinished)}.")
    return bullets(lines)
