"""Every figure against numbers worked out by hand: what is drawn, what its words say, what it names as its source, and
why it is absent where it is. `figured.whole` says what was planted."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from campaign.report.figures import Absent, Figure
from campaign.report.figures._palette import BLUE, GREEN, PURPLE, QUIET, VERMILION
from campaign.report.figures._sheet import drawn
from tests.reasoning import made
from tests.report import figured, together, written
from tests.report.figured import near

NAMES = ["headline", "waterfall", "forest", "memory", "interactions", "families", "traces", "floor", "power"]
HALF = 0.0183738  # half width of the 95 % interval of four rounds that wander by .01, in logs: see `written`


def test_the_figures_come_in_the_order_in_which_a_reviewer_wants_them(whole):
    assert list(whole) == NAMES
    assert all(isinstance(one, Figure) for one in whole.values())


def test_every_figure_says_its_finding_in_numbers_and_names_its_evidence_and_rows(whole):
    for one in whole.values():
        assert any(mark.isdigit() for mark in one.alt), one.name
        assert one.evidence.endswith(".") and one.caption.endswith("."), one.name
        assert one.rows and all(row.startswith(("#", "finding ", "diagnosis ")) for row in one.rows), one.name
        assert "\n" not in one.alt + one.caption + one.evidence


def test_the_headline_has_both_rates_and_the_interval_of_the_ratio(whole):
    one = whole["headline"]
    assert one.rows == ("finding 1",)
    assert one.alt == (
        "Head runs at 1.162x, 95 % interval [1.141, 1.183] of root's speed: from 100.00 to 116.2 tokens/s. Peak memory "
        "400.0 -> 500.0 MiB."
    )
    with drawn(one) as drawing:
        [axes] = drawing.axes
        assert figured.bars(axes) == [near(0, 100), near(0, 100 * math.exp(0.15))]
        [interval] = [line for line in axes.lines if len(line.get_xdata()) > 1]
        assert list(interval.get_xdata()[:2]) == near(100 * math.exp(0.15 - HALF), 100 * math.exp(0.15 + HALF))
        assert {"root", "head", "tokens/s", "1.162x"} <= set(figured.said(drawing))


def test_the_waterfall_goes_from_level_to_level_and_ends_at_the_measured_head(whole):
    """Root 100 tokens/s; prenorm_fusion e^.10 of it, with half e^.18; head e^.15, so less than its parts."""
    one = whole["waterfall"]
    first, second = 100 * math.exp(0.10), 100 * math.exp(0.18)
    with drawn(one) as drawing:
        [axes] = drawing.axes
        assert figured.bars(axes) == [near(100, first - 100), near(first, second - first)]
        [(head, _)] = figured.marks(axes, "D", GREEN)
        assert head == pytest.approx(116.1834, rel=1e-6)
        low, high = axes.get_xlim()
        assert low < 100 and high > 100 * math.exp(0.18 + HALF)
    assert one.rows == ("#2", "#3", "finding 1")
    assert "#2 prenorm_fusion to 110.5 (1.105x); #3 half to 119.7 (1.083x)" in one.alt
    assert "Head measured 116.2, 1.162x [1.141, 1.183] of root." in one.alt
    assert "arithmetic" not in one.caption


def test_a_level_without_root_in_its_rounds_is_multiplied_and_drawn_hollow(ledger):
    written.faster(ledger, "a")
    written.faster(ledger, "b", stack=("a",), edit=together.HALF)
    one = figured.of(ledger)["waterfall"]
    root = 100 * math.exp(-0.10)  # tokens/s: a's control takes e^.10 s for 100 tokens
    with drawn(one) as drawing:
        [axes] = drawing.axes
        assert figured.bars(axes) == [near(root, 100 - root), near(100, 100 * math.exp(0.10) - 100)]
        assert [patch.get_facecolor()[3] for patch in axes.patches if hasattr(patch, "get_width")] == [1, 0]
    assert "#2: root was not timed beside it" in one.caption and "arithmetic" in one.caption
    assert "Head has not been measured" in one.caption


def test_an_edit_that_a_person_ruled_in_changes_no_level(ledger):
    written.faster(ledger, "a")
    skewed = written.record(ledger, written.evidence(written.plan("b"), probe=made.probe(parity=None)))
    ledger.rule(skewed.id, "accept", "known to be harmless")
    one = figured.of(ledger)["waterfall"]
    assert "#2: in the stack by a person's ruling, without a ratio." in one.caption
    with drawn(one) as drawing:
        assert figured.bars(drawing.axes[0])[1] == near(100, 0)
        assert "not timed" in figured.said(drawing)


def test_the_forest_has_the_prediction_beside_every_measured_interval(whole):
    one = whole["forest"]
    assert one.rows == ("#1", "#2", "#3", "#4", "#5", "#6")
    with drawn(one) as drawing:
        [axes] = drawing.axes
        assert [x for x, _ in figured.marks(axes, "o", BLUE)] == near(math.exp(0.10), math.exp(0.08))
        assert [x for x, _ in figured.marks(axes, "v", VERMILION)] == near(math.exp(-0.10))
        predicted = figured.marks(axes, "D", PURPLE)
        assert [x for x, _ in predicted] == near(1.1, 1.1, 1.1, 1.1)  # not of the null, nor of what was not timed
        assert [y for _, y in predicted[:2]] == [y for _, y in figured.marks(axes, "o", BLUE)]
        [(alone, below)] = figured.marks(axes, "s", GREEN)  # half alone on root, e^.10
        assert alone == pytest.approx(math.exp(0.10)) and below > figured.marks(axes, "o", BLUE)[1][1]
        assert "invalid, no ratio" in figured.said(drawing)
        assert any("ratio" in text for text in figured.said(drawing))
    assert "6 decisions: 2 accept, 1 reject, 2 inconclusive, 1 invalid." in one.alt
    assert "3 of 4 predicted ratios lie in the measured 95 % interval." in one.alt


def test_a_ratio_far_off_does_not_press_the_others_flat(ledger):
    for number in range(5):
        written.slower(ledger, f"idea_{number}")
    written.record(ledger, written.evidence(written.plan("awful"), [-5.0 + wander for wander in together.WANDER]))
    with drawn(figured.of(ledger)["forest"]) as drawing:
        low, _ = drawing.axes[0].get_xlim()
        assert 0.2 < low < 0.905 / 4  # e^-5 = .007 is drawn at the edge
        assert min(x for x, _ in figured.marks(drawing.axes[0], "v", VERMILION)) == low
        assert any(text.startswith("0.007x") for text in figured.said(drawing))


def test_throughput_and_memory_follow_the_accepted_path(whole):
    """Root 400 MiB; prenorm_fusion 400, half 390, head 500; #4 e^-.10 on root, #5 left open."""
    one = whole["memory"]
    with drawn(one) as drawing:
        [axes] = drawing.axes
        path = figured.marks(axes, "o", BLUE)
        assert [x for x, _ in path] == [400, 400, 390, 500]
        assert [y for _, y in path] == near(100, *(100 * math.exp(log) for log in (0.10, 0.18, 0.15)))
        assert figured.marks(axes, "s", QUIET) == [
            near(400, 100 * math.exp(-0.10)),
            near(400, 100 * math.exp(0.05)),
        ]
        assert {"peak memory, MiB", "tokens/s", "root", "head"} <= set(figured.said(drawing))
    assert "from root at 100.00 tokens/s and 400.0 MiB to head at 116.2 and 500.0 MiB" in one.alt


