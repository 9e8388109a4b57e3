from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from campaign import records
from campaign.errors import BadInput, CampaignError, LedgerDamaged
from campaign.ledger import Journal
from campaign.ledger.entry import LINE_SCHEMA
from campaign.ledger.journal import KINDS
from tests.ledger.files import STAMP, filled, ids, lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def test_its_schema_and_kinds_are_those_of_the_records() -> None:
    assert LINE_SCHEMA == records.SCHEMA
    assert frozenset(records.KINDS) == KINDS


def test_a_line_has_its_keys_in_the_documented_order(path: Path) -> None:
    filled(path, 1)
    (line,) = lines(path)
    assert line.startswith(b'{"kind":"trial","line":1,"id":"e1","prev":"' + b"0" * 64 + b'","schema":1,"time":"')
    assert list(json.loads(line)) == [
        "kind", "line", "id", "prev", "schema", "time", "host", "fingerprint", "commit", "patch", "body",
    ]  # fmt: skip


def test_each_line_names_the_hash_of_the_one_before(path: Path) -> None:
    filled(path)
    all_lines = lines(path)
    assert [json.loads(line)["prev"] for line in all_lines[1:]] == [
        hashlib.sha256(line).hexdigest() for line in all_lines[:-1]
    ]


def test_a_last_line_cut_anywhere_is_healed_and_the_others_stay(path: Path) -> None:
    filled(path, 3)
    whole = path.read_bytes()
    start = len(b"".join(lines(path)[:2]))
    for cut in [start + 1, *range(start + 2, len(whole) - 1, 40), len(whole) - 1]:
        path.write_bytes(whole[:cut])
        path.with_name("ledger.jsonl.torn").unlink(missing_ok=True)
        journal = Journal(path)
        journal.append("note", "next", {}, STAMP)
        assert [entry.id for entry in journal.entries()] == ["e1", "e2", "next"]
        assert f"{cut - start} bytes" in journal.torn and "ledger.jsonl.torn" in journal.torn
        assert path.with_name("ledger.jsonl.torn").read_bytes() == whole[start:cut] + b"\n"


def test_an_unparsable_last_line_with_its_newline_is_cut_too(path: Path) -> None:
    filled(path, 2)
    with path.open("ab") as file:
        file.write(b'{"kind":"note","id":"half \x00\x00\x00}\n')
    journal = Journal(path)
    assert "torn" in journal.heal()
    assert ids(path) == ["e1", "e2"]
    assert journal.heal() == ""


def test_a_reader_passes_over_a_torn_tail_says_so_and_leaves_the_file(path: Path) -> None:
    filled(path, 2)
    with path.open("ab") as file:
        file.write(b'{"kind":"note","id":"half')
    before = path.read_bytes()
    for verify in (True, False):
        journal = Journal(path)
        assert [entry.id for entry in journal.entries(verify=verify)] == ["e1", "e2"]
        assert "torn" in journal.torn
    assert path.read_bytes() == before


def swap(number: int, change: Callable[[bytes], bytes]) -> Callable[[list[bytes]], list[bytes]]:
    return lambda all_lines: [change(line) if i == number else line for i, line in enumerate(all_lines, 1)]


