"""Lines of `campaign doctor` in the ledger: which decision they are named beside, and that nothing judges by them."""

from __future__ import annotations

from campaign.ledger import Ledger, Stamp
from campaign.records import to_json
from campaign.report.doctor_text import doctor_before, doctor_line
from tests.ledger.writing import Make, decide, register, write_round

NOW = "2026-12-01T12:00:00.000Z"
BODY = {
    "fitness": "doubtful",
    "findings": [{"check": "governor", "level": "doubtful"}, {"check": "turbo", "level": "unknown"}],
    "fit": [],
    "floor": None,
    "fingerprint": "this machine",
}


def doctor(ledger: Ledger, id: str, monkeypatch, moment: str, **changes) -> None:
    monkeypatch.setattr("campaign.ledger.journal.now", lambda: moment)
    ledger.stamp = Stamp("here", changes.get("fingerprint", "this machine"))
    ledger.append("doctor", id, {**BODY, **changes})


def decision(line: int) -> dict[str, object]:
    """A decision's row, as far as it is asked for."""
    return {"decided_at": NOW, "line": line}


def test_a_decision_names_the_newest_doctor_before_it_of_its_own_machine(ledger, monkeypatch):
    doctor(ledger, "d1", monkeypatch, "2026-11-28T12:00:00.000Z")
    doctor(ledger, "d2", monkeypatch, "2026-11-29T12:00:00.000Z", fitness="fit", findings=[])
    doctor(ledger, "d3", monkeypatch, "2026-11-30T12:00:00.000Z", fingerprint="another machine")
    # line 1 is the campaign's own, so d1 is in line 2
    assert doctor_before(ledger, decision(5), "this machine")["id"] == "d2"
    assert doctor_before(ledger, decision(3), "this machine")["id"] == "d1"
    assert doctor_before(ledger, decision(2), "this machine") is None
    assert doctor_before(ledger, decision(9), "a third machine") is None
    said = "machine: doubtful (governor), doctor of 2026-11-28T12:00:00.000Z"
    assert doctor_line(doctor_before(ledger, decision(3), "this machine")) == said
    assert doctor_line(doctor_before(ledger, decision(5), "this machine")) == (
        "machine: fit, doctor of 2026-11-29T12:00:00.000Z"
    )
    assert doctor_line(None) == ""


def test_a_doctor_of_more_than_seven_days_before_is_not_named(ledger, monkeypatch):
    doctor(ledger, "d1", monkeypatch, "2026-11-24T12:00:00.000Z")
    assert doctor_before(ledger, decision(9), "this machine")["id"] == "d1", "seven days to the millisecond"
    doctor(ledger, "d2", monkeypatch, "2026-11-24T11:59:59.999Z")
    assert doctor_before(ledger, decision(9), "this machine") is None


def test_evidence_decisions_and_stack_are_the_same_with_doctors_between_their_lines(
    ledger, make_plan: Make, make_decision: Make, make_round: Make, blocks_body: Make
):
    register(ledger, make_plan())
    write_round(ledger, "fuse-1", make_round(), blocks_body)
    before = ledger.evidence("fuse-1")
    ledger.append("doctor", "d1", {**BODY, "plan_id": "fuse-1"})  # even one that says that it is of the plan
    assert ledger.evidence("fuse-1") == before
    decide(ledger, make_decision())
    assert [one.id for one in ledger.stack()] == ["d1"]
    assert to_json(before.plan)["id"] == "fuse-1" and len(ledger.doctor_rows()) == 1


def test_a_doctor_alone_makes_a_ledger_about_no_workload_and_leaves_nothing_unfinished(ledger):
    ledger.append("doctor", "d1", {**BODY, "workload": "tiny", "device": "cpu"})
    assert (ledger.place(), ledger.unfinished(), ledger.decision_rows(), ledger.stack()) == (None, [], [], ())