def test_an_interaction_is_read_from_its_own_rounds(whole):
    """half with prenorm_fusion: .08 on it and .10 alone, so e^-.02; B with A: e^-.05."""
    one = whole["interactions"]
    with drawn(one) as drawing:
        assert {"prenorm_fusion", "half", "A", "B", "? 0.980", "▼ 0.951"} <= set(figured.said(drawing))
        filled = [patch for patch in drawing.axes[0].patches if patch.get_facecolor()[3] > 0]
        assert len(filled) == 2 and len(drawing.axes[0].patches) == 4
    assert one.rows == ("#3", "finding 2")
    assert one.alt.startswith("2 interactions, the strongest first: B with A 0.951x")
    assert "redundancy; half with prenorm_fusion 0.980x" in one.alt


def test_a_campaign_without_a_decision_has_no_figure_and_says_why(ledger):
    found = figured.of(ledger)
    assert list(found) == NAMES
    assert all(isinstance(one, Absent) and one.why.endswith(".") for one in found.values())
    assert found["forest"].why == "No decision has been made yet."
    assert "campaign profile" in found["families"].why


def test_one_accepted_edit_is_its_own_headline_and_says_that_it_is_not_fresh(ledger):
    written.faster(ledger)
    found = figured.of(ledger)
    one = found["headline"]
    assert one.rows == ("#1",) and "campaign revalidate" in one.caption
    assert "1.105x, 95 % interval [1.085, 1.126]" in one.alt
    assert [name for name, each in found.items() if isinstance(each, Absent)] == ["interactions", "families"]


def test_a_headline_of_before_the_stack_moved_says_so(ledger):
    together.two_edits(ledger)
    together.headline(ledger)
    ledger.revoke(ledger.decisions()[1].id, "flaky")
    found = figured.of(ledger)
    assert "before the stack moved" in found["headline"].title
    assert "The stack has moved" in found["headline"].alt
    assert "Head was measured before the stack moved." in found["waterfall"].caption
    with drawn(found["forest"]) as drawing:
        assert "#2 half (out)" in figured.said(drawing)


def test_cpu_time_is_never_called_tokens_a_second_alone(ledger):
    plan = written.plan("a", protocol={"clock": "cpu"})
    written.record(ledger, written.evidence(plan, written.SCREEN, written.CONFIRM))
    one = figured.of(ledger)["headline"]
    with drawn(one) as drawing:
        assert "tokens/s of CPU time" in figured.said(drawing)
    assert "tokens/s of CPU time" in one.alt


def test_steps_without_tokens_are_compared_by_their_ratio(ledger):
    evidence = written.evidence(written.plan("a"), written.SCREEN, written.CONFIRM)
    verdict = written.judge(evidence)
    effect = replace(verdict.effect, control_tokens_per_second=0.0, treatment_tokens_per_second=0.0)
    written.record(ledger, evidence, verdict=replace(verdict, effect=effect))
    found = figured.of(ledger)
    with drawn(found["waterfall"]) as drawing:
        assert figured.bars(drawing.axes[0]) == [near(1, math.exp(0.10) - 1)]
        assert "speed, root = 1 (ratio)" in figured.said(drawing)


def test_many_decisions_are_paged_to_the_newest_and_the_caption_says_so(tmp_path):
    with written.opened(tmp_path) as ledger:
        figured.many(ledger, 200)
        found = figured.of(ledger)
        assert found["forest"].rows == tuple(f"#{number}" for number in range(171, 201))
        assert "The most recent 30 of 200 decisions; the table has all of them." in found["forest"].caption
        assert "The most recent 14 of 50 accepted edits" in found["waterfall"].caption
        with drawn(found["waterfall"]) as drawing:
            assert "root and 36 earlier edits" in figured.said(drawing)
        assert len(found["floor"].rows) <= 31
