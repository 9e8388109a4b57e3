"""A finding in MLflow: its run, its tables, its note, and the scoreboard that begins with the newest headline.

Numbers: see findings.py's docstring. e^.11 = 1.116278, its interval e^(.11 -+ .018374) = [1.095955, 1.136978].
"""

from __future__ import annotations

import csv
import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from campaign.records import Contrast, Finding, Found, StudyEvidence, Term
from campaign.tracking import finding_note, found, sync, tables, words
from campaign.tracking.scoreboard import Board, scoreboard
from tests.tracking import campaigns, findings
from tests.tracking.test_mirror import client_of, root_of, runs_of
from tests.tracking.test_survival import python

FINDINGS = "tags.`campaign.kind` = 'finding'"


def by_kind(ledger: campaigns.Ledger) -> dict[str, Found]:
    return {one.finding.kind: one for one in ledger.findings()}


def run_of(ledger: campaigns.Ledger, kind: str):
    (run,) = runs_of(root_of(ledger), f"tags.`campaign.finding_id` = '{by_kind(ledger)[kind].id}'")
    return run


def folder_of(run) -> Path:
    return Path(run.info.artifact_uri.removeprefix("file://"))


def test_every_finding_is_a_run_with_its_kind_its_status_and_its_length(studied):
    runs = runs_of(root_of(studied), FINDINGS)
    assert {run.info.run_name for run in runs} == {
        "F01 LEAVE ONE OUT +11.6 % a, b",
        "F02 HEADLINE +11.6 % a, b",
        "F03 FACTORIAL +11.6 % a, b",
        "F04 REPLAY +6.2 % prenorm_fusion",
    }
    assert {run.info.status for run in runs} == {"FINISHED"}
    # four rounds of 30 s
    assert {run.info.end_time - run.info.start_time for run in runs} == {120_000}
    assert {run.data.tags["campaign.mirror"] for run in runs} == {"whole"}


def test_a_leave_one_out_has_its_terms_its_product_and_its_word(studied):
    data = run_of(studied, "leave_one_out").data
    # a adds .11 - .03 = .08, b .11 - .06 = .05: 1.0833 and 1.0513, product e^.13 = 1.1388, sum 1.1346
    assert (data.metrics["term/leave_one_out/a"], data.metrics["term/leave_one_out/b"]) == (1.0833, 1.0513)
    assert (data.metrics["ratio"], data.metrics["ratio_low"], data.metrics["ratio_high"]) == (1.1163, 1.096, 1.137)
    assert (data.metrics["product_ratio"], data.metrics["sum_ratio"]) == (1.1388, 1.1346)
    assert (data.metrics["memory_mib/a"], data.metrics["memory_mib/b"]) == (-32, 0)
    assert (data.metrics["rounds"], data.metrics["blocks"]) == (4, 160)
    assert (data.tags["verdict"], data.tags["reason"], data.tags["hypothesis"]) == ("finding", "leave one out", "a, b")
    assert (data.tags["stack"], data.tags["retire"], data.tags["failed"]) == ("a + b", "none", "none")
    assert data.params["study/arms"] == "head without_a without_b root"


def test_a_factorial_has_main_effects_interactions_and_shares_that_multiply_to_the_whole(studied):
    metrics = run_of(studied, "factorial").data.metrics
    # e^.07, e^.04 and e^.02
    assert (metrics["term/main/a"], metrics["term/main/b"], metrics["term/interaction/a:b"]) == (
        1.0725,
        1.0408,
        1.0202,
    )
    assert metrics["share/a"] * metrics["share/b"] == pytest.approx(metrics["ratio"], abs=2e-4)


def test_a_headline_has_no_tokens_a_second_on_cpu_time_and_has_them_on_wall_time(studied, root):
    metrics = run_of(studied, "headline").data.metrics
    assert "tokens_per_second/control" not in metrics
    assert (metrics["peak_memory_mib/control"], metrics["peak_memory_mib/treatment"]) == (512, 480)
    assert metrics["step_ms/treatment"] == pytest.approx(metrics["step_ms/control"] / 1.1163, rel=0.02)
    with campaigns.open_ledger(root, campaigns.CAMPAIGN, writable=True) as ledger:
        wall = findings.headline(ledger, protocol=findings.protocol(clock="wall"))
    # 512 tokens in .101 s on the wall clock, whose level wanders by 1 % around it
    assert found.finding_metrics(wall)["tokens_per_second/control"] == pytest.approx(512 / 0.101, rel=0.01)


