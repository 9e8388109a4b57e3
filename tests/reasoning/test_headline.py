"""Root against head, and a recorded decision measured again: the numbers and the sentence."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from campaign.interactions import find, headline_text
from campaign.records import StudyEvidence
from campaign.units import GIB
from tests.reasoning.made import MIB, PLAN, with_protocol
from tests.reasoning.several import arms_round, evidence_of, found, log_round, two_arms


def test_the_published_headline_reads_as_published() -> None:
    text = headline_text(13650, 15110, 15110 / 13650, 1.103, 1.111, 9.07 * GIB, 12.06 * GIB, 20)
    assert text == ("13.65k -> 15.11k tokens/s, 1.107x [1.103, 1.111], memory 9.07 -> 12.06 GiB, 20 matched blocks")


def test_a_headline_names_both_units_where_they_differ_and_leaves_out_memory_that_was_not_measured() -> None:
    text = headline_text(950, 1100, 1.158, 1.1, 1.2, 900 * MIB, 1.5 * GIB, 1, clock="cpu")
    assert text == (
        "950 -> 1.10k tokens/s of CPU time, 1.158x [1.100, 1.200], memory 900.0 MiB -> 1.50 GiB, 1 matched block"
    )
    assert headline_text(950, 1100, 1.158, 1.1, 1.2, None, None, 4) == (
        "950 -> 1.10k tokens/s, 1.158x [1.100, 1.200], 4 matched blocks"
    )


def test_the_headline_compares_root_with_head_in_matched_blocks() -> None:
    # 100 tokens a block: 13,650 tokens/s is a block of 100 / 13650 s
    seconds = {"root": 100 / 13650, "head": 100 / 15110}
    peaks = {"root": round(9.07 * GIB), "head": round(12.06 * GIB)}
    made = [arms_round(seconds, index=index, peaks=peaks, pairs=5) for index in range(4)]
    finding = found(find(StudyEvidence(two_arms("headline", "root", "head"), tuple(made))))
    assert finding.sentence == (
        "13.65k -> 15.11k tokens/s, 1.107x [1.107, 1.107], memory 9.07 -> 12.06 GiB, 20 matched blocks"
    )
    assert finding.memory is not None and finding.memory.grown and finding.memory.exact
    assert finding.effect is not None and finding.total is not None
    assert finding.total.ratio == pytest.approx(finding.effect.ratio)


def test_a_headline_on_cpu_time_has_wall_time_beside_it() -> None:
    protocol = with_protocol(PLAN, clock="cpu")
    made = [
        replace(one, blocks=tuple(replace(b, cpu_seconds=b.wall_seconds, wall_seconds=1.0) for b in one.blocks))
        for one in (log_round({"root": 0.0, "head": 0.1}, index=index) for index in range(4))
    ]
    finding = found(find(StudyEvidence(two_arms("headline", "root", "head", plan=protocol), tuple(made))))
    assert "tokens/s of CPU time, 1.105x" in finding.sentence
    assert "on wall time: 1.000x [1.000, 1.000]" in finding.warnings
    assert any(said.startswith("the cpu clock says 1.105x and the wall clock 1.000x") for said in finding.warnings)


@pytest.mark.parametrize("role", ["root", "head"])
def test_a_headline_needs_both_arms(role: str) -> None:
    made = log_round({"root": 0.0, "head": 0.1}, trials={role: {"status": "killed", "message": "signal 9"}})
    finding = found(find(StudyEvidence(two_arms("headline", "root", "head"), (made,))))
    assert finding.sentence == f"no finding: the {role} arm could not run (killed: signal 9)"


def test_a_headline_whose_median_hides_stalls_says_so() -> None:
    stalling = {"root": (1.0,) * 5, "head": (0.9, 0.9, 0.9, 0.9, 3.0)}
    made = [arms_round(stalling, index=index, pairs=5) for index in range(4)]
    finding = found(find(StudyEvidence(two_arms("headline", "root", "head"), tuple(made))))
    assert any("stalls that a median hides" in said for said in finding.warnings)


def test_a_decision_measured_again_says_its_ratio_and_its_rounds() -> None:
    again = two_arms("replay", "control", "treatment", of="decision-1")
    finding = found(find(evidence_of(again, *[{"control": 0.0, "treatment": 0.1}] * 4)))
    assert finding.sentence == ("measured again: 1.105x [1.105, 1.106] over 4 rounds, memory 400.0 -> 400.0 MiB")
    assert finding.total is not None and math.log(finding.total.ratio) == pytest.approx(0.1)
