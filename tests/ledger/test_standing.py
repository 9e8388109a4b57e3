from __future__ import annotations

from dataclasses import replace

import pytest

from campaign.errors import BadInput, UnknownName
from campaign.ledger import Ledger
from campaign.ledger.standing import Standing
from tests.ledger.writing import Make, decide, register


@pytest.fixture
def decided(ledger: Ledger, make_decision: Make) -> Ledger:
    """Decisions a (accept), b (reject), c (accept), each about the hypothesis of its own name."""
    for id, verdict in (("a", "accept"), ("b", "reject"), ("c", "accept")):
        decide(ledger, replace(make_decision(id, f"plan-{id}", verdict), hypothesis=id))
    return ledger


def stack(ledger: Ledger) -> str:
    """The ids in the stack as one word, the same from rows and records."""
    ids = "".join(one.id for one in ledger.stack())
    assert ids == "".join(row["id"] for row in ledger.stack_rows())
    return ids


def row(ledger: Ledger, id: str) -> tuple[object, ...]:
    found = next(row for row in ledger.decision_rows() if row["id"] == id)
    return found["revoked"], found["ruling"], found["ruled_why"]


def test_a_persons_accept_puts_a_rejected_edit_at_the_end_of_the_stack(decided: Ledger) -> None:
    decided.rule("b", "accept", "it saves memory that we need")
    assert stack(decided) == "acb"
    assert row(decided, "b") == (False, "accept", "it saves memory that we need")
    assert row(decided, "a") == (False, "", "")
    (entry,) = decided.store.entries({"ruling"})
    assert (entry.id, entry.body) == (
        "ruling-b-1",
        {"decision_id": "b", "verdict": "accept", "why": "it saves memory that we need"},
    )


def test_a_persons_reject_takes_an_accepted_edit_out_and_the_verdict_stays(decided: Ledger) -> None:
    decided.rule("a", "reject", "nobody will maintain it")
    assert stack(decided) == "c"
    assert row(decided, "a") == (False, "reject", "nobody will maintain it")
    assert decided.decision_rows()[0]["verdict"]["verdict"] == "accept"


def test_the_latest_ruling_stands_and_every_one_is_kept(decided: Ledger) -> None:
    for verdict, why in (("accept", "one"), ("reject", "two"), ("accept", "three")):
        decided.rule("b", verdict, why)
    assert stack(decided) == "acb" and row(decided, "b") == (False, "accept", "three")
    ids = [entry.id for entry in decided.store.entries({"ruling"})]
    assert ids == ["ruling-b-1", "ruling-b-2", "ruling-b-3"]


def test_an_edit_that_joins_again_comes_last_and_one_that_never_left_keeps_its_place(decided: Ledger) -> None:
    decided.rule("a", "accept", "indeed")
    assert stack(decided) == "ac"
    decided.rule("a", "reject", "no")
    decided.rule("a", "accept", "after all")
    assert stack(decided) == "ca"


def test_a_ruling_puts_a_revoked_edit_in_again_and_it_can_be_revoked_again(decided: Ledger) -> None:
    decided.revoke("a", "it no longer pays")
    assert stack(decided) == "c" and row(decided, "a") == (True, "", "")
    decided.rule("a", "reject", "agreed")
    assert stack(decided) == "c" and row(decided, "a") == (True, "reject", "agreed")
    decided.rule("a", "accept", "it pays on the new driver")
    assert stack(decided) == "ca" and row(decided, "a") == (False, "accept", "it pays on the new driver")
    assert decided.revoked() == set()
    decided.revoke("a", "it does not")
    decided.revoke("a", "said twice")
    assert stack(decided) == "c" and decided.revoked() == {"a"}
    revoked = [(entry.id, entry.body["why"]) for entry in decided.store.entries({"revoked"})]
    assert revoked == [("revoked-a", "it no longer pays"), ("revoked-a-2", "it does not")]


@pytest.mark.parametrize(("verdict", "why", "said"), [("maybe", "why", "accept or reject"), ("accept", "  ", "reason")])
def test_a_ruling_that_says_nothing_is_refused(decided: Ledger, verdict: str, why: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        decided.rule("a", verdict, why)
    assert list(decided.store.entries({"ruling"})) == []


def test_a_ruling_on_an_unknown_decision_names_those_there_are(decided: Ledger) -> None:
    with pytest.raises(UnknownName, match="a, b, c"):
        decided.rule("z", "accept", "why")


def test_one_hypothesis_cannot_be_in_the_stack_by_two_decisions(decided: Ledger, make_decision: Make) -> None:
    decide(decided, replace(make_decision("b2", "plan-b2", "accept"), hypothesis="b"))
    with pytest.raises(BadInput, match="b is in the stack already, by decision b2") as caught:
        decided.rule("b", "accept", "the first one")
    assert "--revert b --why" in caught.value.remedy
    decided.rule("b", "reject", "the second one is better")
    decided.revoke("b2", "no")
    decided.rule("b", "accept", "the first one")
    assert stack(decided) == "acb"


def test_rows_carry_the_line_that_they_stand_in(decided: Ledger) -> None:
    # line 1 opens the campaign
    assert [(row["sequence"], row["line"]) for row in decided.decision_rows()] == [(1, 2), (2, 3), (3, 4)]


def test_a_replay_may_stop_at_any_line(decided: Ledger) -> None:
    decided.rule("b", "accept", "why")
    decided.revoke("a", "why")
    standing, seen = Standing(), []
    for entry in decided.store.entries():
        standing.take(entry)
        seen.append("".join(standing.stack))
    assert seen == ["", "a", "a", "ac", "acb", "cb"]
    assert standing.names() == ["c", "b"]


def test_a_plan_has_moved_when_the_stack_is_another_than_at_its_line(
    ledger: Ledger, make_plan: Make, make_decision: Make
) -> None:
    decide(ledger, replace(make_decision("a"), hypothesis="a"))
    plan = replace(make_plan("p"), stack=("a",))
    assert not ledger.moved_since(plan)  # not registered yet, and composed on the present stack
    register(ledger, plan)
    assert not ledger.moved_since(plan)
    decide(ledger, make_decision("b", verdict="reject"))
    assert not ledger.moved_since(plan)
    decide(ledger, replace(make_decision("c"), hypothesis="c"))
    line = ledger.decision_rows()[-1]["line"]
    assert ledger.moved_since(plan)
    assert not ledger.moved_since(plan, before=line) and ledger.moved_since(plan, before=line + 1)
    ledger.revoke("c", "why")
    assert not ledger.moved_since(plan)


def test_the_same_edits_by_other_decisions_or_in_another_order_are_another_stack(
    ledger: Ledger, make_plan: Make, make_decision: Make
) -> None:
    for name in ("a", "b"):
        decide(ledger, replace(make_decision(name), hypothesis=name))
    plan = replace(make_plan("p"), stack=("a", "b"))
    register(ledger, plan)
    ledger.rule("a", "reject", "no")
    ledger.rule("a", "accept", "yes")  # now b, a
    assert ledger.moved_since(plan)
    ledger.revoke("b", "measured again")
    decide(ledger, replace(make_decision("b2"), hypothesis="b"))  # a, b again, b by what was measured anew
    assert ledger.moved_since(plan)


def test_a_plan_composed_before_and_registered_after_an_accept_has_moved(
    ledger: Ledger, make_plan: Make, make_decision: Make
) -> None:
    plan = make_plan("p")  # composed on the empty stack
    decide(ledger, make_decision("a"))  # another process accepts an edit
    assert ledger.moved_since(plan)
    register(ledger, plan)
    assert ledger.moved_since(plan)
