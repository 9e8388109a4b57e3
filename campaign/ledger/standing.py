"""Which decisions stand: a replay of decisions, revocations and rulings in the order of their lines.

Plain JSON values throughout, since a listing asks for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

from campaign.ledger.entry import Entry

TYPE_CHECKING = False  # the name that type checkers know, without importing `typing`
if TYPE_CHECKING:
    from typing import Any

KINDS = frozenset({"decision", "revoked", "ruling"})
ACCEPT, REJECT = "accept", "reject"
RULINGS = (ACCEPT, REJECT)


class Standing:
    """What the lines so far add up to.

    `rows` maps decision ids to decisions as plain JSON values with `sequence` (place among decisions, from 1),
    `line`, `revoked`, `ruling` ('accept', 'reject' or '') and `ruled_why`. `stack` has the ids of those in the stack,
    in the order in which each last joined: accepted by their verdict or by a ruling, and since then neither revoked
    nor ruled reject. `ruled` and `taken_back` count the rulings and revocations of each.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self._stack: dict[str, None] = {}  # as an ordered set
        self.ruled: dict[str, int] = {}
        self.taken_back: dict[str, int] = {}
        for entry in entries:
            self.take(entry)

    def take(self, entry: Entry) -> None:
        """Go on by one line; lines of other kinds, and those about no decision before them, change nothing."""
        if entry.kind == "decision":
            id, row = entry.body["id"], entry.body
            facts = {
                "sequence": len(self.rows) + 1,
                "line": entry.line,
                "revoked": False,
                "ruling": "",
                "ruled_why": "",
            }
            row.update(facts)
            self.rows[id] = row
            self._stands(id, row["verdict"]["verdict"] == ACCEPT)
        elif entry.kind in ("revoked", "ruling") and entry.body.get("decision_id") in self.rows:
            id = entry.body["decision_id"]
            row = self.rows[id]
            counts = self.ruled if entry.kind == "ruling" else self.taken_back
            counts[id] = counts.get(id, 0) + 1
            if entry.kind == "revoked":
                row["revoked"] = True
                self._stands(id, False)
            else:
                row.update(ruling=entry.body["verdict"], ruled_why=entry.body["why"])
                row["revoked"] = row["revoked"] and row["ruling"] != ACCEPT
                self._stands(id, row["ruling"] == ACCEPT)

    @property
    def stack(self) -> list[str]:
        return list(self._stack)

    def names(self) -> list[str]:
        """The hypotheses in the stack, in order."""
        return [self.rows[id]["hypothesis"] for id in self._stack]

    def _stands(self, id: str, stands: bool) -> None:
        if not stands:
            self._stack.pop(id, None)
        else:
            self._stack.setdefault(id)
