"""What an A/A floor says of a machine, and the doctor's answer in a narrow terminal."""

from __future__ import annotations

import math
import re

import pytest
from scipy import stats

from campaign.machine.checks import DOUBTFUL, FIT, UNFIT, UNKNOWN, Finding
from campaign.records import Floor
from campaign.report.doctor_text import doctor_text
from campaign.run.doctor import Examined
from campaign.run.floor import Measured
from campaign.run.judged_floor import floor_body, floor_findings
from campaign.stability import Fault
from tests.builders import protocol

PROTOCOL = protocol(looks=(4, 12), min_effect=0.03)
FAULT = Fault("contention", "control took 2.5 s of wall time a second", "stop what else runs")


def measured(sd: float | None, **changes) -> Measured:
    floor = None if sd is None else Floor("wall", changes.get("valid", 3), sd, 0.01, {}, 0)
    values = {"full": False, "protocol": "quick", "clock": "wall", "valid": 3, "invalid": 0, "floor": floor}
    return Measured(**(values | changes))


def judged(one: Measured, standing=None):
    return floor_findings(one, PROTOCOL, standing, "default")


@pytest.mark.parametrize(
    ("sd", "level", "words"),
    [
        (0.01, FIT, "3 A/A rounds scatter by 1.00 % (wall time): 12 rounds resolve 1."),
        # 4 % scatter resolves about 5 %, above min_effect; the lower bound, 0.66 of it, resolves less than 6 %
        (0.04, DOUBTFUL, "scatter by 4.00 %"),
        # 0.66 of 10 % resolves more than 6 %
        (0.10, UNFIT, "scatter by 10.00 %"),
    ],
)
def test_a_scatter_is_judged_by_what_the_last_look_resolves_with_it(sd, level, words):
    (found,) = judged(measured(sd))
    assert (found.level, words in found.seen) == (level, True), found
    assert (found.mend == "campaign doctor --full measures one that counts for d") == (level == FIT)
    assert level == FIT or found.cost


def test_rounds_that_did_not_count_make_a_machine_unfit_and_one_that_was_replaced_doubtful():
    (found,) = judged(measured(None, valid=1, invalid=3, fault=FAULT))
    assert (found.level, found.seen) == (UNFIT, f"1 of 4 A/A rounds counted; contention: {FAULT.sentence}")
    (found,) = judged(measured(0.01, invalid=1, fault=FAULT))
    assert found.level == DOUBTFUL and found.seen.endswith(f"contention: {FAULT.sentence}")


def test_a_trial_that_failed_is_mended_by_its_own_remedy():
    fault = Fault("unavailable", "the workload needs a device", "run it elsewhere")
    (found,) = judged(measured(None, valid=0, invalid=1, fault=fault))
    assert (found.level, found.mend) == (UNFIT, "run it elsewhere")


def test_two_equal_arms_that_measured_apart_make_it_unfit_whatever_the_scatter():
    (found,) = judged(measured(0.001, full=True, valid=10, reason="biased", why="two equal arms measured 1.2x"))
    assert (found.level, found.seen) == (UNFIT, "two equal arms measured 1.2x")


def test_a_null_that_came_to_no_floor_says_what_its_decision_said():
    (found,) = judged(
        measured(None, full=True, valid=2, invalid=3, reason="disturbed", why="3 of 5 rounds are invalid")
    )
    assert (found.level, found.seen) == (UNFIT, "3 of 5 rounds are invalid")


@pytest.mark.parametrize(("sd", "level"), [(0.009, FIT), (0.011, DOUBTFUL)])
def test_a_floor_on_record_is_doubtful_where_the_scatter_is_over_twice_its_own_now(sd, level):
    standing = ("aa-1-decision", Floor("wall", 10, 0.005, 0.01, {}, 0))
    now, kept = judged(measured(sd), standing)
    assert (now.mend, kept.level) == ("", level)
    assert kept.seen.startswith("aa-1-decision: scatter 0.50 % over 10 rounds; d = 3 %")
    assert judged(measured(None, valid=0, invalid=3, fault=FAULT), standing)[1].level == UNKNOWN


def test_the_ledgers_account_has_no_number_where_there_is_none():
    body = floor_body(measured(None, valid=1, invalid=3, fault=FAULT, raw=("raw/a.jsonl",)), PROTOCOL)
    assert body["smallest_effect"] is None and body["faults"] == ["contention"] and body["raw"] == ["raw/a.jsonl"]
    body = floor_body(measured(0.01), PROTOCOL)
    assert body["of_rounds"] == 12
    # found with power .95 at alpha .01, by scipy's noncentral t over 12 rounds
    sds = math.log1p(body["smallest_effect"]) / 0.01
    assert stats.nct.sf(stats.t.isf(0.01, 11), 11, sds * math.sqrt(12)) == pytest.approx(0.95, abs=1e-4)


def test_in_a_narrow_terminal_no_line_is_longer_and_nothing_is_lost():
    found = Finding("load", "machine", DOUBTFUL, "others used 1.50 of 2 cores", "blocks share caches", "top -o %CPU")
    hostile = Finding("disk", "machine", FIT, "runs: \x1b[31m9 GiB\x1b[0m free")
    one = Examined("2026-12-01", "cpu", "tiny", "a machine", "f" * 64, (hostile, found))
    for width in (40, 60, 120):
        text = doctor_text(one, terminal=False, width=width)
        assert max(map(len, text.splitlines())) <= width
        flat = " ".join(text.split())
        for words in ("DOUBTFUL (load)", "others used 1.50 of 2 cores", "blocks share caches", "top -o %CPU", "9 GiB"):
            assert words in flat
        assert "\x1b" not in text and flat.index("doubtful") < flat.index("disk")
    coloured = doctor_text(one, terminal=True, width=60)
    assert "\x1b[33mdoubtful \x1b[0m" in coloured
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == doctor_text(one, terminal=False, width=60)
