"""`campaign profile` on real processes and the real torch.profiler: what is in the traces, what is written, and that no
time of it can reach a decision."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections import Counter

import pytest

from campaign.cli import main
from campaign.errors import Unavailable
from campaign.ledger import open_ledger
from tests.builders import PROJECT, laid_down
from tests.harness.test_main_job import kinds

# Control works 20 times a step, treatment 5: each time one aten::sub and one aten::mul. Beside them a step has two more
# aten::mul (the squared difference, the scaled gradient) and one more aten::sub (the update).
STEPS = 3
ASK = ["profile", "workload=tiny", "workload.tensors=true", "tracking=none", "hypothesis=no_sleep"]
EDIT = "hypothesis.edit.overrides=['workload.work=5']"
SUB, MUL = {"control": 21, "treatment": 6}, {"control": 22, "treatment": 7}
STILL = """
import torch

import tiny


class Still(tiny.Tiny):
    pass
"""


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """The runs/ of a project in which `no_sleep` was profiled, and what was printed."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        root = laid_down(PROJECT, tmp_path_factory.mktemp("profiled"), monkeypatch)
        with pytest.MonkeyPatch.context() as printing:
            said: list[str] = []
            printing.setattr("builtins.print", lambda *words, **_: said.append(" ".join(map(str, words))))
            assert main([*ASK, EDIT, "--steps", str(STEPS)]) == 0
        return root / "runs", "\n".join(said)


@pytest.fixture
def there(project, profiled):
    """A project with that ledger."""
    shutil.copytree(profiled[0], project / "runs", dirs_exist_ok=True)
    return project


def line(project):
    with open_ledger(project, "default", writable=False) as ledger:
        (row,) = [one for one in ledger.profile_rows() if one["kind"] == "profile"]
    return row


def trace(project, role):
    """The trace's events, read by nothing of ours."""
    with gzip.open(project / "runs/default" / line(project)[role]["raw"]) as file:
        return json.load(file)["traceEvents"]


@pytest.mark.parametrize("role", ["control", "treatment"])
def test_a_trace_holds_whole_steps_and_all_of_their_work(there, role):
    events = [event for event in trace(there, role) if event.get("ph") == "X"]
    steps = [event for event in events if event["name"].startswith("ProfilerStep#")]
    assert len({event["name"] for event in steps}) == STEPS
    operators = [event for event in events if event.get("cat") == "cpu_op"]
    counts = Counter(event["name"] for event in operators)
    assert (counts["aten::sub"], counts["aten::mul"]) == (STEPS * SUB[role], STEPS * MUL[role])
    for one in operators:
        assert any(step["ts"] <= one["ts"] <= one["ts"] + one["dur"] <= step["ts"] + step["dur"] for step in steps)


def test_the_line_has_the_traces_by_their_hash_and_no_time_of_any_step(there, capsys):
    assert kinds(there) == ["campaign", "profile"]
    body = line(there)
    assert (body["evidence"], body["hypothesis"], body["workload"], body["steps"]) == ("profile", "no_sleep", "tiny", 3)
    assert (body["stack"], body["activities"]) == ([], ["CPU"])
    assert (body["control"]["name"], body["treatment"]["name"]) == ("root", "root+no_sleep")
    assert body["command"].startswith("python -m campaign profile workload=tiny")
    assert body["command"].endswith("--steps 3")
    text = json.dumps({key: value for key, value in body.items() if key != "time"})
    assert not re.search(r'"[a-z_]*(seconds|_ns|_ms|duration|ratio|speedup|interval)"', text)
    assert {one["name"] for one in body["documents"]} == {"comparison.json", "comparison.md", "comparison.html"}
    assert main(["ledger", "--check"]) == 0
    # two traces and the three forms of their comparison
    assert "5 raw files, each of the content that its name says" in capsys.readouterr().out


def test_a_trace_that_was_altered_is_found_by_the_check(there, capsys):
    (there / "runs/default" / line(there)["control"]["raw"]).write_bytes(b"\x1f\x8b")
    assert main(["ledger", "--check"]) == 2
    assert "was altered" in capsys.readouterr().err


