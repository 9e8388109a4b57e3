"""The campaign page as one HTML file that needs nothing else: light and dark, wide and narrow, nothing in it that runs.

Markdown is rendered with raw HTML, links and images off, so that a person's text stays text; a policy in the file
forbids scripts and requests besides.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from campaign import __version__, units
from campaign.report.markup import NOTHING, Block, Fold, Forest
from campaign.report.page import blocks
from campaign.report.plain import plain
from campaign.report.reported import Reports

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

OFF = ["link", "image", "autolink", "reference", "html_inline", "html_block", "code", "lheading"]
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = """\
:root { color-scheme: light dark; --line: light-dark(#d0d7de, #3d444d); --soft: light-dark(#f6f8fa, #151b23);
  --ink: light-dark(#1f2328, #e6edf3); --quiet: light-dark(#59636e, #9198a1); --mark: light-dark(#0969da, #4493f8) }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 84rem; padding: 1rem 1.25rem 4rem; color: var(--ink); background: Canvas;
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: break-word }
h1 { font-size: 1.6rem; line-height: 1.25 }
h2 { margin-top: 2.2rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); font-size: 1.25rem }
h3 { font-size: 1.05rem }
code { padding: .1em .3em; border-radius: 4px; background: var(--soft); font: .88em ui-monospace, monospace;
  overflow-wrap: anywhere }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; font-size: .9rem }
a { color: var(--mark) }
.wide { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums }
th, td { max-width: 26rem; padding: .35rem .6rem; border: 1px solid var(--line); text-align: left;
  vertical-align: top; overflow-wrap: normal }
td code { white-space: nowrap }
th { min-width: 5.5rem; background: var(--soft) }
th:empty { min-width: 2rem }
details { margin: 1rem 0; border: 1px solid var(--line); border-radius: 6px; padding: .5rem .9rem }
summary { cursor: pointer }
figure { margin: 1rem 0; overflow-x: auto }
figcaption { color: var(--quiet); font-size: .88rem }
svg { max-width: 100%; min-width: 22rem; height: auto; color: var(--ink) }
svg text { fill: currentColor; font: 12px system-ui, sans-serif }
svg .axis { stroke: var(--quiet); stroke-dasharray: 3 3 }
svg .bar { stroke: var(--mark); stroke-width: 2 }
svg circle { fill: var(--mark) }
footer { margin-top: 3rem; color: var(--quiet); font-size: .85rem }
"""
WIDTH, NAME, VALUE, ROW = 640, 190, 150, 24  # of a figure: whole, for names, for numbers, a row; pixels


def document(reports: Reports) -> str:
    """The campaign page as a whole file. Raises Unavailable without markdown-it-py."""
    said = "The ledger is the source; this is a view of it."
    return whole_document(f"Campaign {reports.campaign}", blocks(reports), said)


def whole_document(name: str, found: Sequence[Block], foot: str) -> str:
    """The whole file of a page that begins with a first heading; `name` and `foot` are plain text. Raises Unavailable
    without markdown-it-py."""
    markdown = parser()
    title = html.escape(name)
    body = "\n".join(rendered(block, markdown) for block in found)
    names = [block.removeprefix("## ") for block in found if isinstance(block, str) and block.startswith("## ")]
    links = "".join(f'<a href="#{anchor(name)}">{html.escape(name)}</a>' for name in names)
    head, _, rest = body.partition("</h1>")
    return plain(
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>\n{STYLE}</style>\n</head>\n<body>\n{head}</h1>\n<nav>{links}</nav>\n{rest}\n"
        f"<footer>campaign {html.escape(__version__)}. {html.escape(foot)}</footer>\n"
        f"</body>\n</html>\n"
    )


def parser() -> MarkdownIt:
    """A Markdown parser whose HTML links to nothing, loads nothing and runs nothing. Raises Unavailable without
    markdown-it-py."""
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        from campaign.errors import Unavailable

        raise Unavailable(
            f"an HTML page needs markdown-it-py: {error}", remedy="pip install 'markdown-it-py>=3'"
        ) from error

    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable(OFF)
    made.inline.ruler.before("entity", "nothing", _pass_over)
    made.add_render_rule("table_open", lambda self, tokens, place, options, env: '<div class="wide"><table>\n')
    made.add_render_rule("table_close", lambda self, tokens, place, options, env: "</table></div>\n")
    return made


def _pass_over(state: Any, silent: bool) -> bool:
    """An inline rule that drops what parts '#' and '@' from their words on GitHub."""
    if not state.src.startswith(NOTHING, state.pos):
        return False
    state.pos += len(NOTHING)
    return True


def rendered(block: Block, markdown: MarkdownIt) -> str:
    """A block as HTML, second headings with the `anchor` of their name."""
    if isinstance(block, Forest):
        return _drawn(block)
    if isinstance(block, Fold):
        summary = html.escape(block.summary)
        return f"<details><summary>{summary}</summary>\n{markdown.render(block.text)}</details>" if block.text else ""
    text = markdown.render(block)
    if block.startswith("## ") and "\n" not in block:
        name = block.removeprefix("## ")
        return text.replace("<h2>", f'<h2 id="{anchor(name)}">', 1)
    return text


def anchor(name: str) -> str:
    """The id of the section of this name."""
    return "-".join(word for word in "".join(c if c.isalnum() else " " for c in name.lower()).split())


def _drawn(forest: Forest) -> str:
    """A forest plot: each ratio with its interval on a log axis, and where 1 lies. Empty without a bar."""
    bars = [bar for bar in forest.bars if all(math.isfinite(value) and value > 0 for value in bar[1:])]
    if not bars:
        return ""
    logs = [math.log(value) for bar in bars for value in bar[1:]] + [0.0]
    low, high = min(logs), max(logs)
    spread = (high - low) or 0.01
    low, high = low - 0.05 * spread, high + 0.05 * spread

    def across(ratio: float) -> float:
        return NAME + (math.log(ratio) - low) / (high - low) * (WIDTH - NAME - VALUE)

    height = ROW * len(bars) + 26
    one = across(1.0)
    parts = [
        f'<line class="axis" x1="{one:.1f}" y1="0" x2="{one:.1f}" y2="{height - 22}"/>',
        f'<text x="{one:.1f}" y="{height - 6}" text-anchor="middle">1</text>',
    ]
    for place, (name, ratio, least, most) in enumerate(bars):
        y = ROW * place + ROW // 2
        short = name if len(name) <= 28 else f"{name[:25]}..."
        parts += [
            f'<text x="{NAME - 8}" y="{y + 4}" text-anchor="end">{html.escape(short)}</text>',
            f'<line class="bar" x1="{across(least):.1f}" y1="{y}" x2="{across(most):.1f}" y2="{y}"/>',
            f'<circle cx="{across(ratio):.1f}" cy="{y}" r="4"/>',
            f'<text x="{WIDTH - VALUE + 10}" y="{y + 4}">{units.ratio(ratio)} {units.interval(least, most)}</text>',
        ]
    said = html.escape(forest.title)
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" aria-label="{said}">'
        f"{''.join(parts)}</svg><figcaption>{said}: ratio and 95 % interval, above 1 is faster</figcaption></figure>"
    )
