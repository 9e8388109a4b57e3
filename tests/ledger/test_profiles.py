"""Profile evidence in the ledger: it is kept and found again, and no evidence of a plan has it."""

from __future__ import annotations

from typing import Any

import pytest

from campaign.errors import LedgerDamaged
from campaign.ledger import Ledger
from campaign.report.line_order import LineOrder
from tests.ledger.writing import Make, decide, register, write_round


def profile(ledger: Ledger, id: str = "profile-1", workload: str = "tiny") -> dict[str, Any]:
    body = {"evidence": "profile", "hypothesis": "fuse", "workload": workload, "device": "cpu", "stack": [], "steps": 5}
    for role in ("control", "treatment"):
        body[role] = {"name": role, "raw": ledger.keep(f"{role} of {id}".encode(), ".json.gz"), "bytes": 20}
    ledger.append("profile", id, body)
    return body


def diagnosis(ledger: Ledger, id: str, of: str = "", workload: str = "tiny", dispatch: Any = "busy") -> None:
    body = {"evidence": "profile", "workload": workload, "device": "cpu", "stack": [], "profile": of, "arm": ""}
    ledger.append("diagnosis", id, {**body, "diagnosis": {"dispatch": dispatch, "ideas": []}, "documents": []})


def test_profiles_and_diagnoses_are_rows_in_order_numbered_together(ledger):
    profile(ledger)
    diagnosis(ledger, "d1", "profile-1")
    profile(ledger, "profile-2")
    found = [(row["kind"], row["id"], row["sequence"], row["line"]) for row in ledger.profile_rows()]
    # line 1 is the campaign's own
    assert found == [("profile", "profile-1", 1, 2), ("diagnosis", "d1", 2, 3), ("profile", "profile-2", 3, 4)]


def test_last_diagnosis_is_the_newest_of_the_workload_or_of_no_known_one(ledger):
    assert ledger.last_diagnosis() is None
    for id, workload in (("d1", "tiny"), ("d2", "other")):
        diagnosis(ledger, id, workload=workload)
    assert ledger.last_diagnosis()["id"] == "d2"
    assert ledger.last_diagnosis("tiny")["id"] == "d1"
    assert ledger.last_diagnosis("third") is None
    diagnosis(ledger, "d3", workload="")
    assert ledger.last_diagnosis("tiny")["id"] == "d3"
    diagnosis(ledger, "d4", dispatch=None)  # of kernel reports alone
    assert ledger.last_diagnosis("tiny")["id"] == "d3"


def test_evidence_decisions_and_stack_are_the_same_with_profiles_between_their_lines(
    ledger, make_plan: Make, make_decision: Make, make_round: Make, blocks_body: Make
):
    register(ledger, make_plan())
    write_round(ledger, "fuse-1", make_round(), blocks_body)
    before = ledger.evidence("fuse-1")
    body = profile(ledger)
    diagnosis(ledger, "d1", "profile-1")
    # even one that says that it is of the plan
    ledger.append("profile", "profile-2", {**body, "plan_id": "fuse-1"})
    assert ledger.evidence("fuse-1") == before
    decide(ledger, make_decision())
    assert [one.id for one in ledger.stack()] == ["d1"]
    assert ledger.place() == ("tiny", "cpu")


def test_profiles_alone_make_a_ledger_about_no_workload_and_leave_nothing_unfinished(ledger):
    profile(ledger, workload="other")
    assert (ledger.place(), ledger.unfinished(), ledger.decision_rows(), ledger.stack()) == (None, [], [], ())


def test_a_diagnosis_of_a_profile_that_no_line_before_it_made_is_refused_by_the_check(ledger):
    diagnosis(ledger, "d1", "profile-1")
    order = LineOrder(ledger.store.place)
    with pytest.raises(LedgerDamaged, match="line 2: it is of a trace of profile-1, which no line before it made"):
        for entry in ledger.store.entries(verify=True):
            order.take(entry)


def test_a_diagnosis_after_its_profile_and_one_of_a_file_from_elsewhere_are_in_order(ledger):
    profile(ledger)
    diagnosis(ledger, "d1", "profile-1")
    diagnosis(ledger, "d2")
    order = LineOrder(ledger.store.place)
    for entry in ledger.store.entries(verify=True):
        order.take(entry)
    assert order.moved == {} and order.wrong_stack is None
