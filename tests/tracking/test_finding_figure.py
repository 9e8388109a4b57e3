"""The picture of a finding, by its kind. Numbers: see findings.py's docstring."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

import pytest

from campaign.records import Contrast, Finding, Term
from campaign.tracking.finding_figure import draw, finding_png
from tests.tracking import campaigns, findings


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Every kind of finding with its study, and the decision that the replay is of."""
    with campaigns.open_ledger(tmp_path_factory.mktemp("figures"), "demo", writable=True) as ledger:
        decision = campaigns.prenorm(ledger)
        made = [study(ledger) for study in (findings.leave_one_out, findings.headline, findings.factorial)]
        made.append(findings.replay(ledger, decision))
        return {one.finding.kind: (one, ledger.study(one.study_id)) for one in made}, decision


def texts(axes):
    return [text.get_text() for text in axes.texts]


def points(axes):
    """The places of the single markers, in the order they were drawn."""
    return [tuple(line.get_xydata()[0]) for line in axes.lines if line.get_marker() not in ("None", None, "")]


def test_every_kind_is_a_png_that_can_be_read_at_900_pixels(found):
    kinds, decision = found
    for one, study in kinds.values():
        png = finding_png(one, study, decision)
        assert png is not None and png[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">I", png[16:20])[0] in (1350, 1575)


def test_a_forest_has_each_edit_at_its_ratio_and_the_product_beside_the_whole(found):
    (axes,) = draw(*found[0]["leave_one_out"]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "all of them"]
    # e^.08, e^.05, e^.11
    assert points(axes) == [
        (pytest.approx(1.083287, abs=1e-6), 0),
        (pytest.approx(1.051271, abs=1e-6), 1),
        (pytest.approx(1.116278, abs=1e-6), 2),
    ]
    assert texts(axes)[0] == "1.083x [1.083, 1.084]\npays"
    # e^.13, and the thresholds 1 and 1 + d
    upright = {round(line.get_xdata()[0], 6) for line in axes.lines if len(set(line.get_xdata())) == 1} - set(
        round(x, 6) for x, _ in points(axes)
    )
    assert upright == {1.0, 1.03, 1.138828}
    assert axes.get_xscale() == "log"


def test_a_factorial_has_main_effects_shares_and_a_cell_a_pair(found):
    forest, matrix = draw(*found[0]["factorial"]).axes
    names = [label.get_text() for label in forest.get_yticklabels()]
    assert names == ["a", "b", "share of a", "share of b", "all of them"]
    assert texts(matrix) == ["1.020x\n[1.002, 1.039]\nunresolved"]
    assert [label.get_text() for label in matrix.get_xticklabels()] == ["a"]
    assert [label.get_text() for label in matrix.get_yticklabels()] == ["b"]


def test_aliased_pairs_are_starred_and_the_triangle_holds_each_pair_once(found):
    one, study = found[0]["factorial"]
    names = ("a", "b", "c", "d", "e", "f")
    pairs = [f"{first}:{second}" for place, first in enumerate(names) for second in names[place + 1 :]]
    terms = tuple(Term(name, Contrast(0.9, 0.88, 0.92, 4, 0.01), "redundancy", aliases=("c:d",)) for name in pairs)
    finding = replace(one.finding, subjects=names, terms=terms)
    _, matrix = draw(replace(one, finding=finding), study).axes
    assert len(texts(matrix)) == 15 and all(text.startswith("0.900x *") for text in texts(matrix))
    assert "cannot be told from others" in matrix.get_title()
    cells = {(patch.get_x() + 0.5, patch.get_y() + 0.5) for patch in matrix.patches}
    assert cells == {(column, row) for column in range(6) for row in range(6) if column < row}


def test_a_headline_has_both_bars_and_each_rounds_ratio(found):
    rates, memory, ratios = draw(*found[0]["headline"]).axes
    assert texts(rates) == ["5.12k", "5.71k"] and rates.get_title() == "tokens / s of CPU time"
    assert texts(memory) == ["512.0 MiB", "480.0 MiB"]
    assert [label.get_text() for label in rates.get_xticklabels()] == ["root", "head"]
    rounds = next(line for line in ratios.lines if line.get_label() == "one round")
    # e^(.11 +- .01) in turn
    assert list(rounds.get_ydata()) == pytest.approx([1.127497, 1.105171, 1.127497, 1.105171], abs=1e-6)


def test_a_replay_has_the_recorded_interval_beside_its_rounds(found):
    kinds, decision = found
    ratios = draw(*kinds["replay"], decision).axes[-1]
    assert "recorded" in [text.get_text() for text in ratios.get_legend().get_texts()]
    without = draw(*kinds["replay"]).axes[-1]
    assert "recorded" not in [text.get_text() for text in without.get_legend().get_texts()]


def test_one_round_has_no_interval_and_is_drawn(found):
    one, study = found[0]["headline"]
    effect = replace(one.finding.effect, low=math.nan, high=math.nan, round_ratios=(1.1,))
    assert finding_png(replace(one, finding=replace(one.finding, effect=effect)), study) is not None


def test_nothing_is_drawn_where_nothing_was_measured(found):
    one, study = found[0]["headline"]
    assert finding_png(replace(one, finding=Finding("headline", ("a",), "no finding: too noisy")), study) is None
