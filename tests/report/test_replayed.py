"""A decision measured again beside what is recorded: what may be said of the two ratios."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from campaign.report.replayed import Replayed, replayed_json, replayed_text
from tests.tracking import campaigns, findings


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """A made-up decision, recorded at 1.041x [1.022, 1.060], and its replay, measured at 1.062x [1.043, 1.082]."""
    with campaigns.open_ledger(tmp_path_factory.mktemp("twice"), "demo", writable=True) as ledger:
        decision = campaigns.prenorm(ledger)
        return decision, findings.replay(ledger, decision)


def test_both_ratios_another_machine_and_other_packages_are_said(twice):
    said = Replayed(*twice, {"kernel": ("6.1", "6.8")}, {"torch": ("2.9.0", None)}, threshold=0.03)
    lines = replayed_text(said).splitlines()
    assert "  recorded   1.041x [1.022, 1.060] of CPU time, 4 rounds (decision 1, accept, 2026-12-01)" in lines
    assert "  again      1.062x [1.043, 1.082] of CPU time, 4 rounds" in lines
    # e^.02 over the recorded one; se .02 / 2 / sqrt(3) = .00577 of each, half = 2.4469 x sqrt(2) x .00577 = .0200
    told = "cannot tell: neither the same within 3 %, nor another ratio by more than that"
    assert f"  compared   {told} (again over recorded 1.020x [1.000, 1.041])" in lines
    answer = json.loads(replayed_json(said))
    assert (answer["compared"], answer["threshold"]) == ("cannot tell", 0.03)
    assert answer["again_over_recorded"]["high"] == pytest.approx(1.041, abs=5e-4)
    assert "  machine    kernel 6.1 -> 6.8" in lines and "  packages   torch 2.9.0 -> none" in lines
    assert "             another machine or day: a ratio may travel, seconds do not" in lines


@pytest.mark.parametrize(
    ("low", "high", "word"),
    # 1.062x [1.043, 1.082] again. The ratio's interval is half as wide again as either's, or more.
    [(0.99, 1.01, "faster"), (1.14, 1.16, "slower"), (1.06, 1.064, "the same"), (1.02, 1.08, "cannot tell")],
)
def test_ratios_are_other_or_the_same_only_where_that_is_shown(twice, low, high, word):
    decision, found = twice
    effect = replace(decision.verdict.effect, ratio=math.sqrt(low * high), low=low, high=high)
    verdict = replace(decision.verdict, effect=effect)
    assert Replayed(replace(decision, verdict=verdict), found, threshold=0.03).word == word
