from __future__ import annotations

from dataclasses import replace

import pytest

from campaign.errors import UnknownName
from campaign.ledger import Ledger, open_ledger
from campaign.records import Arm, Contrast, Finding, Found, Plan, Study, StudyEvidence, Term, to_json
from campaign.records.study import LEAVE_ONE_OUT
from tests.ledger.writing import Make, register, write_round


def study_of(plan: Plan, id: str, device: str = "cpu") -> Study:
    """Head with `fuse` and without it."""
    return Study(
        id=id,
        kind=LEAVE_ONE_OUT,
        campaign=plan.campaign,
        workload=plan.workload,
        device=device,
        arms=(Arm("head", "root+fuse", "models.build", {"width": 8}), Arm("without_fuse", "root", "models.build", {})),
        base="head",
        subjects=("fuse",),
        members={"head": ("fuse",), "without_fuse": ()},
        groups=(("head", "without_fuse"),),
        protocol=plan.protocol,
        rounds=2,
        stack=("fuse",),
        threshold=0.03,
        floor_id="",
        fingerprint=plan.fingerprint,
        code=plan.code,
        source={},
        machine_line=plan.machine_line,
        command="campaign revalidate",
        registered_at="2026-01-02T00:00:00Z",
    )


def found_of(study: Study, id: str) -> Found:
    term = Term("fuse", Contrast(1.05, 1.02, 1.08, 2, 0.01), "pays")
    return Found(
        id=id,
        study_id=study.id,
        sequence=99,  # the ledger numbers by place, whatever the writer believed
        finding=Finding(LEAVE_ONE_OUT, ("fuse",), "fuse adds 1.050x", terms=(term,), valid_rounds=2),
        stack=study.stack,
        workload=study.workload,
        device=study.device,
        machine_line=study.machine_line,
        command=study.command,
        decided_at="2026-01-02T01:00:00Z",
        wall_seconds=9.0,
        timed_seconds=3.0,
    )


def declare(ledger: Ledger, study: Study) -> None:
    ledger.append("study", study.id, to_json(study))


def conclude(ledger: Ledger, found: Found) -> None:
    ledger.append("finding", found.id, to_json(found))


@pytest.fixture
def study(make_plan: Make) -> Study:
    return study_of(make_plan(), "loo-1")


def test_studies_come_back_as_they_were_declared(ledger: Ledger, study: Study) -> None:
    other = replace(study, id="loo-2", rounds=3)
    declare(ledger, study)
    declare(ledger, other)
    assert ledger.studies() == [study, other] and ledger.study("loo-2") == other
    assert ledger.plans() == [] and ledger.unfinished() == []
    with pytest.raises(UnknownName, match="did you mean 'loo-1'"):
        ledger.study("loo-11")
    with pytest.raises(UnknownName, match="no study"):
        ledger.study_evidence("loo-3")


def test_the_evidence_of_a_study_is_its_own_rounds_with_their_blocks(
    ledger: Ledger, study: Study, make_plan: Make, make_round: Make, blocks_body: Make
) -> None:
    register(ledger, make_plan("p1"))
    declare(ledger, study)
    assert ledger.study_evidence("loo-1") == StudyEvidence(study)
    (mine, blocks), theirs = make_round("r1"), make_round("r2")
    mine = replace(mine, stage="group-1")
    write_round(ledger, "p1", theirs, blocks_body)
    write_round(ledger, study.id, (mine, blocks), blocks_body)
    found = ledger.study_evidence("loo-1")
    assert found.study == study
    assert [(one.id, one.stage, one.blocks) for one in found.rounds] == [("r1", "group-1", tuple(blocks))]
    assert [one.id for one in ledger.evidence("p1").rounds] == ["r2"]


def test_findings_are_numbered_by_their_place_and_end_their_study(ledger: Ledger, study: Study) -> None:
    other = replace(study, id="loo-2")
    declare(ledger, study)
    declare(ledger, other)
    assert ledger.findings() == [] and ledger.unfinished_studies() == ["loo-1", "loo-2"]
    conclude(ledger, found_of(other, "found-2"))
    assert ledger.unfinished_studies() == ["loo-1"]
    conclude(ledger, found_of(study, "found-1"))
    assert ledger.unfinished_studies() == []
    assert ledger.findings() == [
        replace(found_of(other, "found-2"), sequence=1),
        replace(found_of(study, "found-1"), sequence=2),
    ]
    # line 1 opens the campaign, 2 and 3 declare the studies
    assert [(row["sequence"], row["line"], row["finding"]["kind"]) for row in ledger.finding_rows()] == [
        (1, 4, "leave_one_out"),
        (2, 5, "leave_one_out"),
    ]


def test_a_campaign_belongs_to_the_workload_and_kind_of_device_of_its_first_plan_or_study(
    tmp_path, make_plan: Make, study: Study
) -> None:
    with open_ledger(tmp_path, "plans", writable=True) as ledger:
        assert ledger.place() is None
        ledger.append("note", "n", {"text": "of no workload"})
        assert ledger.place() is None
        register(ledger, make_plan("p1"))
        declare(ledger, replace(study, workload="other"))
        assert ledger.place() == ("tiny", "cpu")
    with open_ledger(tmp_path, "studies", writable=True) as ledger:
        declare(ledger, replace(study, device="cuda:1"))
        register(ledger, make_plan("p1"))
        assert ledger.place() == ("tiny", "cuda")


def test_what_was_written_of_sweeps_comes_back_in_order_with_its_line(ledger: Ledger) -> None:
    begun = {"sweep_id": "s1", "state": "begun", "jobs": ["campaign hypothesis=a"], "words": ["-m", "hypothesis=a"]}
    ledger.append("sweep", "s1-begun", begun)
    ledger.append("sweep", "s1-ended", {"sweep_id": "s1", "state": "ended"})
    assert ledger.sweeps() == [{**begun, "line": 2}, {"sweep_id": "s1", "state": "ended", "line": 3}]
