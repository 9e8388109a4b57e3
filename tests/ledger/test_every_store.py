"""The contract of a store of entries. Every store is in STORES; a new one joins the list and passes as it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from campaign.errors import BadInput
from campaign.ledger import Entry, Journal, Stamp
from campaign.ledger.entry import flaw_in_id, not_finite, now
from campaign.ledger.store import Store
from campaign.records import KINDS

STAMP = Stamp("host-a", "f" * 64, "c" * 40, "")


class ListStore:
    """The contract in its plainest form: a list. It keeps nothing when the process ends, so it lives here."""

    place = "a list"
    torn = ""

    def __init__(self, path: Path) -> None:
        self._lines: list[str] = []

    def heal(self) -> str:
        return ""

    def transaction(self) -> AbstractContextManager[None]:
        return nullcontext()  # nobody else can reach it

    def append(self, kind: str, id: str, body: dict[str, Any], stamp: Stamp) -> Entry:
        if kind not in KINDS or flaw_in_id(id) or not_finite(body):
            raise BadInput(not_finite(body) or f"{kind} {id}")
        plain = json.loads(json.dumps(body))
        for entry in self.entries():
            if (entry.kind, entry.id) == (kind, id):
                if entry.body != plain:
                    raise BadInput(f"{kind} {id} is taken, see line {entry.line}")
                return entry
        entry = Entry(kind, id, len(self._lines) + 1, now(), plain, stamp)
        self._lines.append(json.dumps(entry))
        return entry

    def entries(self, kinds: Collection[str] | None = None, verify: bool = True, plan: str = "") -> Iterator[Entry]:
        for line in self._lines:
            kind, id, number, time, body, stamp = json.loads(line)
            if (kinds is None or kind in kinds) and plan in (
                "",
                id if kind in ("registered", "study") else body.get("plan_id"),
            ):
                yield Entry(kind, id, number, time, body, Stamp(*stamp))


STORES: dict[str, Callable[[Path], Store]] = {"list": ListStore, "journal": Journal}


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return STORES[request.param](tmp_path / "ledger.jsonl")


def ids(entries: Iterator[Entry]) -> list[str]:
    return [entry.id for entry in entries]


def test_an_empty_store_has_no_entries_and_nothing_torn(store: Store) -> None:
    assert list(store.entries()) == list(store.entries(verify=False)) == []
    assert store.heal() == store.torn == ""


def test_entries_come_back_in_order_with_their_lines(store: Store) -> None:
    for number in range(1, 6):
        assert store.append("note", f"n{number}", {"text": "x" * number}, STAMP).line == number
    for verify in (True, False):
        found = list(store.entries(verify=verify))
        assert [(e.kind, e.id, e.line, e.body) for e in found] == [
            ("note", f"n{number}", number, {"text": "x" * number}) for number in range(1, 6)
        ]


def test_an_entry_keeps_its_stamp_and_the_moment_in_utc(store: Store) -> None:
    before = datetime.now(UTC)
    appended = store.append("note", "n", {}, STAMP)
    (found,) = store.entries()
    assert found == appended and found.stamp == STAMP
    assert -0.001 <= (datetime.fromisoformat(found.time) - before).total_seconds() < 60
    assert datetime.fromisoformat(found.time).utcoffset().total_seconds() == 0  # type: ignore[union-attr]


def test_the_same_entry_again_is_the_first_one(store: Store) -> None:
    first = store.append("note", "n", {"pair": (1, 2)}, STAMP)
    store.append("note", "other", {}, STAMP)
    again = store.append("note", "n", {"pair": [1, 2]}, Stamp("host-b"))
    assert again == first and again.stamp == STAMP
    assert ids(store.entries()) == ["n", "other"]


def test_an_id_taken_by_another_body_is_refused_and_nothing_is_added(store: Store) -> None:
    store.append("note", "n", {"text": "a"}, STAMP)
    with pytest.raises(BadInput, match=r"line 1"):
        store.append("note", "n", {"text": "b"}, STAMP)
    assert [entry.body for entry in store.entries()] == [{"text": "a"}]


def test_one_id_may_serve_two_kinds(store: Store) -> None:
    store.append("registered", "p", {"id": "p"}, STAMP)
    store.append("note", "p", {}, STAMP)
    assert [entry.kind for entry in store.entries()] == ["registered", "note"]


@pytest.mark.parametrize("id", ["", "a b", 'a"b', "a\nb", "ä", "x" * 201])
def test_an_id_that_would_need_escaping_is_refused(store: Store, id: str) -> None:
    with pytest.raises(BadInput):
        store.append("note", id, {}, STAMP)
    assert list(store.entries()) == []


def test_an_unknown_kind_is_refused(store: Store) -> None:
    with pytest.raises(BadInput, match="opinion"):
        store.append("opinion", "o", {}, STAMP)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_lacks_is_refused_with_its_place(store: Store, value: float) -> None:
    with pytest.raises(BadInput, match=r"body\.effect\.ratios\[1\]"):
        store.append("note", "n", {"effect": {"ratios": [1.0, value]}}, STAMP)
    assert list(store.entries()) == []


def test_every_json_value_comes_back_equal(store: Store) -> None:
    body: dict[str, Any] = {
        "text": 'quote " back \\ line\nend \u2028 ä 🙂 \x00',
        "no": None,
        "yes": True,
        "n": -3,
        "x": 0.1,
        "l": [[], {}],
    }
    store.append("note", "n", body, STAMP)
    assert next(store.entries()).body == body


def test_changing_a_body_afterwards_changes_nothing_in_the_store(store: Store) -> None:
    body = {"list": [1]}
    store.append("note", "n", body, STAMP)
    body["list"].append(2)
    next(store.entries()).body["list"].append(3)
    assert next(store.entries()).body == {"list": [1]}


@pytest.mark.parametrize("verify", [True, False])
def test_entries_are_chosen_by_kind_and_by_plan(store: Store, verify: bool) -> None:
    store.append("registered", "p1", {"id": "p1"}, STAMP)
    store.append("registered", "p12", {"id": "p12"}, STAMP)
    store.append("trial", "t1", {"plan_id": "p1"}, STAMP)
    store.append("trial", "t2", {"plan_id": "p12", "text": "p1"}, STAMP)
    store.append("decision", "d1", {"plan_id": "p1"}, STAMP)
    store.append("note", "p1", {"text": "not of plan p1, only named so"}, STAMP)
    assert ids(store.entries({"trial"}, verify)) == ["t1", "t2"]
    assert ids(store.entries({"decision", "registered"}, verify)) == ["p1", "p12", "d1"]
    assert ids(store.entries(None, verify, plan="p1")) == ["p1", "t1", "d1"]
    assert ids(store.entries({"trial"}, verify, plan="p12")) == ["t2"]
    assert ids(store.entries(set(), verify)) == ids(store.entries(None, verify, plan="p9")) == []