def test_its_artifacts_are_note_figure_tables_arms_and_logs(studied):
    folder = folder_of(run_of(studied, "leave_one_out"))
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    roles = ("head", "without_a", "without_b", "root")
    logs = {f"logs/group-1-0{number}-{role}.txt" for number in (1, 2, 3, 4) for role in roles}
    assert names == logs | {f"configs/{role}.json" for role in roles} | {
        "finding.md", "evidence.json", "environment.json", "terms.csv", "rounds.csv", "figures/finding.png",
    }  # fmt: skip
    assert json.loads((folder / "evidence.json").read_text())["finding"]["finding"]["kind"] == "leave_one_out"
    assert (folder / "figures/finding.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_terms_as_csv_are_those_of_the_finding_to_the_last_digit(studied):
    finding = by_kind(studied)["factorial"].finding
    rows = list(csv.DictReader(tables.terms_csv(finding).splitlines()))
    assert [(row["what"], row["name"]) for row in rows] == [
        ("main effect", "a"), ("main effect", "b"), ("interaction", "a:b"), ("share", "a"), ("share", "b"),
        ("total", "all"), ("product of the parts", "all"), ("sum of the parts", "all"),
    ]  # fmt: skip
    assert [float(row["ratio"]) for row in rows[:3]] == [term.effect.ratio for term in finding.terms]
    assert float(rows[5]["low"]) == finding.total.low
    text = (folder_of(run_of(studied, "factorial")) / "terms.csv").read_text()
    assert text == tables.terms_csv(finding)


def test_the_rounds_as_csv_have_each_arm_of_each_round(studied):
    evidence = studied.study_evidence(by_kind(studied)["headline"].study_id)
    rows = list(csv.DictReader(tables.rounds_csv(evidence).splitlines()))
    assert [(row["round"], row["arm"]) for row in rows] == [
        (str(number), arm) for number in (1, 2, 3, 4) for arm in ("root", "head")
    ]
    assert {row["peak_bytes"] for row in rows if row["arm"] == "head"} == {str(480 << 20)}


def test_a_replay_stands_beside_the_decision_that_it_is_of(studied):
    run = run_of(studied, "replay")
    assert run.data.tags["of"] == "prenorm_fusion-plan-1-decision"
    assert (
        "Recorded in decision 01 (accept, 2026-12-01): 1.041x [1.022, 1.060]." in run.data.tags["mlflow.note.content"]
    )


def test_the_note_says_what_was_found_first_and_then_the_parts_beside_the_whole(studied):
    note = run_of(studied, "leave_one_out").data.tags["mlflow.note.content"]
    assert note.startswith("Leave one out of a, b: 2 of 2 edits pay on the whole stack; together 1.116x [1.096, 1.137]")
    assert not set("*#`|") & set(note.splitlines()[0])
    assert "multiply to 1.139x and add to 1.135x; the whole was measured at 1.116x: unresolved" in note
    assert "The whole stack against root: **1.116x [1.096, 1.137]**." in note


def test_the_scoreboard_begins_with_the_newest_headline_and_says_when_the_stack_moved(studied):
    note = client_of(root_of(studied)).get_experiment_by_name("demo").tags["mlflow.note.content"]
    lines = note.splitlines()
    headline = by_kind(studied)["headline"].finding.sentence
    assert lines[0] == f"**demo: {headline}**"
    assert "1.116x [1.096, 1.137], memory 512.0 -> 480.0 MiB, 160 matched blocks" in lines[0]
    assert lines[2].startswith(
        "Root against root + a + b, matched, on 2026-12-02. The stack moved since, to prenorm_fu"
    )
    assert lines[4] == "1 decision, accepted: prenorm_fusion"
    assert "F01 LEAVE ONE OUT +11.6 % a, b, 2026-12-02, when the stack was a + b." in note and "F03 FACTORIAL" in note
    assert "which is no measurement of the stack" in note


def test_a_headline_of_the_present_stack_stands_beside_the_product_and_sum_of_the_decisions(root):
    with campaigns.whole(root) as ledger:
        stack = ("prenorm_fusion", "no_checkpointing")
        findings.headline(ledger, stack=stack)
        findings.headline(ledger, stack=stack, broken={"head": {"status": "crashed", "message": "exit code 1"}})
        board = Board.of(ledger)
        note = scoreboard(board)
    assert [one.finding.effect is None for one in board.findings] == [False, True]  # the newest says nothing
    assert note.splitlines()[0].rstrip("*").endswith("160 matched blocks")
    assert note.splitlines()[2] == "Root against root + prenorm_fusion + no_checkpointing, matched, on 2026-12-02."
    # e^.04 * e^.15 = 1.2092, .0408 + .1618 + 1 = 1.2026; measured 1.1163: the parts promise more, beyond 3 % and noise
    said = "multiply to 1.209x and add to 1.203x; the whole was measured at 1.116x: optimistic."
    assert f"The parts, each measured on the stack of its day, {said}" in note
    row = next(line for line in note.splitlines() if line.startswith("| 03"))
    assert "1.221x [1.200, 1.243]" in row and "0.951x [0.930, 0.973]" in row and "redundancy" in row


def test_a_finding_without_numbers_has_failed_and_has_no_figure(root):
    with campaigns.open_ledger(root, campaigns.CAMPAIGN, writable=True) as ledger:
        one = findings.headline(ledger, broken={"head": {"status": "crashed", "message": "exit code 1"}})
        assert sync(ledger) == [one.id]
        assert scoreboard(Board.of(ledger)).splitlines()[0] == "**demo: 0 decisions, accepted: none**"
    (run,) = runs_of(root, FINDINGS)
    assert (run.info.status, run.info.run_name) == ("FAILED", "F01 HEADLINE a, b")
    assert run.data.tags["failed"] == "head" and "ratio" not in run.data.metrics
    folder = folder_of(run)
    assert not (folder / "figures").exists()
    assert (
        "group-1 01 head ended as crashed: exit code 1 (`logs/group-1-01-head.txt`)"
        in (folder / "finding.md").read_text()
    )


def test_an_arm_that_failed_is_named_beside_the_numbers_of_the_others(root):
    with campaigns.open_ledger(root, campaigns.CAMPAIGN, writable=True) as ledger:
        one = findings.leave_one_out(ledger, broken={"without_b": {"status": "out_of_memory", "message": "no room"}})
    assert [term.name for term in one.finding.terms] == ["a"]
    assert words.finding_status(one) == "FINISHED"
    assert "failed,without_b,,,,,out_of_memory: no room" in tables.terms_csv(one.finding)


def test_only_what_is_asked_for_is_mirrored_and_nothing_twice(root):
    with campaigns.open_ledger(root, campaigns.CAMPAIGN, writable=True) as ledger:
        decision = campaigns.prenorm(ledger)
        one = findings.headline(ledger)
        assert sync(ledger, [one.id]) == [one.id]
        assert runs_of(root) == []
        assert sync(ledger) == [decision.id]
        assert sync(ledger) == []
    assert (len(runs_of(root)), len(runs_of(root, FINDINGS))) == (1, 1)


DIES_HALF_WAY = """
import os, signal, sys
from pathlib import Path
from campaign.ledger import open_ledger
from campaign.tracking import sync
ledger = open_ledger(Path(sys.argv[1]), "demo", writable=False)
class Dying:
    def __getattr__(self, name):
        return getattr(ledger, name)
    def path(self, relative):
        os.kill(os.getpid(), signal.SIGKILL)
sync(Dying())
"""


def test_a_finding_whose_mirror_was_killed_is_closed_as_killed_and_written_anew(root):
    with campaigns.open_ledger(root, campaigns.CAMPAIGN, writable=True) as ledger:
        one = findings.headline(ledger)
        process = python(DIES_HALF_WAY, root)
        process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL
        (half,) = runs_of(root, FINDINGS)
        assert half.info.status == "RUNNING" and half.data.tags["campaign.mirror"] == "half"
        assert sync(ledger) == [one.id]
    (run,) = runs_of(root, FINDINGS)
    assert run.info.run_id != half.info.run_id and run.data.tags["campaign.mirror"] == "whole"
    assert client_of(root).get_run(half.info.run_id).info.status == "KILLED"


def test_names_that_mlflow_refuses_become_legal_and_long_ones_are_cut(studied):
    one = by_kind(studied)["factorial"]
    term = Term("a[0]=@" + "x" * 300, Contrast(1.1, 1.0, 1.2, 4, 0.01))
    finding = replace(one.finding, terms=(term,))
    keys = found.finding_metrics(replace(one, finding=finding))
    assert all(len(key) <= 250 and not set(key) & set("[]=@+#,()") for key in keys)
    many = replace(one, finding=replace(finding, subjects=tuple(f"edit_{n}" for n in range(9))))
    assert words.about(many) == "edit_0, edit_1, edit_2, edit_3 and 5 more"


def test_a_note_of_a_finding_without_anything_is_its_sentence(studied):
    evidence = studied.study_evidence(by_kind(studied)["headline"].study_id)
    one = replace(by_kind(studied)["headline"], finding=Finding("headline", ("a",), "no finding: too noisy"))
    text = finding_note.finding_markdown(one, StudyEvidence(evidence.study))
    assert "no finding: too noisy." in text and "Figure" not in text
