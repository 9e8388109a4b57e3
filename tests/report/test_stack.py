"""What `campaign stack` says, and what it must not claim."""

from __future__ import annotations

import json
import math

import pytest

from campaign.report import stack, whole
from tests.report import together, written


def row(name, ratio, below=(), **changes):
    return {
        "hypothesis": name, "ratio": ratio, "ratio_low": ratio - 0.01, "ratio_high": ratio + 0.01, "ratio_rounds": 8,
        "clock": "wall", "memory_change_bytes": 0, "stack": list(below), "sequence": 1,
        "decided_at": "2026-12-01T12:34:56Z",
        "verdict": "accept", "revoked": False, "workload": "tiny", "device": "cpu", "isolated_ratio": None,
        "isolated_low": None, "isolated_high": None, "isolated_rounds": None,
    } | changes  # fmt: skip


def document(ledger):
    return json.loads(stack.stack_json(ledger))


def part(ledger, kind):
    return next(one for one in document(ledger)["parts"] if one["kind"] == kind)


def test_the_product_is_named_arithmetic_and_the_whole_stack_unmeasured(ledger):
    written.faster(ledger, "first")
    written.faster(ledger, "second", stack=("first",))
    text = stack.stack_text(ledger)
    # e^.10 twice: product e^.20 = 1.2214, sum 1 + 2 * .10517 = 1.2103
    assert "arithmetic and not a measurement (gains neither add nor multiply)" in text
    assert "marginal, each on the stack of its day: sum 1.210x, product 1.221x\n" in text
    assert "The whole stack against root has not been measured yet: campaign revalidate" in text
    assert text.index("first") < text.index("second")
    assert "root+first" in text
    found = document(ledger)
    assert found["head"] == ["first", "second"]
    assert found["product_of_ratios"] == pytest.approx(math.exp(0.2), rel=1e-12)
    assert (found["whole_stack_ratio"], found["whole_stack"]) == (None, None)
    assert [one["word"] for one in found["parts"]] == [""]


def test_the_whole_is_the_newest_root_against_head_measurement_with_its_words(ledger):
    together.two_edits(ledger)
    together.headline(ledger, log=0.30)
    together.headline(ledger, log=0.15, number=2)
    found = document(ledger)
    assert found["whole_stack_ratio"] == pytest.approx(math.exp(0.15), rel=1e-12)
    assert found["whole_stack"]["finding"] == 2
    assert "Root against head: 100 -> 116 tokens/s, 1.162x [1.141, 1.183], memory 400.0 -> 500.0 MiB" in (
        stack.stack_text(ledger)
    )
    # Marginal .10 + .08 = .18 in logs above the .15 that was measured, by .03 > log 1.03 = .0296: optimistic.
    # Isolated .10 + .10 = .20: less together than alone, redundancy.
    assert part(ledger, "marginal")["product"] == pytest.approx(math.exp(0.18), rel=1e-12)
    assert part(ledger, "marginal")["word"] == "optimistic"
    assert part(ledger, "isolated")["product"] == pytest.approx(math.exp(0.20), rel=1e-12)
    assert part(ledger, "isolated")["sum"] == pytest.approx(1 + 2 * math.expm1(0.10), rel=1e-12)
    assert part(ledger, "isolated")["word"] == "redundancy"


def test_a_headline_of_before_is_shown_as_that_once_the_stack_moved(ledger):
    together.two_edits(ledger)
    together.headline(ledger)
    ledger.revoke("half-1-decision", "x")
    found = document(ledger)
    assert found["whole_stack_ratio"] is None
    text = stack.stack_text(ledger)
    assert "was not measured since the stack moved (finding 1 was on root+prenorm_fusion+half: 1.162x)" in text
    assert "campaign revalidate" in text


def test_the_same_edits_by_another_decision_are_another_stack(ledger):
    together.two_edits(ledger)
    together.headline(ledger)
    ledger.revoke("half-1-decision", "again with another value")
    together.on_stack(
        ledger, "half", ("prenorm_fusion",), below=0.1, alone=0.1, marginal=0.08, id="half-2", edit=together.HALF
    )
    found = document(ledger)
    assert found["head"] == ["prenorm_fusion", "half"]
    assert found["whole_stack_ratio"] is None


