"""The page's tables of decisions: accepted in the stack's order, taken out again, rejected, inconclusive, invalid and
unavailable. Rows of different machines, workloads or clocks never share a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from campaign.records import INCONCLUSIVE, INVALID, REJECT, UNAVAILABLE
from campaign.report import cells
from campaign.report.listing import CLOCKS
from campaign.report.markup import Block, Forest, chain, code, prose, table
from campaign.report.reported import Reported, Reports, numbered
from campaign.report.verdict_text import memory_line
from campaign.stack import neighbours_changed

Rows = Sequence[Reported]
ACCEPTED = ("", "edit", "on", "marginal, {clock}", "isolated", "cumulative", "interaction", "together", "predicted",
            "rounds")  # fmt: skip
REFUSED = ("", "edit", "on", "measured, {clock}", "memory", "predicted", "rounds", "why")
JOINT = ("isolated", "interaction", "together")  # of a refused edit, where any was timed with root
OUT = ("", "edit", "on", "measured, {clock}", "rounds", "taken out because")
UNDECIDED = ("", "edit", "verdict", "on", "rounds", "why", "next")


def blocks(reports: Reports) -> list[Block]:
    """The sections from Accepted to Invalid and unavailable; empty ones are left out, except the first two."""
    shown = [row for row in reports.rows if not row.null]
    stack = [row for row in reports.stack if row in shown]
    out = [row for row in shown if row.taken_out]
    rest = [row for row in shown if row not in stack and row not in out]
    rejected, open_, undecided = (
        [row for row in rest if row.decision.verdict.verdict in verdicts]
        for verdicts in ((REJECT,), (INCONCLUSIVE,), (INVALID, UNAVAILABLE))
    )
    found: list[Block] = ["## Accepted", *(_accepted(reports, stack) if stack else ["Nothing."])]
    if out:
        found += ["### Taken out again", *_tables(reports, out, OUT, _out)]
    found += ["## Rejected", *(_refused(reports, rejected) if rejected else ["Nothing."])]
    if open_:
        found += ["## Inconclusive", *_refused(reports, open_)]
    if undecided:
        found += ["## Invalid and unavailable", *_tables(reports, undecided, UNDECIDED, _undecided)]
    return found


def _accepted(reports: Reports, rows: Rows) -> list[Block]:
    found = _tables(reports, rows, ACCEPTED, _stacked)
    note = (
        "Marginal: on the stack below it. Isolated: alone on root. Cumulative: with the stack below it against root, "
        "measured. Interaction: marginal over isolated. Bytes are peak memory, with an interval where rounds differ."
    )
    bars = tuple(
        (row.label, effect.ratio, effect.low, effect.high) for row in rows if (effect := row.decision.verdict.effect)
    )
    return [*found, note, Forest("Marginal gain of each accepted edit", bars)]


def _stacked(row: Reported) -> tuple[str, ...]:
    verdict, memory = row.decision.verdict, row.decision.verdict.memory
    marginal = cells.ratio(verdict.effect, bold=True)
    if row.combined and row.combined.marginal_bytes:
        marginal += f", {cells.bytes_change(row.combined.marginal_bytes)}"
    elif memory:
        marginal += f", {cells.memory(memory)}"
    return (*_named(row), marginal, *cells.joint(row), cells.predicted(row), cells.rounds(row))


def _refused(reports: Reports, rows: Rows) -> list[Block]:
    with_root = any(row.combined for row in rows)
    header = (*REFUSED[:4], *JOINT, *REFUSED[4:]) if with_root else REFUSED

    def cells_of(row: Reported) -> tuple[str, ...]:
        verdict = row.decision.verdict
        isolated, _, interaction, word = cells.joint(row)
        joint = (isolated, interaction, word) if with_root else ()
        measured = cells.ratio(verdict.effect)
        return (*_named(row), measured, *joint, cells.memory(verdict.memory), cells.predicted(row), cells.rounds(row),
                _why(row))  # fmt: skip

    moved = [row for row in rows if not row.superseded_by and neighbours_changed(_beside(row), reports.head)]
    return [
        *_tables(reports, rows, header, cells_of),
        f"Measured on another stack than the present one: {numbered(moved)} "
        f"({code('campaign revalidate --retry')} measures them on it)."
        if moved
        else "",
    ]


def _beside(row: Reported) -> dict[str, Any]:
    return {"hypothesis": row.decision.hypothesis, "stack": row.decision.stack}


def _out(row: Reported) -> tuple[str, ...]:
    why = row.revoked_why if row.revoked else row.ruled_why
    who = "ruled out by a person" if row.ruling == "reject" and not row.revoked else "revoked"
    return (*_named(row), cells.ratio(row.decision.verdict.effect), cells.rounds(row), f"{who}: {prose(why)}")


def _undecided(row: Reported) -> tuple[str, ...]:
    number, edit, on = _named(row)
    verdict = row.decision.verdict
    return (number, edit, verdict.verdict, on, cells.rounds(row), _why(row), prose(verdict.remedy) or "-")


def _named(row: Reported) -> tuple[str, str, str]:
    """Number, edit with its claim and what a person must know of the row, and what control held."""
    said = f"{code(row.label)}: {prose(row.decision.claim)}"
    told = notes(row)
    return (str(row.sequence), said + (f" ({'; '.join(told)})" if told else ""), chain(row.decision.stack))


def notes(row: Reported) -> list[str]:
    """What a person must know of a row beside its verdict, in Markdown."""
    verdict, found = row.decision.verdict, []
    if not row.plan.protocol.decisive:
        found.append("a first look")
    if verdict.suspect:
        found.append(f"**suspect**: {prose(verdict.suspect)}")
    if row.in_stack and row.ruling == "accept":
        found.append(f"**ruled in by a person**: {prose(row.ruled_why)}; the verdict: {verdict.verdict}, {_why(row)}")
    elif row.ruling == "reject" and not row.taken_out:
        found.append(f"ruled {row.ruling} by a person: {prose(row.ruled_why)}")
    if row.superseded_by:
        found.append(f"superseded by {row.superseded_by}")
    return found


def _why(row: Reported) -> str:
    verdict = row.decision.verdict
    return prose(f"{verdict.reason}: {verdict.sentence}" if verdict.reason else verdict.sentence)


def _tables(
    reports: Reports, rows: Rows, header: Sequence[str], cells_of: Callable[[Reported], tuple[str, ...]]
) -> list[Block]:
    """One table for each place, under its name where the campaign has several."""
    places: dict[tuple[str, ...], list[Reported]] = {}
    for row in rows:
        places.setdefault(row.place, []).append(row)
    several = len({row.place for row in reports.rows}) > 1
    found: list[Block] = []
    for place, here in places.items():
        workload, device, fingerprint, machine, clock = place
        clock = CLOCKS.get(clock, clock)
        if several:
            of = f" (fingerprint {code(fingerprint[:12])})" if fingerprint else ""
            found.append(f"{code(workload)} on {prose(device)}, {clock}; {prose(machine)}{of}:")
        found.append(table([title.format(clock=clock) for title in header], [cells_of(row) for row in here]))
    return found


def details(rows: Rows) -> str:
    """How to make and check each row."""
    lines = []
    for row in rows:
        lines.append(f"- {row.sequence} {code(row.label)}")
        lines += [f"  - {fact}" for fact in _facts(row) if fact]
    return "\n".join(lines)


def _facts(row: Reported) -> list[str]:
    decision, verdict = row.decision, row.decision.verdict
    claim = row.plan.hypothesis
    changes = claim.edit.words
    return [
        f"edit: {', '.join(code(change) for change in changes) if changes else 'none'}; on {chain(decision.stack)}",
        f"a set of {', '.join(code(part.name) for part in claim.parts)}" if claim.parts else "",
        f"needs: {prose(', '.join(claim.needs))}" if claim.needs else "",
        f"parity: {prose(decision.parity)}; engaged: {prose(decision.engagement)}; low precision: "
        f"{prose(decision.low_precision)}",
        f"why: {_why(row)}" if row.in_stack else "",
        f"memory: {prose(memory_line(verdict.memory))}" if verdict.memory else "",
        f"together: {prose(cells.joint_line(verdict.combined))}" if verdict.combined else "",
        f"screening, not the published number: {_clocked(verdict.screening)}" if verdict.screening else "",
        f"beside, not deciding: {_clocked(verdict.beside)}" if verdict.beside else "",
        f"look {verdict.look}, alpha spent {verdict.alpha_spent:.4g}, attempt {decision.attempt}; "
        f"{decision.decided_at}; plan {code(decision.plan_id)}",
        code(decision.command),
    ]


def _clocked(effect) -> str:
    return f"{cells.ratio(effect)} {CLOCKS.get(effect.clock, effect.clock)}"
