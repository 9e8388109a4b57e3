"""Every error names the next command, and the command works: each error here is provoked and what it names is done.

Commands that measure, or start a server, are composed and parsed instead. Words in capitals are filled in.
"""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from campaign.cli import main
from campaign.cli.autopilot import _parser
from campaign.cli.completion import RUN, options_of
from campaign.cli.remedies import PROGRAM, commands, next_step
from campaign.cli.verbs import VERBS, parser_of
from campaign.config import jobs
from campaign.errors import BadInput, UnknownName
from tests.front import test_refusals
from tests.front.wrong_lines import LINES
from tests.report.written import faster, opened, slower

REPOSITORY = Path(__file__).resolve().parents[2]
MEASURES = ("profile", "static", "doctor", "revalidate", "interactions", "replay", "sync", "ui")
RUNS = ("df", "ls", "head", "git")  # programs of other makers whose lines are run as they stand
FILL = {"NAME": "prenorm_fusion", "HYPOTHESIS": "prenorm_fusion", "DECISION": "1", "NUMBER": "1", "N": "1", "TEXT": "x",
        "FILE": "trace.json", "BEFORE": "trace.json", "AFTER": "trace.json", "A": "prenorm_fusion", "B": "register_cap",
        "C": "live_state", "DIR": "/tmp", "HOST:PORT": "127.0.0.1:5000"}  # fmt: skip
TRACE = """{"schemaVersion": 1, "traceEvents": [
  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 0, "dur": 10,
   "args": {"device": 0, "stream": 7}}
]}"""


def refusals() -> list[str]:
    """The overrides that tests/front/test_refusals.py has refused, as one line each."""
    lists = (
        test_refusals.test_misspelt_name_is_answered_with_the_nearest_right_one,
        test_refusals.test_wrong_value_is_refused_by_key_value_and_rule,
    )
    found = [case[0] for test in lists for mark in test.pytestmark for case in mark.args[1]]
    return [shlex.join(["hypothesis=prenorm_fusion", override]) for override in found]


