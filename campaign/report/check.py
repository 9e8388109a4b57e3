"""`campaign ledger --check`: replay the whole ledger, hash every raw file, judge every decided plan again, compare.

A verdict is a pure function of recorded evidence, so the decisions in the ledger must come out of its own samples
again. The first difference stops the check.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from campaign.errors import BadInput, LedgerDamaged
from campaign.records import Decision, Evidence, Need, Plan, Verdict, from_json, to_json
from campaign.report.describe import describe_engagement, describe_low_precision, describe_parity
from campaign.report.json_text import as_text

if TYPE_CHECKING:
    from campaign.ledger import Entry, Ledger

SCHEMA = 1
TOLERANCE = 1e-9  # relative, for numbers: another machine's exp and log may differ in the last bit
# Words about a verdict, which a newer campaign may say otherwise; the rest of the verdict is compared.
WORDS = frozenset({"sentence", "remedy", "warnings"})
# Where a line names a raw file, at any depth; what a workload said of itself (facts, fingerprint) may look alike.
NAMING = frozenset({"blocks_file", "log", "raw"})
WORKLOADS_OWN = frozenset({"facts", "fingerprint", "counters"})
# What a decision repeats of its plan.
REPEATED = ("workload", "device", "stack", "attempt", "machine_line", "command")


@dataclass(frozen=True)
class CheckResult:
    """What was read and found to agree. `raw_files` are those that some line names, hashed; `samples` the blocks read
    from those of decided plans; `unfinished` plans have no decision, so nothing in them is judged again."""

    place: str
    lines: int
    plans: int
    rounds: int
    samples: int
    decisions: int
    revoked: int
    unfinished: int
    verdicts: dict[str, int]
    raw_files: int

    def text(self) -> str:
        """The counts in a few lines."""
        verdicts = ", ".join(f"{count} {name}" for name, count in sorted(self.verdicts.items()))
        return (
            f"{self.place}: sound\n"
            f"  {self.lines} lines, each chained to the one before; {self.plans} plans, {self.unfinished} of them "
            "without a decision\n"
            f"  {self.raw_files} raw files, each of the content that its name says\n"
            f"  {self.decisions} decisions judged again from {self.samples} block times in {self.rounds} rounds: all "
            f"came out as recorded" + (f" ({verdicts})" if verdicts else "") + f"; {self.revoked} revoked since"
        )

    def as_json(self) -> str:
        """`{"schema": 1, "sound": true, ...the fields}`."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return as_text({"schema": SCHEMA, "sound": True, **fields})


def check(ledger: Ledger) -> CheckResult:
    """Check everything the ledger says that can be computed again.

    Raises LedgerDamaged, which names the line, the decision, the field and both values, at the first difference: a
    broken chain, a raw file that is not what its name says, a plan registered after its measurements, a decision that
    its evidence does not give, a stack entry that the decisions do not make up.
    """
    place = ledger.store.place
    entries = list(ledger.store.entries(verify=True))
    _check_order(entries, place)
    raw_files = _check_raw(entries, ledger)
    verdicts: Counter[str] = Counter()
    rounds = samples = 0
    for entry in entries:
        if entry.kind != "decision":
            continue
        decision = _decision(entry, place)
        evidence = ledger.evidence(decision.plan_id)
        for path, recorded, again in differences(decision, evidence):
            raise _differs(place, entry, path, recorded, again)
        verdicts[decision.verdict.verdict] += 1
        rounds += len(evidence.rounds)
        samples += sum(len(one.blocks) for one in evidence.rounds)
    _check_stacks(entries, place)
    kinds = Counter(entry.kind for entry in entries)
    return CheckResult(
        place=place,
        lines=len(entries),
        plans=kinds["registered"],
        rounds=rounds,
        samples=samples,
        decisions=kinds["decision"],
        revoked=kinds["revoked"],
        unfinished=len(ledger.unfinished()),
        verdicts=dict(verdicts),
        raw_files=raw_files,
    )


def _differs(place: str, entry: Entry, path: str, recorded: Any, again: Any) -> LedgerDamaged:
    damage = LedgerDamaged(
        place, entry.line, f"decision {entry.id}: {path} is recorded as {recorded!r}, and its evidence gives {again!r}"
    )
    damage.remedy = "restore the ledger and raw/ from a copy, or check with the campaign that wrote it (see line 1)"
    return damage


def differences(decision: Decision, evidence: Evidence) -> Iterator[tuple[str, Any, Any]]:
    """(field, recorded, recomputed) wherever the decision is not what its evidence gives."""
    from campaign.verdicts import judge

    yield from _against_plan(decision, evidence.plan)
    answer = judge(evidence)
    if isinstance(answer, Need):
        yield "verdict", decision.verdict.verdict, f"not decided: needs {answer.rounds} valid {answer.stage} rounds"
        return
    yield from _apart("verdict", _judged(decision.verdict), _judged(answer))
    for name, again in (
        ("wall_seconds", sum((one.wall_seconds for one in evidence.rounds), _probe_seconds(evidence))),
        ("timed_seconds", sum((one.timed_seconds for one in evidence.rounds), 0.0)),
    ):
        yield from _apart(name, getattr(decision, name), again)
    yield from _apart("parity", decision.parity, describe_parity(evidence))
    yield from _apart("engagement", decision.engagement, describe_engagement(evidence))
    yield from _apart("low_precision", decision.low_precision, describe_low_precision(evidence))


