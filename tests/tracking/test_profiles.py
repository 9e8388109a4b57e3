"""Profile evidence in MLflow: tagged so, without a metric, and rebuilt from the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign.ledger import Ledger
from campaign.tracking import store, sync
from tests.tracking import campaigns
from tests.tracking.test_mirror import client_of, runs_of

TRACES = {"control": b"control's trace", "treatment": b"treatment's trace"}


def write(ledger: Ledger) -> None:
    """A profile of both arms, a diagnosis of its control, and one of a trace from elsewhere."""
    shared = {"evidence": "profile", "workload": "hybrid_tiny", "device": "cpu"}
    body = {**shared, "hypothesis": "prenorm_fusion", "stack": [], "steps": 5, "torch": "2.13.0", "activities": ["CPU"]}
    body |= {"warmup_steps": 5, "command": "python -m campaign profile hypothesis=prenorm_fusion --steps 5"}
    for role, data in TRACES.items():
        body[role] = {"name": f"the {role}", "hash": "", "raw": ledger.keep(data, ".json.gz"), "bytes": len(data)}
    body["documents"] = [{"name": "comparison.md", "raw": ledger.keep(b"# Both\n", ".md")}]
    ledger.append("profile", "profile-1", body)
    found = {
        **shared,
        "stack": ["prenorm_fusion"],
        "profile": "profile-1",
        "arm": "control",
        "trace": {"file": "a.json.gz", "sha256": "a", "bytes": 3, "raw": body["control"]["raw"]},
        "command": "campaign diagnose a.json.gz --record",
        "documents": [
            {"name": "diagnosis.json", "raw": ledger.keep(b"{}\n", ".json")},
            {"name": "diagnosis.html", "raw": ledger.keep(b"<html></html>\n", ".html")},
        ],
        "diagnosis": {"dispatch": {"sentence": "the device is busy 99.8 % of the range"}, "ideas": []},
    }
    ledger.append("diagnosis", "diagnosis-1", found)
    elsewhere = {"file": "b.sqlite", "sha256": "b", "bytes": 4}
    ledger.append("diagnosis", "diagnosis-2", {**found, "profile": "", "arm": "", "workload": "", "trace": elsewhere})


@pytest.fixture
def written(one: Ledger) -> Ledger:
    """The ledger of one decision, with profile evidence after it."""
    write(one)
    return one


def profiles_of(root: Path):
    found = runs_of(root, "tags.`campaign.evidence` = 'profile'")
    return sorted(found, key=lambda run: run.data.tags["sequence"])


def artifacts(root: Path, run, folder: str = "") -> set[str]:
    return {found.path for found in client_of(root).list_artifacts(run.info.run_id, folder)}


def test_a_profile_is_a_run_that_is_no_decision_and_has_no_metric(written, root):
    assert sync(written) == ["prenorm_fusion-plan-1-decision", "profile-1", "diagnosis-1", "diagnosis-2"]
    first, second, third = profiles_of(root)
    assert [run.info.run_name for run in (first, second, third)] == [
        "P01 PROFILE prenorm_fusion",
        "P02 DIAGNOSIS control of profile-1",
        "P03 DIAGNOSIS b.sqlite",
    ]
    for run in (first, second, third):
        assert (run.data.metrics, run.data.params) == ({}, {})
        assert (run.data.tags["campaign.kind"], run.data.tags["verdict"]) == ("profile", "profile")
        assert "no effect or verdict comes from it" in run.data.tags["mlflow.note.content"]
        assert run.info.status == "FINISHED"
    assert first.data.tags["mlflow.source.name"].endswith("profile hypothesis=prenorm_fusion --steps 5")
    assert first.data.tags["mlflow.note.content"].startswith("5 whole steps of the control and of the treatment under")
    assert second.data.tags["mlflow.note.content"].startswith("The device is busy 99.8 % of the range. The whole")
    assert "its hash is in the ledger" in third.data.tags["mlflow.note.content"]
    assert (second.data.tags["stack"], third.data.tags["workload"]) == ("prenorm_fusion", "not known")
    assert len(runs_of(root)) == 1  # decisions are what they were


def test_traces_and_pages_are_its_artifacts(written, root):
    sync(written)
    first, second, third = profiles_of(root)
    assert artifacts(root, first) == {"comparison.md", "profile_line.json", "traces"}
    assert artifacts(root, first, "traces") == {"traces/control.json.gz", "traces/treatment.json.gz"}
    path = client_of(root).download_artifacts(first.info.run_id, "traces/treatment.json.gz")
    assert Path(path).read_bytes() == TRACES["treatment"]
    assert artifacts(root, second) == {"diagnosis.json", "diagnosis.html", "diagnosis_line.json", "traces"}
    assert artifacts(root, third) == {"diagnosis.json", "diagnosis.html", "diagnosis_line.json"}


def test_sync_writes_each_once_and_rebuilds_what_is_gone(written, root):
    assert sync(written, ["profile-1"]) == ["profile-1"]
    assert sync(written, ["profile-1"]) == []
    assert sync(written) == ["prenorm_fusion-plan-1-decision", "diagnosis-1", "diagnosis-2"]
    for run in profiles_of(root):
        client_of(root).delete_run(run.info.run_id)
    assert sync(written) == ["profile-1", "diagnosis-1", "diagnosis-2"]
    assert len(profiles_of(root)) == 3


def test_a_mirror_that_died_half_way_is_written_anew(written, root):
    sync(written, ["profile-1"])
    (run,) = profiles_of(root)
    client_of(root).set_tag(run.info.run_id, "campaign.mirror", "half")
    assert sync(written, ["profile-1"]) == ["profile-1"]
    (again,) = profiles_of(root)
    assert again.info.run_id != run.info.run_id


def test_a_ledger_of_profiles_alone_is_mirrored(root):
    with campaigns.open_ledger(root, campaigns.CAMPAIGN, writable=True) as ledger:
        write(ledger)
        assert sync(ledger) == ["profile-1", "diagnosis-1", "diagnosis-2"]
    note = store.open_client(root).get_experiment_by_name("demo").tags["mlflow.note.content"]
    assert note.splitlines()[0] == "**demo: 0 decisions, accepted: none**"


def test_a_trace_that_is_gone_is_left_out_and_the_rest_is_mirrored(written, root):
    (row, *_) = written.profile_rows()
    written.path(row["control"]["raw"]).unlink()
    sync(written, ["profile-1"])
    (run,) = profiles_of(root)
    assert artifacts(root, run, "traces") == {"traces/treatment.json.gz"}
