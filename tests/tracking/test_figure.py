"""The picture of a decision. Numbers: see campaigns.py's docstring."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from campaign.records import Verdict
from campaign.tracking import figure
from tests.tracking import campaigns


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    with campaigns.open_ledger(tmp_path_factory.mktemp("figure"), "demo", writable=True) as ledger:
        decision = campaigns.prenorm(ledger)
        return decision, ledger.evidence(decision.plan_id)


def test_the_picture_is_a_png_wide_enough_to_read_at_900_pixels(decided):
    png = figure.decision_png(*decided)
    assert png is not None and png[:8] == b"\x89PNG\r\n\x1a\n"
    # Width and height are the first two numbers of the IHDR chunk (PNG specification, 11.2.2).
    assert struct.unpack(">II", png[16:24]) == (1350, 960)


def test_the_thresholds_the_effect_and_each_round_are_where_the_numbers_say(decided):
    drawn = figure.draw(*decided)
    ratios = drawn.axes[0]
    levels = {line.get_label(): line.get_ydata()[0] for line in ratios.lines if len(set(line.get_ydata())) == 1}
    assert levels["no change"] == 1.0
    assert levels["worth it: 1.030"] == pytest.approx(1.03)
    assert levels["effect 1.041x"] == pytest.approx(1.040811, abs=1e-6)
    points = next(line for line in ratios.lines if line.get_label() == "one round")
    # e^.03 = 1.030455, e^.05 = 1.051271
    assert list(points.get_ydata()) == pytest.approx([1.030455, 1.051271, 1.030455, 1.051271], abs=1e-6)
    band = ratios.patches[0].get_extents().transformed(ratios.transData.inverted())
    assert (band.y0, band.y1) == pytest.approx((1.021862, 1.060111), abs=1e-6)


def test_the_title_has_the_verdict_the_interval_and_the_clock(decided):
    title = figure.draw(*decided).get_suptitle()
    assert title.startswith("01 ACCEPT +4.1 % prenorm_fusion\n1.041x [1.022, 1.060] over 4 rounds, cpu clock")


def test_a_far_outlier_is_counted_at_the_edge_and_does_not_flatten_the_rest(decided):
    decision, evidence = decided
    first = evidence.rounds[0]
    slow = replace(first.blocks[0], cpu_seconds=30.0)
    rounds = (replace(first, blocks=(slow, *first.blocks[1:])), *evidence.rounds[1:])
    axes = figure.draw(decision, replace(evidence, rounds=rounds)).axes[1]
    assert axes.get_ylim()[1] < 200
    assert any(text.get_text().startswith("1 blocks lie") for text in axes.get_legend().get_texts())


def test_blocks_are_drawn_for_every_arm_and_round(decided):
    axes = figure.draw(*decided).axes[1]
    dots = [line for line in axes.lines if line.get_linestyle() == "None" and len(line.get_xdata())]
    assert [len(line.get_xdata()) for line in dots] == [40] * 8
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "3", "4"]


def test_nothing_is_drawn_where_nothing_was_measured(decided):
    decision, evidence = decided
    assert figure.decision_png(replace(decision, verdict=Verdict("invalid", "parity_red", "No.")), evidence) is None