def test_each_edit_has_its_state_interaction_and_what_leave_one_out_said(ledger):
    together.two_edits(ledger)
    together.leave_one_out(ledger)
    first, second = document(ledger)["edits"]
    assert (first["state"], second["state"]) == ("accepted", "accepted")
    assert first["leave_one_out"]["ratio"] == pytest.approx(math.exp(0.08), rel=1e-12)
    assert (second["leave_one_out"]["word"], second["leave_one_out"]["present"]) == ("pays", True)
    lines = stack.stack_text(ledger).splitlines()
    assert "1.083x pays" in lines[1] and "1.010x pays" in lines[2] and "unresolved" in lines[2]
    # .08 + .01 in logs multiply to e^.09 against the e^.15 that these rounds measured
    assert part(ledger, "leave_one_out")["product"] == pytest.approx(math.exp(0.09), rel=1e-12)
    assert (part(ledger, "leave_one_out")["word"], part(ledger, "leave_one_out")["finding"]) == ("redundancy", 1)
    written.faster(ledger, "third", stack=("prenorm_fusion", "half"))
    assert "1.083x pays (older stack)" in stack.stack_text(ledger)


def test_the_rows_agree_with_the_ledgers_own_stack(ledger):
    first = written.faster(ledger, "first")
    written.slower(ledger, "second", stack=("first",))
    written.faster(ledger, "third", stack=("first",))
    ledger.append("revoked", "r-1", {"decision_id": first.id, "why": "breaks resume"})
    assert [one["id"] for one in stack.accepted(ledger)] == [one.id for one in ledger.stack()]
    assert "Measured on another stack than the one now below it: third" in stack.stack_text(ledger)
    assert document(ledger)["edits"][0]["state"] == "stack moved"


def test_an_edit_that_a_person_ruled_in_stands_at_the_end_with_the_reason(ledger):
    decision = written.slower(ledger, "first")
    written.faster(ledger, "second")
    ledger.rule(decision.id, "accept", "pays on the production shape")
    found = document(ledger)
    assert found["head"] == ["second", "first"]
    assert found["edits"][1]["state"] == "ruled in"
    text = stack.stack_text(ledger)
    assert "Ruled in by a person: first (the verdict: reject: slowdown): pays on the production shape" in text


def test_one_edit_has_no_parts():
    lines = whole.lines([row("only", 1.1)], [])
    assert lines == ["One edit, measured against root on its own rounds. A root-against-head run: campaign revalidate"]


def test_ratios_of_different_clocks_and_places_are_called_out():
    text = " ".join(
        whole.lines([row("a", 1.1), row("b", 1.2, ("a",), clock="cpu", workload="large", device="cuda")], [])
    )
    assert "different clocks" in text
    assert "large on cuda, tiny on cpu" in text


def test_an_edit_that_was_ruled_in_untimed_has_no_clock_to_differ():
    text = " ".join(whole.lines([row("a", 1.1), row("b", 1.0, ("a",)) | {"ratio": None, "clock": None}], []))
    assert "different clocks" not in text


def test_an_edit_without_a_ratio_leaves_no_product_and_is_named():
    [part] = whole.parts([row("a", 1.1), row("b", 1.0, ("a",)) | {"ratio": None}], [])
    assert (part.product, part.sum, part.lacking) == (None, None, ("b",))
    assert part.text == "not known, b was not measured so"


def test_leave_one_out_gains_that_multiply_to_more_than_the_whole_are_synergy():
    # Published: 16 leave-one-out gains multiply to 1.635 against 1.358 measured.
    total = {"ratio": 1.358, "low": 1.35, "high": 1.366}
    names = [f"edit{number}" for number in range(16)]
    each = 1.635 ** (1 / 16)
    terms = [{"name": name, "effect": {"ratio": each, "low": each, "high": each}, "word": "pays"} for name in names]
    finding = {
        "kind": "leave_one_out", "subjects": names, "terms": terms, "total": total, "product": 1.635,
        "sum": 1 + 16 * (each - 1), "word": "synergy",
    }  # fmt: skip
    found = [{"finding": finding, "present": True, "sequence": 1, "stack": names, "threshold": 0.01}]
    rows = [row(name, each, names[:place]) for place, name in enumerate(names)]
    parts = {one.kind: one for one in whole.parts(rows, found)}
    assert parts["leave_one_out"].text.endswith("product 1.635x: synergy")
    assert parts["marginal"].word == ""  # no root-against-head run to set it beside
