"""The review page: one HTML file that needs nothing else. Headline, figures, every decision in a table that sorts, what
was measured besides, how, and what it does not show. Its words are those of the campaign page, `page`.

The policy in it lets one script run, by its hash, and nothing be asked for; without that script it is a plain page.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from campaign import __version__
from campaign.report import declared, studied
from campaign.report.figures import Absent, Figure, Output, theme
from campaign.report.html import anchor, parser, rendered
from campaign.report.limits import not_shown
from campaign.report.markup import Block, Forest, bullets, prose
from campaign.report.page import closing, headline, title
from campaign.report.plain import plain
from campaign.report.reported import Reports
from campaign.report.review_cells import Texts
from campaign.report.review_evidence import evidence
from campaign.report.review_figures import figure_links, figures_html
from campaign.report.review_table import decisions

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

HERE = Path(__file__).parent
MARK = "Made by `campaign report`, which replaces it when asked again."
FIGURES, DECISIONS, EVIDENCE = "Figures", "Every decision", "Findings and profiles"
LIMITS = "What this does not show"
WIDE = '<div class="wide">'
ID = re.compile(r'<tr id="([a-z0-9-]+)"')


def review_page(reports: Reports, found: Sequence[Figure | Absent], outputs: Mapping[str, Output]) -> str:
    """The whole file, from what was gathered, its figures and their drawings by name. Raises LedgerDamaged, and
    Unavailable without markdown-it-py."""
    markdown, texts = parser(), Texts()
    tables = {
        DECISIONS: decisions(reports, markdown, texts) or "<p>No decision has been made yet.</p>",
        EVIDENCE: evidence(reports, markdown, texts),
    }
    ids = set(ID.findall("".join(tables.values())))
    sections = [
        *_written(headline(reports), markdown),
        (FIGURES, figures_html(found, outputs, ids)),
        *((name, table) for name, table in tables.items() if table),
        *_written([block for block in studied.blocks(reports) if not isinstance(block, Forest)], markdown),
        *_written(declared.blocks(reports), markdown),
        *_written(closing(reports), markdown),
        *_written([f"## {LIMITS}", bullets([prose(line) for line in not_shown(reports)])], markdown),
    ]
    body = "\n".join(
        f'<section aria-labelledby="{anchor(name)}">\n<h2 id="{anchor(name)}">{html.escape(name)}</h2>\n{text}\n'
        "</section>"
        for name, text in sections
    )
    return plain(
        _document(reports, _contents([name for name, _ in sections], found), body, markdown.render(title(reports)))
    )


def _written(blocks: Sequence[Block], markdown: MarkdownIt) -> list[tuple[str, str]]:
    """The sections of blocks that begin with second headings, as (name, HTML)."""
    found: list[tuple[str, list[str]]] = []
    for block in blocks:
        if isinstance(block, str) and block.startswith("## "):
            found.append((block.removeprefix("## "), []))
        elif block:
            found[-1][1].append(rendered(block, markdown))
    return [
        (name, "\n".join(texts).replace(WIDE, f'<div class="wide" role="group" tabindex="0" aria-label="{name}">'))
        for name, texts in found
    ]


def _contents(names: Sequence[str], found: Sequence[Figure | Absent]) -> str:
    lines = []
    for name in names:
        inner = "".join(f'<li><a href="#{id}">{html.escape(said)}</a></li>' for id, said in figure_links(found))
        inside = f"<ol>{inner}</ol>" if name == FIGURES and inner else ""
        lines.append(f'<li><a href="#{anchor(name)}">{html.escape(name)}</a>{inside}</li>')
    return f'<nav aria-label="Contents"><h2>Contents</h2><ol>{"".join(lines)}</ol></nav>'


def _document(reports: Reports, contents: str, body: str, heading: str) -> str:
    style = (HERE / "review.css").read_text(encoding="utf-8").replace("/* figures */", theme())
    script = (HERE / "review.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'"
    )
    name = html.escape(reports.campaign)
    newest = max((row.decision.decided_at for row in reports.every), default="")
    asof = f" Its newest decision is of {html.escape(newest[:16].replace('T', ' '))} UTC." if newest else ""
    return (
        f'<!doctype html>\n<!-- {MARK} -->\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>Campaign {name}: report</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#main">Skip to the report</a>\n<header>\n{heading}'
        f'<p class="quiet">A view of the ledger, which is the source.{asof} '
        f'<a href="#{anchor(LIMITS)}">{LIMITS}</a></p>\n</header>\n'
        f'<div class="columns">\n{contents}\n<main id="main" tabindex="-1">\n{body}\n</main>\n</div>\n'
        f"<footer>campaign {html.escape(__version__)}: <code>campaign report</code>. Rows for other programs: "
        "<code>campaign ledger --export csv</code>.</footer>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )
