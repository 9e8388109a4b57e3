"""The light verbs on a real ledger."""

from __future__ import annotations

import csv
import io
import json

import pytest

from campaign.cli import main
from campaign.ledger import open_ledger
from tests.report.written import faster, opened, slower


@pytest.fixture
def decided(project, add):
    """A project with one accept and one reject in campaign `demo`."""
    with opened(project) as ledger:
        faster(ledger)
        slower(ledger)
    return project


def test_ledger_lists_every_decision(decided, capsys):
    assert main(["ledger", "--campaign", "demo"]) == 0
    said = capsys.readouterr().out
    assert "prenorm_fusion" in said
    assert "accept" in said
    assert "register_cap" in said
    assert "reject" in said


def test_ledger_as_json_is_one_document(decided, capsys):
    assert main(["ledger", "--campaign", "demo", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["decisions"]
    assert [(row["hypothesis"], row["verdict"]) for row in rows] == [
        ("prenorm_fusion", "accept"),
        ("register_cap", "reject"),
    ]


def test_ledger_of_a_campaign_that_is_not_there_names_the_one_that_is(decided, capsys):
    assert main(["ledger", "--campaign", "demi"]) == 2
    assert "did you mean 'demo'?" in capsys.readouterr().err
    assert main(["ledger"]) == 2
    assert "demo" in capsys.readouterr().err


def test_export_goes_to_a_file_or_to_stdout_with_the_same_text(decided, capsys):
    assert main(["ledger", "--campaign", "demo", "--export", "md", "--out", "decisions.md"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["ledger", "--campaign", "demo", "--export", "md"]) == 0
    printed = capsys.readouterr().out
    assert (decided / "decisions.md").read_text() == printed
    assert "prenorm_fusion" in printed


def test_export_as_csv_has_one_row_a_decision(decided, capsys):
    assert main(["ledger", "--campaign", "demo", "--export", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["hypothesis"] for row in rows] == ["prenorm_fusion", "register_cap"]


def test_export_into_a_folder_that_is_not_there_is_refused(decided, capsys):
    assert main(["ledger", "--campaign", "demo", "--export", "md", "--out", "no/where.md"]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_check_judges_again_and_finds_a_changed_sample(decided, capsys):
    assert main(["ledger", "--campaign", "demo", "--check"]) == 0
    assert "sound" in capsys.readouterr().out
    raw = sorted((decided / "runs/demo/raw").glob("*.jsonl"))[0]
    raw.write_text(raw.read_text().replace("1", "2", 1))
    assert main(["ledger", "--campaign", "demo", "--check", "--json"]) == 2
    said = capsys.readouterr()
    assert json.loads(said.out)["exit_code"] == 2
    assert raw.name in said.err


def test_revert_takes_an_edit_out_of_the_stack_for_a_reason_that_is_kept(decided, capsys):
    words = ["stack", "--campaign", "demo", "--revert", "prenorm_fusion", "--why", "breaks resume"]
    assert main(words) == 0
    assert "the stack is empty" in capsys.readouterr().out
    with open_ledger(decided, "demo", writable=False) as ledger:
        (entry,) = ledger.store.entries(kinds=("revoked",))
        (*_, stack) = ledger.store.entries(kinds=("stack",))
    assert entry.id == "revoked-prenorm_fusion-1-decision"  # the name that Ledger.revoke gives, which is idempotent
    assert entry.body == {"decision_id": "prenorm_fusion-1-decision", "why": "breaks resume"}
    assert stack.body == {"decisions": [], "head": []}
    assert main(words) == 2
    assert "no hypothesis in the accepted stack 'prenorm_fusion'" in capsys.readouterr().err
    assert main(["ledger", "--campaign", "demo", "--check"]) == 0


def test_stack_shows_what_is_accepted(decided, capsys):
    assert main(["stack", "--campaign", "demo"]) == 0
    said = capsys.readouterr().out
    assert "prenorm_fusion" in said
    assert "register_cap" not in said
    assert main(["stack", "--campaign", "demo", "--json"]) == 0
    assert "prenorm_fusion" in capsys.readouterr().out


def test_an_edit_that_another_requires_is_not_reverted_before_it(project, add, capsys):
    from dataclasses import replace

    from tests.report.written import CONFIRM, SCREEN, evidence, plan, record

    with opened(project) as ledger:
        faster(ledger)
        one = plan("shared_quant", stack=("prenorm_fusion",))
        one = replace(one, hypothesis=replace(one.hypothesis, requires=("prenorm_fusion",)))
        record(ledger, evidence(one, SCREEN, CONFIRM))
    assert main(["stack", "--campaign", "demo", "--revert", "prenorm_fusion", "--why", "x"]) == 2
    said = capsys.readouterr().err
    assert "shared_quant in the stack requires prenorm_fusion" in said
    assert "--revert shared_quant" in said


def test_fresh_project_has_no_decisions_and_says_how_to_make_one(project, add, capsys):
    assert main(["ledger"]) == 0
    assert "campaign hypothesis=NAME" in capsys.readouterr().out
    assert list((project / "runs").iterdir()) == []
