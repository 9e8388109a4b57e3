"""Rows of a parameter sweep: told apart, none taken for a later word on another, in every view."""

from __future__ import annotations

import csv
import io
import json

import pytest

from campaign.records import Edit
from campaign.report import listing, stack
from campaign.report.export import export
from tests.report import written


@pytest.fixture
def swept(tmp_path):
    """Three caps; the last is accepted."""
    with written.opened(tmp_path) as ledger:
        for cap, record in ((8, written.slower), (12, written.slower), (16, written.faster)):
            record(
                ledger,
                "register_cap",
                id=f"register_cap-{cap}",
                edit=Edit((f"workload.ops.recurrence_registers={cap}",)),
                command=f"python -m campaign hypothesis=register_cap register_cap.registers={cap}",
            )
        yield ledger


LABELS = [f"register_cap registers={cap}" for cap in (8, 12, 16)]


def test_the_listing_and_its_json_show_the_parameter(swept):
    rows = listing.rows(swept)
    assert [row["parameters"] for row in rows] == ["registers=8", "registers=12", "registers=16"]
    text = listing.table(rows, terminal=False)
    assert all(f"{label}  " in text for label in LABELS)


def test_the_page_the_csv_and_the_json_show_the_parameter(swept):
    page = export(swept, "md")
    assert all(f"| `{label}`: one pass less" in page for label in LABELS)
    rows = list(csv.DictReader(io.StringIO(export(swept, "csv"))))
    assert [row["parameters"] for row in rows] == ["registers=8", "registers=12", "registers=16"]
    assert [row["label"] for row in json.loads(export(swept, "json"))["decisions"]] == LABELS


def test_one_value_of_a_parameter_does_not_supersede_another(swept):
    assert "superseded" not in export(swept, "md")
    written.slower(
        swept,
        "register_cap",
        id="register_cap-8-again",
        attempt=2,
        edit=Edit(("workload.ops.recurrence_registers=8",)),
    )
    found = {
        row["decision"]["sequence"]: row["superseded_by"] for row in json.loads(export(swept, "json"))["decisions"]
    }
    assert found == {1: 4, 2: None, 3: None, 4: None}


def test_the_stack_shows_the_parameter_that_was_accepted(swept):
    assert "register_cap registers=16" in stack.stack_text(swept)
