"""What Tab completes in bash, zsh and fish."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from campaign.cli import autopilot, main
from campaign.cli.completion import RUN, options_of, script, shells, words_of
from campaign.cli.verbs import VERBS

ASK = """
source "$1"; shift
for line in "$@"; do
  COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
  _campaign
  echo "${COMPREPLY[*]}"
done
"""
CASES = {
    "campaign led": "ledger",
    "campaign hypothesis=pren": "prenorm_fusion",
    "campaign -m hypothesis=aa_null,regi": "aa_null,register_cap",
    "campaign run protocol=q": "quick",
    "campaign static hypothesis=aa_null workload=reference_": "reference_1b reference_cpu",
    "campaign tracking=": "mlflow none",
    "campaign hyp": "hypothesis=",
    "campaign ledger --exp": "--export",
    "campaign ledger --export ": "md html csv parquet json",
    "campaign run --only aa_null,regi": "aa_null,register_cap",
    "campaign stack --revert regi": "register_cap",
    "campaign interactions regi": "register_cap",
    "campaign completion ": "bash fish zsh",
    "campaign --ver": "--version",
    "campaign ledger --since ": "",
    "campaign nonsense ": "",
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory):
    """The script of a shell in a file."""
    folder = tmp_path_factory.mktemp("scripts")

    def written(shell: str) -> Path:
        path = folder / f"campaign.{shell}"
        path.write_text(script(shell))
        return path

    return written


def bash(file, *lines: str) -> list[str]:
    """What bash answers to Tab at the end of each line, from the working directory."""
    done = subprocess.run(["bash", "-c", ASK, "bash", str(file("bash")), *lines], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.removesuffix("\n").split("\n")


def test_bash_completes_verbs_names_options_and_their_values(project, file):
    assert dict(zip(CASES, bash(file, *CASES), strict=True)) == CASES


def test_every_verb_and_all_its_options_are_completed(project, file):
    assert set(bash(file, "campaign ")[0].split()) >= {"run", *VERBS}
    for verb, answer in zip(VERBS, bash(file, *(f"campaign {verb} --" for verb in VERBS)), strict=True):
        assert set(answer.split()) == set(options_of(verb))


def test_a_file_that_is_added_is_completed_at_once_below_the_root_too(project, add_hypothesis, file, monkeypatch):
    add_hypothesis("zebra", "workload.seed=3")
    (project / "runs" / "first").mkdir()
    (project / "runs" / "first" / "ledger.jsonl").touch()
    monkeypatch.chdir(project / "conf" / "protocol")
    assert bash(file, "campaign hypothesis=zeb", "campaign ledger --campaign ") == ["zebra", "first"]
    monkeypatch.chdir("/")
    monkeypatch.setenv("CAMPAIGN_PROJECT", str(project))
    assert bash(file, "campaign hypothesis=zeb") == ["zebra"]


def test_without_a_project_there_are_verbs_and_no_error(tmp_path, file, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert bash(file, "campaign led", "campaign hypothesis=pren") == ["ledger", ""]


def test_files_are_completed_where_a_verb_reads_some(project, file):
    (project / "runs" / "trace.json").touch()
    assert bash(file, "campaign diagnose runs/tr", "campaign ledger --out runs/tr") == ["runs/trace.json"] * 2
    (project / "runs" / "trace.json").unlink()


def test_where_the_equals_sign_breaks_no_words_the_whole_word_is_the_answer(project, file):
    script_text = 'COMP_WORDBREAKS=${COMP_WORDBREAKS//=}; source "$1"; COMP_LINE="campaign hypothesis=pren"'
    command = f'{script_text} COMP_POINT=${{#COMP_LINE}}; COMP_POINT=24; _campaign; echo "${{COMPREPLY[*]}}"'
    done = subprocess.run(["bash", "-c", command, "bash", str(file("bash"))], capture_output=True, text=True)
    assert done.stdout == "hypothesis=prenorm_fusion\n"


def test_the_options_of_a_run_are_those_of_the_autopilot_and_hydra():
    parsed = {name for action in autopilot._parser()._actions for name in action.option_strings}
    assert parsed - {"-h"} <= set(RUN)
    assert set(RUN) - parsed == {"--cfg", "--resolve", "--multirun", "-m"}


def test_what_a_verb_takes_is_known_by_its_help():
    kinds = {verb: words_of(verb) for verb in VERBS}
    assert kinds["diagnose"] == "files"
    assert kinds["interactions"] == "hypothesis"
    assert kinds["profile"] == "overrides"
    assert kinds["ledger"] == "none"


def test_there_is_a_script_for_each_shell_and_help_says_where_to_put_it(capsys):
    assert shells() == ["bash", "fish", "zsh"]
    assert main(["completion", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"campaign completion {shell}" in said for shell in shells())
    assert main(["completion", "bash", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["script"] == script("bash")
    assert main(["completion", "tcsh"]) == 2
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_no_placeholder_is_left_and_the_shell_reads_its_script(file, shell):
    path = file(shell)
    assert not any(f"@{name}@" in path.read_text() for name in ("VERBS", "OPTIONS", "VALUES", "WORDS", "PACKAGED"))
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_completes_whole_words(project, file):
    asked = {"campaign led": "ledger", "campaign hypothesis=pren": "hypothesis=prenorm_fusion",
             "campaign run --only aa_null,regi": "aa_null,register_cap", "campaign ledger --exp": "--export",
             "campaign stack --revert regi": "register_cap", "campaign ledger --export m": "md"}  # fmt: skip
    for line, answer in asked.items():
        command = f"source {file('fish')}; complete -C '{line}'"
        done = subprocess.run(["fish", "--no-config", "-c", command], capture_output=True, text=True)
        assert [one.split("\t")[0] for one in done.stdout.splitlines()] == [answer], done.stderr


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_completes_the_line_that_is_typed(project, file):
    asked = {"campaign led": "ledger", "campaign hypothesis=pren": "prenorm_fusion",
             "campaign ledger --exp": "--export", "campaign run --only aa_null,regi": "register_cap",
             "campaign completion z": "zsh"}  # fmt: skip
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(PS1="> ", TERM="dumb", COLUMNS="200")
        os.execvp("zsh", ["zsh", "-f", "-i"])
    try:
        typed(terminal, f"autoload -U compinit; compinit -u -D; source {file('zsh')}; echo re''ady\n", "ready")
        for line, answer in asked.items():  # completed, and then echoed behind a mark that nothing else prints
            typed(terminal, f"{line}\t\x01echo @@\n", f"@@{line[: max(line.rfind(c) for c in ' =,') + 1]}{answer}")
    finally:
        os.write(terminal, b"\x15exit\n")
        os.waitpid(child, 0)
        os.close(terminal)


def typed(terminal: int, keys: str, *expected: str) -> None:
    """Type, and wait until everything expected is on the screen."""
    os.write(terminal, keys.encode())
    seen, until = "", time.monotonic() + 20
    while not all(part in seen for part in expected):
        assert time.monotonic() < until, f"{keys!r}: {seen!r} has not all of {expected}"
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 65536).decode(errors="replace")


def test_the_value_of_an_option_is_known():
    assert options_of("ledger")["--out"] == "files"
    assert options_of("ledger")["--campaign"] == "campaigns"
    assert options_of("ledger")["--check"] == ""
