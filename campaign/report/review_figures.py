"""The figures of the review page: each with its caption, what kind of evidence it shows and links to its source rows;
and why there is none of the others."""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping, Sequence

from campaign.report.figures import Absent, Figure, Output
from campaign.report.plain import plain
from campaign.report.review_cells import row_anchor

LINKED = 12  # source rows that stand open; more are folded


def figures_html(found: Sequence[Figure | Absent], outputs: Mapping[str, Output], ids: Collection[str]) -> str:
    """Every figure in its order, then what there is no figure of. `outputs` are the drawings by the figures' names,
    `ids` the rows that the page has."""
    drawn = [one for one in found if isinstance(one, Figure)]
    lacking = [one for one in found if isinstance(one, Absent)]
    parts = [_figure(one, outputs[one.name].svg, ids) for one in drawn]
    if lacking:
        lines = "".join(
            f'<li id="figure-{html.escape(one.name)}"><strong>{_text(one.title)}</strong>: {_text(one.why)}</li>'
            for one in lacking
        )
        parts.append(f"<h3>Not drawn</h3>\n<ul>{lines}</ul>")
    return "\n".join(parts)


def figure_links(found: Sequence[Figure | Absent]) -> list[tuple[str, str]]:
    """(id, title) of every figure that is drawn."""
    return [(f"figure-{one.name}", plain(one.title)) for one in found if isinstance(one, Figure)]


def _figure(one: Figure, svg: str, ids: Collection[str]) -> str:
    name = html.escape(one.name)
    files = " or ".join(f'<a href="figures/{name}.{form}">{form.upper()}</a>' for form in ("svg", "png"))
    return (
        f'<figure id="figure-{name}" aria-labelledby="title-{name}">\n<h3 id="title-{name}">{_text(one.title)}</h3>\n'
        f'<div class="drawing">{svg}</div>\n'
        f"<figcaption><p>{_text(one.caption)}</p>\n"
        f"<p><strong>Evidence:</strong> {_text(one.evidence)}</p>\n{_rows(one.rows, ids)}\n"
        f'<p class="quiet">The same beside this page: {files}.</p></figcaption>\n</figure>'
    )


def _rows(rows: Sequence[str], ids: Collection[str]) -> str:
    if not rows:
        return ""
    links = " ".join(
        f'<a href="#{row_anchor(row)}">{_text(row)}</a>' if row_anchor(row) in ids else _text(row) for row in rows
    )
    if len(rows) > LINKED:
        return f"<details><summary>Source rows: {len(rows)}</summary><p>{links}</p></details>"
    return f"<p><strong>Source rows:</strong> {links}</p>"


def _text(text: str) -> str:
    return html.escape(plain(text))
