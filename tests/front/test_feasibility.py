"""`campaign feasibility` as a person calls it: case F from the command line, case B from a recorded diagnosis, rates
from a ledger, and the device measured."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.cli import main
from tests.front import profiles
from tests.report import together, written

REPOSITORY = Path(__file__).resolve().parents[2]
CASE_F = ("--tokens-per-second", "14.08k", "--parameters", "1.0009e9", "--tokens-per-parameter", "20", "--days", "7")
GOAL = CASE_F[2:]
VERDICT = (
    "not reachable by kernel work on this device: more or faster devices, a smaller budget, or a precision/algorithm "
    "redesign"
)
# Case B: 100 us of which GEMM has 24.8, the recurrent mixer 22.4, pointwise 12.3 and quantization 10.9; the chapter
# does not name the rest, here three families of about a tenth each.
CASE_B = (
    (profiles.GEMM, 24.8),
    ("chunk_gated_delta_rule_fwd_kernel_h_blockdim64", 22.4),
    ("triton_poi_fused_addmm_gelu_view_15", 12.3),
    ("per_token_group_quant_8bit_kernel", 10.9),
    ("_attn_fwd", 10.0),
    (profiles.NORM, 9.6),
    ("void at::native::multi_tensor_apply_kernel<adam>", 10.0),
)


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A working directory that is no project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    return tmp_path


@pytest.fixture
def own_project(add, project):
    """A project that writes no MLflow."""
    config = project / "conf/config.yaml"
    config.write_text(config.read_text().replace("tracking: {uri: null}", "tracking: none"))
    return project


def asked(capsys, *words: str) -> dict:
    assert main(["feasibility", *words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["schema"], answer["evidence"]) == (1, "arithmetic")
    return answer["feasibility"]


def trace_of_case_b(path: Path) -> str:
    start, work = 0.0, []
    for name, duration in CASE_B:
        work.append((name, "kernel", start, duration))
        start = round(start + duration, 3)
    return str(profiles.kineto(path, work, steps=1))


def test_case_f_outside_a_project(nowhere, capsys):
    found = asked(capsys, *CASE_F)
    assert found["goal"]["token_budget"] == 20_018_000_000
    assert round(found["required_tokens_per_second"], -2) == 33_100
    (pace,) = found["paces"]
    assert (round(pace["gap"], 2), math.floor(100 * pace["lower_bound_days"]) / 100) == (2.35, 16.45)
    assert (found["verdict"], found["sentence"]) == ("not on this device", VERDICT)
    assert found["would_do"]["devices"] == 3
    assert found["excluded"] == ["optimizer", "evaluation", "checkpoint", "input"]


@pytest.mark.parametrize("form", [(), ("--export", "md")])
def test_terminal_and_page_have_every_published_figure(nowhere, capsys, form):
    assert main(["feasibility", *CASE_F, "--device", "h100", *form]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for figure in ("20.018B tokens", "33.10k tok/s", "2.35x", "16.45 days", f"not on this device: {VERDICT}"):
        assert figure in said
    assert "\x1b" not in said
    # 6 x 1.0009e9 x 14,080 / 989.5e12 = 8.545 %, and 2.35 times that
    assert "6.0054B operations" in said and "8.55 %" in said and "20.1 %" in said
    assert "nvidia-tensor-core-gpu-datasheet" in said  # the table's source
    assert "Excluded: optimizer, evaluation, checkpoint, input" in said


def test_a_budget_given_outright_and_in_other_units_is_the_same_question(nowhere, capsys):
    words = ("--tokens-per-second", "14080 tok/s", "--token-budget", "20.018B", "--days", "168h")
    found = asked(capsys, *words)
    assert found["paces"][0]["gap"] == pytest.approx(asked(capsys, *CASE_F)["paces"][0]["gap"])
    assert found["would_do"]["parameters"] is None and found["flops_per_token"] is None


def test_page_goes_to_a_file(nowhere, capsys):
    assert main(["feasibility", *CASE_F, "--export", "md", "--out", "page.md"]) == 0
    assert (nowhere / "page.md").read_text().startswith("# Feasibility of 20.018B tokens in 7 days\n")
    assert capsys.readouterr().out == ""


def test_case_b_s_argument_against_case_f_from_a_recorded_diagnosis(own_project, capsys):
    trace = trace_of_case_b(own_project / "step.json")
    assert main(["diagnose", trace, "--record", "--campaign", "chapter"]) == 0
    capsys.readouterr()
    found = asked(capsys, *CASE_F, "--campaign", "chapter")
    ceilings = found["ceilings"]
    removed = {one["family"]: one["removed"] for one in ceilings["families"]}
    assert removed["recurrent"] == pytest.approx(1.289, abs=5e-4)
    assert removed["gemm_bf16"] == pytest.approx(1 / 0.752)
    assert max(removed.values()) < 2.35  # no single family reaches it
    assert ceilings["families_needed"] == 3  # several large ones: 24.8 + 22.4 + 12.3 = 59.5 of the 57.5 % needed
    assert ceilings["best_kernels"] == pytest.approx(2.0)
    assert (found["verdict"], found["sentence"]) == ("not on this device", VERDICT)
    assert "No single family reaches 2.35x" in found["why"]
    # what the project's own ideas claim is counted, each for no more than its ceiling
    counted = {one["hypothesis"]: one["counted"] for one in ceilings["ideas"]}
    assert counted["compile"] == pytest.approx(1 / 0.877)  # predicts 1.2
    assert ceilings["claimed"] == pytest.approx(math.prod(counted.values())) and ceilings["claimed"] < 2.35


def test_recorded_diagnosis_names_the_ideas_that_would_have_to_win(own_project, capsys):
    assert main(["diagnose", trace_of_case_b(own_project / "step.json"), "--record", "--campaign", "chapter"]) == 0
    capsys.readouterr()
    words = (*CASE_F[:-1], "14", "--campaign", "chapter")
    found = asked(capsys, *words)
    assert found["verdict"] == "reachable if these ideas win"
    assert {one["hypothesis"] for one in found["ideas"]} <= {one["hypothesis"] for one in found["ceilings"]["ideas"]}
    assert found["ideas_product"] >= found["paces"][0]["gap"] == pytest.approx(1.175, abs=5e-4)
    assert main(["feasibility", *words]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"reachable if these ideas win: {found['ideas'][0]['hypothesis']}" in said and "1.18x is needed" in said
    without = asked(capsys, *words, "--without-diagnosis")
    assert without["ceilings"] is None and without["ideas"] == []


def test_rates_are_root_s_and_head_s_of_the_newest_decision(own_project, capsys):
    # 100 tokens a block; the accepted treatment takes 1 s, control e^.10 s
    with written.opened(own_project) as ledger:
        written.faster(ledger)
    root, head = asked(capsys, *GOAL, "--campaign", "demo")["paces"]
    assert (root["rate"]["name"], head["rate"]["name"]) == ("root", "head")
    assert root["rate"]["tokens_per_second"] == pytest.approx(100 / math.exp(0.10), rel=1e-3)
    assert head["rate"]["tokens_per_second"] == pytest.approx(100)
    assert "decision 1 (prenorm_fusion)" in head["rate"]["source"]


def test_a_rejected_edit_leaves_head_where_control_was(own_project, capsys):
    with written.opened(own_project) as ledger:
        written.slower(ledger)
    found = asked(capsys, *GOAL, "--campaign", "demo")
    root, head = found["paces"]
    assert root["rate"]["tokens_per_second"] == head["rate"]["tokens_per_second"]
    assert head["rate"]["tokens_per_second"] == pytest.approx(100 * math.exp(0.10), rel=1e-3)
    assert found["notes"] == []


def test_a_decision_on_a_stack_knows_root_from_its_own_rounds(own_project, capsys):
    # root takes 1 s; head is faster by the logs .10 + .08
    with written.opened(own_project) as ledger:
        together.two_edits(ledger)
    root, head = asked(capsys, *GOAL, "--campaign", "demo")["paces"]
    assert root["rate"]["tokens_per_second"] == pytest.approx(100, rel=5e-3)
    assert head["rate"]["tokens_per_second"] == pytest.approx(100 * math.exp(0.18), rel=5e-3)


def test_a_newer_headline_stands_before_decisions_and_a_moved_stack_is_said(own_project, capsys):
    with written.opened(own_project) as ledger:
        together.two_edits(ledger)
        together.headline(ledger)
    found = asked(capsys, *GOAL, "--campaign", "demo")
    root, head = (one["rate"] for one in found["paces"])
    assert root["tokens_per_second"] == pytest.approx(100)
    assert head["tokens_per_second"] == pytest.approx(100 * math.exp(0.15), rel=5e-3)
    assert head["source"].startswith("finding 1") and found["notes"] == []
    with written.opened(own_project) as ledger:
        ledger.revoke(ledger.stack_rows()[-1]["id"], "it broke a later job")
    (note,) = asked(capsys, *GOAL, "--campaign", "demo")["notes"]
    assert note.startswith("the stack moved since finding 1") and "campaign revalidate" in note


def test_rates_on_the_cpu_clock_say_that_the_wall_takes_longer(own_project, capsys):
    with written.opened(own_project) as ledger:
        row = json.loads(json.dumps(written.faster(ledger).verdict.effect.__dict__))
    from campaign.feasibility import recorded

    body = {"id": "x", "hypothesis": "x", "sequence": 1, "line": 2, "revoked": False, "stack": []}
    decision = {**body, "verdict": {"verdict": "accept", "effect": {**row, "clock": "cpu"}, "beside": None}}
    rates, notes = recorded.rates([], [decision], [decision])
    assert {one.clock for one in rates} == {"cpu"} and "the wall takes at least as long" in notes[0]
    beside = {**row, "clock": "wall", "treatment_tokens_per_second": 90.0}
    decision["verdict"]["beside"] = beside
    rates, notes = recorded.rates([], [decision], [decision])
    assert (rates[-1].tokens_per_second, rates[-1].clock, notes) == (90.0, "wall", [])


def test_answer_from_a_ledger_and_the_table_imports_nothing_heavy(own_project):
    with written.opened(own_project) as ledger:
        written.faster(ledger)
    script = (
        "import sys; from campaign.cli import main; code = main(sys.argv[1:]);"
        "heavy = {'torch', 'mlflow', 'pandas', 'hydra', 'omegaconf', 'scipy', 'git', 'matplotlib'};"
        "print('HEAVY', code, sorted({name.split('.')[0] for name in sys.modules} & heavy))"
    )
    words = ["feasibility", *GOAL, "--campaign", "demo", "--device", "h200"]
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=own_project,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "HEAVY 0 []", done.stderr


@pytest.mark.slow
def test_measured_device_stands_beside_the_datasheet_and_limits_nothing(nowhere, capsys, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(nowhere))  # a lease of its own
    monkeypatch.setattr("tempfile.tempdir", None)
    found = asked(capsys, *CASE_F, "--device", "h100", "--measure", "cpu")
    datasheet, measured = (one["roof"] for one in found["paces"][0]["utilisations"])
    assert (datasheet["kind"], measured["kind"]) == ("datasheet", "measured")
    # A core does 1 GFLOP/s and more in bf16, emulated or not; no CPU reaches a datacentre GPU's copy.
    assert 1e8 < measured["flops_per_second"] < 1e14
    assert 1e8 < measured["dram_bytes_per_second"] < 3e12
    assert measured["source"].startswith("a ") and "product and a copy here, torch" in measured["source"]
    assert "peak of" not in found["why"]  # the CPU would need far more than all of it
    assert not list(nowhere.glob("campaign-peaks-*"))
