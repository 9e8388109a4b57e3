"""The page for a pull request. Read as GitHub renders it: tables with escaped pipes, no '#7' that links to an issue,
no '@name' that calls somebody."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from campaign import units
from campaign.records import ACCEPT, VERDICTS, Effect, MemoryChange, Protocol, to_json
from campaign.report.limits import not_shown
from campaign.report.listing import CLOCKS
from campaign.report.listing import row as listed
from campaign.report.reported import Reported, Reports, counted, numbered, shared
from campaign.report.stack import product_lines
from campaign.report.verdict_text import memory_line, resolved

HEADER = ("", "edit", "claim", "predicted", "measured, 95 %", "rounds", "memory", "verdict", "why")
SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\`*|~$"} | {"<": "&lt;"})
UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")  # inside a word GitHub leaves it alone
LINK = re.compile(r"\](?=[(\[])")
CALL = re.compile(r"([#@])(?=\w)")


def page(reports: Reports) -> str:
    """The whole page, with a newline at its end."""
    workloads = ", ".join(code(name) for name in dict.fromkeys(row.plan.workload for row in reports.rows))
    parts = [f"# Campaign {code(reports.campaign)}" + (f": {workloads}" if workloads else "")]
    if not reports.rows:
        parts.append("No decision has been made yet.")
    else:
        parts += [_summary(reports), _legend()]
        for rows in reports.groups():
            parts += [_heading(rows[0]), _declared(rows), _table(rows), _warnings(rows), _details(rows)]
        parts += ["## Totals", _totals(reports)]
    parts += ["## What this does not show", "\n".join(f"- {prose(line)}" for line in not_shown(reports))]
    return "\n\n".join(part for part in parts if part) + "\n"


def prose(text: str) -> str:
    """`text` on one line, with nothing in it that Markdown or GitHub would take for markup."""
    flat = " ".join(text.split()).translate(SPECIAL)
    return CALL.sub(r"\1<!-- -->", LINK.sub(r"\\]", UNDERSCORE.sub(r"\\_", flat)))


def code(text: str) -> str:
    """`text` as a code span on one line, also inside a table cell and with backticks in it."""
    flat = " ".join(text.split()).replace("|", "\\|")
    if "`" not in flat:
        return f"`{flat}`" if flat else ""
    fence = "`" * (1 + max(len(run) for run in _backticks(flat)))
    return f"{fence} {flat} {fence}"


def _backticks(text: str) -> list[str]:
    return [run for run in "".join(mark if mark == "`" else " " for mark in text).split() if run]


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A GitHub table. Cells are taken as they are: escape them first."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *lines))


def _summary(reports: Reports) -> str:
    verdicts = [row.decision.verdict.verdict for row in reports.rows]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in VERDICTS if name in verdicts)
    stack = reports.stack
    if not stack:
        return f"{units.counted(len(verdicts), 'decision')}: {counts}. Nothing is in the accepted stack."
    names = " + ".join(["root", *(code(decision.hypothesis) for decision in stack)])
    lines = product_lines([listed(to_json(decision), False) for decision in stack])
    return (
        f"{units.counted(len(verdicts), 'decision')}: {counts}. The accepted stack: {names}. {prose(' '.join(lines))}"
    )


def _heading(row: Reported) -> str:
    plan = row.plan
    looks = "/".join(map(str, plan.protocol.looks))
    clock = CLOCKS.get(plan.protocol.clock, plan.protocol.clock)
    return f"## {code(plan.workload)} on {prose(plan.device)}: {code(plan.protocol.name)}, {clock}, looks {looks}"


def _legend() -> str:
    return (
        "Ratios are control seconds / treatment seconds of whole training steps in matched, unprofiled, interleaved "
        "rounds: above 1 is faster. Control is root plus the edits accepted before. A predicted ratio is `held` inside "
        "the measured 95 % interval, `optimistic` above it, `pessimistic` below it."
    )


def _declared(rows: Sequence[Reported]) -> str:
    """What was registered before the first timing, and where it ran."""
    protocol = rows[0].plan.protocol
    facts = [
        _looks(protocol),
        "Alpha "
        + shared(rows, lambda row: f"{row.plan.alpha:g}")
        + f" split {_split(protocol.alpha_split)} over the looks, beta {protocol.beta:g} split "
        f"{_split(protocol.beta_split)}, one-sided; stated before timing",
        "Accept: lower bound above 1 and ratio at least 1 + d; reject: upper bound below 1 + d; d = "
        + shared(rows, lambda row: f"{100 * row.plan.threshold:.3g} % ({_origin(row)})"),
        f"Deciding clock: {_clock(protocol.clock)}",
        "Machine: " + shared(rows, lambda row: prose(row.plan.machine_line)) + _fingerprint(rows[0]),
        "Source: " + shared(rows, _source),
    ]
    return "\n".join(f"- {fact}" for fact in facts)


def _fingerprint(row: Reported) -> str:
    return f" (fingerprint {code(row.fingerprint[:12])})" if row.fingerprint else ""


def _looks(protocol: Protocol) -> str:
    looks = ", ".join(map(str, protocol.looks))
    said = f"Looks after {looks} valid rounds, each of {protocol.pairs} pairs of blocks in balanced random order, "
    said += "a fresh process per arm and round"
    if not protocol.decisive:
        return f"{said}; a first look, which cannot accept"
    return f"{said}; a gain is confirmed on {protocol.confirm_rounds} fresh rounds at alpha {protocol.confirm_alpha:g}"


def _split(shares: Sequence[float]) -> str:
    return "/".join(f"{share:g}" for share in shares)


def _clock(clock: str) -> str:
    if clock == "cpu":
        return "process CPU time, declared beforehand; it is not wall time and not tokens/s"
    return {"wall": "wall time", "device": "device time"}.get(clock, clock)


def _origin(row: Reported) -> str:
    plan = row.plan
    if not plan.floor_id:
        return "the protocol's smallest effect; floor not measured"
    return "this machine's measured floor" if plan.threshold > plan.protocol.min_effect else "the smallest effect"


def _source(row: Reported) -> str:
    source = row.plan.source
    if not source.get("commit"):
        return f"no commit recorded ({prose(str(source.get('reason') or source.get('status') or 'unknown'))})"
    said = f"commit {code(str(source['commit'])[:12])}"
    said += f" on {code(str(source['branch']))}" if source.get("branch") else ""
    if not source.get("dirty"):
        return f"{said}, clean"
    patch = source.get("patch_sha256")
    return f"{said}, dirty, " + (f"patch {code(str(patch)[:12])} kept beside the ledger" if patch else "patch NOT kept")


def _table(rows: Sequence[Reported]) -> str:
    return table(HEADER, [_cells(row) for row in rows])


def _cells(row: Reported) -> tuple[str, ...]:
    decision, verdict, memory = row.decision, row.decision.verdict, row.decision.verdict.memory
    rounds = f"{verdict.valid_rounds} valid, {verdict.invalid_rounds} invalid"
    return (
        str(row.sequence),
        code(row.label) + (" (A/A null)" if row.plan.hypothesis.null else ""),
        prose(decision.claim),
        _predicted(row),
        _measured(verdict.effect, bold=row.in_stack) + (", low precision emulated" if row.emulated else ""),
        rounds,
        _memory(memory) if memory else "not compared",
        _verdict(row),
        prose(f"{verdict.reason}: {verdict.sentence}" if verdict.reason else verdict.sentence),
    )


def _predicted(row: Reported) -> str:
    """'1.030x optimistic; counts 2 of 2'."""
    said = f"{units.ratio(row.decision.predicted_ratio)} {row.prediction}".rstrip()
    return said + (f"; counts {row.counts}" if row.counts else "")


def _memory(memory: MemoryChange) -> str:
    change = units.signed_size(memory.treatment_bytes - memory.control_bytes)
    said = f"{change} ({units.size(memory.control_bytes)} to {units.size(memory.treatment_bytes)})"
    return said + (", saved" if memory.saved else ", grown" if memory.grown else "")


def _measured(effect: Effect | None, bold: bool) -> str:
    if effect is None:
        return "none"
    said = f"**{units.ratio(effect.ratio)}**" if bold else units.ratio(effect.ratio)
    if math.isfinite(effect.low):
        said += f" {units.interval(effect.low, effect.high)}"
    return f"{said} {CLOCKS.get(effect.clock, effect.clock)}"


def _verdict(row: Reported) -> str:
    said = row.decision.verdict.verdict
    if row.revoked:
        said = f"~~{said}~~ revoked" + (f": {prose(row.revoked_why)}" if row.revoked_why else "")
    if row.decision.verdict.verdict == ACCEPT and not row.revoked:
        said = f"**{said}**"
    if row.decision.verdict.suspect:
        said += f", **suspect**: {prose(row.decision.verdict.suspect)}"
    return said + (f" (superseded by {row.superseded_by})" if row.superseded_by else "")


def _warnings(rows: Sequence[Reported]) -> str:
    lines = [f"- {row.sequence}: {prose(warning)}" for row in rows for warning in row.decision.verdict.warnings]
    return "\n".join(("Warnings, by decision:", "", *lines)) if lines else ""


def _details(rows: Sequence[Reported]) -> str:
    """How to make and check each row, folded away."""
    lines = []
    for row in rows:
        decision, verdict = row.decision, row.decision.verdict
        edit = row.plan.hypothesis.edit
        changes = [*edit.overrides, *(f"{name}={value}" for name, value in edit.environment.items())]
        facts = [
            f"edit: {', '.join(code(change) for change in changes) if changes else 'none'}; on "
            + " + ".join(["root", *(code(name) for name in decision.stack)]),
            f"needs: {prose(', '.join(row.plan.hypothesis.needs))}" if row.plan.hypothesis.needs else "",
            f"parity: {prose(decision.parity)}; engaged: {prose(decision.engagement)}; low precision: "
            f"{prose(decision.low_precision)}",
            f"memory: {prose(memory_line(verdict.memory))}" if verdict.memory else "",
            f"screening, not the published number: {_measured(verdict.screening, False)}" if verdict.screening else "",
            f"beside, not deciding: {_measured(verdict.beside, False)}" if verdict.beside else "",
            f"look {verdict.look}, alpha spent {verdict.alpha_spent:.4g}, attempt {decision.attempt}; "
            f"{decision.decided_at}",
            code(decision.command),
        ]
        lines.append(f"- {row.sequence} {code(row.label)}")
        lines += [f"  - {fact}" for fact in facts if fact]
    return "\n".join(("<details><summary>Edits, parity, engagement, commands</summary>", "", *lines, "", "</details>"))


def _totals(reports: Reports) -> str:
    tests = [row for row in reports.rows if row.is_test]
    firsts = sum(row.decision.verdict.look > 0 and not row.plan.protocol.decisive for row in reports.rows)
    nulls = [row for row in reports.rows if row.plan.hypothesis.null]
    unlooked = sum(row.decision.verdict.look == 0 for row in reports.rows)
    lines = [
        f"- Tests run: {len(tests)}. Besides: {counted(firsts, 'first look')}, {counted(len(nulls), 'A/A null')}, "
        f"{counted(unlooked, 'decision')} without a look at the ratio.",
        f"- Alpha spent: {reports.alpha_spent:.4g}. Were every edit without effect, at most that many false accepts "
        "would be expected.",
    ]
    if reports.predictions:
        lines.append(f"- {reports.predictions} A/A nulls predict nothing.")
    for row in nulls:
        if floor := row.decision.verdict.floor:
            lines.append(f"- Floor ({numbered([row])}, {CLOCKS.get(floor.clock, floor.clock)}): {resolved(floor)}.")
    if reports.unfinished:
        lines.append(f"- Registered and not decided: {', '.join(code(name) for name in reports.unfinished)}.")
    return "\n".join(lines)
