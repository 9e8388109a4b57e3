"""What `sync` leaves in MLflow, read back through MLflow's own client. Numbers: see campaigns.py's docstring."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

import pytest

from campaign.errors import UnknownName
from campaign.ledger import RawDamaged
from campaign.records import INVALID, Verdict
from campaign.tracking import store, sync
from tests.tracking import campaigns


def client_of(root: Path):
    return store.open_client(root)


def runs_of(root: Path, condition: str = "tags.`campaign.kind` = 'decision'", name: str = campaigns.CAMPAIGN):
    client = client_of(root)
    experiment = client.get_experiment_by_name(name)
    found = client.search_runs([experiment.experiment_id], condition, max_results=1000)
    return sorted(found, key=lambda run: run.data.metrics.get("sequence", 0))


def root_of(ledger: campaigns.Ledger) -> Path:
    return ledger.folder.parent.parent


def test_a_decision_becomes_a_run_that_says_how_much_and_how_sure(mirrored):
    run = runs_of(root_of(mirrored))[0]
    metrics, tags, params = run.data.metrics, run.data.tags, run.data.params
    assert run.info.run_name == "01 ACCEPT +4.1 % prenorm_fusion"
    assert run.info.status == "FINISHED"
    assert (metrics["ratio"], metrics["ratio_low"], metrics["ratio_high"]) == (1.0408, 1.0219, 1.0601)
    assert metrics["gain_pct"] == 4.0811
    assert (metrics["tokens_per_second/control"], metrics["tokens_per_second/treatment"]) == (5069.3, 5276.2)
    assert (metrics["peak_memory_mib/control"], metrics["peak_memory_mib/treatment"]) == (512, 480)
    assert (metrics["rounds"], metrics["alpha_spent"], metrics["sequence"]) == (4, 0.002, 1)
    assert (tags["verdict"], tags["reason"], tags["stack"], tags["clock"]) == ("accept", "faster", "root", "cpu")
    assert (tags["device"], tags["low_precision"], tags["hypothesis"]) == ("cpu", "emulated", "prenorm_fusion")
    assert tags["campaign.decision_id"] == "prenorm_fusion-plan-1-decision"
    assert tags["mlflow.source.name"] == "python -m campaign hypothesis=prenorm_fusion workload=hybrid_tiny"
    assert tags["mlflow.source.git.commit"].startswith("0123456789") and tags["mlflow.source.git.branch"] == "main"
    assert params["changes/ops.prenorm"] == "eager -> cpu"
    assert params["protocol/looks"] == "[4, 6, 8, 12]"
    # 12:02:00 is the decision; it took 4 rounds of 30 s and a probe of 4 s.
    assert run.info.end_time - run.info.start_time == 124_000


def test_the_description_begins_with_the_verdict_in_plain_words(mirrored):
    first = runs_of(root_of(mirrored))[0].data.tags["mlflow.note.content"].splitlines()[0]
    assert first.startswith(
        "Accepted: prenorm_fusion, 1.041x whole-step speed (95 % interval [1.022, 1.060], 4 rounds, cpu clock), "
        "peak memory -32.0 MiB."
    )
    assert not set("*#`|") & set(first)


def test_each_metric_of_a_decision_has_one_point_and_no_digit_too_many(mirrored):
    root = root_of(mirrored)
    run = runs_of(root)[0]
    for key, value in run.data.metrics.items():
        assert len(client_of(root).get_metric_history(run.info.run_id, key)) == 1
        assert len(repr(value).replace(".", "").strip("0")) <= 6, (key, value)


def test_each_round_and_arm_is_a_nested_run_with_its_block_times(mirrored):
    root = root_of(mirrored)
    parent = runs_of(root)[0]
    trials = runs_of(root, f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'")
    assert {run.info.run_name for run in trials} == {
        f"screen 0{number} {arm}" for number in (1, 2, 3, 4) for arm in ("control", "treatment")
    }
    second = next(run for run in trials if run.info.run_name == "screen 02 treatment")
    points = client_of(root).get_metric_history(second.info.run_id, "block_step_ms/cpu")
    own = [block for block in campaigns.blocks(1, 40, 0.1, math.exp(0.05)) if block.arm == "treatment"]
    assert [point.step for point in points] == [block.position for block in own]
    assert [point.value for point in points] == pytest.approx([1e3 * block.cpu_seconds for block in own], rel=1e-5)
    assert second.data.metrics["peak_memory_mib"] == 480
    assert second.info.end_time - second.info.start_time == 30_000


def test_the_artifacts_are_what_a_reviewer_asks_for(mirrored):
    root = root_of(mirrored)
    run = runs_of(root)[0]
    folder = Path(run.info.artifact_uri.removeprefix("file://"))
    assert folder.is_relative_to(root / "runs" / "artifacts" / "demo")
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    logs = {f"logs/screen-0{number}-{arm}.txt" for number in (1, 2, 3, 4) for arm in ("control", "treatment")}
    assert names == logs | {
        "decision.md", "evidence.json", "environment.json", "probe.json", "code.patch.txt", "figures/decision.png",
        "configs/control.json", "configs/treatment.json",
    }  # fmt: skip
    assert (folder / "code.patch.txt").read_bytes() == campaigns.PATCH
    assert "control of round 2" in (folder / "logs/screen-03-control.txt").read_text()


def test_a_patch_of_any_length_is_copied_whole_and_only_a_log_is_cut(root):
    patch = campaigns.PATCH + b"+" + 1_200_000 * b"x" + b"\n"
    log = 1_200_000 * b"y"
    with campaigns.open_ledger(root, campaigns.CAMPAIGN, writable=True) as ledger:
        logs = {"control": {"log": ledger.keep(log, ".log")}}
        kept = ledger.keep(patch, ".patch")
        sha256 = kept.removeprefix("raw/").removesuffix(".patch")
        campaigns.prenorm(ledger, trials=logs, source={"status": "ok", "patch_sha256": sha256})
        sync(ledger)
    (run,) = runs_of(root)
    folder = Path(run.info.artifact_uri.removeprefix("file://"))
    assert (folder / "code.patch.txt").read_bytes() == patch
    assert (folder / "logs/screen-04-control.txt").read_bytes() == (
        b"... (the last 1000000 of 1200000 bytes)\n" + 1_000_000 * b"y"
    )


def test_a_second_sync_writes_nothing(mirrored):
    before = [run.info.run_id for run in runs_of(root_of(mirrored))]
    assert len(before) == 6
    assert sync(mirrored) == []
    assert [run.info.run_id for run in runs_of(root_of(mirrored))] == before


def test_one_decision_alone_is_mirrored_when_one_is_asked_for(one, root):
    second = campaigns.parity_red(one).id
    assert sync(one, [second]) == [second]
    assert [run.data.tags["hypothesis"] for run in runs_of(root)] == ["precision_tail"]


def test_a_decision_that_the_ledger_lacks_is_an_unknown_name(one):
    with pytest.raises(UnknownName, match="prenorm_fusion-plan-1-decision"):
        sync(one, ["prenorm_fusion-plan-2-decision"])


def test_statuses_tell_decided_from_undecided(mirrored):
    statuses = {run.data.tags["hypothesis"]: run.info.status for run in runs_of(root_of(mirrored))}
    assert statuses == {
        "prenorm_fusion": "FINISHED", "shared_activation_quant": "FINISHED", "no_checkpointing": "FINISHED",
        "weight_cache": "FINISHED", "precision_tail": "FAILED", "triton_prenorm": "FAILED",
    }  # fmt: skip


def test_what_was_stopped_or_crashed_says_so(root):
    with campaigns.open_ledger(root, campaigns.CAMPAIGN, writable=True) as ledger:
        campaigns.add(
            ledger, "stopped", Verdict(INVALID, "interrupted", "It was stopped."), (0.0,),
            trials={"control": {"status": "crashed", "message": "exit code 1"}, "treatment": {"status": "killed"}},
        )  # fmt: skip
        sync(ledger)
    (parent,) = runs_of(root)
    assert parent.info.status == "KILLED"
    trials = runs_of(root, f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'")
    assert {run.data.tags["arm"]: run.info.status for run in trials} == {"control": "FAILED", "treatment": "KILLED"}
    assert any("exit code 1" in run.data.tags["mlflow.note.content"] for run in trials)


def test_a_revoked_decision_is_marked_and_leaves_the_scoreboards_stack(one, root):
    sync(one)
    one.append("revoked", "revoked-1", {"decision_id": "prenorm_fusion-plan-1-decision", "why": "slower as a whole"})
    later = campaigns.parity_red(one).id
    assert sync(one, [later]) == [later]
    run = runs_of(root)[0]
    assert run.info.run_name == "01 REVOKED accept +4.1 % prenorm_fusion"
    assert run.data.tags["verdict"] == "revoked (accept)"
    assert run.data.tags["mlflow.note.content"].startswith("Revoked later, no longer in the stack. Accepted:")
    note = client_of(root).get_experiment_by_name("demo").tags["mlflow.note.content"]
    assert note.splitlines()[0] == "**demo: 2 decisions, accepted: none**"


def test_a_ruling_is_marked_with_its_reason_and_moves_the_scoreboards_stack(root):
    with campaigns.whole(root) as ledger:
        sync(ledger)
        by_name = {one.hypothesis: one.id for one in ledger.decisions()}
        ledger.rule(by_name["shared_activation_quant"], "accept", "Memory matters more here.")
        ledger.rule(by_name["prenorm_fusion"], "reject", "It breaks resume.")
        assert sync(ledger) == []
    first, second = runs_of(root)[:2]
    assert first.info.run_name == "01 RULED REJECT accept +4.1 % prenorm_fusion"
    assert (first.data.tags["verdict"], first.data.tags["ruling"]) == (
        "ruled reject (accept)",
        "reject: It breaks resume.",
    )
    assert second.info.run_name == "02 RULED ACCEPT reject -0.1 % shared_activation_quant"
    said = second.data.tags["mlflow.note.content"]
    assert said.startswith("A person ruled accept: Memory matters more here. As measured: Rejected: ")
    note = client_of(root).get_experiment_by_name("demo").tags["mlflow.note.content"]
    assert note.splitlines()[0] == "**demo: 6 decisions, accepted: no_checkpointing + shared_activation_quant**"
    assert "| ruled accept (reject)" in note


def test_an_edit_alone_and_with_the_stack_has_metrics_a_word_and_a_table(mirrored):
    first, third = (runs_of(root_of(mirrored))[place].data for place in (0, 2))
    found = {key: third.metrics[key] for key in ("isolated", "cumulative", "interaction")}
    assert found == {"isolated": 1.2214, "cumulative": 1.2092, "interaction": 0.9512}
    assert (third.metrics["isolated_low"], third.metrics["isolated_high"]) == (1.2, 1.243)
    # 14, 16, -18 and -2 MiB
    sizes = [third.metrics[f"memory_mib/{part}"] for part in ("marginal", "isolated", "cumulative", "interaction")]
    assert sizes == [14, 16, -18, -2]
    assert (first.tags["word"], third.tags["word"]) == ("first on root", "redundancy")
    assert "isolated" not in first.metrics
    said = third.tags["mlflow.note.content"]
    assert "| isolated: on root\u00a0 | 1.221x [1.200, 1.243]\u00a0 | +16.0 MiB [+15.0 MiB, +17.0 MiB]\u00a0 |" in said
    assert "**redundancy**: together they win less than the product" in said


def test_a_decision_on_a_stack_that_moved_says_stale_in_its_name(root):
    with campaigns.open_ledger(root, campaigns.CAMPAIGN, writable=True) as ledger:
        campaigns.add(ledger, "late", Verdict(INVALID, "stale", "The stack moved.", look=1), (0.04, 0.04))
        sync(ledger)
    (run,) = runs_of(root)
    assert run.info.run_name == "01 INVALID STALE late" and run.data.tags["reason"] == "stale"


def test_the_scoreboard_has_the_stack_first_then_the_rest_best_first(mirrored):
    note = client_of(root_of(mirrored)).get_experiment_by_name("demo").tags["mlflow.note.content"]
    assert note.splitlines()[0] == "**demo: 6 decisions, accepted: prenorm_fusion + no_checkpointing**"
    # e^.04 * e^.15 = e^.19 = 1.2092
    assert "product of the single ratios is 1.209x" in note
    order = [
        "prenorm_fusion", "no_checkpointing", "weight_cache", "shared_activation_quant", "precision_tail",
        "triton_prenorm",
    ]  # fmt: skip
    places = [note.index(f" {name}\u00a0") for name in order]
    assert places == sorted(places)
    # .002 + .002 + .004 + .01; the probe ended the other two, so no look was taken at them
    assert "Tests run: 4, alpha spent in all: 0.018." in note


def test_a_run_deleted_by_hand_is_written_again(one, root):
    sync(one)
    (run,) = runs_of(root)
    client_of(root).delete_run(run.info.run_id)
    assert sync(one) == ["prenorm_fusion-plan-1-decision"]
    assert len(runs_of(root)) == 1


def test_an_experiment_deleted_by_hand_is_restored_with_its_runs(one, root):
    sync(one)
    (run,) = runs_of(root)
    client_of(root).delete_experiment(run.info.experiment_id)
    assert sync(one) == []
    assert [found.info.run_id for found in runs_of(root)] == [run.info.run_id]


def test_the_environment_cannot_redirect_a_mirror(one, root, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/elsewhere.db")
    monkeypatch.setenv("MLFLOW_RUN_ID", "0" * 32)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "77")
    monkeypatch.chdir(tmp_path)
    sync(one)
    assert len(runs_of(root)) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"project"}


def test_long_values_are_cut_with_a_word_about_it_and_odd_names_are_made_legal(root):
    with campaigns.open_ledger(root, campaigns.CAMPAIGN, writable=True) as ledger:
        campaigns.prenorm(ledger, overrides=("ops.a[0],@+#=" + 7000 * "x",))
        sync(ledger)
    (run,) = runs_of(root)
    value = run.data.params["changes/ops.a_0_____"]
    # '(absent) -> ' and 7,000 letters.
    assert "cut at 5900 of 7012 characters" in value and len(value) < 6000


def test_a_decision_with_damaged_blocks_is_refused_and_the_others_are_mirrored(one, root):
    campaigns.parity_red(one)
    blocks = one.evidence("prenorm_fusion-plan-1").rounds[0].blocks_file
    one.path(blocks).write_bytes(b"{}\n")
    with pytest.raises(RawDamaged):
        sync(one)
    assert [run.data.tags["hypothesis"] for run in runs_of(root)] == ["precision_tail"]


def test_the_mirror_stores_nothing_that_is_not_a_finite_number(mirrored):
    with sqlite3.connect(root_of(mirrored) / "runs" / "mlflow.db") as database:
        assert database.execute("SELECT count(*) FROM metrics WHERE is_nan OR abs(value) > 1e300").fetchone() == (0,)
        # 4 + 4 + 6 + 12 rounds of 80 blocks on two clocks, and some.
        assert database.execute("SELECT count(*) FROM metrics").fetchone()[0] > 26 * 160