def _probe_seconds(evidence: Evidence) -> float:
    return evidence.probe.wall_seconds if evidence.probe else 0.0


def _judged(verdict: Verdict) -> dict[str, Any]:
    return {name: value for name, value in to_json(verdict).items() if name not in WORDS}


def _against_plan(decision: Decision, plan: Plan) -> Iterator[tuple[str, Any, Any]]:
    for name in REPEATED:
        yield from _apart(name, to_json(getattr(decision, name)), to_json(getattr(plan, name)))
    claim = plan.hypothesis
    yield from _apart("hypothesis", decision.hypothesis, claim.name)
    yield from _apart("claim", decision.claim, claim.claim)
    yield from _apart("predicted_ratio", decision.predicted_ratio, claim.predicted_ratio)
    yield from _apart("overrides", list(decision.overrides), list(claim.edit.overrides))


def _apart(path: str, recorded: Any, again: Any) -> Iterator[tuple[str, Any, Any]]:
    """The leaves at which two JSON values differ, floats by more than `TOLERANCE`."""
    if isinstance(recorded, dict) and isinstance(again, dict):
        for key in (*recorded, *(key for key in again if key not in recorded)):
            yield from _apart(f"{path}.{key}", recorded.get(key), again.get(key))
    elif isinstance(recorded, list) and isinstance(again, list) and len(recorded) == len(again):
        for index, (left, right) in enumerate(zip(recorded, again, strict=True)):
            yield from _apart(f"{path}[{index}]", left, right)
    elif _is_number(recorded) and _is_number(again):
        if not math.isclose(recorded, again, rel_tol=TOLERANCE, abs_tol=0.0):
            yield path, recorded, again
    elif recorded != again or type(recorded) is not type(again):
        yield path, recorded, again


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check_raw(entries: list[Entry], ledger: Ledger) -> int:
    """Hash every raw file that a line names, each once, whether its plan was decided or not; how many there are.

    The patch of a plan's source is hashed where it was kept. Raises LedgerDamaged naming the line and the file.
    """
    from campaign.ledger.raw import RawFiles

    raw, place = RawFiles(ledger.folder), ledger.store.place
    seen: set[str] = set()
    for entry in entries:
        names = _patch(entry, ledger) if entry.kind == "registered" else _raw_names(entry.body)
        for name in sorted(set(names) - seen):
            try:
                raw.load(name, place, entry.line)
            except BadInput as error:
                raise LedgerDamaged(place, entry.line, f"{entry.kind} {entry.id}: {error.message}") from error
            seen.add(name)
    return len(seen)


def _patch(entry: Entry, ledger: Ledger) -> list[str]:
    """The kept patch of a plan's source, where it is there."""
    sha256 = entry.body["source"].get("patch_sha256")
    name = f"raw/{sha256}.patch"
    return [name] if sha256 and (ledger.folder / name).exists() else []


def _raw_names(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in WORKLOADS_OWN:
                yield from _raw_names(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _raw_names(inner, key)
    elif key in NAMING and isinstance(value, str) and value.startswith("raw/"):
        yield value


def _check_order(entries: list[Entry], place: str) -> None:
    """A plan stands before its measurements, these before its decision; sequence numbers count the decisions."""
    registered: set[str] = set()
    decided: dict[str, int] = {}
    decisions: set[str] = set()
    for entry in entries:
        body, said = entry.body, ""
        if entry.kind == "registered":
            registered.add(body["id"])
        elif entry.kind == "revoked" and body["decision_id"] not in decisions:
            said = f"it revokes {body['decision_id']}, which no line before it decided"
        elif entry.kind in ("probe", "trial", "blocks", "decision"):
            plan = body["plan_id"]
            if plan not in registered:
                said = f"{entry.kind} {entry.id} stands before its plan {plan}: nothing was declared beforehand"
            elif plan in decided:
                said = f"{entry.kind} {entry.id} belongs to {plan}, which was decided before it in line {decided[plan]}"
            elif entry.kind == "decision":
                decided[plan] = entry.line
                decisions.add(body["id"])
                if body["sequence"] != len(decided):
                    said = (
                        f"decision {body['id']}: sequence is recorded as {body['sequence']}, and it is {len(decided)}"
                    )
        if said:
            raise LedgerDamaged(place, entry.line, said)


def _check_stacks(entries: list[Entry], place: str) -> None:
    """Each stack entry holds the decisions accepted and not revoked in the lines before it."""
    stack: list[str] = []
    for entry in entries:
        if entry.kind == "decision" and entry.body["verdict"]["verdict"] == "accept":
            stack.append(entry.body["id"])
        elif entry.kind == "revoked" and entry.body["decision_id"] in stack:
            stack.remove(entry.body["decision_id"])
        elif entry.kind == "stack" and list(entry.body["decisions"]) != stack:
            recorded = entry.body["decisions"]
            raise LedgerDamaged(
                place, entry.line, f"stack is recorded as {recorded}, and the lines before give {stack}"
            )


def _decision(entry: Entry, place: str) -> Decision:
    try:
        return from_json(Decision, entry.body)
    except ValueError as error:
        raise LedgerDamaged(place, entry.line, str(error)) from error
