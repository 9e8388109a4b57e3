"""The review page's table of every decision, one row each, with the numbers that it sorts by."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from campaign import units
from campaign.reading import wall_effect
from campaign.records import Contrast
from campaign.report import cells
from campaign.report.decided import notes
from campaign.report.listing import CLOCKS
from campaign.report.markup import chain, prose
from campaign.report.reported import Reported, Reports
from campaign.report.review_cells import EMPTY, Cell, Texts, sortable

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LABEL = "Every decision, oldest first. Ratios are control seconds / treatment seconds: above 1 is faster."
STACK_SHOWN = 3  # edits of a stack that stand in a cell


@dataclass(frozen=True)
class Writing:
    """What the cells of one page share. `places` are the rows' places in the stack by decision id, from 1 on."""

    markdown: MarkdownIt
    texts: Texts
    places: dict[str, int]

    def line(self, markdown: str, row: Reported) -> str:
        """Markdown of one line as HTML, cut where it is long."""
        return self.texts.cut_html(self.markdown.renderInline(markdown), _command(row))


def decisions(reports: Reports, markdown: MarkdownIt, texts: Texts) -> str:
    """The table; empty without a decision. Columns that no row has anything for are left out."""
    if not reports.rows:
        return ""
    places = {row.decision.id: place for place, row in enumerate(reports.stack, 1)}
    writing = Writing(markdown, texts, places)
    columns = [one for one in COLUMNS if one.name != "where" or len({row.place for row in reports.rows}) > 1]
    lines = [(row, [column.cell(row, writing) for column in columns]) for row in reports.rows]
    kept = [place for place in range(len(columns)) if any(found[place].html for _, found in lines)]
    header = [("", "number"), *((columns[place].name, columns[place].kind) for place in kept)]
    body = [
        (f"#{row.sequence}", str(row.sequence), [found[place] for place in kept])
        for row, found in lines
    ]  # fmt: skip
    return sortable("decisions", LABEL, header, body)


def _command(row: Reported) -> str:
    return f"campaign show {row.sequence}"


def _edit(row: Reported, writing: Writing) -> Cell:
    decision = row.decision
    name = writing.texts.cut(row.label, _command(row))
    claim = writing.texts.cut(decision.claim, _command(row))
    return Cell(f"<code>{name}</code><div>{claim}</div>", row.label)


def _verdict(row: Reported, writing: Writing) -> Cell:
    word = row.decision.verdict.verdict
    told = notes(row)
    said = f'<span class="verdict {html.escape(word)}">{html.escape(word)}</span>'
    if row.taken_out:
        why = row.revoked_why if row.revoked else row.ruled_why
        who = "ruled out by a person" if row.ruling == "reject" and not row.revoked else "revoked"
        told = [f"taken out again, {who}" + (f": {prose(why)}" if why else ""), *told]
    return Cell(said + (f"<div>{writing.line('; '.join(told), row)}</div>" if told else ""), word)


def _place(row: Reported, writing: Writing) -> Cell:
    place = writing.places.get(row.decision.id)
    return Cell(str(place), float(place)) if place else EMPTY


def _on(row: Reported, writing: Writing) -> Cell:
    stack = row.decision.stack
    whole = writing.markdown.renderInline(chain(stack))
    if len(stack) > STACK_SHOWN:
        summary = f"root + {len(stack)} edits"
        whole = f'<details class="long"><summary>{summary}</summary><p>{whole}</p></details>'
    return Cell(whole, float(len(stack)))


def _where(row: Reported, writing: Writing) -> Cell:
    workload, device, fingerprint, machine, clock = row.place
    said = f"{workload} on {device}, {CLOCKS.get(clock, clock)}; {machine} {fingerprint[:12]}".rstrip()
    return Cell(writing.texts.cut(said, _command(row)), said)


