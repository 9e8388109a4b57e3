"""The page for a pull request, and the CSV and JSON of the same rows."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from campaign.errors import UnknownName
from campaign.records import to_json
from campaign.report.export import CSV_COLUMNS, FORMS, export
from campaign.report.limits import not_shown
from campaign.report.markdown import code, prose
from campaign.report.reported import gather
from campaign.verdicts import judge
from tests.reasoning import made
from tests.report import written
from tests.report.written import SLOWER

NASTY = "Fusing a|b | `c` saves *two* passes\n@maintainer see #12, <b>$x$</b> [x](http://y) ~~no~~ \\| end"


@pytest.fixture
def ledger(tmp_path):
    with written.opened(tmp_path) as ledger:
        yield ledger


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    with written.opened(tmp_path_factory.mktemp("mixed")) as ledger:
        write_mixed(ledger)
        yield ledger


def write_mixed(ledger):
    """One of each: accept, reject, undecided on CPU time, invalid, a null, an unavailable one, a first look."""
    written.faster(ledger, claim=NASTY)
    written.slower(ledger, stack=("prenorm_fusion",))
    undecided = written.plan("noisy", protocol={"clock": "cpu"}, floor_id="")
    written.record(ledger, written.evidence(undecided, (-0.1, 0.2) * 6))
    written.record(ledger, written.evidence(written.plan("skewed"), probe=made.probe(parity=None)))
    null = written.plan("aa_null", null=True, protocol={"looks": (4,), "alpha_split": (1.0,), "beta_split": (1.0,)})
    written.record(ledger, written.evidence(null, (0.01, -0.01, 0.01, -0.01)))
    missing = made.probe(status="unavailable", message="needs CUDA", remedy="a GPU")
    written.record(ledger, written.evidence(written.plan("triton"), probe=missing))
    quick = {"name": "quick", "decisive": False, "looks": (3,), "alpha_split": (1.0,), "beta_split": (1.0,)}
    written.record(ledger, written.evidence(written.plan("glance", protocol=quick), (0.1, 0.1, 0.1)))


def split(line):
    """The cells of a GitHub table row: pipes split unless a backslash stands before them."""
    assert line.startswith("|") and line.endswith("|")
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def tables(page):
    found, current = [], []
    for line in [*page.splitlines(), ""]:
        if line.startswith("|"):
            current.append(split(line))
        elif current:
            found.append(current)
            current = []
    return found


def section(page, title):
    return page.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_every_row_of_every_table_has_its_headers_columns(mixed):
    found = tables(export(mixed, "md"))
    # four protocols: standard on wall, standard on CPU time, the null's own looks, quick
    assert len(found) == 4
    for header, rule, *rows in found:
        assert len(header) == 9
        assert set(rule) == {"---"}
        assert rows and all(len(row) == 9 for row in rows)
    assert sum(len(one) - 2 for one in found) == 7


def test_a_markdown_parser_sees_the_same_tables_and_the_claim_as_it_was_written(mixed):
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(export(mixed, "md"))
    kinds = Counter(token.type for token in tokens)
    assert (kinds["table_open"], kinds["th_open"], kinds["tr_open"]) == (4, 4 * 9, 4 + 7)
    assert kinds["td_open"] == 7 * 9
    cells = [token.children for place, token in enumerate(tokens) if tokens[place - 1].type == "td_open"]
    claim = cells[2]
    assert {token.type for token in claim} <= {"text", "text_special", "html_inline"}
    text = "".join(token.content for token in claim if token.type != "html_inline")
    assert text == NASTY.replace("\n", " ")


def test_an_accepted_row_has_claim_prediction_measurement_rounds_memory_and_why(ledger):
    written.faster(ledger, claim="One pass less.")
    [[_, _, row]] = tables(export(ledger, "md"))
    assert row[:8] == [
        "1", "`prenorm_fusion`", "One pass less.", "1.100x held; counts 2 of 2",
        "**1.105x** [1.085, 1.126] wall, low precision emulated", "8 valid, 0 invalid",
        "0 B (400.0 MiB to 400.0 MiB)", "**accept**",
    ]  # fmt: skip
    assert row[8].startswith("faster: 1.105x [1.085, 1.126] over 4 fresh rounds")


def test_the_declared_protocol_machine_and_source_stand_above_the_table(ledger):
    written.faster(ledger)
    dirty = {"status": "ok", "commit": written.COMMIT, "branch": None, "dirty": True, "patch_sha256": "ab" * 32}
    written.slower(ledger, source=dirty, threshold=0.045, alpha=0.005)
    page = export(ledger, "md")
    assert page.startswith("# Campaign `demo`: `hybrid_tiny`\n")
    assert "## `hybrid_tiny` on cpu: `standard`, wall, looks 4/6/8/12" in page
    assert "each of 2 pairs of blocks" in page and "confirmed on 4 fresh rounds at alpha 0.05" in page
    assert "Alpha 0.01 (decision 1); 0.005 (decision 2) split 0.2/0.2/0.2/0.4" in page
    assert "d = 3 % (the smallest effect) (decision 1); 4.5 % (this machine's measured floor) (decision 2)" in page
    assert "Deciding clock: wall time" in page
    assert "Machine: Example CPU 2000, 2 cores, Linux 6.1" in page
    assert "commit `0123456789ab` on `main`, clean (decision 1)" in page
    assert "commit `0123456789ab`, dirty, patch `abababababab` kept beside the ledger (decision 2)" in page


def test_workloads_machines_and_clocks_do_not_share_a_table(ledger):
    written.faster(ledger)
    written.faster(ledger, "b", workload="large")
    written.faster(ledger, "c", machine_line="Another CPU")
    written.faster(ledger, "d", protocol={"clock": "cpu"})
    page = export(ledger, "md")
    assert len(tables(page)) == 4
    assert "CPU time, declared beforehand; it is not wall time" in page


def test_nothing_in_a_claim_is_taken_for_markup():
    said = prose(NASTY)
    assert "\n" not in said
    assert "a\\|b \\| \\`c\\` saves \\*two\\*" in said
    assert "@<!-- -->maintainer" in said and "#<!-- -->12" in said
    assert "&lt;b>\\$x\\$&lt;/b>" in said
    assert "[x\\](http://y)" in said
    assert "\\~\\~no\\~\\~ \\\\\\| end" in said
    assert prose("prenorm_fusion __init__") == "prenorm_fusion \\_\\_init\\_\\_"


def test_code_spans_keep_pipes_and_backticks():
    assert code("a|b") == "`a\\|b`"
    assert code("a `b` c") == "`` a `b` c ``"
    assert code("") == ""


def test_revoked_and_superseded_rows_are_marked(ledger):
    first = written.faster(ledger)
    ledger.append("revoked", "r-1", {"decision_id": first.id, "why": "breaks resume"})
    written.faster(ledger, id="prenorm_fusion-2", attempt=2, alpha=0.005)
    written.slower(ledger, "cap")
    broken = written.plan("cap", id="cap-2")
    written.record(ledger, written.evidence(broken, probe=made.probe(parity=None)))
    rows = {row[0]: row[7] for row in tables(export(ledger, "md"))[0][2:]}
    # an invalid result says nothing, so decision 4 does not take 3's place
    assert rows == {
        "1": "~~accept~~ revoked: breaks resume (superseded by 2)", "2": "**accept**", "3": "reject", "4": "invalid",
    }  # fmt: skip
    limits = section(export(ledger, "md"), "What this does not show")
    assert "decision 1: revoked after the decision" in limits
    assert "A first attempt in decision 2" in limits


def test_totals_count_tests_and_alpha(mixed):
    totals = section(export(mixed, "md"), "Totals")
    # Tests: accept (alpha .002 at the first of four looks), reject (.002), and the undecided one (.01, all looks).
    assert "Tests run: 3. Besides: 1 first look, 1 A/A null, 2 decisions without a look at the ratio." in totals
    assert "Alpha spent: 0.014." in totals
    assert "Floor (decision 5, wall): 4 rounds resolve" in totals
    # Predicted 1.1 of all. Decision 1: [1.085, 1.126] holds it. 2: about .90. 3: logs -.1 and .2 six times, mean .05,
    # sd .157, half width 2.201 * .157 / sqrt(12) = .0996, so [.95, 1.16]. 7: exactly e^.1 = 1.105. Not the null.
    assert "Predicted ratios: 2 of 4 inside the measured 95 % interval, 1 optimistic, 1 pessimistic." in totals


def test_what_it_does_not_show_follows_from_the_records(mixed):
    limits = section(export(mixed, "md"), "What this does not show")
    for said in (
        "Tokens per second on the wall: decision 3 decided on CPU time",
        "The speed of low precision in hardware: it is emulated in decisions 1, 2, 3, 5 and 7",
        "The exact size of the effect in decisions 2, 3 and 7",
        "The whole stack: root against head has not been measured yet",
        "That the arms are equal in decision 3: inconclusive",
        "Anything about the edits of decision 4: the comparison was invalid",
        "Anything about the edits of decision 6: this machine cannot run them",
        "A decision in decision 7: a first look",
        "the floor was not measured before decision 3",
        "How well counts were predicted in decision 2: they are predicted for root",
        "every number comes from one machine",
        "parity was probed over 3 steps",
    ):
        assert said in limits, said


def test_what_does_not_apply_is_not_listed(ledger):
    written.faster(ledger)
    said = " ".join(not_shown(gather(ledger)))
    for word in (
        "CPU time",
        "inconclusive",
        "invalid",
        "cannot run",
        "revoked",
        "first look",
        "floor",
        "patch",
        "attempt",
    ):
        assert word not in said, word


def test_unkept_sources_and_unfinished_plans_are_confessed(ledger):
    source = {"status": "ok", "commit": written.COMMIT, "dirty": True, "patch_sha256": ""}
    written.faster(ledger, source=source)
    written.slower(ledger, source={"status": "no_git", "reason": "git is not installed"}, code="c0de")
    written.measure(ledger, written.evidence(written.plan("later")))
    page = export(ledger, "md")
    assert "patch NOT kept (decision 1)" in page
    assert "no commit recorded (git is not installed) (decision 2)" in page
    limits = section(page, "What this does not show")
    assert "The exact source of decision 1" in limits
    assert "The commit that was measured in decision 2" in limits
    assert "1 registered plan has no decision (later-1)" in limits


def test_a_campaign_without_decisions_says_so(ledger):
    ledger.append("note", "n-1", {"text": "started"})
    page = export(ledger, "md")
    assert page.startswith("# Campaign `demo`\n\nNo decision has been made yet.")
    assert export(ledger, "csv").splitlines() == [",".join(CSV_COLUMNS)]
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


def test_csv_has_every_column_filled_by_some_row(ledger):
    write_mixed(ledger)
    written.slower(ledger, "again", source={"commit": "c", "dirty": True, "patch_sha256": "p"})
    written.slower(ledger, "again", id="again-2")
    swept = written.evidence(written.plan("cap", command="python -m campaign hypothesis=cap cap.registers=8"), SLOWER)
    verdict = replace(judge(swept), suspect="too good")
    written.record(ledger, swept, verdict=verdict)
    rows = list(csv.DictReader(io.StringIO(export(ledger, "csv"))))
    assert [name for name in CSV_COLUMNS if not any(row[name] for row in rows)] == []


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


def test_an_unknown_form_names_the_known_ones(ledger):
    with pytest.raises(UnknownName, match="csv, json, md"):
        export(ledger, "html")
    assert set(FORMS) == {"md", "csv", "json"}
