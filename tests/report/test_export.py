"""CSV, Parquet and JSON of the same rows, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace

import pandas
import pytest

from campaign.errors import UnknownName
from campaign.records import Edit, to_json
from campaign.report.export import BINARY, FORMS, export, export_file
from campaign.report.flat import COLUMNS
from campaign.verdicts import judge
from tests.reasoning.made import MIB
from tests.report import together, written
from tests.report.test_page import NASTY, write_mixed
from tests.report.written import SLOWER


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    with written.opened(tmp_path_factory.mktemp("mixed")) as ledger:
        write_mixed(ledger)
        yield ledger


def test_a_campaign_without_decisions_says_so(ledger):
    ledger.append("note", "n-1", {"text": "started"})
    page = export(ledger, "md")
    assert page.startswith("# Campaign `demo`\n\nNo decision has been made yet.")
    assert export(ledger, "csv").splitlines() == [",".join(COLUMNS)]
    assert json.loads(export(ledger, "json"))["decisions"] == []


def test_csv_numbers_are_unrounded_without_units_and_cells_survive_commas_and_newlines(mixed):
    rows = list(csv.DictReader(io.StringIO(export(mixed, "csv"))))
    assert [row["sequence"] for row in rows] == list("1234567")
    first, _, noisy, skewed = rows[:4]
    stored = mixed.decisions()[0].verdict
    assert float(first["ratio"]) == stored.effect.ratio == pytest.approx(math.exp(0.1), rel=1e-12)
    assert float(first["screening_ratio"]) == pytest.approx(math.exp(0.15), rel=1e-12)
    assert int(first["control_peak_bytes"]) == 400 * 1024**2
    assert float(first["control_tokens_per_second"]) == stored.effect.control_tokens_per_second
    assert first["claim"] == NASTY
    assert (first["revoked"], first["superseded_by"], first["memory_exact"]) == ("false", "", "true")
    assert (noisy["clock"], noisy["control_tokens_per_second"], noisy["beside_clock"]) == ("cpu", "", "wall")
    assert (skewed["verdict"], skewed["ratio"], skewed["control_peak_bytes"]) == ("invalid", "", "")


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """Every column has a value in some row."""
    with written.opened(tmp_path_factory.mktemp("full")) as ledger:
        write_full(ledger)
        yield ledger


def write_full(ledger):
    write_mixed(ledger)
    written.slower(ledger, "again", source={"commit": "c", "dirty": True, "patch_sha256": "p"})
    written.slower(ledger, "again", id="again-2")
    swept = written.evidence(written.plan("cap", command="python -m campaign hypothesis=cap cap.registers=8"), SLOWER)
    verdict = replace(judge(swept), suspect="too good")
    written.record(ledger, swept, verdict=verdict)
    written.slower(ledger, "pair", two_arms="protocol.arms is 2")
    peaks = {"root": 400 * MIB, "solo": 404 * MIB, "control": 400 * MIB, "treatment": 402 * MIB}
    together.on_stack(
        ledger, "half", ("prenorm_fusion",), below=0.1, alone=0.10, marginal=0.08, edit=together.HALF, peaks=peaks
    )
    ledger.rule("again-2-decision", "reject", "not worth its code")


def test_csv_has_every_column_filled_by_some_row(full):
    rows = list(csv.DictReader(io.StringIO(export(full, "csv"))))
    assert [name for name in COLUMNS if not any(row[name] for row in rows)] == []


def test_an_edit_alone_and_together_is_in_the_csv_with_its_bytes(full):
    row = list(csv.DictReader(io.StringIO(export(full, "csv"))))[-1]
    logs = {name: math.log(float(row[f"{name}_ratio"])) for name in ("isolated", "cumulative", "interaction")}
    # the stack .10, with the edit .18 (mean of .19, .17, .19, .17), the edit alone .10: interaction .18 - .10 - .10
    assert logs == pytest.approx({"isolated": 0.10, "cumulative": 0.18, "interaction": -0.02}, abs=1e-12)
    changes = [int(row[f"{name}_bytes"]) // MIB for name in ("isolated", "cumulative", "interaction")]
    assert changes == [4, 2, -2]  # 404 - 400, 402 - 400, 402 - 400 - 404 + 400
    assert (row["interaction_bytes_exact"], row["place_in_stack"], row["ruling"]) == ("true", "2", "")


@pytest.mark.parametrize("first", ["=", "+", "-", "@"])
def test_a_text_that_a_spreadsheet_would_run_is_kept_from_it(ledger, first):
    written.slower(ledger, claim=f"{first}cmd|' /C calc'!A0", edit=Edit((f"{first}workload.x=1",)))
    [row] = csv.DictReader(io.StringIO(export(ledger, "csv")))
    assert row["claim"] == f"'{first}cmd|' /C calc'!A0"
    assert float(row["ratio_low_95"]) < 1  # numbers stay numbers
    assert not any(str(value)[:1] in ("=", "+", "@") for value in row.values())


def test_parquet_has_the_rows_of_the_csv_with_types(full, tmp_path):
    file = tmp_path / "rows.parquet"
    file.write_bytes(export_file(full, "parquet"))
    table = pandas.read_parquet(file)
    assert list(table.columns) == list(COLUMNS)
    kinds = {"string": str, "Int64": int, "Float64": float, "boolean": bool}
    assert {name: kinds[str(table[name].dtype)] for name in COLUMNS} == COLUMNS
    rows = list(csv.DictReader(io.StringIO(export(full, "csv"))))
    assert len(table) == len(rows)
    for name, kind in COLUMNS.items():
        for value, text in zip(table[name], (row[name] for row in rows), strict=True):
            if text == "":
                assert pandas.isna(value) or value == "", name
            else:
                assert value == ((text == "true") if kind is bool else kind(text)), name


def test_parquet_of_a_campaign_without_decisions_has_the_columns(ledger, tmp_path):
    ledger.append("note", "n-1", {"text": "started"})
    file = tmp_path / "rows.parquet"
    file.write_bytes(export_file(ledger, "parquet"))
    assert list(pandas.read_parquet(file).columns) == list(COLUMNS)


def test_json_holds_the_ledgers_records_and_the_totals(mixed):
    document = json.loads(export(mixed, "json"))
    assert (document["schema"], document["campaign"], document["stack"]) == (1, "demo", ["prenorm_fusion"])
    assert document["totals"] | {"alpha_spent": 0} == {
        "decisions": 7, "tests": 3, "first_looks": 1, "nulls": 1, "without_a_look": 2, "alpha_spent": 0,
        "verdicts": {"accept": 1, "reject": 1, "inconclusive": 3, "invalid": 1, "unavailable": 1}, "unfinished": [],
        "predictions": {"held": 2, "optimistic": 1, "pessimistic": 1},
    }  # fmt: skip
    assert document["totals"]["alpha_spent"] == pytest.approx(0.014, rel=1e-12)
    first = document["decisions"][0]
    assert first["decision"] == to_json(mixed.decisions()[0])
    assert first["plan"]["protocol"]["looks"] == [4, 6, 8, 12]
    assert (first["label"], first["parameters"], first["prediction"]) == ("prenorm_fusion", "", "held")
    assert (first["counts_held"], first["counts_predicted"]) == (2, 2)
    assert document["does_not_show"]


def test_json_holds_findings_with_what_was_declared_for_them(ledger):
    together.two_edits(ledger)
    together.headline(ledger)
    [found] = json.loads(export(ledger, "json"))["findings"]
    assert found["finding"] == to_json(ledger.findings()[0])
    assert found["present"] is True
    assert found["study"]["kind"] == "headline" and found["study"]["groups"] == [["root", "head"]]
    ledger.revoke("half-1-decision", "x")
    assert json.loads(export(ledger, "json"))["findings"][0]["present"] is False


def test_an_unknown_form_names_the_known_ones(ledger):
    with pytest.raises(UnknownName, match="csv, html, json, md, parquet"):
        export(ledger, "xlsx")
    assert set(FORMS) == {"md", "html", "csv", "json"} and set(BINARY) == {"parquet"}
