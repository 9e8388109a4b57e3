"""Text that would steer a terminal or turn a page around is shown, not obeyed."""

from __future__ import annotations

import json

import pytest

from campaign.report import listing
from campaign.report.evidence_text import Shown, shown_json, shown_text
from campaign.report.export import export
from campaign.report.json_text import as_line
from campaign.report.plain import plain
from campaign.report.stack import stack_json, stack_text
from campaign.report.verdict_text import decision_text
from tests.report import written

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \x9b31m \u202egnp.exe \r gone"


@pytest.fixture
def ledger(tmp_path):
    with written.opened(tmp_path) as ledger:
        decision = written.slower(ledger, "cap", claim=HOSTILE)
        ledger.rule(decision.id, "accept", HOSTILE)
        yield ledger


def raw(text: str) -> set[str]:
    return {one for one in text if not one.isprintable()} - {"\n", "\t"}


def test_no_text_form_lets_a_claim_or_a_reason_steer(ledger):
    (decision,) = ledger.decisions()
    assert "\x1b" in decision.claim
    shown = Shown(ledger, ledger.decision_rows()[0], blocks=False)
    texts = {
        "stack": stack_text(ledger),
        "show": shown_text(shown),
        "decision": decision_text(decision),
        "table": listing.table(listing.rows(ledger), terminal=False),
        "md": export(ledger, "md"),
        "html": export(ledger, "html"),
        "csv": export(ledger, "csv").replace("\r\n", "\n"),
        "json": stack_json(ledger) + shown_json(shown) + export(ledger, "json"),
    }
    assert {name: raw(text) for name, text in texts.items() if raw(text)} == {}
    for name in ("stack", "show", "md", "csv"):
        assert "x1b[2J" in texts[name] and "owned" in texts[name], name


def test_json_keeps_the_text_as_it_is(ledger):
    (row,) = json.loads(stack_json(ledger))["edits"]
    assert row["ruled_why"] == HOSTILE


def test_lines_tabs_and_other_languages_stay():
    assert plain("a\tb\nünï 漢字") == "a\tb\nünï 漢字"
    assert plain("a\x1bb\x85c\u2028d") == "a\\x1bb\\x85c\\u2028d"


def test_a_file_name_that_is_no_utf8_can_be_written_and_means_the_same_in_json():
    name = b"bad\xff.py".decode("utf-8", "surrogateescape")
    assert plain(name).encode() == b"bad\\udcff.py"
    assert json.loads(as_line([name]).encode()) == [name]
