"""No verb shows a line that was changed after it was written: each says which line, and exits with 2."""

from __future__ import annotations

import pytest

from campaign.cli import main
from tests.report.written import faster, opened, slower

READERS = {
    "ledger": ["ledger"],
    "export": ["ledger", "--export", "md"],
    "stack": ["stack"],
    "show": ["show", "1"],
    "report": ["report"],
}


@pytest.fixture
def ledger(project, add):
    """The file of a campaign with two decisions, listed once, so that what a listing keeps is there."""
    with opened(project) as one:
        faster(one)
        slower(one, stack=("prenorm_fusion",))
    assert main(["ledger", "--campaign", "demo"]) == 0
    return project / "runs/demo/ledger.jsonl"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"ratio":1.105', '"ratio":9.105'),
        ('"kind":"registered","line":2,"id":"', '"kind":"registered","line":2,"id":"x'),
    ],
    ids=["a number", "an id"],
)
def test_a_line_that_was_changed_afterwards_is_named_and_nothing_is_shown(ledger, capsys, reader, before, after):
    text = ledger.read_text()
    assert before in text
    ledger.write_text(text.replace(before, after))
    capsys.readouterr()
    assert main([*READERS[reader], "--campaign", "demo"]) == 2
    said = capsys.readouterr()
    assert "was changed after it was written" in said.err and "head -n" in said.err
    assert not said.out
    assert not (ledger.parent / "report").exists()
