"""The review page's table of what the ledger holds besides decisions: findings, profiles and diagnoses. Figures link to
its rows."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from campaign.report.declared import NAMES
from campaign.report.markup import chain
from campaign.report.reported import Reports, Studied
from campaign.report.review_cells import Cell, Texts, sortable
from campaign.report.studied import sentence

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LABEL = "Findings, profiles and diagnoses. Only findings are made of timed rounds."
HEADER = (("", "text"), ("kind", "text"), ("about", "text"), ("on", "number"), ("what it says", "text"),
          ("rounds", "number"), ("recorded, UTC", "text"))  # fmt: skip
PROFILED = {"profile": "profile of two arms", "diagnosis": "diagnosis of a trace"}


def evidence(reports: Reports, markdown: MarkdownIt, texts: Texts) -> str:
    """The table; empty where there is none of it. Raises LedgerDamaged."""
    lines = [_finding(one, markdown, texts) for one in reports.findings]
    profiled = reports.ledger.profile_rows() if reports.ledger else []
    lines += [_profile(row, markdown, texts) for row in profiled]
    return sortable("evidence", LABEL, HEADER, lines) if lines else ""


def _finding(one: Studied, markdown: MarkdownIt, texts: Texts) -> tuple[str, str, list[Cell]]:
    finding = one.found.finding
    shown = f"campaign show finding-{one.sequence}"
    said = texts.cut_html(markdown.renderInline(sentence(one)), shown)
    if not one.present:
        said += " <strong>The stack has moved since.</strong>"
    rounds = str(finding.valid_rounds) + (f", {finding.invalid_rounds} invalid" if finding.invalid_rounds else "")
    kind = NAMES.get(finding.kind, finding.kind)
    return (
        f"finding {one.sequence}",
        f"finding {one.sequence}",
        [
            Cell(html.escape(kind), kind),
            _named(", ".join(one.study.subjects), texts, shown),
            _on(one.found.stack, markdown),
            Cell(said, finding.sentence),
            Cell(rounds, float(finding.valid_rounds)),
            _when(one.found.decided_at),
        ],
    )


def _profile(row: Mapping[str, Any], markdown: MarkdownIt, texts: Texts) -> tuple[str, str, list[Cell]]:
    name = f"{row['kind']} {row['sequence']}"
    elsewhere = f"campaign {'profile' if row['kind'] == 'profile' else 'diagnose'} --help"
    kind = PROFILED[row["kind"]]
    about = str(row.get("hypothesis") or (row.get("trace") or {}).get("file") or "")
    dispatch = (row.get("diagnosis") or {}).get("dispatch") or {}
    said = str(dispatch.get("sentence") or "where the time goes, not how much was won")
    return (
        name,
        name,
        [
            Cell(kind, kind),
            _named(about, texts, elsewhere),
            _on(row.get("stack") or (), markdown),
            Cell(texts.cut(said, elsewhere), said),
            Cell("none: untimed"),
            _when(str(row["time"])),
        ],
    )


def _named(text: str, texts: Texts, elsewhere: str) -> Cell:
    return Cell(f"<code>{texts.cut(text, elsewhere)}</code>" if text else "", text or None)


def _on(stack: Any, markdown: MarkdownIt) -> Cell:
    whole = markdown.renderInline(chain(list(map(str, stack))))
    if len(stack) > 3:
        whole = f'<details class="long"><summary>root + {len(stack)} edits</summary><p>{whole}</p></details>'
    return Cell(whole, float(len(stack)))


def _when(time: str) -> Cell:
    return Cell(f"<time>{html.escape(time[:16].replace('T', ' '))}</time>", time)
