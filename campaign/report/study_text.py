"""`campaign show FINDING`: everything that the ledger has about one finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from campaign import units
from campaign.records import Arm, Found, Round, StudyEvidence, from_json, to_json
from campaign.report.finding_text import finding_text
from campaign.report.json_text import as_text
from campaign.report.listing import columns
from campaign.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from campaign.ledger import Ledger

SCHEMA = 1
ROUNDS = ("round", "stage", "", "arms", "blocks", "took", "timed", "why not, or what failed")
RIGHT = frozenset({"arms", "blocks", "took", "timed"})


def finding_of(ledger: Ledger, asked: str) -> dict[str, Any] | None:
    """The finding row that `asked` names: `finding-3`, its id or its study's; None where there is no such finding."""
    for row in reversed(ledger.finding_rows()):
        if asked in (row["id"], row["study_id"], f"finding-{row['sequence']}"):
            return row
    return None


def study_shown(ledger: Ledger, row: Mapping[str, Any], *, blocks: bool, as_json: bool) -> str:
    """The finding, its study as it was declared, its arms, and every round; with `blocks` the rounds are judged again.

    As JSON `{"schema": 1, "finding", "study", "rounds": [{...the round without blocks, "block_count", "faults":
    [{"code", "sentence"}] or null}]}`. Raises LedgerDamaged.
    """
    evidence = ledger.study_evidence(row["study_id"])
    faults = [_faults(evidence, one) if blocks else None for one in evidence.rounds]
    if as_json:
        study, rounds = to_json(evidence.study), []
        for one, told in zip(evidence.rounds, faults, strict=True):
            value = to_json(one)
            count = len(value.pop("blocks"))
            rounds.append({**value, "block_count": count, "faults": told})
        return as_text({"schema": SCHEMA, "finding": dict(row), "study": study, "rounds": rounds})
    found = from_json(Found, row)
    parts = [
        finding_text(found, ledger.file),
        _titled(f"study {evidence.study.id}, registered {evidence.study.registered_at}", _study(evidence)),
        _titled("arms", [_arm(arm, evidence.study.members.get(arm.role, ())) for arm in evidence.study.arms]),
        _titled(f"rounds ({len(evidence.rounds)})", _rounds(evidence, faults)),
    ]
    return plain("\n\n".join(parts))


def _faults(evidence: StudyEvidence, one: Round) -> list[dict[str, str]]:
    from campaign.stability import round_faults

    return [{"code": fault.code, "sentence": fault.sentence} for fault in round_faults(one, evidence.study)]


def _titled(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *(f"  {line}" for line in lines)])


def _study(evidence: StudyEvidence) -> list[str]:
    study, protocol = evidence.study, evidence.study.protocol
    said = [
        f"about       {', '.join(study.subjects) or 'nothing'}" + (f"; of {study.of}" if study.of else ""),
        f"on          {'+'.join(('root', *study.stack))}; base {study.base}",
        f"protocol    {protocol.name}: {units.counted(study.rounds, 'round')} of each group, {protocol.pairs} pairs,"
        f" {protocol.clock} clock, d = {100 * study.threshold:.3g} %",
        *(f"group {place}     {', '.join(roles)}" for place, roles in enumerate(study.groups, 1)),
        *([f"fraction    {', '.join(study.generators)}"] if study.generators else []),
        f"command     {study.command}",
    ]
    return said


def _arm(arm: Arm, held: Sequence[str]) -> str:
    return f"{arm.role}: {arm.name}, {arm.target}, {arm.hash[:12]}, holds {', '.join(held) or 'none of them'}"


def _rounds(evidence: StudyEvidence, faults: Sequence[list[dict[str, str]] | None]) -> list[str]:
    lines = []
    for one, told in zip(evidence.rounds, faults, strict=True):
        failed = [
            f"{trial.arm} {trial.status} {trial.message}".rstrip() for trial in one.trials if trial.status != "ok"
        ]
        why = [f"{fault['code']}: {fault['sentence']}" for fault in told or []]
        state = "failed" if failed else "" if told is None else "invalid" if told else "valid"
        numbers = (units.seconds(one.wall_seconds), units.seconds(one.timed_seconds))
        lines.append(
            (
                one.id.removeprefix(f"{evidence.study.id}-"),
                one.stage,
                state,
                str(len(one.trials)),
                str(len(one.blocks)),
                *numbers,
                " ".join("; ".join(why or failed).split()) or "-",
            )
        )
    return columns(ROUNDS, lines, RIGHT) if lines else ["none was measured"]
