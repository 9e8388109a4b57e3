"""What the order of a ledger's lines must be: declared before measured, measured before concluded, and the stack as the
lines before it make it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from campaign.errors import LedgerDamaged
from campaign.ledger.standing import Standing

if TYPE_CHECKING:
    from campaign.ledger import Entry

CONCLUDES = {"decision": "registered", "finding": "study"}  # what ends what
ABOUT_A_DECISION = {"revoked": "revokes", "ruling": "rules on"}


class LineOrder:
    """Takes the entries one by one, in order. `moved` has, by id, the decisions before whose line the stack moved since
    their plan was registered, with the names that were in it. `wrong_stack` is the first stack line that the decisions
    and rulings before it do not make up, None without one: a forged decision shows there too, and better in itself."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.moved: dict[str, list[str]] = {}
        self.wrong_stack: LedgerDamaged | None = None
        self._standing = Standing()
        self._declared: dict[str, tuple[str, list[str]]] = {}  # plan or study: its kind, the stack then
        self._ended: dict[str, int] = {}  # plan or study: the line that concluded it
        self._profiles: set[str] = set()
        self._counts = {kind: 0 for kind in CONCLUDES}

    def take(self, entry: Entry) -> None:
        """Raises LedgerDamaged for a line that cannot stand where it does."""
        if said := self._flaw(entry):
            raise LedgerDamaged(self.place, entry.line, said)
        if entry.kind == "stack" and list(entry.body["decisions"]) != self._standing.stack:
            said = f"stack is recorded as {entry.body['decisions']}, and the lines before give {self._standing.stack}"
            self.wrong_stack = self.wrong_stack or LedgerDamaged(self.place, entry.line, said)
        if entry.kind == "profile":
            self._profiles.add(entry.id)
        if entry.kind in CONCLUDES.values():
            self._declared[entry.body["id"]] = (entry.kind, self._standing.stack)
        elif entry.kind in CONCLUDES:
            plan = _plan(entry)
            self._ended[plan] = entry.line
            self._counts[entry.kind] += 1
            if entry.kind == "decision" and self._has_moved(entry, self._declared[plan][1]):
                self.moved[entry.body["id"]] = self._standing.names()
        # Standing counts decisions itself and writes into the row it keeps; the entry is to stay as it was read.
        self._standing.take(entry._replace(body=dict(entry.body)))

    def _has_moved(self, decision: Entry, declared: list[str]) -> bool:
        """Whether the stack is no longer the one of the plan's line, or was another already than the plan was composed
        on. Ledgers of before each was about one workload on one device hold edits of others."""
        body, rows = decision.body, [self._standing.rows[id] for id in self._standing.stack]
        here = [
            row["hypothesis"] for row in rows if (row["workload"], row["device"]) == (body["workload"], body["device"])
        ]
        return declared != self._standing.stack or here != list(body["stack"])

    def _flaw(self, entry: Entry) -> str:
        body, kind = entry.body, entry.kind
        if kind in ABOUT_A_DECISION and body["decision_id"] not in self._standing.rows:
            return f"it {ABOUT_A_DECISION[kind]} {body['decision_id']}, which no line before it decided"
        if kind == "diagnosis" and body["profile"] and body["profile"] not in self._profiles:
            return f"it is of a trace of {body['profile']}, which no line before it made"
        if kind not in ("probe", "trial", "blocks", *CONCLUDES):
            return ""
        plan = _plan(entry)
        declared = self._declared.get(plan)
        if declared is None or CONCLUDES.get(kind, declared[0]) != declared[0]:
            return f"{kind} {entry.id} stands before its plan {plan}: nothing was declared beforehand"
        if plan in self._ended:
            return f"{kind} {entry.id} belongs to {plan}, which was decided before it in line {self._ended[plan]}"
        if kind in CONCLUDES and body["sequence"] != self._counts[kind] + 1:
            number = self._counts[kind] + 1
            return f"{kind} {body['id']}: sequence is recorded as {body['sequence']}, and it is {number}"
        return ""


def _plan(entry: Entry) -> str:
    """The plan or study that a measurement or a conclusion belongs to."""
    return entry.body["study_id"] if entry.kind == "finding" else entry.body["plan_id"]
