"""The Markdown page for a pull request: its order, its tables, what it owns up to."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from campaign.report.export import export
from campaign.report.limits import not_shown
from campaign.report.markup import code, prose
from campaign.report.reported import gather
from campaign.verdicts import judge
from tests.reasoning import made
from tests.report import written

NASTY = "Fusing a|b | `c` saves *two* passes\n@maintainer see #12, <b>$x$</b> [x](http://y) ~~no~~ \\| end"


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


def rows_of(page, title):
    """The cells of the only table in a section, by decision number."""
    [[header, _, *rows]] = tables(section(page, title))
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows}


def test_the_sections_come_in_the_order_in_which_a_reviewer_wants_them(mixed):
    assert re.findall("^## (.*)$", export(mixed, "md"), re.MULTILINE) == [
        "Headline", "Protocol", "Machine", "Accepted", "Rejected", "Inconclusive", "Invalid and unavailable",
        "Warnings and details", "Totals", "What this does not show",
    ]  # fmt: skip


def test_every_row_of_every_table_has_its_headers_columns_and_every_edit_is_in_one(mixed):
    found = tables(export(mixed, "md"))
    # Accepted, rejected, inconclusive on wall and on CPU time, invalid with unavailable; the null is in Machine.
    assert len(found) == 5
    for header, rule, *rows in found:
        assert set(rule) == {"---"}
        assert rows and all(len(row) == len(header) for row in rows)
    assert sorted(row[0] for one in found for row in one[2:]) == ["1", "2", "3", "4", "6", "7"]
    assert "- A/A null (decision 5): 1.000x" in section(export(mixed, "md"), "Machine")


def test_a_markdown_parser_sees_the_same_tables_and_the_claim_as_it_was_written(mixed):
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(export(mixed, "md"))
    kinds = Counter(token.type for token in tokens)
    assert (kinds["table_open"], kinds["tr_open"]) == (5, 5 + 6)
    cells = [token.children for place, token in enumerate(tokens) if tokens[place - 1].type == "td_open"]
    name, *claim = cells[1]
    assert (name.type, name.content) == ("code_inline", "prenorm_fusion")
    assert {token.type for token in claim} <= {"text", "text_special", "html_inline"}
    text = "".join(token.content for token in claim if token.type != "html_inline")
    assert text == ": " + NASTY.replace("\n", " ")


def test_an_accepted_row_has_claim_measurement_prediction_and_rounds(ledger):
    written.faster(ledger, claim="One pass less.")
    page = export(ledger, "md")
    assert rows_of(page, "Accepted")["1"] == {
        "": "1", "edit": "`prenorm_fusion`: One pass less.", "on": "root",
        "marginal, wall": "**1.105x** [1.085, 1.126], 0 B (400.0 MiB to 400.0 MiB)", "isolated": "the same",
        "cumulative": "the same", "interaction": "-", "together": "first on root",
        "predicted": "1.100x held; counts 2 of 2", "rounds": "8",
    }  # fmt: skip
    assert "why: faster: 1.105x [1.085, 1.126] over 4 fresh rounds" in section(page, "Warnings and details")


def test_a_rejected_row_has_its_reason(ledger):
    written.slower(ledger)
    row = rows_of(export(ledger, "md"), "Rejected")["1"]
    assert row["measured, wall"].startswith("0.905x [")
    assert row["why"].startswith("slowdown: a slowdown: 0.905x [")
    assert "isolated" not in row  # nothing was timed beside root


def test_the_declared_protocol_machine_and_source_stand_above_the_tables(ledger):
    written.faster(ledger)
    dirty = {"status": "ok", "commit": written.COMMIT, "branch": None, "dirty": True, "patch_sha256": "ab" * 32}
    written.slower(ledger, source=dirty, threshold=0.045, alpha=0.005)
    page = export(ledger, "md")
    assert page.startswith("# Campaign `demo`: `hybrid_tiny`\n")
    assert "`standard`, wall, looks 4/6/8/12, `hybrid_tiny` on cpu:" in page
    assert "each of 2 pairs of blocks" in page and "confirmed on 4 fresh rounds at alpha 0.05" in page
    assert "Alpha 0.01 (decision 1); 0.005 (decision 2) split 0.2/0.2/0.2/0.4" in page
    assert "d = 3 % (the smallest effect) (decision 1); 4.5 % (this machine's measured floor) (decision 2)" in page
    assert "Deciding clock: wall time" in page
    assert "Machine: Example CPU 2000, 2 cores, Linux 6.1" in page
    assert "Low precision: emulated" in page
    assert "Floor, the smallest effect that this machine resolves: not measured" in page
    assert "commit `0123456789ab` on `main`, clean (decision 1)" in page
    assert "commit `0123456789ab`, dirty, patch `abababababab` kept beside the ledger (decision 2)" in page


def test_workloads_machines_and_clocks_do_not_share_a_table(ledger):
    written.slower(ledger)
    written.slower(ledger, "b", workload="large")
    written.slower(ledger, "c", machine_line="Another CPU")
    written.slower(ledger, "d", protocol={"clock": "cpu"})
    page = export(ledger, "md")
    assert len(tables(page)) == 4
    assert "`hybrid_tiny` on cpu, wall; Another CPU:" in page
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
    page = export(ledger, "md")
    accepted, out = section(page, "Accepted").split("### Taken out again")
    assert [row[0] for row in tables(accepted)[0][2:]] == ["2"]
    [[_, _, row]] = tables(out)
    assert (row[0], row[-1]) == ("1", "revoked: breaks resume")
    assert "(superseded by 2)" in row[1]
    # an invalid result says nothing, so decision 4 does not take 3's place
    assert "superseded" not in rows_of(page, "Rejected")["3"]["edit"]
    assert rows_of(page, "Invalid and unavailable")["4"]["verdict"] == "invalid"
    limits = section(page, "What this does not show")
    assert "decision 1: taken out after the decision" in limits
    assert "A first attempt in decision 2" in limits


def test_totals_count_tests_and_alpha(mixed):
    totals = section(export(mixed, "md"), "Totals")
    # Tests: accept (alpha .002 at the first of four looks), reject (.002), and the undecided one (.01, all looks).
    assert "Tests run: 3. Besides: 1 first look, 1 A/A null, 2 decisions without a look at the ratio." in totals
    assert "Alpha spent: 0.014." in totals
    # Predicted 1.1 of all. Decision 1: [1.085, 1.126] holds it. 2: about .90. 3: logs -.1 and .2 six times, mean .05,
    # sd .157, half width 2.201 * .157 / sqrt(12) = .0996, so [.95, 1.16]. 7: exactly e^.1 = 1.105. Not the null.
    assert "Predicted ratios: 2 of 4 inside the measured 95 % interval, 1 optimistic, 1 pessimistic." in totals


def test_what_it_does_not_show_follows_from_the_records(mixed):
    limits = section(export(mixed, "md"), "What this does not show")
    for said in (
        "Tokens per second on the wall: decision 3 decided on CPU time",
        "The speed of low precision in hardware: it is emulated in decisions 1-3, 5 and 7",
        "The exact size of the effect in decisions 2, 3 and 7",
        "The whole stack: root against head has not been measured (try: campaign revalidate)",
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
        "taken out",
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
    assert "1 registered plan or study has come to no end (later-1)" in limits


def test_warnings_that_differ_in_their_numbers_alone_are_one_with_the_range(ledger):
    for place, load in enumerate((1.4, 1.2, 1.8)):
        measured = written.evidence(written.plan(f"edit{place}"), written.SLOWER)
        verdict = judge(measured)
        warnings = (f"the load reached {load} on 2 cores", "low precision is emulated here")
        written.record(ledger, measured, verdict=replace(verdict, warnings=warnings))
    said = section(export(ledger, "md"), "Warnings and details")
    assert "- the load reached 1.2 to 1.8 on 2 cores (decisions 1-3)\n" in said
    assert "- low precision is emulated here (decisions 1-3)\n" in said
