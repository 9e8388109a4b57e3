"""README and docs: command blocks are run, or at least parsed, and links lead somewhere.

A block is indented text or a fence. `<!-- run -->` before it has its lines run, in order, in one copy of the project a
page. Every other line that begins with a command is parsed: its verb, its options, and, for a run, its overrides
are composed. What stands in backticks and begins with `campaign` is parsed too.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaign.cli.autopilot import _parser
from campaign.cli.completion import RUN, options_of
from campaign.cli.remedies import commands
from campaign.cli.usage import options
from campaign.cli.verbs import VERBS, parser_of
from campaign.config import jobs

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
MARK = "<!-- run -->"
SCRIPT = re.compile(r"<!-- run python -->\n+```python\n(.*?)```", re.DOTALL)  # one script a page
HYDRA = {"-m", "-p", "--version", "-h"}
# Names that stand for a person's own.
STANDS_FOR = {
    "NAME": "prenorm_fusion",
    "A": "prenorm_fusion",
    "B": "register_cap",
    "C": "live_state",
    "HOST:PORT": "h:1",
}


def blocks(page: Path) -> Iterator[tuple[bool, list[str]]]:
    """Each block's lines without comments, and whether it is marked to be run."""
    marked, block, fence = False, [], False
    for line in [*page.read_text().splitlines(), "."]:
        if line.strip().startswith("```"):
            fence = not fence
            continue
        if fence or line.startswith("    ") or (block and not line.strip()):
            block.append(re.sub(r"(^|\s)\s*#.*$", "", line).strip())
            continue
        if block:
            yield marked, [one for one in block if one]
            marked, block = False, []
        if line.strip():
            marked = line.strip() == MARK


def lines(page: Path) -> list[str]:
    """Every command line of a page that is not marked to be run."""
    found = [line for marked, block in blocks(page) for line in block if not marked]
    return list(dict.fromkeys(line for line in found if line.split()[0] in ("campaign", "python", "make", "pytest")))


