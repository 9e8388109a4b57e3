"""The page about edits together: headline, the parts beside it, four arms, leave-one-out, interactions, replays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from campaign.records import Hypothesis, Part
from campaign.report.export import export
from campaign.report.reported import gather, numbered
from tests.reasoning import made
from tests.report import together, written
from tests.report.test_page import rows_of, section, tables


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two accepted edits, a masked one, and one finding of every kind about them."""
    with written.opened(tmp_path_factory.mktemp("whole")) as ledger:
        together.two_edits(ledger)
        together.on_stack(
            ledger,
            "other",
            ("prenorm_fusion", "half"),
            below=0.18,
            alone=0.12,
            marginal=0.0,
            edit=made.HYPOTHESIS.edit,
        )
        together.leave_one_out(ledger)
        together.factorial(ledger)
        together.headline(ledger)
        together.replay(ledger, ledger.decisions()[0])
        yield ledger


def test_the_headline_is_the_measured_sentence_with_its_finding_and_study(whole):
    found = section(export(whole, "md"), "Headline")
    assert (
        "**100 -> 116 tokens/s, 1.162x [1.141, 1.183], memory 400.0 -> 500.0 MiB, 8 matched blocks** (`root` against "
        "root + `prenorm_fusion` + `half`; `headline-1`, finding 3)"
    ) in found


def test_sum_and_product_of_the_parts_stand_beside_the_whole_with_the_word_that_they_earn(whole):
    [[_, _, *lines]] = tables(section(export(whole, "md"), "Headline"))
    # Logs: marginal .10 + .08, isolated .10 + .10, against .15 measured; leave-one-out .08 + .01 against its own .15.
    assert [line[:4] for line in lines] == [
        ["marginal: each on the stack of its day (decisions 1 and 2)", "1.188x", "1.197x",
         "1.162x [1.141, 1.183], finding 3"],
        ["isolated: each alone on root (decisions 1 and 2)", "1.210x", "1.221x", "1.162x [1.141, 1.183], finding 3"],
        ["leave-one-out: each on all the others (finding 1)", "1.093x", "1.094x", "1.162x [1.161, 1.162], finding 1"],
    ]  # fmt: skip
    assert [line[4].partition(":")[0] for line in lines] == ["**optimistic**", "**redundancy**", "**redundancy**"]


def test_an_accepted_edit_on_a_stack_has_its_four_figures_bytes_and_word(whole):
    row = rows_of(export(whole, "md"), "Accepted")["2"]
    # Marginal .08 wanders, half width .0183738; the edit alone .10 and the stack .10 do not, so that the smallest
    # scatter that is believed holds, .0002: half width 3.182446 * .0002 / 2 = .000318, and e^.100318 = 1.10552.
    assert row["marginal, wall"] == "**1.083x** [1.064, 1.103], 0 B"
    assert row["isolated"] == "1.105x [1.105, 1.106], 0 B"
    assert row["cumulative"] == "1.197x [1.175, 1.219], 0 B"
    assert row["interaction"] == "0.980x [0.962, 0.998], 0 B"
    assert row["together"] == "**unresolved**"  # e^-.02 is not as far from 1 as d, and the interval not within it


def test_a_rejected_edit_that_is_worth_it_only_alone_says_so(whole):
    row = rows_of(export(whole, "md"), "Rejected")["3"]
    assert (row["isolated"], row["together"]) == ("1.127x [1.127, 1.128], 0 B", "**masked**")
    assert row["interaction"] == "0.887x [0.871, 0.903], 0 B"  # e^-.12


def test_bytes_that_differ_between_rounds_have_an_interval(ledger):
    written.faster(ledger)
    peaks = {"root": 400 * together.MIB, "solo": 404 * together.MIB, "control": 400 * together.MIB,
             "treatment": 402 * together.MIB}  # fmt: skip
    together.on_stack(
        ledger, "half", ("prenorm_fusion",), below=0.1, alone=0.1, marginal=0.08, edit=together.HALF, peaks=peaks
    )
    row = rows_of(export(ledger, "md"), "Accepted")["2"]
    assert row["isolated"].endswith("+4.0 MiB") and row["interaction"].endswith("-2.0 MiB")


def test_two_arms_say_why_root_was_not_timed(ledger):
    written.faster(ledger)
    written.faster(ledger, "half", stack=("prenorm_fusion",), edit=together.HALF, two_arms="protocol.arms is 2")
    row = rows_of(export(ledger, "md"), "Accepted")["2"]
    assert (row["isolated"], row["cumulative"], row["together"]) == ("not timed", "not timed", "protocol.arms is 2")
    assert "How the edits of decision 2 do alone: root was not timed" in export(ledger, "md")


def test_leave_one_out_has_a_term_an_edit_and_the_whole_of_its_own_rounds(whole):
    found = section(export(whole, "md"), "Leave-one-out")
    [[_, _, *lines]] = tables(found)
    assert lines == [
        ["`prenorm_fusion`", "1.083x [1.083, 1.084]", "0 B", "**pays**"],
        ["`half`", "1.010x [1.010, 1.010]", "0 B", "**pays**"],
    ]
    assert "(finding 1, study `leave_one_out-1`, 4 rounds counted" in found
    assert "the whole is 1.162x [1.161, 1.162]; its parts multiply to 1.094x: redundancy." in found


