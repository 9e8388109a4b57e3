"""The kept answer about a ledger file is dropped as soon as the file is another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from campaign.ledger.view import View


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.jsonl"
    path.write_text("one\n")
    return path


def test_an_answer_is_kept_while_the_file_stays_as_it_is(file: Path) -> None:
    View(file, "listing").keep([1, 2])
    assert View(file, "listing").get() == [1, 2]
    assert View(file, "other").get() is None


def test_a_line_more_or_other_bytes_of_the_same_length_drop_it(file: Path) -> None:
    View(file, "listing").keep([1])
    file.write_text("two\n")
    os.utime(file, ns=(1, 1))  # even a forged time of change does not hide it: ctime moves
    assert View(file, "listing").get() is None
    View(file, "listing").keep([2])
    with file.open("a") as more:
        more.write("three\n")
    assert View(file, "listing").get() is None


def test_an_answer_found_in_a_file_that_changed_meanwhile_is_not_taken_for_its(file: Path) -> None:
    view = View(file, "listing")
    with file.open("a") as more:
        more.write("two\n")
    view.keep(["of one line"])
    assert View(file, "listing").get() is None


def test_a_broken_kept_answer_is_as_good_as_none(file: Path) -> None:
    View(file, "listing").keep([1])
    file.with_name(".listing.json").write_text("{")
    assert View(file, "listing").get() is None


def test_a_folder_that_refuses_writes_keeps_nothing_and_raises_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    for name in ("write_text", "unlink"):
        monkeypatch.setattr(Path, name, refuse)
    View(file, "listing").keep([1])
    monkeypatch.undo()
    assert View(file, "listing").get() is None


def test_a_missing_ledger_has_no_view_and_leaves_no_file(tmp_path: Path) -> None:
    view = View(tmp_path / "ledger.jsonl", "listing")
    view.keep([])
    assert view.get() is None
    assert not list(tmp_path.iterdir())