def test_a_block_ends_where_the_text_goes_on_and_its_mark_is_its_own(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Text\n\n    a  # said\n\n    b\n\nMore\n\n<!-- run -->\n\n    c d\n\nEnd\n```\ne\n```\n")
    assert list(blocks(page)) == [(False, ["a", "b"]), (True, ["c d"]), (False, ["e"])]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A copy of the project, with the benchmarks beside it."""
    root = tmp_path / "project"
    shutil.copytree(ROOT / "conf", root / "conf")
    (root / "runs").mkdir()
    (root / "benchmarks").symlink_to(ROOT / "benchmarks")
    monkeypatch.chdir(root)
    monkeypatch.delenv("CAMPAIGN_PROJECT", raising=False)
    return root


RUN_PAGES = [page for page in PAGES if MARK in page.read_text()]


@pytest.mark.parametrize("page", RUN_PAGES, ids=lambda page: page.stem)
def test_marked_blocks_run(project, page):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    for line in [line for marked, block in blocks(page) for line in block if marked]:
        words = shlex.split(line)
        assert words[0] in ("campaign", "python"), line
        command = [sys.executable, *(["-m", "campaign", *words[1:]] if words[0] == "campaign" else words[1:])]
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, (line, done.stdout[-500:], done.stderr[-2000:])


SCRIPT_PAGES = [page for page in PAGES if SCRIPT.search(page.read_text())]


@pytest.mark.parametrize("page", SCRIPT_PAGES, ids=lambda page: page.stem)
def test_marked_scripts_run(project, page, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(project))  # its lease is its own
    (project / "script.py").write_text("\n".join(SCRIPT.findall(page.read_text())))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "script.py"], cwd=project, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_case_study_page_has_the_table_that_its_script_prints(project):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "benchmarks/case_studies.py"], cwd=project, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    table = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert len(table) > 25
    page = (ROOT / "docs/case-studies.md").read_text().splitlines()
    begin = page.index(table[0])
    assert page[begin : begin + len(table)] == table


def test_the_case_study_page_has_every_number_of_the_reference():
    studies = ROOT.parent / "shared" / "reference" / "case_studies.json"
    if not studies.is_file():
        pytest.skip(f"{studies} is not there")
    published = json.loads(studies.read_text())
    wanted = {name: value for case in published.values() if isinstance(case, dict)
              for name, value in case.get("results", {}).items() if isinstance(value, int | float)}  # fmt: skip
    assert len(wanted) == 14
    cells = [line.split(" | ")[2] for line in (ROOT / "docs/case-studies.md").read_text().splitlines()
             if re.match(r"\| [A-G] \| .* \| .* \| ", line)]  # fmt: skip
    shown = [float(number[0]) for cell in cells if (number := re.match(r"[\d.]+(e\d+)?", cell))]
    assert [name for name, value in wanted.items() if not any(value == pytest.approx(one) for one in shown)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_parses(project, page):
    for line in lines(page):
        text = line.split(" | ")[0].split(" > ")[0].strip()
        if "..." in text.split() or text.endswith("..."):
            continue
        words = shlex.split(text)
        if words[0] == "make":
            assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(), line
        elif words[0] == "pytest":
            assert all((ROOT / word).exists() for word in words if word.startswith("tests")), line
        elif words[0] == "campaign" or words[1:3] == ["-m", "campaign"]:
            understood(project, words[1:] if words[0] == "campaign" else words[3:], line)
        elif words[1].endswith(".py") and "/" in words[1]:
            script(words, line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_in_backticks_is_a_verb_with_its_own_options(page):
    for text in re.findall(r"`(campaign [^`]+)`", page.read_text()):
        for words in commands(text.replace("\\|", " ")):
            verb = words[0] if words and words[0] in VERBS else "run"
            known = {*options_of(verb)} if verb in VERBS else {*RUN, *HYDRA}
            asked = {word.split("=")[0] for word in words if word.startswith("--")}
            assert asked <= known, f"{page.name}: `{text}`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_to_a_file_leads_to_one(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_verb_is_described_and_every_page_is_reached_from_the_readme():
    told = (ROOT / "docs/verbs.md").read_text()
    assert [verb for verb in VERBS if f"`campaign {verb}" not in told] == []
    reached, seen = [ROOT / "README.md"], set()
    while reached:
        page = reached.pop()
        if page not in seen and page.suffix == ".md":
            seen.add(page)
            found = re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text())
            reached += [(page.parent / target).resolve() for target in found]
    assert [page.name for page in PAGES if page not in seen] == []


def understood(project: Path, words: list[str], line: str) -> None:
    """Fail where a `campaign` command would be bad input before it reads a file or measures."""
    words = [re.sub(r"\b(NAME|A|B|C|HOST:PORT)\b", lambda found: STANDS_FOR[found[0]], word) for word in words]
    if words and words[0] in VERBS:
        given, left = parser_of(words[0]).parse_known_intermixed_args([word for word in words[1:] if word != "-m"])
        assert not left, line
        named = [word for word in getattr(given, "overrides", None) or getattr(given, "words", None) or []]
        words = ["-m"] * ("-m" in words) + [word for word in named if "=" in word]
        if not words:
            return
    elif "--all" in words:
        _parser().parse_intermixed_args([word for word in words if word != "run"])
        return
    words = words[1:] if words[:1] == ["run"] else words
    if {"--help", "-h", "--version"} & {*words} or any("sweeper=optuna" in word for word in words):
        return
    assert jobs(project, words) or "--cfg" in words, line


def script(words: list[str], line: str) -> None:
    """Fail where a script of the repository is not there or does not know an option."""
    path = ROOT / words[1]
    if words[1].startswith("benchmarks/"):
        text = path.read_text()
        for word in words[2:]:
            if word.startswith("--"):
                assert f'"{word.split("=")[0]}"' in text, line


def test_the_hypotheses_of_the_workload_page_are_there():
    told = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/workload.md").read_text(), re.MULTILINE)
    assert len(told) > 8
    assert set(told) <= set(options("hypothesis"))
