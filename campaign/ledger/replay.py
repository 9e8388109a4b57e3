"""What the ledger's lines add up to: plans, studies, decisions, the stack, findings, sweeps, and their evidence.

Records are imported inside the methods that return them, so that a listing (`decision_rows`) costs no more than
reading the file.
"""

from __future__ import annotations

from pathlib import Path

from campaign.errors import CampaignError, UnknownName
from campaign.ledger.entry import Entry
from campaign.ledger.raw import RawFiles
from campaign.ledger.standing import KINDS, Standing

TYPE_CHECKING = False  # the name that type checkers know, without importing `typing`
if TYPE_CHECKING:
    from typing import Any

    from campaign.ledger.store import Store
    from campaign.records import Decision, Evidence, Found, Plan, Study, StudyEvidence

LEDGER_FILE = "ledger.jsonl"


class Replay:
    """One campaign's ledger, as it is read. `notices` are sentences to show the person: torn tails, unfinished rounds
    that were kept."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder = folder
        self.store = store
        self.notices: list[str] = []
        self._raw = RawFiles(folder)

    @property
    def file(self) -> Path:
        """The ledger's file."""
        return self.folder / LEDGER_FILE

    def path(self, relative: str) -> Path:
        """The file that the ledger calls `relative`, inside the campaign's folder."""
        return self._raw.path(relative)

    def place(self) -> tuple[str, str] | None:
        """(workload, kind of device, 'cpu' or 'cuda') of the first plan or study, which the campaign is about; None
        before there is one."""
        first = next(self.store.entries({"registered", "study"}, verify=False), None)
        return (first.body["workload"], first.body["device"].partition(":")[0]) if first else None

    # Plans and decisions

    def plans(self) -> list[Plan]:
        """Every registered plan, in order."""
        from campaign.ledger.evidence import record
        from campaign.records import Plan

        return [record(Plan, entry, self.store.place) for entry in self._entries({"registered"})]

    def plan(self, plan_id: str) -> Plan:
        """The registered plan with this id. Raises UnknownName."""
        from campaign.ledger.evidence import record
        from campaign.records import Plan

        for entry in self._entries({"registered"}, plan=plan_id):
            return record(Plan, entry, self.store.place)
        raise self._unknown("plan", "registered", plan_id)

    def decision_rows(self) -> list[dict[str, Any]]:
        """Every decision as plain JSON values, in order, without importing records. `sequence` is the decision's
        place in the ledger from 1 on, whatever the writer believed, and `line` its line. `revoked` says whether it is
        taken back as things stand, `ruling` what a person ruled last ('accept', 'reject', or '' for nothing) and
        `ruled_why` why."""
        return list(self.standing().rows.values())

    def decisions(self) -> list[Decision]:
        """Every decision, revoked ones too, in order and numbered from 1."""
        return [self._decision(row) for row in self.decision_rows()]

    def next_sequence(self) -> int:
        """The number of the decision that is written next."""
        return len(self.decision_rows()) + 1

    def revoked(self) -> set[str]:
        """The ids of the decisions that are taken back as things stand."""
        return {row["id"] for row in self.decision_rows() if row["revoked"]}

    def unfinished(self) -> list[str]:
        """The ids of registered plans that have no decision, oldest first."""
        decided = {row["plan_id"] for row in self.decision_rows()}
        return [entry.body["id"] for entry in self._entries({"registered"}) if entry.body["id"] not in decided]

    def evidence(self, plan_id: str) -> Evidence:
        """Everything recorded for a plan: the plan, its probe (the newest, None before one was taken), and its
        rounds in order with their blocks read from the raw files.

        Checks the whole ledger's chain and every raw file's hash. Raises UnknownName, LedgerDamaged, RawDamaged.
        """
        from campaign.ledger.evidence import gather

        found = gather(self.store, self._raw, plan_id)
        if found is None:
            raise self._unknown("plan", "registered", plan_id)
        return found

    # The stack

    def standing(self) -> Standing:
        """Which decisions stand, from all the lines there are."""
        return Standing(self._entries(KINDS))

    def stack_rows(self) -> list[dict[str, Any]]:
        """The decisions that make up the stack, as in `decision_rows`, in the order in which each last joined it."""
        standing = self.standing()
        return [standing.rows[id] for id in standing.stack]

    def stack(self) -> tuple[Decision, ...]:
        """The decisions that make up the stack: those accepted by their verdict, or ruled accept by a person, that
        were neither revoked nor ruled reject since. In the order in which each last joined it."""
        return tuple(self._decision(row) for row in self.stack_rows())

    def moved_since(self, plan: Plan | Study, before: int | None = None) -> bool:
        """Whether the stack is no longer that on which `plan` was declared: other decisions than at the plan's line,
        or other edits than the plan holds. `before` a line, that of the decision; now, when None. A plan or study that
        is not registered yet is compared by its edits alone."""
        standing = Standing()
        at_registration: list[str] | None = None
        for entry in self._entries({*KINDS, "registered", "study"}):
            if before is not None and entry.line >= before:
                break
            if entry.kind not in ("registered", "study"):
                standing.take(entry)
            elif entry.id == plan.id:
                at_registration = standing.stack
        if at_registration is not None and at_registration != standing.stack:
            return True
        return tuple(standing.names()) != plan.stack

    # Studies and sweeps

    def studies(self) -> list[Study]:
        """Every declared study, in order."""
        from campaign.ledger.evidence import record
        from campaign.records import Study

        return [record(Study, entry, self.store.place) for entry in self._entries({"study"})]

    def study(self, study_id: str) -> Study:
        """The declared study with this id. Raises UnknownName."""
        from campaign.ledger.evidence import record
        from campaign.records import Study

        for entry in self._entries({"study"}, plan=study_id):
            return record(Study, entry, self.store.place)
        raise self._unknown("study", "study", study_id)

    def study_evidence(self, study_id: str) -> StudyEvidence:
        """A study and its rounds in order with their blocks, checked as `evidence` is. Raises UnknownName,
        LedgerDamaged, RawDamaged."""
        from campaign.ledger.evidence import gather_study

        found = gather_study(self.store, self._raw, study_id)
        if found is None:
            raise self._unknown("study", "study", study_id)
        return found

    def unfinished_studies(self) -> list[str]:
        """The ids of declared studies that have no finding, oldest first."""
        found = {row["study_id"] for row in self.finding_rows()}
        return [entry.body["id"] for entry in self._entries({"study"}) if entry.body["id"] not in found]

    def finding_rows(self) -> list[dict[str, Any]]:
        """Every finding as plain JSON values, in order, without importing records. `sequence` is its place among the
        findings from 1 on, and `line` its line."""
        found = self._entries({"finding"})
        return [{**entry.body, "sequence": place, "line": entry.line} for place, entry in enumerate(found, 1)]

    def findings(self) -> list[Found]:
        """Every finding, in order and numbered from 1."""
        from campaign.records import Found

        return [self._record(Found, "finding", row) for row in self.finding_rows()]

    def sweeps(self) -> list[dict[str, Any]]:
        """What was written of sweeps, in order: the bodies, each with its `line`."""
        return [{**entry.body, "line": entry.line} for entry in self._entries({"sweep"})]

    # Profiles: evidence of where time goes, which no decision or finding looks at

    def profile_rows(self) -> list[dict[str, Any]]:
        """Every profile of two arms and every recorded diagnosis of a trace, in order, as plain JSON values with
        `kind`, `id`, `line`, `time`, the `commit` that it was written under, and `sequence`, its place among them
        from 1 on."""
        found = enumerate(self._entries({"profile", "diagnosis"}), 1)
        return [
            {
                **entry.body,
                "kind": entry.kind,
                "id": entry.id,
                "line": entry.line,
                "time": entry.time,
                "commit": entry.stamp.commit,
                "sequence": place,
            }
            for place, entry in found
        ]

    def last_diagnosis(self, workload: str | None = None) -> dict[str, Any] | None:
        """The newest recorded diagnosis of a trace (kernel reports alone have no step), as in `profile_rows`; None
        without one. Where `workload` is given, one of it, or of a trace from elsewhere that was recorded before the
        ledger was about any."""
        for row in reversed(self.profile_rows()):
            of_trace = row["kind"] == "diagnosis" and row["diagnosis"]["dispatch"] is not None
            if of_trace and (workload is None or row["workload"] in ("", workload)):
                return row
        return None

    def doctor_rows(self) -> list[dict[str, Any]]:
        """What `campaign doctor` found of the machine, each time, in order: the bodies with `id`, `line` and `time`.
        `fingerprint` is the hash. No decision or finding looks at them."""
        found = self._entries({"doctor"})
        return [{**entry.body, "id": entry.id, "line": entry.line, "time": entry.time} for entry in found]

    def _entries(self, kinds: set[str] | frozenset[str], plan: str = "") -> list[Entry]:
        found = list(self.store.entries(kinds, verify=False, plan=plan))
        if self.store.torn and self.store.torn not in self.notices:
            self.notices.append(self.store.torn)
        return found

    def _unknown(self, word: str, kind: str, id: str) -> UnknownName:
        return UnknownName(word, id, (entry.id for entry in self._entries({kind})))

    def _decision(self, row: dict[str, Any]) -> Decision:
        from campaign.records import Decision

        return self._record(Decision, "decision", row)

    def _record(self, kind: Any, word: str, row: dict[str, Any]) -> Any:
        from campaign.records import from_json

        try:
            return from_json(kind, row)
        except ValueError as error:
            raise CampaignError(f"{self.store.place}: {word} {row.get('id')} cannot be read: {error}") from error
