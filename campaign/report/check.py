"""`campaign ledger --check`: replay the whole ledger, hash every raw file, judge every decided plan and every finding
again, compare.

What is concluded is a pure function of recorded evidence, so it must come out of the ledger's own samples again. The
first difference stops the check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from campaign import __version__, units
from campaign.errors import BadInput, LedgerDamaged
from campaign.records import RULES, Decision, Found, from_json
from campaign.report.json_text import as_text
from campaign.report.line_order import LineOrder
from campaign.report.recomputed import Difference, differences, finding_differences

if TYPE_CHECKING:
    from campaign.ledger import Entry, Ledger

SCHEMA = 1
# Where a line names a raw file, at any depth; what a workload said of itself (facts, fingerprint) may look alike.
NAMING = frozenset({"blocks_file", "log", "raw"})
WORKLOADS_OWN = frozenset({"facts", "fingerprint", "counters"})


@dataclass(frozen=True)
class CheckResult:
    """What was read and found to agree. `raw_files` are those that some line names, hashed; `samples` the blocks read
    from those of decided plans and found studies; `unfinished` plans and studies came to no end, so nothing in them is
    judged again. `revoked` counts decisions that are taken back, `ruled` those that a person ruled on, `stale` those
    that came after the stack had moved."""

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
    studies: int = 0
    findings: int = 0
    ruled: int = 0
    stale: int = 0

    def text(self) -> str:
        """The counts in a few lines."""
        verdicts = ", ".join(f"{count} {name}" for name, count in sorted(self.verdicts.items()))
        studies = f" and {self.studies} {'study' if self.studies == 1 else 'studies'}" if self.studies else ""
        found = f" and {units.counted(self.findings, 'finding')}" if self.findings else ""
        said = [f"{self.revoked} revoked since"]
        said += [f"{self.ruled} ruled on by a person"] if self.ruled else []
        said += [f"{self.stale} stale"] if self.stale else []
        return (
            f"{self.place}: sound\n"
            f"  {self.lines} lines, each chained to the one before; {units.counted(self.plans, 'plan')}{studies}, "
            f"{self.unfinished} of them without a decision\n"
            f"  {self.raw_files} raw files, each of the content that its name says\n"
            f"  {units.counted(self.decisions, 'decision')}{found} judged again from {self.samples} block times in "
            f"{self.rounds} rounds: all came out as recorded"
            + (f" ({verdicts})" if verdicts else "")
            + f"; {', '.join(said)}"
        )

    def as_json(self) -> str:
        """`{"schema": 1, "sound": true, ...the fields}`."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return as_text({"schema": SCHEMA, "sound": True, **fields})


def check(ledger: Ledger, told: Callable[[int, int], None] = lambda done, of: None) -> CheckResult:
    """Check everything the ledger says that can be computed again. `told(done, of)` hears how many of the decisions and
    findings were judged.

    Raises LedgerDamaged, which names the line, the decision, the field and both values, at the first difference: a
    broken chain, a raw file that is not what its name says, a plan registered after its measurements, a decision or a
    finding that its evidence does not give, a stack entry that the decisions and rulings do not make up, a decision
    that is not called stale although the stack had moved, or the other way round.
    """
    place = ledger.store.place
    entries = list(ledger.store.entries(verify=True))
    order = LineOrder(place)
    for entry in entries:
        order.take(entry)
    raw_files = _check_raw(entries, ledger)
    verdicts: Counter[str] = Counter()
    rounds = samples = stale = done = 0
    ours = any(one.kind == "campaign" and one.body.get("created_by") == __version__ for one in entries)
    of = sum(entry.kind in ("decision", "finding") for entry in entries)
    for entry in entries:
        if entry.kind == "decision":
            decision = _record(Decision, entry, place)
            evidence = ledger.evidence(decision.plan_id)
            told_alike = ours and evidence.plan.rules == RULES
            moved = order.moved.get(decision.id)
            _same(place, entry, differences(decision, evidence, moved, same_words=told_alike))
            verdicts[decision.verdict.verdict] += 1
            stale += decision.verdict.reason == "stale"
            taken = evidence.rounds
        elif entry.kind == "finding":
            found = _record(Found, entry, place)
            of_study = ledger.study_evidence(found.study_id)
            told_alike = ours and of_study.study.rules == RULES
            _same(place, entry, finding_differences(found, of_study, same_words=told_alike))
            taken = of_study.rounds
        else:
            continue
        done += 1
        told(done, of)
        rounds += len(taken)
        samples += sum(len(one.blocks) for one in taken)
    if order.wrong_stack:
        raise order.wrong_stack
    kinds = Counter(entry.kind for entry in entries)
    rows = ledger.decision_rows()
    return CheckResult(
        place=place,
        lines=len(entries),
        plans=kinds["registered"],
        rounds=rounds,
        samples=samples,
        decisions=kinds["decision"],
        revoked=sum(row["revoked"] for row in rows),
        unfinished=len(ledger.unfinished()) + len(ledger.unfinished_studies()),
        verdicts=dict(verdicts),
        raw_files=raw_files,
        studies=kinds["study"],
        findings=kinds["finding"],
        ruled=sum(bool(row["ruling"]) for row in rows),
        stale=stale,
    )


def _same(place: str, entry: Entry, found: Iterator[Difference]) -> None:
    """Raises LedgerDamaged at the first difference."""
    for path, recorded, again in found:
        damage = LedgerDamaged(
            place,
            entry.line,
            f"{entry.kind} {entry.id}: {path} is recorded as {recorded!r}, and its evidence gives {again!r}",
        )
        damage.remedy = "restore the ledger and raw/ from a copy, or check with the campaign that wrote it (see line 1)"
        raise damage


def _check_raw(entries: list[Entry], ledger: Ledger) -> int:
    """Hash every raw file that a line names, each once, whether its plan was decided or not; how many there are.

    The patch of a plan's source is hashed where it was kept. Raises LedgerDamaged naming the line and the file.
    """
    from campaign.ledger.raw import RawFiles

    raw, place = RawFiles(ledger.folder), ledger.store.place
    seen: set[str] = set()
    for entry in entries:
        names = _patch(entry, ledger) if entry.kind in ("registered", "study") else _raw_names(entry.body)
        for name in sorted(set(names) - seen):
            try:
                raw.load(name, place, entry.line)
            except BadInput as error:
                raise LedgerDamaged(place, entry.line, f"{entry.kind} {entry.id}: {error.message}") from error
            seen.add(name)
    return len(seen)


def _patch(entry: Entry, ledger: Ledger) -> list[str]:
    """The kept patch of the source of a plan or study, where it is there, and those that its arms' code is made of."""
    sha256 = entry.body["source"].get("patch_sha256")
    name = f"raw/{sha256}.patch"
    kept = [name] if sha256 and (ledger.folder / name).exists() else []
    arms = entry.body.get("arms") or [entry.body.get(role) for role in ("control", "treatment", "root", "solo")]
    codes = [code for arm in arms if arm and (code := arm.get("code"))]
    return kept + [f"raw/{one}.patch" for code in codes for one in code["patches"]]


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


def _record(kind: Any, entry: Entry, place: str) -> Any:
    try:
        return from_json(kind, entry.body)
    except ValueError as error:
        raise LedgerDamaged(place, entry.line, str(error)) from error
