"""A finding as it is shown when its study ends: the sentence first, then a line a number, then what it rests on."""

from __future__ import annotations

from pathlib import Path

from campaign import units
from campaign.records import ByteChange, Contrast, Finding, Found, Term, to_json
from campaign.report.json_text import as_line
from campaign.report.listing import columns
from campaign.report.plain import plain
from campaign.report.verdict_text import effect_line, memory_line
from campaign.stack import parts_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

SCHEMA = 1
TITLES = {
    "leave_one_out": "leave one out",
    "parts": "the parts of a set",
    "headline": "root against head",
    "factorial": "interactions",
    "replay": "measured again",
}
# What a term's ratio is, by kind: the header of its column.
WHAT = {"leave_one_out": "adds to the others", "parts": "adds to the others", "factorial": "ratio"}
# How its parts were measured, by kind, in the words of `stack.PRODUCT_OF`.
HOW = {"leave_one_out": "leave_one_out", "parts": "leave_one_out", "factorial": "isolated"}


def finding_json(found: Found) -> str:
    """`{"schema": 1, "finding": {...}}` on one line: the record as in the ledger, not-finite numbers null."""
    return as_line({"schema": SCHEMA, "finding": found_values(found)})


def found_values(found: Found) -> dict[str, Any]:
    """The record as plain JSON values."""
    values: dict[str, Any] = to_json(found)
    return values


def finding_text(found: Found, ledger_file: Path | str | None = None) -> str:
    """The final block of a study. `ledger_file` is runs/<campaign>/ledger.jsonl."""
    finding = found.finding
    about = f" of {', '.join(finding.subjects)}" if finding.subjects and finding.kind != "headline" else ""
    lines = [f"finding {found.sequence}: {TITLES.get(finding.kind, finding.kind)}{about}", finding.sentence, ""]
    tables = [_table(finding, finding.terms, WHAT.get(finding.kind, "ratio")), _table(finding, finding.shares, "share")]
    for table in tables:
        lines += [*(f"  {line}" for line in table), ""] if table else []
    facts = [
        ("together", contrast_text(finding.total) if finding.total and not finding.effect else ""),
        ("parts", _parts(finding)),
        ("measured", effect_line(finding.effect) if finding.effect else ""),
        ("memory", memory_line(finding.memory) if finding.memory else ""),
        ("head", "+".join(("root", *found.stack)) + f", {found.workload} on {found.device}"),
        ("rounds", _rounds(finding)),
        ("machine", found.machine_line),
        ("took", _took(found)),
        ("ledger", str(ledger_file) if ledger_file else ""),
    ]
    lines += [f"  {name:<10} {value}" for name, value in facts if value]
    lines += [f"  warning    {' '.join(warning.split())}" for warning in finding.warnings]
    return plain("\n".join(lines))


def contrast_text(found: Contrast) -> str:
    """'1.042x [1.031, 1.053] (95 %)'."""
    return f"{units.ratio(found.ratio)} {units.interval(found.low, found.high)} (95 %)"


def bytes_text(found: ByteChange) -> str:
    """'+4.0 MiB', '+4.0 MiB [+3.8 MiB, +4.2 MiB]' where rounds did not repeat it exactly."""
    said = units.signed_size(found.bytes)
    return said if found.exact else f"{said} [{units.signed_size(found.low)}, {units.signed_size(found.high)}]"


def term_name(term: Term) -> str:
    """'a x b'; 'a x b (or c x d)' where a fraction cannot tell the two pairs apart."""
    others = [
        f"the inverse of {alias[1:]}" if alias.startswith("-") else alias
        for alias in term.aliases
        if alias.count(":") == 1
    ]
    return (term.name + (f" (or {', '.join(others)})" if others else "")).replace(":", " x ")


def _table(finding: Finding, terms: Sequence[Term], what: str) -> list[str]:
    """The terms as aligned columns, without those that are empty for all of them."""
    if not terms:
        return []
    header = ("part" if finding.kind == "parts" else "edit", what, "95 % interval", "memory", "word", "same as")
    lines = [
        (
            term_name(term),
            units.ratio(term.effect.ratio),
            units.interval(term.effect.low, term.effect.high),
            bytes_text(term.memory) if term.memory else "",
            term.word,
            ", ".join(alias for alias in term.aliases if alias.count(":") != 1),
        )
        for term in terms
    ]
    kept = [place for place in range(len(header)) if any(line[place] for line in lines)]
    return columns([header[place] for place in kept], [[line[place] for place in kept] for line in lines], {what})


def _parts(finding: Finding) -> str:
    """The product and the sum of the parts beside the measured whole, where there is more than one part."""
    if finding.total is None or finding.product is None or finding.sum is None or not finding.word:
        return ""
    return parts_line(finding.product, finding.sum, finding.total.ratio, finding.word, HOW[finding.kind])


def _rounds(finding: Finding) -> str:
    said = f"{finding.valid_rounds} counted, {finding.invalid_rounds} invalid and kept"
    said += f"; {units.counted(finding.blocks, 'block')} of the base arm" if finding.blocks else ""
    return f"{said}, whose level moved by at most {100 * finding.drift:.0f} % within a round"


def _took(found: Found) -> str:
    if found.wall_seconds <= 0:
        return ""
    share = 100 * found.timed_seconds / found.wall_seconds
    return f"{units.seconds(found.wall_seconds)}, of which {units.seconds(found.timed_seconds)} timed ({share:.0f} %)"
