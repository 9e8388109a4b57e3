"""What `campaign stack` says, and what it must not claim."""

from __future__ import annotations

import json
import math

import pytest

from campaign.report import stack
from tests.report import written


def row(name, ratio, below=(), **changes):
    return {
        "hypothesis": name, "ratio": ratio, "ratio_low": ratio - 0.01, "ratio_high": ratio + 0.01, "clock": "wall",
        "memory_change_bytes": 0, "stack": list(below), "sequence": 1, "decided_at": "2026-12-01T12:34:56Z",
        "verdict": "accept", "revoked": False, "workload": "tiny", "device": "cpu",
    } | changes  # fmt: skip


def test_the_product_is_named_arithmetic_and_the_whole_stack_unmeasured(tmp_path):
    with written.opened(tmp_path) as ledger:
        written.faster(ledger, "first")
        written.faster(ledger, "second", stack=("first",))
        text = stack.stack_text(ledger)
        document = json.loads(stack.stack_json(ledger))
    # e^.10 twice: e^.20 = 1.2214
    assert "Product of the 2 ratios, each measured alone against control: 1.221x. This is arithmetic, not a" in text
    assert "The whole stack against root has not been measured yet." in text
    assert text.index("first") < text.index("second")
    assert "root+first" in text
    assert document["head"] == ["first", "second"]
    assert document["product_of_ratios"] == pytest.approx(math.exp(0.2), rel=1e-12)
    assert document["whole_stack_ratio"] is None


def test_the_rows_agree_with_the_ledgers_own_stack(tmp_path):
    with written.opened(tmp_path) as ledger:
        first = written.faster(ledger, "first")
        written.slower(ledger, "second", stack=("first",))
        written.faster(ledger, "third", stack=("first",))
        ledger.append("revoked", "r-1", {"decision_id": first.id, "why": "breaks resume"})
        rows = stack.accepted(stack.rows(ledger))
        assert [one["id"] for one in rows] == [one.id for one in ledger.stack()]
        assert "Measured on another stack than the one now below it: third" in stack.stack_text(ledger)


def test_one_edit_has_no_product():
    lines = stack.product_lines([row("only", 1.1)])
    assert lines == ["One edit, measured against root on its own rounds.", stack.NOT_MEASURED]


def test_ratios_of_different_clocks_and_places_are_called_out():
    text = " ".join(
        stack.product_lines([row("a", 1.1), row("b", 1.2, ("a",), clock="cpu", workload="large", device="cuda")])
    )
    assert "different clocks" in text
    assert "large on cuda, tiny on cpu" in text


def test_an_edit_without_a_ratio_leaves_no_product():
    assert stack.product([row("a", 1.1), row("b", 1.0) | {"ratio": None}]) is None
    assert stack.product([]) is None
