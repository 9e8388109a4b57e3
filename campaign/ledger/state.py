"""One campaign's ledger as a run has it: everything that is read from it, and what may be written to it.

Several processes may write one campaign at once. Each append stands by itself; what must hold from a look to the
append that follows from it goes into a `transaction`.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

from campaign.errors import BadInput, UnknownName
from campaign.ledger.entry import Entry, Stamp
from campaign.ledger.raw import RAW
from campaign.ledger.replay import LEDGER_FILE, Replay
from campaign.ledger.standing import ACCEPT, RULINGS
from campaign.ledger.streams import Streams

TYPE_CHECKING = False  # the name that type checkers know, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from campaign.ledger.store import Store

__all__ = ["LEDGER_FILE", "Ledger"]


class Ledger(Replay):
    """One campaign's ledger. `stamp` goes on every line that is appended; set it once the fingerprint is known."""

    def __init__(self, folder: Path, store: Store, *, writable: bool = False, stamp: Stamp | None = None) -> None:
        super().__init__(folder, store)
        self.stamp = stamp or Stamp()
        self._writable = writable
        self._streams = Streams(folder)
        self._begun = False
        if writable and (healed := store.heal()):
            self.notices.append(healed)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def writable(self) -> bool:
        return self._writable

    def close(self) -> None:
        """Let go of the claims and of the rounds that were being streamed; nothing can be written after."""
        self._streams.close()
        self._writable = False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """For the body of the `with`, no other process appends to this campaign: what is read in it still holds when
        it appends. Keep it short; readers do not wait for it."""
        self._must_write()
        with self.store.transaction():
            yield

    def append(self, kind: str, id: str, body: dict[str, Any]) -> Entry:
        """Add one entry durably; the same kind, id and body again is the first entry. The first append of a
        campaign writes its `campaign` entry before. Raises BadInput, LedgerDamaged, LedgerUnwritable (disk)."""
        self._must_write()
        if not self._begun and kind != "campaign" and next(self.store.entries(verify=False), None) is None:
            from campaign import __version__

            name = self.folder.name
            self.store.append("campaign", name, {"name": name, "created_by": __version__}, self.stamp)
        self._begun = True
        entry = self.store.append(kind, id, body, self.stamp)
        if kind == "blocks" and self._streams.is_open(id):
            path = self._streams.path(id)
            empty = path.exists() and not path.stat().st_size
            self._streams.end(id, remove=bool(body.get("blocks_file")) or empty)
        return entry

    def revoke(self, decision_id: str, why: str) -> None:
        """Take a decision out of the stack; the decision itself stays. Revoking what is revoked changes nothing.
        Raises UnknownName for a decision that the ledger does not have."""
        with self.transaction():
            row = self._row(decision_id)
            if not row["revoked"]:
                times = self.standing().taken_back.get(decision_id, 0)
                again = f"-{times + 1}" if times else ""
                self.append("revoked", f"revoked-{decision_id}{again}", {"decision_id": decision_id, "why": why})

    def rule(self, decision_id: str, verdict: str, why: str) -> None:
        """Record what a person decides about a decision, whatever its verdict: 'accept' puts it into the stack (at
        the end, where it is not in it), 'reject' takes it out. The latest ruling stands.

        Raises UnknownName for a decision that the ledger does not have; BadInput for another word, for no reason, and
        where another decision on the same hypothesis is in the stack.
        """
        if verdict not in RULINGS:
            raise BadInput(f"a ruling is {' or '.join(RULINGS)}, not {verdict!r}")
        if not why.strip():
            raise BadInput("a ruling needs its reason", remedy="--why TEXT")
        with self.transaction():
            row = self._row(decision_id)
            for other in self.stack_rows():
                if verdict == ACCEPT and other["hypothesis"] == row["hypothesis"] and other["id"] != decision_id:
                    raise BadInput(
                        f"{row['hypothesis']} is in the stack already, by decision {other['id']}",
                        remedy=f"campaign stack --campaign {self.folder.name} --revert {row['hypothesis']} --why TEXT",
                    )
            number = self.standing().ruled.get(decision_id, 0) + 1
            body = {"decision_id": decision_id, "verdict": verdict, "why": why}
            self.append("ruling", f"ruling-{decision_id}-{number}", body)

    def keep(self, data: bytes, suffix: str) -> str:
        """Keep raw data durably beside the ledger; returns its path there, `raw/<sha256><suffix>`. Idempotent."""
        self._must_write()
        return self._raw.keep(data, suffix)

    def claim(self, id: str) -> bool:
        """Take the plan or study with this id until this ledger is closed or its process dies, so that no other
        process goes on with it; False where a live process has it."""
        self._must_write()
        return self._streams.claim(id)

    def take_over(self, id: str) -> bool:
        """Take a plan or study whose process died before it had ended; False where that did not happen."""
        self._must_write()
        return self._streams.take_over(id)

    def keep_claim(self, id: str) -> None:
        """Let the claim on what is measured outlast this ledger, so that whoever asks the same again may `take_over`,
        until `let_go`: for what is one step of a longer work."""
        self._streams.keep_claim(id)

    def let_go(self, id: str) -> None:
        """End the claim on a plan or study before this ledger is closed."""
        self._streams.let_go(id)

    # Rounds in flight

    def inflight(self, round_id: str) -> Path:
        """The file to stream a round's blocks to, one JSON row a line; write into it, do not replace it. What a dead
        run left under the same name is kept as raw first. Raises BadInput where a live process streams it."""
        self._must_write()
        if self._streams.is_open(round_id):
            return self._streams.path(round_id)
        self._recover(self._streams.path(round_id))
        return self._streams.open(round_id)

    def seal(self, round_id: str) -> str:
        """The streamed file as a raw file, `raw/<sha256>.jsonl`. The inflight file goes when the round's `blocks`
        entry is written, so that a crash in between loses nothing."""
        self._must_write()
        path = self._streams.path(round_id)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise BadInput(f"round {round_id} has no {path} to seal") from None
        return self._raw.keep(data, ".jsonl")

    def recover_inflight(self) -> list[str]:
        """Keep what dead runs left in `inflight/` as raw files, each with a `note` entry; returns what was done, one
        sentence a file, also in `notices`. What a live process streams is left alone."""
        self._must_write()
        self._streams.tidy(self.folder / RAW)
        return [sentence for path in self._streams.left() if (sentence := self._recover(path))]

    def _recover(self, path: Path) -> str:
        round_id = path.stem
        with self._streams.adopted(path) as data:
            if not data:
                return ""
            raw = self._raw.keep(data, ".jsonl")
            if any(entry.body.get("blocks_file") == raw for entry in self._entries({"blocks"})):
                return ""
            rows = data.count(b"\n")
            text = f"round {round_id} was interrupted after {rows} blocks; they are kept in {raw} and not counted"
            body = {"text": text, "round_id": round_id, "raw": raw}
            self.append("note", f"interrupted-{raw[4:20]}-{round_id}"[:200], body)
            self.notices.append(text)
            return text

    def _must_write(self) -> None:
        if not self._writable:
            raise BadInput(f"the ledger in {self.folder} is open for reading only")

    def _row(self, decision_id: str) -> dict[str, Any]:
        rows = self.standing().rows
        if decision_id not in rows:
            raise UnknownName("decision", decision_id, rows, remedy="campaign ledger")
        return rows[decision_id]
