"""A finding in words, and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from campaign.records import ByteChange, Contrast, Finding, Found, Term
from campaign.report.finding_text import bytes_text, finding_json, finding_text

SLOW = Contrast(1.5, 1.4, 1.6, rounds=6, sd_log=0.01)
FAST = Contrast(1.25, 1.2, 1.3, rounds=6, sd_log=0.01)
FINDING = Finding(
    kind="leave_one_out",
    subjects=("fusion", "cache"),
    sentence="2 of 2 edits pay on the whole stack",
    terms=(
        Term("fusion", SLOW, "pays", ByteChange(4 << 20, 4 << 20, 4 << 20, exact=True)),
        Term("cache", FAST, "pays", ByteChange(-1024, -2048, 0, exact=False)),
    ),
    total=Contrast(1.7, 1.6, 1.8, rounds=6, sd_log=0.01),
    product=1.875,
    sum=1.75,
    word="synergy",
    warnings=("root's own level moved by 35% within a round",),
    drift=0.35,
    blocks=240,
    valid_rounds=6,
    invalid_rounds=1,
)
FOUND = Found(
    id="leave_one_out-1-finding",
    study_id="leave_one_out-1",
    sequence=3,
    finding=FINDING,
    stack=("fusion", "cache"),
    workload="tiny",
    device="cpu",
    machine_line="a machine",
    command="python -m campaign revalidate",
    decided_at="2026-12-01T12:00:00Z",
    wall_seconds=80.0,
    timed_seconds=20.0,
)


def test_a_leave_one_out_is_told_by_edit_and_beside_the_whole():
    assert finding_text(FOUND, "runs/default/ledger.jsonl").splitlines() == [
        "finding 3: leave one out of fusion, cache",
        "2 of 2 edits pay on the whole stack",
        "",
        "  edit    adds to the others  95 % interval   memory                    word",
        "  fusion              1.500x  [1.400, 1.600]  +4.0 MiB                  pays",
        "  cache               1.250x  [1.200, 1.300]  -1.0 KiB [-2.0 KiB, 0 B]  pays",
        "",
        "  together   1.700x [1.600, 1.800] (95 %)",
        "  parts      The parts, each measured by leaving it out of the whole, multiply to 1.875x and add to"
        " 1.750x; the whole was measured at 1.700x: synergy.",
        "  head       root+fusion+cache, tiny on cpu",
        "  rounds     6 counted, 1 invalid and kept; 240 blocks of the base arm, whose level moved by at most"
        " 35 % within a round",
        "  machine    a machine",
        "  took       1 min 20 s, of which 20.00 s timed (25 %)",
        "  ledger     runs/default/ledger.jsonl",
        "  warning    root's own level moved by 35% within a round",
    ]


def test_a_factorial_names_interactions_shares_and_what_a_fraction_cannot_tell_apart():
    terms = (Term("a", SLOW, "faster"), Term("a:b", FAST, "synergy", aliases=("c:d",)))
    finding = replace(FINDING, kind="factorial", terms=terms, shares=(Term("a", SLOW), Term("b", FAST)))
    text = finding_text(replace(FOUND, finding=finding))
    assert "  edit               ratio  95 % interval   word" in text
    assert "  a x b (or c x d)  1.250x  [1.200, 1.300]  synergy" in text
    assert "  edit   share  95 % interval" in text
    assert "each measured alone on root" in text


def test_a_finding_without_numbers_says_why_and_shows_no_empty_table():
    finding = Finding(
        "leave_one_out", ("fusion",), "no finding: the head arm could not run", failed={"head": "crashed"}
    )
    text = finding_text(replace(FOUND, finding=finding, wall_seconds=0.0))
    assert text.splitlines()[1] == "no finding: the head arm could not run"
    assert "together" not in text and "edit" not in text and "took" not in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (ByteChange(4 << 20, 4 << 20, 4 << 20, exact=True), "+4.0 MiB"),
        (ByteChange(-1024, -2048, 0, exact=False), "-1.0 KiB [-2.0 KiB, 0 B]"),
    ],
)
def test_bytes_come_with_an_interval_where_rounds_did_not_repeat_them(change, said):
    assert bytes_text(change) == said


def test_a_finding_as_json_is_its_record_on_one_line():
    said = finding_json(replace(FOUND, finding=replace(FINDING, product=float("inf"))))
    assert "\n" not in said
    values = json.loads(said)
    assert values["schema"] == 1
    assert values["finding"]["finding"]["terms"][0]["memory"]["bytes"] == 4 << 20
    assert values["finding"]["finding"]["product"] is None