def texts_of(tree: ast.Module) -> list[tuple[int, str]]:
    """The line and text of every string of a module that is no docstring; `{...}` in an f-string reads X."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    found = []
    for node in ast.walk(tree):
        if id(node) in docs or id(node) in inner:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append((node.lineno, node.value))
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
            found.append((node.lineno, "".join(map(str, parts))))
    return found


def said(capsys) -> str:
    """What the error of the last command says to try."""
    error = capsys.readouterr().err
    assert "\n  try: " in error, error
    return error.rsplit("\n  try: ", 1)[1].strip()


def checked(project: Path, remedy: str) -> None:
    """Fail unless the remedy names a command, and each that it names works."""
    named = commands(remedy)
    for words in named:
        works(project, filled(words), remedy)
    others = [remedy[place.end() :] for place in PROGRAM.finditer(remedy)]
    assert named or others, f"no command in: {remedy}"
    for text in others:
        if text.split()[0] in RUNS and not re.search(r"\b[A-Z]{2,}\b|<", text):
            line = re.split(r";|, |  ", text)[0]
            done = subprocess.run(line, shell=True, capture_output=True, text=True)
            assert done.returncode == 0, (line, done.stderr)


def filled(words: list[str]) -> list[str]:
    """The words with something that there is in place of those in capitals; what a NAME is stands before it."""
    text = [*words]
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        own = {"--campaign": {"NAME": "default"}, "workload=NAME": {"NAME": "reference_cpu"}}
        fill = {**FILL, **own.get(before, {}), **own.get(word, {})}
        text[place] = re.sub(r"\b[A-Z]+(?::[A-Z]+)?\b", lambda found, fill=fill: fill.get(found[0], found[0]), word)
    return text


def works(project: Path, words: list[str], remedy: str) -> None:
    first = words[0] if words else ""
    if "--help" in words:
        assert main(words) == 0, remedy
    elif first in MEASURES and "--print-command" not in words:
        given, left = parser_of(first).parse_known_intermixed_args([word for word in words[1:] if word != "-m"])
        assert not left, (remedy, left)
        typed = [word for word in [*getattr(given, "overrides", []), *getattr(given, "words", [])] if "=" in word]
        composed(project, ["-m"] * ("-m" in words) + typed, remedy)
    elif first in VERBS:
        assert main(words) != 2, f"{remedy}: `campaign {shlex.join(words)}` is bad input"
    elif "--all" in words:
        _parser().parse_intermixed_args([word for word in words if word != "run"])
    else:
        composed(project, words[1:] if first == "run" else words, remedy)


def composed(project: Path, words: list[str], remedy: str) -> None:
    """Fail where a run of these words is refused, but for a VALUE that is still to be chosen."""
    to_choose = [word for word in words if re.search(r"\b(VALUE|KEY|A,B)\b", word)]
    try:
        jobs(project, words)
    except UnknownName as error:
        if not any("KEY" in word for word in to_choose):
            pytest.fail(f"{remedy}: {error}")
    except BadInput as error:
        if not to_choose:
            pytest.fail(f"{remedy}: {error}")


@pytest.fixture
def here(lent, decided):
    """A project with a trace, an empty file and the decisions of campaign `default`."""
    (lent / "trace.json").write_text(TRACE)
    (lent / "empty.json").touch()
    shutil.copytree(decided / "runs", lent / "runs", dirs_exist_ok=True)
    return lent


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    root = tmp_path_factory.mktemp("decided")
    with opened(root, "default") as ledger:
        faster(ledger, workload="reference_cpu")
        slower(ledger, workload="reference_cpu", stack=("prenorm_fusion",))
    return root


@pytest.mark.parametrize("line", LINES)
def test_the_next_command_of_a_wrong_line_works(here, capsys, line):
    assert main(shlex.split(line)) in (2, 3)
    checked(here, said(capsys))


REFUSALS = refusals()


@pytest.mark.parametrize("line", REFUSALS[::12])
def test_the_next_command_of_a_wrong_override_works(here, capsys, line):
    assert main(shlex.split(line)) == 2
    checked(here, said(capsys))


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for place, line in enumerate(REFUSALS) if place % 12])
def test_the_next_command_of_any_wrong_override_works(here, capsys, line):
    if "optuna" in line:
        pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    assert main(shlex.split(line)) == 2
    checked(here, said(capsys))


def test_the_next_command_of_a_broken_file_is_the_same_one_again(add, capsys):
    add("hypothesis/bad.yaml", "# @package _global_\nhypothesis: {claim: [unclosed\n")
    assert main(["hypothesis=bad"]) == 2
    assert said(capsys).endswith("; then: campaign hypothesis=bad")


def test_outside_a_project_the_next_step_is_to_go_to_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    assert main(["ledger"]) == 2
    assert said(capsys).startswith("campaign init    (lays one down here), or cd into a campaign project")
    monkeypatch.setenv("CAMPAIGN_PROJECT", str(tmp_path))
    assert main(["hypothesis=aa_null"]) == 2
    assert said(capsys) == "unset CAMPAIGN_PROJECT, or correct it; then: campaign hypothesis=aa_null"


def test_what_a_damaged_ledger_names_cuts_it_before_the_line(here, capsys):
    file = here / "runs/default/ledger.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:2], "{damaged\n", *lines[3:]]))
    assert main(["ledger"]) == 2
    remedy = said(capsys)
    command = remedy[remedy.index("head -n 2") :].split(";")[0]
    kept = subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout
    assert kept == "".join(lines[:2])
    file.write_text(kept)
    assert main(["ledger"]) == 0


def test_no_error_of_the_command_line_is_without_a_next_command():
    error = BadInput("it is wrong")
    assert next_step(error, ["ledger", "--check"]) == "campaign ledger --help"
    assert next_step(error, ["hypothesis=aa_null"]) == "campaign --help"


@pytest.mark.parametrize(
    ("remedy", "typed", "said"),
    [
        ("--on root", "interactions A B --on haed", "campaign interactions A B --on root"),
        ("protocol.pairs=20", "-m hypothesis=x protocol.pairs=3", "campaign -m hypothesis=x protocol.pairs=20"),
        ("-m hypothesis=a,b", "run hypothesis=a,b tracking=none", "campaign run -m tracking=none hypothesis=a,b"),
        ("--budget 1h30m", "run --all --budget=soon", "campaign run --all --budget 1h30m"),
        ("--campaign NAME, or campaign.name=NAME for a run", "hypothesis=x campaign.name=a/b",
         "campaign hypothesis=x campaign.name=NAME    (for a run)"),
        ("protocol.looks=[4,6,8]", "protocol.looks=[4,4]", "campaign 'protocol.looks=[4,6,8]'"),
        ("correct the file", "hypothesis=x", "correct the file; then: campaign hypothesis=x"),
        ("leave one of them out", "compare a b --steps 2", "leave one of them out; see: campaign compare --help"),
        ("campaign ledger, then campaign replay NUMBER", "replay", "campaign ledger, then campaign replay NUMBER"),
        ("add it with a plus: +a.b=VALUE", "a.b=3", "campaign +a.b=VALUE    (add it with a plus)"),
        ("df -h runs; then run the same command again", "hypothesis=x", "df -h runs; then run the same command again"),
    ],
)  # fmt: skip
def test_a_fragment_becomes_the_command_that_was_typed_with_it(remedy, typed, said):
    assert next_step(BadInput("wrong", remedy=remedy), shlex.split(typed)) == said


def test_a_misspelt_name_is_put_right_in_the_command_that_was_typed():
    error = UnknownName("config key", "protocol.pair", ["protocol.pairs", "protocol.seed"])
    assert next_step(error, ["hypothesis=x", "protocol.pair=20"]) == "campaign hypothesis=x protocol.pairs=20"
    assert next_step(error, ["+protocol.pair=20"]) == "campaign ++protocol.pairs=20"
    nothing_near = UnknownName("verb", "zzz", ["ledger"], remedy="campaign --help")
    assert next_step(nothing_near, ["zzz"]) == "campaign --help"


def test_every_command_that_the_code_names_is_a_verb_with_its_own_options():
    checked_words = 0
    for file in sorted((REPOSITORY / "campaign").rglob("*.py")):
        for line, text in texts_of(ast.parse(file.read_text())):
            for words in commands(text):
                verb = words[0] if words and words[0] in VERBS else "run"
                known = {*options_of(verb)} if verb in VERBS else {*RUN, "--version"}
                for word in words:
                    if option := re.match(r"--[a-z][a-z-]*", word):
                        assert option[0] in known, f"{file}:{line}: campaign {' '.join(words)}"
                        checked_words += 1
    assert checked_words > 100
