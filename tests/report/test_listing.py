"""The table of decisions. Expected ratios are worked out in written.py's docstring."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.records import to_json
from campaign.report import listing, stack
from tests.report import together, written

ROOT = Path(__file__).parents[2]
HEAVY = "torch numpy scipy pandas mlflow hydra omegaconf matplotlib git rich campaign.records"


def row(**changes):
    values = {
        "sequence": 1, "id": "a-1", "plan_id": "a", "hypothesis": "fusion", "parameters": "", "workload": "tiny",
        "device": "cpu", "verdict": "accept", "reason": "faster", "sentence": "", "suspect": "", "revoked": False,
        "ruling": "", "ruled_why": "", "interaction": "", "clock": "wall",
        "ratio": 1.0421, "ratio_low": 1.0314, "ratio_high": 1.0532, "predicted_ratio": 1.04,
        "prediction": "held", "counts": "2 of 2", "low_precision": "emulated", "rounds_valid": 8, "rounds_invalid": 0,
        "memory_change_bytes": -4 * 1024**2, "memory_ratio": 0.9, "attempt": 1, "stack": [],
        "decided_at": "2026-12-01T12:34:56.789Z",
    }  # fmt: skip
    return values | changes


def test_a_row_says_what_the_decision_on_disk_says(tmp_path):
    with written.opened(tmp_path) as ledger:
        written.faster(ledger)
        written.slower(ledger, stack=("prenorm_fusion",))
        first, second = listing.rows(ledger)
    assert first["ratio"] == pytest.approx(math.exp(0.10), rel=1e-12)
    assert (first["ratio_low"], first["ratio_high"]) == pytest.approx((1.085050, 1.125665), rel=1e-6)
    assert (first["verdict"], first["clock"], first["rounds_valid"], first["rounds_invalid"]) == (
        "accept",
        "wall",
        8,
        0,
    )
    assert (first["memory_change_bytes"], first["predicted_ratio"], first["revoked"]) == (0, 1.1, False)
    assert (second["sequence"], second["verdict"], second["stack"]) == (2, "reject", ["prenorm_fusion"])
    assert second["ratio"] == pytest.approx(math.exp(-0.10), rel=1e-12)


def test_a_revoked_decision_is_marked_and_leaves_the_stack(tmp_path):
    with written.opened(tmp_path) as ledger:
        decision = written.faster(ledger)
        ledger.append("revoked", "r-1", {"decision_id": decision.id, "why": "breaks resume"})
        rows = listing.rows(ledger)
        assert rows[0]["revoked"] is True
        assert "revoked (accept: faster)" in listing.table(rows, terminal=False)
        assert stack.stack_text(ledger).startswith("the stack is empty")


def test_the_plain_table_has_aligned_columns_and_one_row_a_decision():
    rows = [
        row(),
        row(sequence=12, hypothesis="cap", parameters="registers=8", verdict="reject", reason="slowdown", clock="cpu",
            ratio=0.9, ratio_low=0.85, ratio_high=0.95, prediction="optimistic", counts="", rounds_invalid=1,
            memory_change_bytes=None, attempt=2),
        row(sequence=13, hypothesis="bad", verdict="invalid", reason="parity", clock=None, ratio=None, ratio_low=None,
            ratio_high=None, prediction="", low_precision="none", rounds_valid=0, suspect="too good"),
    ]  # fmt: skip
    header, *lines = listing.table(rows, terminal=False).splitlines()[:4]
    starts = [header.index(name) for name in ("hypothesis", "verdict", "95 %", "clock", "predicted", "low", "when")]
    shown = [[line[start:].split("  ")[0] for start in starts] for line in lines]
    when = "2026-12-01 12:34Z"
    assert shown == [
        ["fusion", "accept (faster)", "[1.031, 1.053]", "wall", "1.040x held", "emulated", when],
        ["cap registers=8 (attempt 2)", "reject (slowdown)", "[0.850, 0.950]", "CPU time", "1.040x optimistic",
         "emulated", when],
        ["bad", "invalid (parity) SUSPECT", "-", "-", "1.040x", "none", when],
    ]  # fmt: skip
    ends = [header.index(name) + len(name) for name in ("#", "ratio", "counts", "rounds", "memory")]
    assert [[line[:end].split("  ")[-1].strip() for end in ends] for line in lines] == [
        ["1", "1.042x", "2 of 2", "8", "-4.0 MiB"],
        ["12", "0.900x", "-", "8 (+1 invalid)", "-"],
        ["13", "-", "2 of 2", "0", "-4.0 MiB"],
    ]


def test_emulated_precision_and_the_outcome_of_predictions_are_said_under_the_table():
    rows = [row(), row(sequence=2, low_precision="none", prediction="optimistic"), row(sequence=3, prediction="")]
    text = listing.table(rows, terminal=False)
    assert "Low precision is emulated in #1, #3: its numerics are real" in text
    assert "Predicted ratios: 1 of 2 inside the measured 95 % interval, 1 optimistic, 0 pessimistic." in text
    assert "emulated in every decision" in listing.table([row(), row()], terminal=False)
    assert "emulated" not in listing.table([row(low_precision="none")], terminal=False)
    many = [row(sequence=place) for place in range(1, 21)] + [row(sequence=21, low_precision="hardware")]
    assert "#12 and 8 more:" in listing.table(many, terminal=False)


def test_a_row_scores_its_prediction_and_its_counts(tmp_path):
    with written.opened(tmp_path) as ledger:
        written.faster(ledger)
        written.slower(ledger, stack=("prenorm_fusion",))
        first, second = listing.rows(ledger)
    # Predicted 1.1 and 0 -> 9 calls; measured [1.085, 1.126] and about 0.90; counted 0 -> 9 both times.
    assert (first["prediction"], first["counts"], first["low_precision"]) == ("held", "2 of 2", "emulated")
    assert (second["prediction"], second["counts"]) == ("optimistic", "2 of 2 (of root)")


def test_rows_kept_in_an_older_form_are_made_anew(tmp_path):
    with written.opened(tmp_path) as ledger:
        written.faster(ledger)
        fresh = listing.rows(ledger)
        kept = ledger.file.with_name(".listing.json")
        answer = json.loads(kept.read_text())
        kept.write_text(json.dumps(answer | {"answer": [{"sequence": 1, "hypothesis": "of an older program"}]}))
        assert listing.rows(ledger) == fresh


def test_the_interaction_has_a_column_only_where_some_row_has_one():
    lines = listing.table([row(), row(sequence=2, interaction="masked")], terminal=False).splitlines()
    start = lines[0].index("interaction")
    assert [line[start:].split("  ")[0] for line in lines[1:3]] == ["-", "masked"]
    assert "interaction" not in listing.table([row()], terminal=False)
    assert "interaction" not in listing.table([row()], terminal=True)


def test_a_row_has_the_word_of_its_four_arms(tmp_path):
    with written.opened(tmp_path) as ledger:
        written.faster(ledger)
        together.on_stack(ledger, "other", ("prenorm_fusion",), below=0.1, alone=0.12, marginal=0.0)
        first, second = listing.rows(ledger)
    assert (first["interaction"], first["isolated_ratio"]) == ("", None)
    assert second["interaction"] == "masked"  # alone it wins .12, on the stack nothing
    assert second["isolated_ratio"] == pytest.approx(math.exp(0.12), rel=1e-12)
    assert second["cumulative_ratio"] == pytest.approx(math.exp(0.10), rel=1e-12)
    assert second["interaction_ratio"] == pytest.approx(math.exp(-0.12), rel=1e-12)


def test_a_ruling_is_shown_beside_the_verdict_and_explained(tmp_path):
    with written.opened(tmp_path) as ledger:
        decision = written.slower(ledger)
        ledger.rule(decision.id, "accept", "pays on the production shape")
        text = listing.table(listing.rows(ledger), terminal=False)
    assert "reject (slowdown), ruled accept" in text
    assert "a person decided otherwise or again in #1" in text


def test_a_filtered_table_says_how_much_it_leaves_out():
    assert "2 of 5 decisions are shown." in listing.table([row(), row()], terminal=False, of=5)
    assert "are shown" not in listing.table([row(), row()], terminal=False, of=2)
    assert listing.table([], terminal=False, of=3).startswith("none of 3 decisions is asked for")


def test_cpu_time_is_explained_only_where_it_decided():
    said = "it is not tokens/s on the wall"
    assert said in listing.table([row(clock="cpu")], terminal=False)
    assert said not in listing.table([row(clock="wall")], terminal=False)


def test_a_pipe_gets_no_escape_sequences_and_a_terminal_does():
    assert "\x1b" not in listing.table([row()], terminal=False)
    assert "\x1b" in listing.table([row()], terminal=True)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_terminal_table_fits_the_terminal_and_keeps_verdict_and_ratio(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    text = listing.table([row(hypothesis="a_very_long_name_of_an_edit_in_deed")], terminal=True)
    plain = "".join(part.split("m", 1)[1] if place else part for place, part in enumerate(text.split("\x1b[")))
    drawn = plain.split("\n\n")[0].splitlines()
    assert max(len(line) for line in drawn) <= width
    assert "1.042x" in plain and "[1.031, 1.053]" in plain and "accept" in plain
    assert ("Left out on" in plain) is (width < 190)


def test_brackets_in_a_name_are_shown_and_not_taken_for_colours():
    assert "[red]x" in listing.table([row(hypothesis="[red]x")], terminal=True)


def test_json_has_a_schema_and_null_for_what_is_not_finite():
    body = {"a": math.inf, "b": [math.nan, 1.5]}
    assert json.loads(listing.as_json([row(), row(ratio=math.inf, **body)])) == {
        "schema": 1,
        "decisions": [row(), row(ratio=None, a=None, b=[None, 1.5])],
    }


def test_a_decision_without_an_effect_has_no_numbers(tmp_path):
    with written.opened(tmp_path) as ledger:
        decision = written.faster(ledger)
    body = to_json(decision)
    body["verdict"] |= {"effect": None, "memory": None}
    bare = listing.row(body, False)
    assert {bare[key] for key in ("clock", "ratio", "ratio_low", "ratio_high", "memory_change_bytes")} == {None}


def test_no_decisions_name_the_next_command():
    assert listing.table([], terminal=False) == "no decisions yet\n  try: campaign hypothesis=NAME"


def test_listing_and_stack_import_nothing_heavy(tmp_path):
    with written.opened(tmp_path) as ledger:
        together.two_edits(ledger)
        together.headline(ledger)
    script = f"""
import sys
from pathlib import Path
from campaign.ledger import open_ledger
from campaign.report import listing, stack
with open_ledger(Path({str(tmp_path)!r}), "demo", writable=False) as ledger:
    assert "prenorm_fusion" in listing.table(listing.rows(ledger), terminal=False)
    assert "Root against head: 100 -> 116 tokens/s" in stack.stack_text(ledger)
print(*sorted(set({HEAVY!r}.split()) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
