"""`campaign show` of a finding."""

from __future__ import annotations

import json

import pytest

from campaign.cli import main
from tests.report import together, written


@pytest.fixture
def shown(tmp_path, monkeypatch, capsys):
    """What `campaign show WORDS` prints in a project with a leave-one-out of two edits."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text("")
    with written.opened(tmp_path) as ledger:
        together.two_edits(ledger)
        together.leave_one_out(ledger)
        campaign = ledger.folder.name
    monkeypatch.chdir(tmp_path)

    def run(*words):
        assert main(["show", *words, "--campaign", campaign]) == 0
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("name", ["finding-1", "leave_one_out-1", "leave_one_out-1-finding"])
def test_a_finding_is_shown_with_its_study_arms_and_rounds(shown, name):
    text = shown(name)
    assert text.startswith("finding 1: leave one out of prenorm_fusion, half\n")
    assert "study leave_one_out-1, registered" in text
    assert "  without-half: without-half, models.Workload," in text and "holds prenorm_fusion\n" in text
    assert "rounds (4):" in text and text.count("group-1") == 4 * 2  # in the id and as the stage
    assert text.count("  valid ") == 4


def test_a_finding_as_json_has_its_rounds_with_their_faults(shown):
    found = json.loads(shown("finding-1", "--json"))
    assert found["finding"]["finding"]["subjects"] == ["prenorm_fusion", "half"]
    assert found["study"]["members"]["without-half"] == ["prenorm_fusion"]
    # 2 blocks of each of 4 arms
    assert [(one["block_count"], one["faults"]) for one in found["rounds"]] == [(8, [])] * 4
