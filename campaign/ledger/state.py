"""What the ledger's lines add up to: plans, decisions, the stack, floors, and the evidence of a plan.

Everything here is a replay of the lines in file order. Records are imported inside the methods that return them, so
that a listing (`decision_rows`) costs no more than reading the file.
"""

from __future__ import annotations

from pathlib import Path

from campaign.errors import BadInput, CampaignError, UnknownName
from campaign.ledger.entry import Entry, Stamp
from campaign.ledger.raw import RawFiles
from campaign.ledger.writer import WriterLock

TYPE_CHECKING = False  # the name that type checkers know, without importing `typing`
if TYPE_CHECKING:
    from typing import Any

    from campaign.ledger.store import Store
    from campaign.records import Decision, Evidence, Plan

LEDGER_FILE = "ledger.jsonl"


class Ledger:
    """One campaign's ledger. `stamp` goes on every line that is appended; set it once the fingerprint is known.

    `notices` are sentences to show the person: torn tails that were cut, unfinished rounds that were kept.
    """

    def __init__(self, folder: Path, store: Store, *, lock: WriterLock | None = None, stamp: Stamp | None = None):
        self.folder = folder
        self.store = store
        self.stamp = stamp or Stamp()
        self.notices: list[str] = []
        self._lock = lock
        self._raw = RawFiles(folder)
        self._streaming: set[str] = set()
        self._begun = False
        if lock is not None:
            try:
                if healed := store.heal():
                    self.notices.append(healed)
            except CampaignError:
                lock.release()
                raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the writer's lock; a ledger opened for reading has none."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @property
    def file(self) -> Path:
        """The ledger's file."""
        return self.folder / LEDGER_FILE

    # Writing

    def append(self, kind: str, id: str, body: dict[str, Any]) -> Entry:
        """Add one entry durably; the same kind, id and body again is the first entry. The first append of a
        campaign writes its `campaign` entry before. Raises BadInput, LedgerDamaged, CampaignError (disk)."""
        self._must_write()
        if not self._begun and kind != "campaign" and next(self.store.entries(verify=False), None) is None:
            from campaign import __version__

            name = self.folder.name
            self.store.append("campaign", name, {"name": name, "created_by": __version__}, self.stamp)
        self._begun = True
        entry = self.store.append(kind, id, body, self.stamp)
        if kind == "blocks" and id in self._streaming:
            self._streaming.discard(id)
            path = self._raw.inflight(id)
            if path.exists() and (body.get("blocks_file") or not path.stat().st_size):
                path.unlink()
        return entry

    def revoke(self, decision_id: str, why: str) -> None:
        """Take an accepted decision out of the stack; the decision itself stays. Revoking again changes nothing.
        Raises UnknownName for a decision that the ledger does not have."""
        self._must_write()
        rows = {row["id"]: row for row in self.decision_rows()}
        if decision_id not in rows:
            raise UnknownName("decision", decision_id, rows, remedy="campaign ledger")
        if not rows[decision_id]["revoked"]:
            self.append("revoked", f"revoked-{decision_id}", {"decision_id": decision_id, "why": why})

    def keep(self, data: bytes, suffix: str) -> str:
        """Keep raw data durably beside the ledger; returns its path there, `raw/<sha256><suffix>`. Idempotent."""
        self._must_write()
        return self._raw.keep(data, suffix)

    def inflight(self, round_id: str) -> Path:
        """The file to stream a round's blocks to, one JSON row a line. What a dead run left under the same name is
        kept as raw first."""
        self._must_write()
        path = self._raw.inflight(round_id)
        if round_id not in self._streaming and path.exists():
            self._recover(path)
        self._streaming.add(round_id)
        return path

    def seal(self, round_id: str) -> str:
        """The streamed file as a raw file, `raw/<sha256>.jsonl`. The inflight file goes when the round's `blocks`
        entry is written, so that a crash in between loses nothing."""
        self._must_write()
        return self._raw.seal(round_id)

    def recover_inflight(self) -> list[str]:
        """Keep what dead runs left in `inflight/` as raw files, each with a `note` entry; returns what was done,
        one sentence a file, also in `notices`."""
        self._must_write()
        left = [path for path in self._raw.left_inflight() if path.stem not in self._streaming]
        return [sentence for path in left if (sentence := self._recover(path))]

    def _recover(self, path: Path) -> str:
        round_id = path.stem
        data = path.read_bytes()
        sentence = ""
        if data:
            raw = self._raw.keep(data, ".jsonl")
            named = any(entry.body.get("blocks_file") == raw for entry in self._entries({"blocks"}))
            if not named:
                rows = data.count(b"\n")
                text = f"round {round_id} was interrupted after {rows} blocks; they are kept in {raw} and not counted"
                self.append(
                    "note",
                    f"interrupted-{raw[4:20]}-{round_id}"[:200],
                    {"text": text, "round_id": round_id, "raw": raw},
                )
                self.notices.append(text)
                sentence = text
        path.unlink()
        return sentence

    def _must_write(self) -> None:
        if self._lock is None:
            raise BadInput(f"the ledger in {self.folder} is open for reading only")

    # Reading

    def path(self, relative: str) -> Path:
        """The file that the ledger calls `relative`, inside the campaign's folder."""
        return self._raw.path(relative)

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
        raise self._no_plan(plan_id)

    def decision_rows(self) -> list[dict[str, Any]]:
        """Every decision as plain JSON values, in order, without importing records. `sequence` is the decision's
        place in the ledger from 1 on, whatever the writer believed; `revoked` says whether it was revoked."""
        decisions, revoked = [], set()
        for entry in self._entries({"decision", "revoked"}):
            if entry.kind == "revoked":
                revoked.add(entry.body.get("decision_id"))
            else:
                decisions.append(entry.body)
        for sequence, row in enumerate(decisions, 1):
            row["sequence"] = sequence
            row["revoked"] = row.get("id") in revoked
        return decisions

    def decisions(self) -> list[Decision]:
        """Every decision, revoked ones too, in order and numbered from 1."""
        return [self._decision(row) for row in self.decision_rows()]

    def next_sequence(self) -> int:
        """The number of the decision that is written next."""
        return len(self.decision_rows()) + 1

    def revoked(self) -> set[str]:
        """The ids of revoked decisions."""
        return {entry.body["decision_id"] for entry in self._entries({"revoked"})}

    def stack_rows(self) -> list[dict[str, Any]]:
        """The decisions that make up the stack, as in `decision_rows`."""
        return [row for row in self.decision_rows() if row["verdict"]["verdict"] == "accept" and not row["revoked"]]

    def stack(self) -> tuple[Decision, ...]:
        """The accepted decisions that were not revoked, in the order they were accepted."""
        return tuple(self._decision(row) for row in self.stack_rows())

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
            raise self._no_plan(plan_id)
        return found

    def _entries(self, kinds: set[str], plan: str = "") -> list[Entry]:
        found = list(self.store.entries(kinds, verify=False, plan=plan))
        if self.store.torn and self.store.torn not in self.notices:
            self.notices.append(self.store.torn)
        return found

    def _no_plan(self, plan_id: str) -> UnknownName:
        return UnknownName("plan", plan_id, (entry.id for entry in self._entries({"registered"})))

    def _decision(self, row: dict[str, Any]) -> Decision:
        from campaign.records import Decision, from_json

        try:
            return from_json(Decision, row)
        except ValueError as error:
            raise CampaignError(f"{self.store.place}: decision {row.get('id')} cannot be read: {error}") from error