def test_an_edit_that_no_longer_pays_is_proposed_for_retirement_and_a_failed_arm_is_named(ledger):
    together.two_edits(ledger)
    together.study(
        ledger, "leave_one_out",
        {"head": ("prenorm_fusion", "half"), "without-prenorm_fusion": ("half",), "without-half": ("prenorm_fusion",)},
        {"head": 0.10, "without-prenorm_fusion": 0.0, "without-half": 0.10}, base="head",
    )  # fmt: skip
    page = export(ledger, "md")
    assert "Proposed for retirement: `half`." in section(page, "Leave-one-out")
    assert "**no longer pays**" in page


def test_findings_about_a_stack_that_moved_are_shown_as_that(ledger):
    together.two_edits(ledger)
    together.leave_one_out(ledger)
    together.headline(ledger)
    written.faster(ledger, "third", stack=("prenorm_fusion", "half"))
    page = export(ledger, "md")
    on = "root + `prenorm_fusion` + `half`"
    assert f"Not measured since the stack moved. Before, on {on}: 100 -> 116 tokens/s" in section(page, "Headline")
    assert f"**Measured on {on}; the stack is another since.**" in section(page, "Leave-one-out")
    limits = section(page, "What this does not show")
    assert "root against head has not been measured since the stack moved (try: campaign revalidate)" in limits
    assert "leave-one-out has not been measured on it" in limits


def test_a_factorial_has_main_effects_shares_that_multiply_to_the_whole_and_a_matrix(whole):
    found = section(export(whole, "md"), "Interactions")
    (_, _, *mains), (head, _, *pairs) = tables(found)
    # A .075, B .025, together .10. Of the wandering arm A+B a main effect has half: half width .0183738 / 2.
    assert [line[:2] for line in mains] == [
        ["`A`", "1.078x [1.068, 1.088]"],
        ["`B`", "1.025x [1.016, 1.035]"],
        ["all together", "**1.105x [1.085, 1.126]**"],
    ]
    assert [line[3] for line in mains] == ["1.078x [1.068, 1.088]", "1.025x [1.016, 1.035]", "1.105x, the product"]
    assert (head, pairs) == (["interaction of", "`B`"], [["`A`", "0.951x [0.934, 0.969] redundancy"]])  # e^-.05


def test_a_decision_measured_again_stands_beside_what_was_recorded(whole):
    [[_, _, line]] = tables(section(export(whole, "md"), "Measured again"))
    assert line == [
        "1 `prenorm_fusion`", "1.105x [1.085, 1.126]", "1.105x [1.085, 1.126]", "the same within 3 %", "finding 4",
    ]  # fmt: skip


def test_a_replay_elsewhere_says_that_it_was_elsewhere(ledger):
    decision = written.faster(ledger)
    together.replay(ledger, decision, log=0.30, fingerprint={"torch": "2.13.0", "host": "b"})
    [[_, _, line]] = tables(section(export(ledger, "md"), "Measured again"))
    word, _, where = line[3].partition("; ")
    assert word == "**faster than was recorded by more than 3 %**"
    assert where == "another machine or environment: a ratio may travel, seconds do not"


def test_an_accepted_set_is_shown_taken_apart(ledger):
    plan = written.plan("pair")
    claim: Hypothesis = replace(plan.hypothesis, parts=(Part("A", together.HALF), Part("B", plan.hypothesis.edit)))
    one = written.evidence(replace(plan, hypothesis=claim), written.SCREEN, written.CONFIRM)
    decision = written.record(ledger, one)
    together.parts(ledger, decision)
    page = export(ledger, "md")
    found = section(page, "Leave-one-out")
    assert "### `pair` (decision 1), taken apart" in found
    # .12 - .02 and .12 - .11
    assert [line[1].split()[0] for line in tables(found)[0][2:]] == ["1.105x", "1.010x"]
    assert "a set of `A`, `B`" in page


def test_an_edit_ruled_in_by_a_person_keeps_its_verdict_beside_the_reason(ledger):
    decision = written.slower(ledger)
    ledger.rule(decision.id, "accept", "pays on the production shape")
    page = export(ledger, "md")
    edit = rows_of(page, "Accepted")["1"]["edit"]
    assert "**ruled in by a person**: pays on the production shape; the verdict: reject, slowdown" in edit
    assert section(page, "Rejected").strip() == "Nothing."
    assert "That the evidence accepts decision 1: a person ruled so" in page


def test_an_accept_ruled_out_by_a_person_is_taken_out_with_the_reason(ledger):
    decision = written.faster(ledger)
    ledger.rule(decision.id, "reject", "start-up takes too long")
    out = section(export(ledger, "md"), "Accepted").split("### Taken out again")[1]
    assert tables(out)[0][2][-1] == "ruled out by a person: start-up takes too long"


def test_unfinished_studies_are_confessed(ledger):
    written.faster(ledger)
    together.headline(ledger)
    lines = ledger.store.path.read_bytes().splitlines(keepends=True)
    ledger.store.path.write_bytes(b"".join(lines[:-1]))
    again = type(ledger)(ledger.folder, type(ledger.store)(ledger.store.path))
    page = export(again, "md")
    assert "Registered and come to no end: `headline-1`" in page


def test_numbers_in_a_row_are_shortened(whole):
    rows = gather(whole).rows
    assert numbered(rows) == "decisions 1-3"
    assert numbered([rows[0], rows[2]]) == "decisions 1 and 3"
    assert numbered([rows[0], *gather(whole).findings[:2]]) == "decision 1 and findings 1 and 2"