DAMAGES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int]] = {
    # what was done to five lines, the line that is named
    "unparsable": (swap(3, lambda line: line[:60] + b"\n"), 3),
    "a merge marker": (lambda all_lines: [*all_lines[:2], b"<<<<<<< HEAD\n", *all_lines[2:]], 3),
    "an empty line": (lambda all_lines: [*all_lines[:3], b"\n", *all_lines[3:]], 4),
    "newline missing": (swap(2, lambda line: line[:-1]), 2),
    "line ends of another system": (lambda all_lines: [line[:-1] + b"\r\n" for line in all_lines], 1),
    "framed, but no JSON": (swap(4, lambda line: line.replace(b'"schema"', b'"schema')), 4),
    "NaN": (swap(3, lambda line: line.replace(b'"number":3', b'"number":NaN')), 3),
    "newer schema": (swap(3, lambda line: line.replace(b'"schema":1', b'"schema":2')), 3),
    "changed": (swap(3, lambda line: line.replace(b'"number":3', b'"number":4')), 3),
    "taken out": (lambda all_lines: [*all_lines[:2], *all_lines[3:]], 2),
    "first taken out": (lambda all_lines: all_lines[1:], 1),
    "put in twice": (lambda all_lines: [*all_lines[:3], all_lines[2], *all_lines[3:]], 3),
    "a last line of another system": (lambda all_lines: [*all_lines[:4], all_lines[4][:-1] + b"\r\n"], 5),
    "swapped": (lambda all_lines: [all_lines[0], all_lines[2], all_lines[1], *all_lines[3:]], 1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_in_the_middle_is_refused_with_its_line_by_reader_and_writer(path: Path, damage: str) -> None:
    change, number = DAMAGES[damage]
    filled(path)
    path.write_bytes(b"".join(change(lines(path))))
    before = path.read_bytes()
    with pytest.raises(LedgerDamaged, match=f"line {number}:") as read:
        list(Journal(path).entries())
    with pytest.raises(LedgerDamaged) as written:
        Journal(path).append("note", "next", {}, STAMP)
    assert read.value.line == written.value.line == number
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_listing_sees_the_same_damage_although_it_parses_other_lines(path: Path, damage: str) -> None:
    change, number = DAMAGES[damage]
    filled(path)
    path.write_bytes(b"".join(change(lines(path))))
    with pytest.raises(LedgerDamaged, match=f"line {number}:"):
        list(Journal(path).entries({"note"}, verify=False))


def test_a_listing_parses_only_the_lines_it_was_asked_for(path: Path) -> None:
    filled(path)
    change, number = DAMAGES["framed, but no JSON"]  # line 4, a decision
    path.write_bytes(rechained(change(lines(path))))
    assert [entry.line for entry in Journal(path).entries({"trial"}, verify=False)] == [1, 3, 5]
    with pytest.raises(LedgerDamaged, match=f"line {number}:"):
        list(Journal(path).entries({"decision"}, verify=False))


def rechained(all_lines: list[bytes]) -> bytes:
    """The lines with each `prev` made to fit, as someone would who wants a change to pass."""
    whole, prev = b"", b"0" * 64
    for line in all_lines:
        line = re.sub(rb'"prev":"[0-9a-f]{64}"', b'"prev":"' + prev + b'"', line, count=1)
        whole, prev = whole + line, hashlib.sha256(line).hexdigest().encode()
    return whole


def test_a_newer_schema_in_the_last_line_is_refused_not_cut(path: Path) -> None:
    filled(path, 3)
    newer = swap(3, lambda line: line.replace(b'"schema":1', b'"schema":2'))
    path.write_bytes(b"".join(newer(lines(path))))
    before = path.read_bytes()
    for touch in (lambda journal: journal.heal(), lambda journal: journal.append("note", "n", {}, STAMP)):
        with pytest.raises(LedgerDamaged, match="newer campaign") as caught:
            touch(Journal(path))
        assert caught.value.line == 3 and "upgrade" in caught.value.remedy
    assert path.read_bytes() == before


def test_an_id_written_twice_by_other_hands_is_refused(path: Path) -> None:
    filled(path, 2)
    last = json.loads(lines(path)[1])
    last["line"] = 3
    last["prev"] = hashlib.sha256(lines(path)[1]).hexdigest()
    with path.open("ab") as file:
        file.write(json.dumps(last, separators=(",", ":")).encode() + b"\n")
    with pytest.raises(LedgerDamaged, match="already written in line 2") as caught:
        list(Journal(path).entries())
    assert caught.value.line == 3


def test_lines_that_another_process_adds_are_followed(path: Path) -> None:
    mine, other = Journal(path), Journal(path)
    mine.append("note", "a", {}, STAMP)
    other.append("note", "b", {}, STAMP)
    mine.append("note", "c", {}, STAMP)
    assert mine.append("note", "b", {}, STAMP).line == 2
    assert ids(path) == ["a", "b", "c"]


def test_a_file_exchanged_under_an_open_journal_is_checked_anew(path: Path) -> None:
    journal = filled(path)
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes().replace(b'"number":2', b'"number":7'))
    copy.replace(path)
    with pytest.raises(LedgerDamaged) as caught:
        journal.append("note", "next", {}, STAMP)
    assert caught.value.line == 2


def test_a_changed_entry_says_which_values_differ(path: Path) -> None:
    journal = filled(path, 2)
    with pytest.raises(BadInput, match=r"line 2: decision e2 is already written with another number"):
        journal.append("decision", "e2", {"number": 3}, STAMP)


def test_a_ledger_that_cannot_be_opened_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").mkdir()
    with pytest.raises(CampaignError, match="cannot open the ledger") as caught:
        Journal(tmp_path / "ledger.jsonl").append("note", "n", {}, STAMP)
    assert caught.value.remedy
    (tmp_path / "no folder").touch()
    with pytest.raises(CampaignError, match="cannot write"):
        Journal(tmp_path / "no folder" / "ledger.jsonl").append("note", "n", {}, STAMP)


def test_the_remedy_for_a_damaged_line_can_be_pasted_whatever_the_folder_is_called() -> None:
    assert LedgerDamaged("my runs/a.jsonl", 3, "why").remedy.endswith("head -n 2 'my runs/a.jsonl'")
