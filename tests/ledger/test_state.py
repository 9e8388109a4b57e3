from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import campaign
from campaign.errors import BadInput, LedgerDamaged, UnknownName
from campaign.ledger import Journal, Ledger, Stamp, campaigns, history, open_ledger
from campaign.records import Arm, Floor
from tests.ledger.writing import Make, decide, register, write_round

DAY = 24 * 3600.0


def test_the_first_append_opens_the_campaign_with_the_version_that_made_it(ledger: Ledger) -> None:
    assert list(ledger.store.entries()) == []
    ledger.append("note", "n", {"text": "hello"})
    first, second = ledger.store.entries()
    assert (first.kind, first.id) == ("campaign", "demo")
    assert first.body == {"name": "demo", "created_by": campaign.__version__}
    assert second.id == "n" and second.stamp == first.stamp == Stamp("host-a", "print-a")


def test_the_stamp_set_on_the_ledger_goes_on_the_lines_that_follow(ledger: Ledger) -> None:
    ledger.append("note", "a", {})
    ledger.stamp = Stamp("host-b", "print-b", "commit", "patch")
    ledger.append("note", "b", {})
    assert [entry.stamp.host for entry in ledger.store.entries({"note"})] == ["host-a", "host-b"]
    assert json.loads(ledger.file.read_text().splitlines()[-1])["patch"] == "patch"


def test_plans_come_back_as_they_were_registered(ledger: Ledger, make_plan: Make) -> None:
    plans = [make_plan("one"), make_plan("two", "other", null=True)]
    for plan in plans:
        register(ledger, plan)
    assert ledger.plans() == plans
    assert ledger.plan("two") == plans[1]
    with pytest.raises(UnknownName, match="did you mean 'two'"):
        ledger.plan("twoo")


def test_decisions_are_numbered_by_their_place_and_know_whether_they_were_revoked(
    ledger: Ledger, make_decision: Make
) -> None:
    for number in range(1, 4):
        decide(ledger, make_decision(f"d{number}", f"p{number}"))
    ledger.revoke("d2", "a newer driver")
    assert [(d.id, d.sequence) for d in ledger.decisions()] == [("d1", 1), ("d2", 2), ("d3", 3)]
    assert [(row["id"], row["revoked"]) for row in ledger.decision_rows()] == [
        ("d1", False),
        ("d2", True),
        ("d3", False),
    ]
    assert ledger.revoked() == {"d2"} and ledger.next_sequence() == 4


def test_the_stack_holds_what_was_accepted_and_not_revoked_in_order(ledger: Ledger, make_decision: Make) -> None:
    for id, verdict in [("a", "accept"), ("b", "reject"), ("c", "accept"), ("d", "inconclusive"), ("e", "accept")]:
        decide(ledger, make_decision(id, verdict=verdict))
    assert [decision.id for decision in ledger.stack()] == ["a", "c", "e"]
    ledger.revoke("c", "it broke")
    ledger.revoke("c", "said twice")
    assert [decision.id for decision in ledger.stack()] == ["a", "e"]
    assert [entry.body["why"] for entry in ledger.store.entries({"revoked"})] == ["it broke"]
    with pytest.raises(UnknownName):
        ledger.revoke("z", "there is none")


def test_the_floor_is_the_newest_null_measurement_here_and_at_most_a_week_old(
    ledger: Ledger, make_plan: Make, make_decision: Make
) -> None:
    def floor(resolves: float, clock: str = "wall") -> Floor:
        return Floor(clock, 8, 0.01, 0.01, {"6": resolves}, 0)

    register(ledger, make_plan("aa", "null", null=True))
    register(ledger, make_plan("real"))
    decide(ledger, make_decision("old", "aa", "inconclusive", floor(0.04)))
    decide(ledger, make_decision("new", "aa", "inconclusive", floor(0.02)))
    decide(ledger, make_decision("cpu", "aa", "inconclusive", floor(0.01, "cpu")))
    decide(ledger, make_decision("repeated", "real", "accept", floor(0.02)))
    ledger.stamp = Stamp("host-a", "print-b")
    decide(ledger, make_decision("elsewhere", "aa", "inconclusive", floor(0.03)))
    entry = next(entry for entry in ledger.store.entries() if entry.id == "new")
    written = datetime.fromisoformat(entry.time).timestamp()

    assert history.floor(ledger, "print-a", "tiny", "wall") == ("new", floor(0.02))
    assert history.floor(ledger, "print-a", "tiny", "cpu") == ("cpu", floor(0.01, "cpu"))
    assert history.floor(ledger, "print-b", "tiny", "wall") == ("elsewhere", floor(0.03))
    assert history.floor(ledger, "print-c", "tiny", "wall") is history.floor(ledger, "print-a", "large", "wall") is None
    assert history.floor(ledger, "print-a", "tiny", "wall", now=written + 7 * DAY - 1) is not None
    assert history.floor(ledger, "print-a", "tiny", "wall", now=written + 7 * DAY + 1) is None
    ledger.revoke("new", "measured with the charger out")
    assert history.floor(ledger, "print-a", "tiny", "wall") == ("old", floor(0.04))