def _measured(row: Reported, writing: Writing) -> Cell:
    effect = row.decision.verdict.effect
    return Cell(cells.ratio(effect), effect.ratio) if effect else EMPTY


def _clock(row: Reported, writing: Writing) -> Cell:
    if not row.decision.verdict.effect:
        return EMPTY
    said = html.escape(CLOCKS.get(row.clock, row.clock))
    return Cell(said, said)


def _predicted(row: Reported, writing: Writing) -> Cell:
    return EMPTY if row.null else Cell(html.escape(cells.predicted(row)), row.decision.predicted_ratio)


def _joint(row: Reported, writing: Writing, place: int, name: str) -> Cell:
    """The cell of `cells.joint` at `place`, sorted by the contrast `name`, or by the one measurement that it is on an
    empty stack."""
    if not row.decision.verdict.effect:
        return EMPTY
    said = writing.markdown.renderInline(cells.joint(row)[place])
    found: Contrast | None = getattr(row.combined, name) if row.combined else None
    if found is None and not row.decision.stack and name != "interaction":
        return Cell(said, row.decision.verdict.effect.ratio)
    return Cell("" if said == cells.NONE else said, found.ratio if found else None)


def _together(row: Reported, writing: Writing) -> Cell:
    said = row.combined.word if row.combined else ""
    return Cell(html.escape(said), said) if said else EMPTY


def _memory(row: Reported, writing: Writing) -> Cell:
    change = row.decision.verdict.memory
    if change is None:
        return EMPTY
    return Cell(cells.memory(change), float(change.treatment_bytes - change.control_bytes))


def _tokens(row: Reported, writing: Writing) -> Cell:
    effect = wall_effect(row.decision.verdict)
    if effect is None:
        return EMPTY
    before, after = effect.control_tokens_per_second, effect.treatment_tokens_per_second
    if not (math.isfinite(before) and math.isfinite(after) and after > 0):
        return EMPTY
    return Cell(f"{units.rate(before)} to {units.rate(after)}", after)


def _rounds(row: Reported, writing: Writing) -> Cell:
    return Cell(cells.rounds(row), float(row.decision.verdict.valid_rounds))


def _alpha(row: Reported, writing: Writing) -> Cell:
    spent = row.decision.verdict.alpha_spent
    return Cell(f"{spent:.3g}", spent)


def _why(row: Reported, writing: Writing) -> Cell:
    verdict = row.decision.verdict
    said = f"{verdict.reason}: {verdict.sentence}" if verdict.reason else verdict.sentence
    said += f" Next: {verdict.remedy}" if verdict.remedy else ""
    return Cell(writing.texts.cut(said, _command(row)), verdict.reason or said)


def _decided(row: Reported, writing: Writing) -> Cell:
    when = row.decision.decided_at
    return Cell(f"<time>{html.escape(when[:16].replace('T', ' '))}</time>", when)


@dataclass(frozen=True)
class Column:
    name: str
    kind: str  # 'number' or 'text', which is how it sorts
    cell: Callable[[Reported, Writing], Cell]


COLUMNS: Sequence[Column] = (
    Column("edit", "text", _edit),
    Column("verdict", "text", _verdict),
    Column("measured, marginal", "number", _measured),
    Column("predicted", "number", _predicted),
    Column("measured on", "number", _on),
    Column("place in stack", "number", _place),
    Column("isolated", "number", partial(_joint, place=0, name="isolated")),
    Column("cumulative", "number", partial(_joint, place=1, name="cumulative")),
    Column("interaction", "number", partial(_joint, place=2, name="interaction")),
    Column("together", "text", _together),
    Column("peak memory", "number", _memory),
    Column("wall tokens/s", "number", _tokens),
    Column("rounds", "number", _rounds),
    Column("alpha spent", "number", _alpha),
    Column("clock", "text", _clock),
    Column("where", "text", _where),
    Column("why", "text", _why),
    Column("decided, UTC", "text", _decided),
)
