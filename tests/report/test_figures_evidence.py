"""Figures of what is beside the effects, against numbers worked out by hand: families of kernels from profiles, block
times as they ran, the floor and the power. `figured.whole` says what was planted."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from campaign.records import Evidence
from campaign.report.figures import Absent, Figure
from campaign.report.figures._palette import BLUE, QUIET
from campaign.report.figures._sheet import drawn
from campaign.report.reported import gather
from tests.reasoning import made
from tests.report import figured, written
from tests.report.figured import near


def test_families_are_compared_before_and_after_the_stack(whole):
    one = whole["families"]
    with drawn(one) as drawing:
        assert figured.bars(drawing.axes[0]) == [near(0, share) for share in (50, 60, 30, 15, 20, 25)]
        assert {"50.0 % → 60.0 %", "30.0 % → 15.0 %", "share of the busy time, %"} <= set(figured.said(drawing))
    assert one.rows == ("diagnosis 1", "diagnosis 2")
    assert "Norm 30.0 % to 15.0 %" in one.alt
    assert "no ratio comes from them" in one.evidence


def test_one_profiled_configuration_has_no_after(ledger):
    figured.diagnosis(ledger, (), ("GEMM", 0.75), ("Copy", 0.25))
    one = figured.of(ledger)["families"]
    assert "there is no after" in one.caption
    with drawn(one) as drawing:
        assert figured.bars(drawing.axes[0]) == [near(0, 75), near(0, 25)]


def test_the_comparison_of_a_profile_gives_both_sides(ledger):
    """GEMM 60 -> 60 of 100 -> 80 ns, so 60 % -> 75 %; Copy 40 -> 20."""
    change = '{"name": "%s", "family": "x", "before_ns": %d, "after_ns": %d}'
    families = f"[{change % ('GEMM', 60, 60)}, {change % ('Copy', 40, 20)}]"
    raw = ledger.keep(f'{{"comparison": {{"families": {families}}}}}'.encode(), ".json")
    body = {"workload": "hybrid_tiny", "stack": [], "hypothesis": "prenorm_fusion",
            "documents": [{"name": "comparison.json", "raw": raw}]}  # fmt: skip
    ledger.append("profile", "profile-1", body)
    one = figured.of(ledger)["families"]
    assert one.rows == ("profile 1",)
    assert "Copy 40.0 % to 25.0 %" in one.alt and "GEMM 60.0 % to 75.0 %" in one.alt
    ledger.path(raw).write_bytes(b"{}")
    assert isinstance(figured.of(ledger)["families"], Absent)


def test_traces_say_how_far_the_level_drifted(ledger):
    """Both arms slow down by 10 % in the middle of every round, and the ratio is 1.0 / 0.9 throughout."""
    plan = written.plan("a")
    rounds = tuple(
        replace(made.made_round((1.0, 1.0, 1.1, 1.1), (0.9, 0.9, 0.99, 0.99), stage=stage, index=index),
                id=f"a-{stage}-{index}",
                trials=tuple(made.trial(arm, id=f"a-{stage}-{index}-{arm}") for arm in ("control", "treatment")))
        for stage in ("screen", "confirm") for index in range(4)
    )  # fmt: skip
    written.record(ledger, Evidence(plan, made.probe(), rounds))
    one = figured.of(ledger)["traces"]
    assert "#1 a: the level of control moved by at most 10.0 % within a round and 0 % between rounds" in one.alt
    assert one.alt.startswith("Step times of 64 blocks in 8 rounds.")
    with drawn(one) as drawing:
        [axes] = drawing.axes
        levels = [line.get_ydata()[0] for line in axes.lines if line.get_linewidth() == 2]
        assert levels == [pytest.approx(1050), pytest.approx(945)] * 8  # medians, ms
        assert {"drift 10.0 %", "ms a step", "round (c: to confirm), wall clock"} <= set(figured.said(drawing))
        assert [label.get_text() for label in axes.get_xticklabels()] == [
            "1", "2", "3", "4", "c1", "c2", "c3", "c4",
        ]  # fmt: skip


def test_lost_block_times_leave_no_trace_and_are_said(ledger):
    written.slower(ledger)
    for file in (ledger.folder / "raw").glob("*.jsonl"):
        file.unlink()
    found = figured.of(ledger)
    assert found["traces"] == Absent(
        "traces",
        "Block times as they ran",
        "The raw block times of #1 are missing or altered: campaign ledger --check says more.",
    )
    assert isinstance(found["forest"], Figure)


def test_the_floor_is_that_of_the_equal_arms(whole):
    one = whole["floor"]
    assert one.rows == ("#1", "#6")
    assert "Rounds scatter by 1.15 %" in one.alt and "1 of 1 A/A intervals hold 1" in one.alt
    with drawn(one) as drawing:
        curve, nulls = drawing.axes
        points = dict(figured.marks(curve, "o", BLUE))
        # measurement 5.2 has q = 6.2 for 3 rounds and 1.2 for 12 at power .9; at .95 both are a little more
        assert 6.2 < math.log1p(points[3] / 100) / 0.0115470 < 7.5
        assert 1.2 < math.log1p(points[12] / 100) / 0.0115470 < 1.4
        assert figured.marks(nulls, "s", QUIET)[0][0] == pytest.approx(1.0)
        assert {"rounds", "speedup, %"} <= set(figured.said(drawing))


def test_power_is_what_simulated_tests_find(whole, tmp_path_factory):
    """20,000 t tests over rounds drawn from a normal distribution, at the declared alpha; scatter .0115470, d = 3 %."""
    import numpy

    from campaign.effects.intervals import t_quantile
    from campaign.report.figures._scatter import scatter
    from campaign.report.figures.power import power

    with written.opened(tmp_path_factory.mktemp("power")) as ledger:
        figured.null(ledger)
        written.slower(ledger)
        told = scatter(gather(ledger))
    assert told.sd == pytest.approx(0.0115470, rel=1e-5) and told.alpha == 0.01
    source = numpy.random.default_rng(5)
    for rounds, effect in ((4, 0.03), (5, 0.03), (8, 0.015)):
        logs = source.normal(math.log1p(effect), told.sd, (20_000, rounds))
        t = logs.mean(axis=1) / logs.std(axis=1, ddof=1) * math.sqrt(rounds)
        share = float((t > t_quantile(0.99, rounds - 1)).mean())
        assert 0.2 < share < 0.95
        assert power(told, rounds, effect) == pytest.approx(share, abs=4 * math.sqrt(0.25 / 20_000))


def test_without_equal_arms_the_scatter_is_that_of_the_decisions(ledger):
    written.slower(ledger)
    found = figured.of(ledger)
    assert found["floor"].evidence == "No A/A floor here: the scatter is that of one decision's own rounds."
    assert "No A/A null was measured." in found["floor"].alt
    assert "the decisions' own rounds" in found["power"].evidence