def test_attempts_count_decisive_tests_of_the_same_treatment(
    ledger: Ledger, make_plan: Make, make_decision: Make
) -> None:
    kinds: list[tuple[str, dict[str, Any], str]] = [
        ("p1", {}, "reject"),
        ("p2", {}, "inconclusive"),
        ("p3", {}, "accept"),
        ("p4", {}, "invalid"),
        ("p5", {}, "unavailable"),
        ("p6", {"decisive": False}, "inconclusive"),
        ("p7", {"width": 16}, "reject"),
        ("p8", {"name": "other"}, "reject"),
    ]
    for id, settings, verdict in kinds:
        register(ledger, make_plan(id, **settings))
        look = 0 if verdict in ("invalid", "unavailable") else 1
        decide(ledger, make_decision(f"{id}-decision", id, verdict, look=look))
    register(ledger, make_plan("p9"))  # never decided
    treatment = make_plan().treatment
    assert history.attempts(ledger, "fuse", treatment.hash) == 3
    ledger.revoke("p3-decision", "it still was a test")
    assert history.attempts(ledger, "fuse", treatment.hash) == 3
    assert history.attempts(ledger, "other", treatment.hash) == 1
    assert history.attempts(ledger, "fuse", Arm("treatment", "x", "models.build", {"width": 4}).hash) == 0


def test_an_attempt_whose_numbers_were_seen_counts_even_without_a_verdict(
    ledger: Ledger, make_plan: Make, make_decision: Make, make_round: Make, blocks_body: Make
) -> None:
    plan = make_plan("interrupted")
    plan = replace(plan, protocol=replace(plan.protocol, contention_limit=100.0))
    register(ledger, plan)
    for index in range(plan.protocol.looks[0]):
        assert history.attempts(ledger, "fuse", plan.treatment.hash) == 0
        measured, blocks = make_round(f"r{index}", index)
        settled = replace(measured, trials=tuple(replace(one, steady=True) for one in measured.trials))
        write_round(ledger, plan.id, (settled, blocks), blocks_body)
    assert history.attempts(ledger, "fuse", plan.treatment.hash) == 1
    register(ledger, make_plan("late"))
    decide(ledger, make_decision("late-decision", "late", "invalid", look=1))
    assert history.attempts(ledger, "fuse", plan.treatment.hash) == 2


def test_unfinished_plans_are_those_without_a_decision(ledger: Ledger, make_plan: Make, make_decision: Make) -> None:
    for id in ("p1", "p2", "p3"):
        register(ledger, make_plan(id))
    decide(ledger, make_decision("d", "p2", "invalid"))
    assert ledger.unfinished() == ["p1", "p3"]


def test_opening_for_writing_cuts_a_torn_tail_and_says_so(tmp_path: Path) -> None:
    with open_ledger(tmp_path, "demo", writable=True) as ledger:
        ledger.append("note", "n", {})
    with ledger.file.open("ab") as file:
        file.write(b'{"kind":"dec')
    reading = open_ledger(tmp_path, "demo", writable=False)
    assert reading.decision_rows() == [] and "next append cuts it" in reading.notices[0]
    with open_ledger(tmp_path, "demo", writable=True) as ledger:
        assert len(ledger.notices) == 1 and "12 bytes" in ledger.notices[0]
        assert ledger.file.with_name("ledger.jsonl.torn").read_bytes() == b'{"kind":"dec\n'


def test_a_damaged_ledger_does_not_open_for_writing(tmp_path: Path) -> None:
    with open_ledger(tmp_path, "demo", writable=True) as ledger:
        ledger.append("note", "a", {})
    ledger.file.write_bytes(b"garbage\n" + ledger.file.read_bytes())
    for _ in range(2):
        with pytest.raises(LedgerDamaged, match="line 1"):
            open_ledger(tmp_path, "demo", writable=True)


def test_a_ledger_open_for_reading_refuses_to_write_and_makes_no_file(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path, "default", writable=False)
    assert ledger.decisions() == [] and ledger.stack() == () and ledger.unfinished() == []
    for write in (
        lambda: ledger.append("note", "n", {}),
        lambda: ledger.keep(b"", ".log"),
        lambda: ledger.inflight("r"),
        lambda: ledger.revoke("d", "why"),
        lambda: ledger.rule("d", "accept", "why"),
        lambda: ledger.claim("p"),
        lambda: ledger.transaction().__enter__(),
    ):
        with pytest.raises(BadInput, match="reading"):
            write()
    assert list(tmp_path.iterdir()) == []


def test_a_misspelt_campaign_is_refused_when_there_are_others(tmp_path: Path) -> None:
    with open_ledger(tmp_path, "demo", writable=True) as ledger:
        ledger.append("note", "n", {})
    assert campaigns(tmp_path) == ["demo"]
    with pytest.raises(UnknownName, match="did you mean 'demo'"):
        open_ledger(tmp_path, "dem", writable=False)
    with pytest.raises(BadInput, match="letters"):
        open_ledger(tmp_path, "../demo", writable=True)


def test_the_ledger_runs_on_any_store(tmp_path: Path, make_plan: Make, make_decision: Make) -> None:
    with open_ledger(tmp_path, "demo", writable=True) as ledger:
        register(ledger, make_plan())
        decide(ledger, make_decision())
    moved = Ledger(tmp_path / "elsewhere", Journal(ledger.file))
    assert [decision.id for decision in moved.stack()] == ["d1"]
