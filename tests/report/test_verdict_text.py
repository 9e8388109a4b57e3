"""The block at the end of a run."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

from campaign.report.verdict_text import decision_json, decision_text
from tests.reasoning import made
from tests.report import written


def fields(text):
    """The named lines of the block."""
    return {line[2:13].strip(): line[13:] for line in text.splitlines() if line.startswith("  ")}


def test_an_accept_says_everything_it_rests_on(ledger):
    text = decision_text(written.faster(ledger), ledger.store.path)
    assert text.splitlines()[0] == "#1 prenorm_fusion: ACCEPTED (faster)"
    said = fields(text)
    assert said["measured"] == "1.105x [1.085, 1.126] (95 %), 4 rounds, wall time"
    assert said["predicted"] == "1.100x, inside the measured interval"
    assert said["screening"].startswith("1.162x [") and said["screening"].endswith("not the published number")
    assert said["beside"].endswith("CPU time; does not decide")
    assert said["memory"] == "400.0 MiB -> 400.0 MiB (0 B, 1.000x), the same in every round"
    assert said["rounds"] == "8 counted, 0 invalid and kept; look 1, alpha spent 0.002"
    assert said["parity"].startswith("rounding: ok")
    assert said["engaged"] == "op:kernels::prenorm_cpu appears: 0 -> 9 (predicted 0 -> 9)"
    assert said["precision"].startswith("low precision is emulated here")
    # 8 rounds of 10 s; 2 pairs a round: treatment 1 s, control e^x: 2 * (4 + e^.14 + e^.16 ... ) = 34.1 s timed
    timed = 2 * sum(1 + math.exp(log) for log in (*written.SCREEN, *written.CONFIRM))
    assert said["took"] == f"1 min 20 s, of which {timed:.2f} s timed (43 %)"
    assert said["ledger"] == str(ledger.store.path)
    assert said["next"] == "see what is accepted so far: campaign stack --campaign demo"


def test_tokens_a_second_are_not_shown_for_cpu_time(ledger):
    wall = decision_text(written.faster(ledger))
    cpu = decision_text(written.faster(ledger, "b", protocol={"clock": "cpu"}))
    assert "tok/s" in wall
    assert "tok/s" not in cpu
    assert "4 rounds, CPU time" in cpu
    assert fields(cpu)["beside"].endswith("wall time; does not decide")


def test_a_rejection_says_how_the_prediction_fared_and_carries_warnings(ledger):
    decision = written.slower(ledger)
    warned = replace(decision, verdict=replace(decision.verdict, warnings=("load 3.1\non 2 cores",), remedy=""))
    text = decision_text(warned, Path("runs/demo/ledger.jsonl"))
    assert text.startswith("#1 register_cap: REJECTED (slowdown)\n")
    assert fields(text)["predicted"] == "1.100x; measured less than predicted"
    assert "  warning    load 3.1 on 2 cores" in text
    assert fields(text)["next"] == "campaign ledger --campaign demo"
    assert "(95 %), 4 rounds, wall time" in fields(text)["measured"]


def test_an_invalid_result_has_no_number(ledger):
    bad = written.evidence(written.plan("skewed"), probe=made.probe(parity=None))
    said = decision_text(written.record(ledger, bad))
    assert said.startswith("#1 skewed: INVALID, nothing is decided (parity)")
    assert fields(said)["measured"] == "no round counted, so there is no number"
    assert fields(said)["rounds"] == "0 counted, 0 invalid and kept; no look taken, alpha spent 0"


def test_a_null_shows_the_floor(ledger):
    plan = written.plan("aa_null", null=True, protocol={"looks": (4,), "alpha_split": (1.0,), "beta_split": (1.0,)})
    decision = written.record(ledger, written.evidence(plan, (0.01, -0.01, 0.01, -0.01)))
    # sd of .01, -.01, .01, -.01: .0115470
    assert fields(decision_text(decision))["floor"].startswith("rounds scatter by 1.15 %, pairs within one by 0.00 %")


def test_a_revoked_decision_says_so_first(ledger):
    text = decision_text(written.faster(ledger), revoked=True)
    assert text.splitlines()[0] == "#1 prenorm_fusion: ACCEPTED (faster), REVOKED later: no longer in the stack"


def test_json_is_the_record_with_null_for_infinity(ledger):
    decision = written.faster(ledger)
    effect = replace(decision.verdict.effect, low=-math.inf)
    moved = replace(decision, verdict=replace(decision.verdict, effect=effect))
    document = json.loads(decision_json(moved))
    assert (document["schema"], document["revoked"]) == (1, False)
    assert document["decision"]["verdict"]["effect"]["low"] is None
    assert document["decision"]["verdict"]["effect"]["ratio"] == effect.ratio
    assert "no interval" in decision_text(moved)
