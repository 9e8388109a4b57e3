"""The front door: what the first word means, flags, sweeps, exit codes, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import campaign
from campaign.cli import main
from campaign.cli.usage import options
from campaign.cli.verbs import VERBS
from campaign.config import jobs
from campaign.errors import BadInput

REPOSITORY = Path(__file__).resolve().parents[2]


def every_file(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def run_process(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-m", "campaign", *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_words_ask_for_the_null(project):
    (job,) = jobs(project, [])
    assert (job.hypothesis.name, job.overrides) == ("aa_null", ())


def test_overrides_are_kept_as_typed_and_the_json_flag_is_not_one(project):
    (job,) = jobs(project, ["--json", "hypothesis=prenorm_fusion", "protocol.pairs=20"])
    assert job.overrides == ("hypothesis=prenorm_fusion", "protocol.pairs=20")
    assert job.json
    assert jobs(project, ["json=true"])[0].json


def test_override_that_refers_to_another_key_reaches_the_job_unresolved(project):
    (job,) = jobs(project, ["workload.seed=${protocol.seed}"])
    assert job.overrides == ("workload.seed=${protocol.seed}",)
    assert job.arm("control", "root", []).config["seed"] == 20260101


def test_runs_sweeps_and_refusals_leave_no_file_behind(project, add, capfd):
    before = every_file(project)
    jobs(project, ["hypothesis=prenorm_fusion"])
    jobs(project, ["-m", "hypothesis=aa_null,prenorm_fusion"])
    assert jobs(project, ["--cfg", "job"]) == []
    with pytest.raises(BadInput):
        jobs(project, ["protocol.pairs=3"])
    assert every_file(project) == before
    assert capfd.readouterr().err == ""


def test_project_whose_root_config_says_nothing_of_hydra_is_kept_clean_too(project, add, capfd):
    add("config.yaml", (project / "conf/config.yaml").read_text().split("\nhydra:")[0])
    before = every_file(project)
    jobs(project, ["-m", "hypothesis=aa_null"])
    jobs(project, [])
    assert every_file(project) == before


def test_hydra_leaves_argv_environment_and_directory_as_they_were(project, monkeypatch):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    before = (list(sys.argv), dict(os.environ), Path.cwd())
    jobs(project, ["-m", "hypothesis=aa_null,prenorm_fusion"])
    assert (list(sys.argv), dict(os.environ), Path.cwd()) == before


def test_further_config_folder_is_searched(project, tmp_path):
    more = tmp_path / "more" / "protocol"
    more.mkdir(parents=True)
    text = (project / "conf/protocol/standard.yaml").read_text()
    (more / "mine.yaml").write_text(text.replace("name: standard", "name: mine"))
    searched = f"hydra.searchpath=[file://{tmp_path / 'more'}]"
    (job,) = jobs(project, [searched, "protocol=mine"])
    assert job.protocol.name == "mine"
    assert job.arm("control", "root", []).config["name"] == "reference_cpu"
    (again,) = jobs(project, shlex.split(job.command)[3:])
    assert again == job


def test_below_the_root_the_project_is_found(project, monkeypatch, capsys):
    monkeypatch.chdir(project / "runs")
    assert main(["protocol=quik"]) == 2
    assert "did you mean 'quick'?" in capsys.readouterr().err


def test_outside_a_project_says_where_to_go(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    assert main(["hypothesis=aa_null"]) == 2
    assert "cd into a campaign project" in capsys.readouterr().err
    assert main(["--help"]) == 0


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_names_verbs_groups_options_and_exit_codes(project, capsys, flag):
    assert main([flag]) == 0
    said = capsys.readouterr().out
    for part in (
        "ledger",
        "stack",
        "ui",
        "sync",
        "aa_null, cached_quantized_weights, ",
        "quick, standard",
        "130",
        "-m hypothesis=",
    ):
        assert part in said


def test_help_is_one_screen_with_the_whole_loop_and_every_verb(project, add, capsys):
    for number in range(100):
        add(f"hypothesis/another_idea_{number}.yaml", "")
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 100
    first = [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]
    order = [name for name in ("init", "doctor", "diagnose", "run", "ledger", "revalidate", "report") if name in first]
    assert first[: len(order)] == order and len(order) >= 6
    assert set(VERBS) <= set(first)
    # 113 of them here; two lines of names, and the others counted
    shown = sum(line.count("another_idea") for line in lines)
    assert any(f"and {len(options('hypothesis')) - shown - 1} more in conf/hypothesis/" in line for line in lines)


def test_run_help_shows_the_composed_config(project, capsys):
    assert main(["run", "--help"]) == 0
    said = capsys.readouterr().out
    for part in ("hypothesis: aa_null, cached_quantized", "by_device:", "wait_seconds: 0", "Exit codes", "Verbs"):
        assert part in said


def test_config_is_shown_instead_of_run(project, capsys):
    assert main(["run", "protocol.seed=5", "--cfg", "job", "-p", "protocol.seed"]) == 0
    assert capsys.readouterr().out.strip() == "5"


def test_version_is_the_packages(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"campaign {campaign.__version__}\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ledgr"], "there is no verb 'ledgr'; did you mean 'ledger'?"),
        (["prenorm_fusion"], "campaign hypothesis=prenorm_fusion"),
        (["hypothesis=prenorm_fusion", "quick"], "'quick' is not an override"),
        (["--exprt"], "there is no option '--exprt'"),
        (["--config-dir", "x"], "hydra.searchpath=[file://DIR]"),
        (["--cfg"], "--cfg needs a value"),
        (["ledger", "--exprt", "md"], "did you mean '--export'?"),
        (["ledger", "--export", "xml"], "invalid choice: 'xml'"),
        (["ledger", "everything"], "takes no argument 'everything'"),
        (["ledger", "--campaign", "a/b"], "campaign name 'a/b'"),
        (["stack", "--campaign", "nope", "--revert", "x", "--why", "y"], "there is no campaign 'nope'"),
        (["ledger", "--out", "x.md"], "--out needs a format"),
        (["stack", "--revert", "prenorm_fusion"], "--revert and --why go together"),
        (["stack", "--revert", "prenorm_fusion", "--why", " "], "--revert and --why go together"),
        (["ui", "--port", "many"], "invalid int value: 'many'"),
        (["ui", "--host", "0.0.0.0", "--print-command"], "is not loopback"),
    ],
)
def test_wrong_words_end_with_2_and_a_next_step(project, capsys, words, says):
    assert main(words) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert said.out == ""


def test_refusal_is_json_on_stdout_when_json_is_asked_for(project, capsys):
    assert main(["protocol=quik", "--json"]) == 2
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert (answer["error"], answer["exit_code"]) == ("UnknownName", 2)
    assert "did you mean 'quick'?" in answer["message"]
    assert "did you mean 'quick'?" in said.err
    assert main(["--json", "ledger", "--campaign", "a/b"]) == 2
    assert json.loads(capsys.readouterr().out)["error"] == "BadInput"


@pytest.mark.parametrize("verb", ["ledger", "stack", "ui", "sync"])
def test_every_verb_has_help(capsys, verb):
    assert main([verb, "--help"]) == 0
    said = capsys.readouterr().out
    assert f"usage: campaign {verb}" in said
    assert "--campaign" in said


def test_process_ends_with_2_and_no_traceback(project):
    before = every_file(project)
    done = run_process("hypothesis=prenorm_fusio", "--json", cwd=project)
    assert done.returncode == 2
    assert "did you mean 'prenorm_fusion'?" in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["exit_code"] == 2
    assert every_file(project) == before


def test_closed_pipe_is_quiet(project):
    # `true` ends without reading, so the help text meets a closed pipe.
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    script = 'set -o pipefail; (sleep 0.3; "$0" -m campaign --help) | true'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0


def test_files_that_build_on_one_another_are_refused_and_no_traceback(project, add, capsys):
    add("protocol/one.yaml", "defaults: [two, _self_]\nname: one\n")
    add("protocol/two.yaml", "defaults: [one, _self_]\nname: two\n")
    for words in (["protocol=one"], ["-m", "protocol=one,two"], ["run", "--cfg", "job", "protocol=one"]):
        assert main(words) == 2
        assert "in a circle" in capsys.readouterr().err
