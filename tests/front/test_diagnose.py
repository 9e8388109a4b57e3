"""`campaign diagnose` as a person calls it: any mixture of files, answers, refusals, in a project and outside one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.cli import main
from tests.front import profiles
from tests.report import written

REPOSITORY = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "mlflow", "pandas")


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A working directory that is no project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    return tmp_path


def asked(capsys, *words: str) -> dict:
    assert main(["diagnose", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["step.json", "step.json.gz", "misnamed.txt"])
def test_trace_is_read_by_its_content_and_counted_to_the_nanosecond(nowhere, capsys, name):
    answer = asked(capsys, str(profiles.kineto(nowhere / name)))
    assert (answer["schema"], answer["evidence"]) == (1, "profile")
    (found,) = answer["diagnoses"]
    (device,) = found["dispatch"]["devices"]
    assert (device["span_ns"], device["busy_ns"], device["idle_ns"]) == (200_000, 150_000, 50_000)
    assert found["dispatch"]["steps"]["count"] == 2
    families = {one["family"]: (one["charged_ns"], one["launches"]) for one in found["families"]["shares"]}
    assert families == {"gemm_bf16": (120_000, 2), "norm": (20_000, 1), "memcpy": (10_000, 1)}


def test_terminal_answer_says_the_same(nowhere, capsys):
    assert main(["diagnose", str(profiles.kineto(nowhere / "step.json"))]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "50.00 us" in said and "25.0 %" in said and "25.00 us" in said
    assert "80.0 %" in said  # GEMM: 120 of 150 us
    assert "Unclassified: 0 % of the busy time." in said
    assert said.rstrip().endswith("campaign hypothesis=NAME.")


def test_kernel_report_is_joined_by_name_to_every_trace(nowhere, capsys):
    one, two = profiles.kineto(nowhere / "one.json"), profiles.kineto(nowhere / "two.json.gz")
    answer = asked(capsys, str(one), str(profiles.ncu(nowhere / "norm.csv")), str(two))
    assert [found["source"]["file"].rsplit("/", 1)[-1] for found in answer["diagnoses"]] == ["one.json", "two.json.gz"]
    for found in answer["diagnoses"]:
        (kernel,) = found["kernels"]
        assert kernel["launches_traced"] == 1
        assert kernel["share"] == pytest.approx(20 / 150)
        assert kernel["ceiling"] == pytest.approx(200 / 180)
        assert kernel["counters"]["registers_per_thread"] == 255


def test_kernel_is_joined_however_a_profiler_spells_its_template_arguments(nowhere, capsys):
    work = (("void tile<128, false, float>(float*)", "kernel", 0.0, 10.0),)
    trace = profiles.kineto(nowhere / "one.json", work, steps=1)
    report = profiles.ncu(nowhere / "tile.csv", "void tile<(int)128, (bool)0, float>(float *)")
    (found,) = asked(capsys, str(trace), str(report))["diagnoses"]
    assert found["unjoined"] == [] and found["kernels"][0]["launches_traced"] == 1


def test_kernel_that_the_trace_does_not_have_is_named(nowhere, capsys):
    trace, report = profiles.kineto(nowhere / "one.json"), profiles.ncu(nowhere / "x.csv", "lonely_kernel")
    (found,) = asked(capsys, str(trace), str(report))["diagnoses"]
    assert found["unjoined"] == ["lonely_kernel"]


def test_reports_alone_are_one_diagnosis_of_kernels(nowhere, capsys):
    (found,) = asked(capsys, str(profiles.ncu(nowhere / "norm.csv")))["diagnoses"]
    assert found["dispatch"] is None and found["families"] is None
    assert [kernel["share"] for kernel in found["kernels"]] == [None]


def test_target_and_steps_are_answered(nowhere, capsys):
    trace = str(profiles.kineto(nowhere / "step.json"))
    (found,) = asked(capsys, trace, "--target", "2X", "--steps", "4")["diagnoses"]
    # Without the GEMMs 80 of 200 us stay: 2.5x.
    assert [(one["families"], one["ratio"]) for one in found["ceilings"]["removing"]] == [(["gemm_bf16"], 2.5)]
    assert found["ceilings"]["halving"] == []
    assert found["dispatch"]["steps"]["count"] == 4


def test_pages_are_written_whole(nowhere, capsys):
    trace = str(profiles.kineto(nowhere / "step.json"))
    for form in ("md", "html"):
        assert main(["diagnose", trace, "--export", form, "--out", f"page.{form}"]) == 0
        assert f"written: page.{form}" in capsys.readouterr().err
    assert (nowhere / "page.md").read_text().startswith("# Diagnosis of ")
    assert (nowhere / "page.html").read_text().startswith("<!doctype html>")
    assert main(["diagnose", trace, "--json", "--out", "found.json"]) == 0
    assert json.loads((nowhere / "found.json").read_text())["schema"] == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "which file?"),
        (["--target", "1"], "a ratio above 1"),
        (["--target", "0.5x"], "a ratio above 1"),
        (["--target", "fast"], "a ratio above 1"),
        (["--target", "nan"], "a ratio above 1"),
        (["--target", "inf"], "a ratio above 1"),
        (["--steps", "0"], "at least 1 whole step"),
        (["--steps", "many"], "invalid int value"),
        (["--top", "0"], "at least 1"),
        (["--out", "x.md"], "--out needs a format"),
        (["--json", "--export", "md"], "two forms of one answer"),
        (["--export", "pdf"], "invalid choice"),
        (["--stesp", "3"], "did you mean '--steps'?"),
    ],
)
def test_wrong_words_end_with_2_and_say_what_to_type(nowhere, capsys, words, says):
    trace = [str(profiles.kineto(nowhere / "step.json"))] if words else []
    assert main(["diagnose", *trace, *words]) == 2
    said = capsys.readouterr().err
    assert says in said and "try:" in said


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file"),
        (b"", "is empty"),
        (b"hello, world\n", "text"),
        (b"\x1f\x8b\x08\x00" + 10 * b"garbage", "gzip"),
        (b'{"traceEvents": 7}', ""),
        (b"\x00" * 4096, ""),
    ],
)
def test_one_bad_file_among_several_is_named_and_nothing_is_half_shown(nowhere, capsys, content, says):
    good, bad = profiles.kineto(nowhere / "good.json"), nowhere / "bad.json"
    if content is not None:
        bad.write_bytes(content)
    assert main(["diagnose", str(good), str(bad)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "bad.json" in said.err and says in said.err and "Traceback" not in said.err


def test_folder_is_refused(nowhere, capsys):
    assert main(["diagnose", str(nowhere)]) == 2
    assert "directory" in capsys.readouterr().err.lower()


def test_errors_are_json_too_where_json_was_asked_for(nowhere, capsys):
    assert main(["diagnose", "nope.json", "--json"]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert (answer["error"], answer["exit_code"]) == ("BadInput", 2)


HOSTILE = "<script>alert(1)</script> | [go](javascript:x) \x1b[2J\u202e `x` # @me"


def test_hostile_kernel_names_stay_names_in_every_form(nowhere, capsys):
    trace = str(profiles.kineto(nowhere / "step.json", ((HOSTILE, "kernel", 0.0, 10.0),), steps=1))
    for words in ([], ["--export", "md"], ["--export", "html"], ["--json"]):
        assert main(["diagnose", trace, *words]) == 0
        said = capsys.readouterr().out
        assert {one for one in said if not one.isprintable()} - {"\n"} == set(), words
        if "html" in words:
            assert "<script" not in said and 'href="javascript' not in said
    assert json.loads(said)["diagnoses"][0]["families"]["shares"][0]["kernels"][0]["name"] == HOSTILE


def test_ideas_of_a_project_are_ranked_and_those_of_none_are_not(project, capsys, tmp_path):
    (found,) = asked(capsys, str(profiles.kineto(tmp_path / "step.json")))["diagnoses"]
    ideas = {one["hypothesis"]: one for one in found["ideas"]}
    assert ideas["prenorm_fusion"]["ceiling"] == pytest.approx(200 / 180)
    assert "aa_null" not in ideas


def test_ideas_that_cannot_exceed_the_floor_of_the_campaign_are_struck_out(project, add, capsys, tmp_path):
    with written.opened(project, "default") as ledger:
        written.slower(ledger)  # its plan's d is 3 %
    # A norm of 4 us in 200: at most 200 / 196 = 1.020x.
    work = ((profiles.GEMM, "kernel", 0.0, 196.0), (profiles.NORM, "kernel", 196.0, 4.0))
    (found,) = asked(capsys, str(profiles.kineto(tmp_path / "step.json", work)))["diagnoses"]
    ideas = {one["hypothesis"]: one for one in found["ideas"]}
    assert ideas["prenorm_fusion"]["struck"] and ideas["prenorm_fusion"]["ceiling"] == pytest.approx(200 / 196)
    assert not ideas["precision_tail"]["struck"]
    assert any("below 1.030x" in notice["text"] for notice in found["notices"])


def test_hypothesis_that_cannot_be_read_is_a_warning(project, add, capsys, tmp_path):
    add("hypothesis/broken.yaml", "hypothesis: [")
    add("hypothesis/half.yaml", "hypothesis: {acts_on: norm, predicted_ratio: soon}")
    assert main(["diagnose", str(profiles.kineto(tmp_path / "step.json"))]) == 0
    said = capsys.readouterr()
    assert "broken.yaml: left out of what to try" in said.err and "half.yaml: left out" in said.err
    assert "prenorm_fusion" in said.out


def test_predictions_are_those_of_the_workload_that_is_named(project, capsys, tmp_path):
    trace = str(profiles.kineto(tmp_path / "step.json"))

    def predicted(*words):
        (found,) = asked(capsys, trace, *words)["diagnoses"]
        return {one["hypothesis"]: one["predicted"] for one in found["ideas"]}["recompute_trade"]

    assert (predicted(), predicted("--workload", "reference_1b")) == (1.16, 1.1)
    assert main(["diagnose", trace, "--workload", "refrence_1b"]) == 2
    assert "did you mean 'reference_1b'?" in capsys.readouterr().err


def test_family_rules_of_a_project_come_first(project, add, capsys, tmp_path):
    add("diagnosis.yaml", "families:\n- {family: norm, pattern: '^nvjet'}\n")
    (found,) = asked(capsys, str(profiles.kineto(tmp_path / "step.json")))["diagnoses"]
    assert {one["family"]: one["launches"] for one in found["families"]["shares"]} == {"norm": 3, "memcpy": 1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("families: norm", "must be a list"),
        ("families:\n- {family: 3}", "rule 1"),
        ("families:\n- {family: norm, pattern: '('}", "does not compile"),
        ("rules: []", "`families` and nothing else"),
        ("families: [", "is not YAML"),
    ],
)
def test_wrong_rules_of_a_project_are_refused(project, add, capsys, tmp_path, text, says):
    add("diagnosis.yaml", text)
    assert main(["diagnose", str(profiles.kineto(tmp_path / "step.json"))]) == 2
    said = capsys.readouterr()
    assert says in said.err and "diagnosis.yaml" in said.err and said.out == ""


def test_large_file_is_said_to_be_read(nowhere, capsys, monkeypatch):
    monkeypatch.setattr("campaign.cli.captures.LARGE_BYTES", 1)
    assert main(["diagnose", str(profiles.kineto(nowhere / "step.json"))]) == 0
    assert "step.json" in next(line for line in capsys.readouterr().err.splitlines() if line.startswith("reading "))


@pytest.mark.parametrize("words", [[], ["--json"], ["--export", "html"]])
@pytest.mark.parametrize("inside", [False, True])
def test_answers_import_neither_torch_nor_mlflow_nor_pandas(project, tmp_path, words, inside):
    trace = profiles.kineto(tmp_path / "step.json")
    script = (
        "import sys; from campaign.cli import main; code = main(sys.argv[1:]);"
        "print('HEAVY', code, sorted({name.split('.')[0] for name in sys.modules} & set(%r)))"
    )
    heavy = HEAVY if inside else (*HEAVY, "hydra", "omegaconf")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script % (heavy,), "diagnose", str(trace), *words],
        cwd=project if inside else tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "HEAVY 0 []", done.stderr