def test_the_comparison_is_printed_per_step_with_what_to_type_next(there, profiled, capsys):
    said = profiled[1]
    (sub,) = [row.split() for row in said.splitlines() if row.split()[:1] == ["aten::sub"]]
    assert sub[1:5] == ["21", "->", "6", "-15"]
    assert "no difference here is a speedup" in said
    assert "What gives a speedup: python -m campaign workload=tiny" in " ".join(said.split())
    raw = {role: f"runs/default/{line(there)[role]['raw']}" for role in ("control", "treatment")}
    assert f"  campaign diagnose {raw['control']} --record" in said
    assert main(["compare", raw["control"], raw["treatment"], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["comparison"]
    launches = {one["name"]: (one["before_launches"], one["after_launches"]) for one in found["kernels"]}
    assert (launches["aten::sub"], launches["aten::mul"]) == ((21, 6), (22, 7))
    assert found["matched"] is True and found["before_steps"]["count"] == STEPS


def test_a_diagnosis_of_its_trace_is_recorded_as_of_that_arm(there, capsys):
    body = line(there)
    path = f"runs/default/{body['treatment']['raw']}"
    assert main(["diagnose", path, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["diagnoses"][0]
    assert (shown["dispatch"]["steps"]["count"], shown["dispatch"]["steps"]["source"]) == (STEPS, "ProfilerStep#")
    # one thread: every instant is one operator's, so that the families add up to the union
    assert sum(one["summed_ns"] for one in shown["families"]["shares"]) == shown["families"]["busy_ns"]
    (there / "elsewhere.json.gz").write_bytes((there / path).read_bytes())
    assert main(["diagnose", "elsewhere.json.gz", "--record"]) == 0  # known by its content, not by its name
    with open_ledger(there, "default", writable=False) as ledger:
        row = ledger.last_diagnosis("tiny")
    assert (row["profile"], row["arm"], row["workload"], row["device"]) == (body["id"], "treatment", "tiny", "cpu")
    assert row["stack"] == ["no_sleep"]
    assert row["trace"] | {"sha256": ""} == {
        "file": "elsewhere.json.gz",
        "sha256": "",
        "bytes": body["treatment"]["bytes"],
        "raw": body["treatment"]["raw"],
    }
    assert row["diagnosis"]["families"]["busy_ns"] == shown["families"]["busy_ns"]
    assert {one["hypothesis"] for one in row["diagnosis"]["ideas"]} >= {"no_sleep", "more_sleep"}
    assert main(["ledger", "--check"]) == 0


def test_json_is_one_object_with_both_files(project, capsys):
    assert main([*ASK, EDIT, "--steps", "1", "--json", "--campaign", "looks"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["schema"], answer["evidence"], answer["steps"]) == (1, "profile", 1)
    assert answer["comparison"]["total"]["before_launches"] > answer["comparison"]["total"]["after_launches"]
    assert answer["ledger"] == str(project / "runs/looks/ledger.jsonl")
    assert [answer["traces"][role] for role in ("control", "treatment")] == [
        str(project / "runs/looks" / answer[role]["raw"]) for role in ("control", "treatment")
    ]


def test_a_workload_without_torch_is_unavailable_and_says_why(project, capsys):
    assert main(["profile", "workload=tiny", "tracking=none", "hypothesis=no_sleep", EDIT]) == 3
    assert "tiny.Tiny never imported torch" in capsys.readouterr().err
    assert not (project / "runs/default").exists()


@pytest.mark.slow
def test_a_workload_that_runs_no_operator_of_torch_is_unavailable(project, capsys):
    (project / "still.py").write_text(STILL)
    text = (project / "conf/workload/tiny.yaml").read_text()
    (project / "conf/workload/still.yaml").write_text(text.replace("tiny.Tiny", "still.Still"))
    assert main(["profile", "workload=still", "tracking=none", "hypothesis=no_sleep", EDIT]) == Unavailable.exit_code
    assert "ran none of its operators" in capsys.readouterr().err
    assert not (project / "runs/default/ledger.jsonl").exists()


def test_an_arm_that_fails_ends_with_3_and_keeps_its_log_and_a_sweep_with_4(project, capsys):
    words = [*ASK, EDIT, "workload.fault=raise", "--steps", "1"]
    assert main(words) == 3
    said = capsys.readouterr().err
    assert "profile of control: ValueError: the step was told to fail" in said
    (log,) = (project / "runs/default/raw").glob("*.log")
    assert str(log) in said and "the step was told to fail" in log.read_text()
    assert main([*words, "-m"]) == 4


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--steps", "0"], "at least 1 whole step"),
        (["hypothesis=no_slep"], "no hypothesis 'no_slep'"),
        (["--step", "3"], "did you mean '--steps'?"),
    ],
)
def test_wrong_words_end_with_2_before_anything_is_started(project, capsys, words, says):
    assert main(["profile", "workload=tiny", *words]) == 2
    assert says in capsys.readouterr().err
    assert list((project / "runs").iterdir()) == []
