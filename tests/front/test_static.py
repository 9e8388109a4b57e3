"""`campaign static`: both arms asked in processes of their own, the answer in the ledger as static evidence."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.cli import main
from campaign.ledger import open_ledger
from campaign.static import occupancy
from tests.builders import PROJECT

REPOSITORY = Path(__file__).resolve().parents[2]

# A workload with kernels to report: one compiled for Hopper, whose registers are an edit, and one that cannot be.
KERNELLED = """
import tiny


class Kernelled(tiny.Tiny):
    @classmethod
    def static(cls, config):
        print("asked without a build")
        if config["fault"] == "raise":
            raise ValueError("the report was told to fail")
        numbers = dict(stack_bytes=0, spill_store_bytes=0, spill_load_bytes=0, shared_bytes=0, spill_instructions=None)
        named = dict(kernel="backward", variant=f"cap {config['work']}", status="ok", reason="", remedy="")
        hopper = named | numbers | dict(target="sm_90", registers=config["work"], threads=128)
        missing = dict.fromkeys(numbers) | dict(registers=None, threads=None, status="unavailable")
        missing |= dict(reason="a pass failed", remedy="wait for another release")
        blackwell = named | missing | dict(target="sm_100")
        return [blackwell] if config["fault"] == "nothing" else [hopper, blackwell]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose `tiny` has no static evidence and whose `kernelled` has; leases and ledgers are its own."""
    root = tmp_path / "project"
    shutil.copytree(REPOSITORY / "conf", root / "conf")
    shutil.copytree(PROJECT, root, dirs_exist_ok=True)
    (root / "runs").mkdir()
    (root / "kernelled.py").write_text(KERNELLED)
    text = (root / "conf/workload/tiny.yaml").read_text()
    (root / "conf/workload/kernelled.yaml").write_text(text.replace("tiny.Tiny", "kernelled.Kernelled"))
    for cap in (255, 128):
        edit = (root / "conf/hypothesis/no_sleep.yaml").read_text().replace("no_sleep", f"cap_{cap}")
        edit = edit.replace("workload.sleep=0.0", f"workload.work={cap}")
        (root / f"conf/hypothesis/cap_{cap}.yaml").write_text(edit)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(root)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    return root


ASK = ["static", "workload=kernelled", "workload.work=255"]


def entries(project, campaign="default"):
    with open_ledger(project, campaign, writable=False) as ledger:
        return list(ledger.store.entries(verify=True))


def test_both_arms_are_compiled_compared_and_written_as_static_evidence(project, capsys):
    assert main([*ASK, "hypothesis=cap_128"]) == 0
    said = capsys.readouterr().out
    lines = [line.split() for line in said.splitlines()]
    # 255 registers: 8 of 64 warps. 128: 128 x 32 = 4,096 a warp, 4 a partition, 16 warps.
    assert ["backward", "sm_90", "control", "cap", "255", "255"] == lines[3][:6]
    assert "8 (12.5 %, registers)" in said
    assert ["treatment", "cap", "128", "128"] == lines[4][:4]
    assert "16 (25.0 %, registers)" in said
    assert "unavailable: backward on sm_100: a pass failed\n  try: wait for another release" in said
    assert "no effect comes from it" in said
    kinds = [entry.kind for entry in entries(project)]
    assert kinds == ["campaign", "static"]
    body = entries(project)[-1].body
    assert (body["evidence"], body["hypothesis"], body["workload"]) == ("static", "cap_128", "kernelled")
    assert body["control"]["rows"][0]["registers"] == 255
    assert body["treatment"]["rows"][0]["occupancy"] == {
        "blocks": 4,
        "warps": 16,
        "share": 0.25,
        "limited_by": ["registers"],
    }
    assert body["command"] == "python -m campaign static workload=kernelled workload.work=255 hypothesis=cap_128"
    assert main(["ledger", "--check"]) == 0


def test_json_is_the_entry_on_stdout_and_options_may_stand_between_overrides(project, capsys):
    assert main(["static", "workload=kernelled", "--json", "hypothesis=cap_255", "--campaign", "looks"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["schema"], answer["evidence"]) == (1, "static")
    assert answer["treatment"]["rows"][0]["registers"] == 255
    assert answer["ledger"] == str(project / "runs/looks/ledger.jsonl")
    assert {key: answer[key] for key in entries(project, "looks")[-1].body} == entries(project, "looks")[-1].body


def test_arms_that_agree_are_one_line(project, capsys):
    assert main([*ASK, "hypothesis=cap_255"]) == 0
    said = capsys.readouterr().out
    assert [line.split()[2] for line in said.splitlines() if line.startswith("backward")] == ["both", "both"]


def test_sweep_looks_at_each(project, capsys):
    assert main(["static", "-m", "workload=kernelled", "hypothesis=cap_255,cap_128"]) == 0
    assert [entry.body["hypothesis"] for entry in entries(project)[1:]] == ["cap_255", "cap_128"]


def test_nothing_that_could_be_compiled_ends_with_3_and_is_written_with_its_reasons(project, capsys):
    assert main([*ASK, "hypothesis=cap_128", "workload.fault=nothing"]) == 3
    assert "a pass failed" in capsys.readouterr().out
    rows = entries(project)[-1].body["treatment"]["rows"]
    assert [(row["status"], row["occupancy"]) for row in rows] == [("unavailable", None)]


def test_workload_without_static_evidence_says_so(project, capsys):
    assert main(["static", "workload=tiny", "hypothesis=no_sleep"]) == 3
    said = capsys.readouterr()
    assert "tiny.Tiny offers no static evidence: it has no static(config)" in said.err
    assert "classmethod static(config)" in said.err
    assert not (project / "runs/default/ledger.jsonl").exists()


def test_report_that_fails_ends_with_3_and_keeps_its_log(project, capsys):
    assert main([*ASK, "hypothesis=cap_128", "workload.fault=raise"]) == 3
    said = capsys.readouterr().err
    assert "static evidence of control: ValueError: the report was told to fail" in said
    (log,) = (project / "runs/default/raw").glob("*.log")
    assert str(log) in said
    assert "asked without a build" in log.read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["hypothesis=cap_12"], "no hypothesis 'cap_12'"),
        (["hypothesis=cap_128", "workload.wrk=3"], "did you mean"),
        (["cap_128"], "'cap_128' is not an override"),
        (["--multi"], "did you mean '--multirun'?"),
        (["--campaign", "a", "campaign.name=b"], "the same thing twice"),
    ],
)
def test_wrong_words_end_with_2_before_anything_is_started(project, capsys, words, says):
    assert main(["static", "workload=kernelled", *words]) == 2
    assert says in capsys.readouterr().err
    assert list((project / "runs").iterdir()) == []


def test_help_is_light(project):
    script = "import sys; from campaign.cli import main; print(main(['static', '--help'])); print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    code, modules = done.stdout.splitlines()[-2:]
    assert code == "0"
    assert "campaign static hypothesis=register_cap" in done.stdout
    assert not {"torch", "hydra", "numpy", "yaml", "omegaconf", "triton"} & set(eval(modules))


@pytest.mark.parametrize(
    "row",
    [
        {"target": "cpu", "registers": 32, "threads": None, "shared_bytes": None},
        {"target": "sm_999", "registers": 32, "threads": 128, "shared_bytes": 0},
        {"target": "sm_90", "registers": None, "threads": None, "shared_bytes": None},
        {"target": "sm_90", "registers": 300, "threads": 128, "shared_bytes": 0},
    ],
)
def test_a_row_that_no_table_covers_has_no_occupancy(row):
    assert occupancy(row) is None
