"""What was registered before the first timing, and where it ran: the page's protocol and machine."""

from __future__ import annotations

from collections.abc import Sequence

from campaign import units
from campaign.records import Protocol
from campaign.records.study import FACTORIAL, HEADLINE, LEAVE_ONE_OUT, PARTS, REPLAY
from campaign.report import cells
from campaign.report.listing import CLOCKS
from campaign.report.markup import Block, bullets, code, prose
from campaign.report.reported import Reported, Reports, Studied, numbered, shared
from campaign.report.verdict_text import resolved

NAMES = {
    LEAVE_ONE_OUT: "leave-one-out",
    PARTS: "a set taken apart",
    HEADLINE: "root against head",
    FACTORIAL: "factorial",
    REPLAY: "measured again",
}


def blocks(reports: Reports) -> list[Block]:
    """The sections Protocol and Machine."""
    return [
        "## Protocol",
        *(_protocol(rows, several=len(groups) > 1) for groups in [_groups(reports.rows)] for rows in groups),
        _studies(reports.findings),
        "## Machine",
        _machine(reports),
    ]


def _groups(rows: Sequence[Reported]) -> list[list[Reported]]:
    """Rows of one workload, device and protocol."""
    found: dict[tuple[object, ...], list[Reported]] = {}
    for row in rows:
        found.setdefault((row.plan.workload, row.plan.device, row.plan.protocol), []).append(row)
    return list(found.values())


def _protocol(rows: Sequence[Reported], *, several: bool) -> str:
    plan = rows[0].plan
    protocol = plan.protocol
    looks = "/".join(map(str, protocol.looks))
    clock = CLOCKS.get(protocol.clock, protocol.clock)
    name = f"{code(protocol.name)}, {clock}, looks {looks}, {code(plan.workload)} on {prose(plan.device)}"
    if all(row.null for row in rows):
        return f"{name} ({numbered(rows)}): {protocol.pairs} pairs of blocks a round; A/A, which accepts nothing."
    facts = [
        _looks(protocol),
        "Alpha "
        + shared(rows, lambda row: f"{row.plan.alpha:g}")
        + f" split {_split(protocol.alpha_split)} over the looks, beta {protocol.beta:g} split "
        f"{_split(protocol.beta_split)}, one-sided; stated before timing",
        "Accept: lower bound above 1 and ratio at least 1 + d; reject: upper bound below 1 + d; d = "
        + shared(rows, lambda row: f"{100 * row.plan.threshold:.3g} % ({_origin(row)})"),
        f"Deciding clock: {_clock(protocol.clock)}",
    ]
    return f"{name}{f' ({numbered(rows)})' if several else ''}:\n\n{bullets(facts)}"


def _looks(protocol: Protocol) -> str:
    looks = ", ".join(map(str, protocol.looks))
    said = f"Looks after {looks} valid rounds, each of {protocol.pairs} pairs of blocks in balanced random order, "
    said += "a fresh process per arm and round"
    if protocol.arms > 2:
        said += "; with edits in the stack root and root + the edit are timed in the same rounds"
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


def _studies(findings: Sequence[Studied]) -> str:
    """What the studies declared, each kind once."""
    if not findings:
        return ""

    def said(one: Studied) -> str:
        study = one.study
        arms = f"{len(study.arms)} arms" + (f" in {len(study.groups)} groups" if len(study.groups) > 1 else "")
        clock = CLOCKS.get(study.protocol.clock, study.protocol.clock)
        return (
            f"{NAMES.get(study.kind, study.kind)}, {arms}, {units.counted(study.rounds, 'round')} of "
            f"{study.protocol.pairs} pairs, {clock}, d = {100 * study.threshold:.3g} %"
        )

    found: dict[str, list[Studied]] = {}
    for one in findings:
        found.setdefault(said(one), []).append(one)
    lines = [f"{text} ({numbered(having)})" for text, having in found.items()]
    return f"Studies, all arms of a group in the same rounds:\n\n{bullets(lines)}"


def _machine(reports: Reports) -> str:
    items: list[Reported | Studied] = [*reports.rows, *reports.findings]
    nulls = [row for row in reports.every if row.null]
    facts = [
        "Machine: " + shared(items, lambda one: prose(_declared(one).machine_line) + _fingerprint(one)),
        "Source: " + shared(items, _source),
        "Low precision: " + shared(reports.rows, lambda row: prose(row.decision.low_precision)) if reports.rows else "",
        *(_floor(row) for row in nulls),
    ]
    if not any(row.decision.verdict.floor for row in nulls):
        facts.append("Floor, the smallest effect that this machine resolves: not measured")
    return bullets(facts)


def _floor(row: Reported) -> str:
    verdict = row.decision.verdict
    said = f"A/A null ({numbered([row])}): {cells.ratio(verdict.effect)}, {cells.rounds(row)} rounds"
    if floor := verdict.floor:
        said += f"; floor, {CLOCKS.get(floor.clock, floor.clock)}: {resolved(floor)}"
    return f"{said} ({prose(verdict.verdict)}: {prose(verdict.reason)})"


def _declared(one: Reported | Studied):
    return one.plan if isinstance(one, Reported) else one.study


def _fingerprint(one: Reported | Studied) -> str:
    return f" (fingerprint {code(one.fingerprint[:12])})" if one.fingerprint else ""


def _source(one: Reported | Studied) -> str:
    source = _declared(one).source
    if not source.get("commit"):
        return f"no commit recorded ({prose(str(source.get('reason') or source.get('status') or 'unknown'))})"
    said = f"commit {code(str(source['commit'])[:12])}"
    said += f" on {code(str(source['branch']))}" if source.get("branch") else ""
    if not source.get("dirty"):
        return f"{said}, clean"
    patch = source.get("patch_sha256")
    return f"{said}, dirty, " + (f"patch {code(str(patch)[:12])} kept beside the ledger" if patch else "patch NOT kept")
