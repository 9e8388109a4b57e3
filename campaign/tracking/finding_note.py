"""A finding in prose: the run's description, and finding.md. Pure."""

from __future__ import annotations

from campaign import units
from campaign.interactions.words import EXPLAINED
from campaign.records import (
    FACTORIAL,
    HEADLINE,
    LEAVE_ONE_OUT,
    REPLAY,
    Contrast,
    Decision,
    Finding,
    Found,
    StudyEvidence,
    Term,
)
from campaign.stack import parts_line
from campaign.tracking.mapping import cut
from campaign.tracking.note import NOTE_LIMIT, bytes_text, table
from campaign.tracking.tables import what_is
from campaign.tracking.trials import log_path, trial_name
from campaign.tracking.words import about, kind


def first_line(found: Found) -> str:
    """What was found in plain words, without markup: the runs table shows this line raw."""
    said = f"{kind(found).capitalize()} of {about(found) or 'the root'}: {found.finding.sentence}"
    return " ".join(said.split()).rstrip(".") + "."


def run_note(found: Found, recorded: Decision | None = None) -> str:
    """The run's description: the sentence first, then the numbers; the whole is in finding.md."""
    parts = [first_line(found), numbers(found.finding), against(found, recorded), _warnings(found.finding)]
    return cut("\n\n".join(part for part in [*parts, "Whole note: artifacts, finding.md."] if part), NOTE_LIMIT)


def finding_markdown(found: Found, evidence: StudyEvidence, recorded: Decision | None = None) -> str:
    """finding.md: what was asked, what was found, and why it may be believed."""
    study, finding = evidence.study, found.finding
    figure = finding.terms or finding.effect
    parts = [
        f"# F{found.sequence:02d} {kind(found)}: {about(found) or 'root'}",
        first_line(found),
        "## What was measured",
        numbers(finding),
        against(found, recorded),
        _warnings(finding),
        "Figure, beside this note: `figures/finding.png`. Every number: `terms.csv`; every round: `rounds.csv`."
        if figure
        else "",
        _failures(evidence),
        "## The arms",
        table(("arm", "holds"), [(f"`{arm.role}`", _held(study.members.get(arm.role, ()))) for arm in study.arms]),
        "## Why it may be believed",
        _trust(found, evidence),
        "## Do it again",
        f"```\n{found.command}\n```",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def numbers(finding: Finding) -> str:
    """The terms, shares and the whole as tables; empty where there is no number."""
    parts = []
    if finding.terms:
        columns = _columns(finding)
        head = ("", "edit", "speed", *columns, "word")
        parts.append(table(head, [_row(finding, term, columns) for term in finding.terms]))
    if finding.shares:
        shared = [(share.name, _interval(share.effect)) for share in finding.shares]
        parts.append("Shapley attribution, whose product is the measured whole:\n\n" + table(("edit", "share"), shared))
    if finding.total is not None:
        parts.append(f"{_whole(finding)}: **{_interval(finding.total)}**.")
    if finding.total is not None and finding.product is not None and finding.sum is not None and finding.word:
        isolated = "isolated" if finding.kind == FACTORIAL else "leave_one_out"
        meant = EXPLAINED.get(finding.word)
        line = parts_line(finding.product, finding.sum, finding.total.ratio, finding.word, isolated)
        parts.append(line.rstrip(".") + (f" ({meant})." if meant else "."))
    if memory := finding.memory:
        change = units.signed_size(memory.treatment_bytes - memory.control_bytes)
        sizes = f"{units.size(memory.control_bytes)} -> {units.size(memory.treatment_bytes)}"
        surely = "exact in every round" if memory.exact else f"ratio {units.interval(memory.low, memory.high)}"
        parts.append(f"Peak memory {sizes}, {change} ({surely}).")
    return "\n\n".join(parts)


def against(found: Found, recorded: Decision | None) -> str:
    """A replay beside the decision that it is of; empty for any other finding."""
    if found.finding.kind != REPLAY or recorded is None:
        return ""
    effect = recorded.verdict.effect
    said = f"Recorded in decision {recorded.sequence:02d} ({recorded.verdict.verdict}, {recorded.decided_at[:10]}): "
    if effect is None:
        return said + "no ratio."
    return said + f"{units.ratio(effect.ratio)} {units.interval(effect.low, effect.high)}."


def _columns(finding: Finding) -> tuple[str, ...]:
    """The columns that some term fills."""
    memory = any(term.memory for term in finding.terms)
    aliases = any(term.aliases for term in finding.terms)
    return (*(("peak memory",) if memory else ()), *(("cannot be told from",) if aliases else ()))


def _row(finding: Finding, term: Term, columns: tuple[str, ...]) -> tuple[str, ...]:
    cells = {"peak memory": bytes_text(term.memory), "cannot be told from": ", ".join(term.aliases) or "-"}
    name = term.name.replace(":", " x ")
    return (what_is(finding, term), name, _interval(term.effect), *(cells[column] for column in columns), term.word)


def _whole(finding: Finding) -> str:
    if finding.kind == REPLAY:
        return "Treatment against control, measured again"
    if finding.kind == LEAVE_ONE_OUT:
        return "The whole stack against root"
    return "Head against root" if finding.kind == HEADLINE else "All of them against none"


def _interval(effect: Contrast) -> str:
    return f"{units.ratio(effect.ratio)} {units.interval(effect.low, effect.high)}"


def _held(subjects: tuple[str, ...]) -> str:
    return ", ".join(subjects) or "none of them"


def _warnings(finding: Finding) -> str:
    return "\n".join(f"- Warning: {' '.join(warning.split())}" for warning in finding.warnings)


def _failures(evidence: StudyEvidence) -> str:
    lines = [
        f"- {trial_name(one, trial.arm)} ended as {trial.status}: {' '.join(trial.message.split()) or 'no message'}"
        + (f" (`{log_path(one, trial)}`)" if trial.log else "")
        for one in evidence.rounds
        for trial in one.trials
        if trial.status != "ok"
    ]
    return "\n".join(lines)


def _trust(found: Found, evidence: StudyEvidence) -> str:
    study, finding = evidence.study, found.finding
    source = study.source
    facts = [
        f"Rounds: {finding.valid_rounds} counted, {finding.invalid_rounds} invalid and kept; "
        f"{units.counted(finding.blocks, 'matched block')}.",
        f"Drift: {study.base}'s own level moved by {finding.drift:.1%} at most within a round.",
        f"Threshold: {1 + study.threshold:.4f} "
        f"({'floor ' + study.floor_id if study.floor_id else 'the floor was not measured here'}).",
        f"Clock: {study.protocol.clock}. Protocol: {study.protocol.name}.",
        f"The stack then: root + [{', '.join(found.stack)}].",
        f"Commit {source.get('commit') or 'unknown'}, "
        + (f"with a patch ({source['patch_sha256'][:12]})." if source.get("patch_sha256") else "no patch recorded."),
        f"Machine: {found.machine_line}.",
        f"It took {units.seconds(found.wall_seconds)}, of which {units.seconds(found.timed_seconds)} were timed.",
    ]
    return "\n".join(f"- {fact}" for fact in facts)
