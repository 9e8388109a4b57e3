"""The light verbs on a real ledger."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from campaign.cli import main
from campaign.ledger import open_ledger
from tests.reasoning import made
from tests.report.written import CONFIRM, SCREEN, evidence, faster, opened, plan, record, slower


@pytest.fixture
def decided(project, add):
    """A project with one accept and one reject in campaign `demo`."""
    with opened(project) as ledger:
        faster(ledger)
        slower(ledger, stack=("prenorm_fusion",))
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


def test_a_person_rules_an_edit_in_and_out_again_for_reasons_that_are_kept(decided, capsys):
    words = ["stack", "--campaign", "demo"]
    assert main([*words, "--accept", "register_cap", "--why", "pays on the production shape"]) == 2
    said = capsys.readouterr().err
    assert "register_cap and prenorm_fusion in the stack both set ops.prenorm" in said
    assert "--revert prenorm_fusion" in said
    assert main([*words, "--revert", "prenorm_fusion", "--why", "makes room"]) == 0
    assert main([*words, "--accept", "register_cap", "--why", "pays on the production shape"]) == 0
    assert "Ruled in by a person: register_cap (the verdict: reject: slowdown): pays on" in capsys.readouterr().out
    with open_ledger(decided, "demo", writable=False) as ledger:
        assert [one.hypothesis for one in ledger.stack()] == ["register_cap"]
        (ruling,) = ledger.store.entries(kinds=("ruling",))
        assert ruling.body["why"] == "pays on the production shape"
        assert [line.body["head"] for line in ledger.store.entries(kinds=("stack",))][-1] == ["register_cap"]
    assert main([*words, "--reject", "2", "--why", "not after all"]) == 0  # by its number
    assert "the stack is empty" in capsys.readouterr().out
    assert main(["ledger", "--campaign", "demo", "--check"]) == 0
    assert "1 ruled on by a person" in capsys.readouterr().out


def test_ruling_against_an_edit_that_is_not_in_the_stack_moves_no_stack(decided, capsys):
    with open_ledger(decided, "demo", writable=False) as ledger:
        before = len(list(ledger.store.entries(kinds=("stack",))))
    assert main(["stack", "--campaign", "demo", "--reject", "register_cap", "--why", "not worth its code"]) == 0
    assert "prenorm_fusion" in capsys.readouterr().out
    with open_ledger(decided, "demo", writable=False) as ledger:
        assert len(list(ledger.store.entries(kinds=("stack",)))) == before
        assert ledger.decision_rows()[1]["ruling"] == "reject"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--accept", "prenorm_fusion", "--why", "x"], "is in the stack already, by decision 1"),
        (["--accept", "prenorm_fusoin", "--why", "x"], "did you mean 'prenorm_fusion'?"),
        (["--accept", "register_cap"], "--accept and --why go together"),
        (["--reject", "register_cap", "--why", "  "], "--reject and --why go together"),
        (["--why", "x"], "--revert and --why go together"),
        (["--accept", "a", "--reject", "b", "--why", "x"], "--accept a and --reject b are 2 decisions"),
        (["--revert", "a", "--revert", "b", "--why", "x"], "--revert a and --revert b are 2 decisions"),
    ],
)
def test_a_ruling_that_cannot_be_is_refused_and_nothing_is_written(decided, capsys, words, said):
    file = decided / "runs/demo/ledger.jsonl"
    before = file.read_bytes()
    assert main(["stack", "--campaign", "demo", *words]) == 2
    assert said in capsys.readouterr().err
    assert file.read_bytes() == before


def test_what_cannot_run_here_or_has_no_edit_is_not_ruled_in(project, add, capsys):
    with opened(project) as ledger:
        null = plan("aa_null", null=True, protocol={"looks": (4,), "alpha_split": (1.0,), "beta_split": (1.0,)})
        record(ledger, evidence(null, (0.01, -0.01, 0.01, -0.01)))
        missing = made.probe(status="unavailable", message="needs CUDA", remedy="a GPU")
        record(ledger, evidence(plan("triton"), probe=missing))
        died = made.probe(status="killed", message="SIGKILL")
        record(ledger, evidence(plan("hungry"), probe=died))
    refused = (
        ("aa_null", "has no edit"),
        ("triton", "could not run on this machine"),
        ("hungry", "ended as killed, so hungry was never compared"),
    )
    for name, said in refused:
        assert main(["stack", "--campaign", "demo", "--accept", name, "--why", "x"]) == 2
        assert said in capsys.readouterr().err


def test_show_is_a_verb_and_a_word_of_ledger(decided, capsys):
    assert main(["show", "register_cap", "--campaign", "demo"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("#2 register_cap: REJECTED (slowdown)")
    assert "rounds (4):" in said
    assert main(["ledger", "show", "2", "--campaign", "demo"]) == 0
    assert capsys.readouterr().out == said
    assert main(["ledger", "show", "2", "--campaign", "demo", "--json", "--no-blocks"]) == 0
    assert json.loads(capsys.readouterr().out)["decision"]["hypothesis"] == "register_cap"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show"], "takes one decision"),
        (["show", "1", "2"], "takes one decision"),
        (["show", "7"], "there is no decision '7'"),
        (["ledger", "shwo", "1"], "takes no argument 'shwo'"),
        (["ledger", "show"], "takes no argument 'show'"),
        (["ledger", "show", "1", "--check"], "show is one decision"),
        (["ledger", "--check", "--verdict", "accept"], "--check is about the whole ledger"),
        (["ledger", "--no-blocks"], "belongs to show"),
        (["ledger", "--since", "never"], "neither a day nor an age"),
        (["ledger", "--hypothesis", "register_cup"], "did you mean 'register_cap'?"),
    ],
)
def test_words_that_do_not_go_together_are_refused(decided, capsys, words, said):
    assert main([*words, "--campaign", "demo"]) == 2
    assert said in capsys.readouterr().err


def test_the_listing_takes_filters(decided, capsys):
    assert main(["ledger", "--campaign", "demo", "--verdict", "reject"]) == 0
    said = capsys.readouterr().out
    assert "register_cap" in said and "prenorm_fusion" not in said
    assert "1 of 2 decisions are shown." in said
    assert main(["ledger", "--campaign", "demo", "--hypothesis", "prenorm_fusion", "--json"]) == 0
    assert [row["sequence"] for row in json.loads(capsys.readouterr().out)["decisions"]] == [1]


def test_html_and_parquet_go_to_files(decided, capsys):
    assert main(["ledger", "--campaign", "demo", "--export", "html", "--out", "page.html"]) == 0
    assert (decided / "page.html").read_text().startswith("<!doctype html>")
    assert main(["ledger", "--campaign", "demo", "--export", "parquet", "--out", "rows.parquet"]) == 0
    assert (decided / "rows.parquet").read_bytes()[:4] == b"PAR1"
    assert capsys.readouterr().out == ""


def test_stack_shows_what_is_accepted(decided, capsys):
    assert main(["stack", "--campaign", "demo"]) == 0
    said = capsys.readouterr().out
    assert "prenorm_fusion" in said
    assert "register_cap" not in said
    assert main(["stack", "--campaign", "demo", "--json"]) == 0
    assert "prenorm_fusion" in capsys.readouterr().out


def test_an_edit_that_another_requires_is_not_reverted_before_it(project, add, capsys):
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
