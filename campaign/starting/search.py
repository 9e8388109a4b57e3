"""Which files of a folder train, best first, and how its README, Makefile or shell scripts start them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MOST_FILES = 2000
MOST_BYTES = 400_000
DEEPEST = 4
# Folders whose scripts are somebody else's, or about the training and not it.
PASSED_OVER = {"__pycache__", "node_modules", "site-packages", "build", "dist", "conf", "runs", "tests", "test", "docs",
               "kernels"}  # fmt: skip
PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "lightning")
ASSIGNMENT = re.compile(r"[A-Z_][A-Z0-9_]*=[^\s$`]*")
# What a shell would do something with: such words are left out of a command that no shell reads.
SHELL = re.compile(r"[$`|<>;&(){}*?~\\]")
TRAINS = re.compile(r"\.backward\(|\boptimizer\.step\(|\bopt\.step\(|\bTrainer\(|\bcampaign\.steps?\(|\.fit\(")


@dataclass(frozen=True)
class Start:
    """A command line that starts a script: the words before the script, the script itself, the words after it, and the
    variables set before all of them. `where` is the file that says it."""

    before: tuple[str, ...]
    script: str
    after: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    where: str = ""


@dataclass(frozen=True)
class Candidate:
    """A script that seems to train. `path` is relative to the folder, `why` a few words."""

    path: str
    score: int
    why: str
    start: Start | None = None


def candidates(folder: Path) -> list[Candidate]:
    """Every script of `folder` that seems to train, the likeliest first."""
    starts: dict[str, Start] = {}
    for start in _starts(folder):
        starts.setdefault(start.script, start)
    found = []
    for path in _python_files(folder):
        name = path.relative_to(folder).as_posix()
        if (one := _candidate(name, _text(path), starts.get(name))) is not None:
            found.append(one)
    return sorted(found, key=lambda one: (-one.score, one.path.count("/"), one.path))


def _candidate(name: str, text: str, start: Start | None) -> Candidate | None:
    trains = TRAINS.search(text)
    if trains is None:
        return None
    stem = name.rpartition("/")[2].removesuffix(".py")
    runs = "__main__" in text or "import argparse" in text or not re.search(r"^(class|def) ", text, re.MULTILINE)
    named = stem == "train" or stem.startswith("train_") or stem.endswith("_train")
    if not (start or named or (runs and stem != "setup")):
        return None
    gated = re.search(r"\bcampaign\.(steps?\(|callbacks\b)", text)
    scores = {
        "calls campaign already": 8 if gated else 0,
        f"{start.where if start else ''} starts it": 6 if start else 0,
        "its name": 6 if stem == "train" else 4 if named else 2 if "train" in stem else 0,
        f"it has `{trains[0].strip('(.')}`": 2,
    }
    why = ", ".join(word for word, score in scores.items() if score)
    return Candidate(name, sum(scores.values()) - name.count("/") + runs, why, start)


def _python_files(folder: Path) -> list[Path]:
    """The files to look into, at most `MOST_FILES`: those near the top and those named for training before others."""
    found: list[tuple[bool, int, Path]] = []
    for place, folders, names in os.walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = [] if depth >= DEEPEST else sorted(one for one in folders if _searched(Path(place) / one))
        found += [("train" not in name, depth, Path(place) / name) for name in names if name.endswith(".py")]
    return [path for _, _, path in sorted(found)[:MOST_FILES]]


def _searched(folder: Path) -> bool:
    name = folder.name
    environment = (folder / "pyvenv.cfg").exists() or (folder / "conda-meta").exists()
    return not (name.startswith(".") or name in PASSED_OVER or environment or folder.is_symlink())


def _text(path: Path) -> str:
    try:
        if path.stat().st_size <= MOST_BYTES:
            return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        pass
    return ""


def _starts(folder: Path) -> Iterator[Start]:
    """Every command line of the folder's README, Makefile and shell scripts that starts one of its scripts."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    told = [name for name in names if re.fullmatch(r"README(\.\w+)?|(GNU)?[Mm]akefile|\w[\w.-]*\.sh", name)]
    scripts = [f"scripts/{one.name}" for one in sorted((folder / "scripts").glob("*.sh"))]
    for name in [*told, *scripts]:
        text = _text(folder / name).replace("\\\n", " ")
        for line in text.splitlines():
            if (start := _start(line, folder, name)) is not None:
                yield start


def _start(line: str, folder: Path, where: str) -> Start | None:
    """A line as a start: `VARIABLE=1 torchrun --nproc_per_node=2 train.py --lr 3`."""
    line = re.sub(r"^[\s$@>+-]+|`", " ", line)
    if ".py" not in line and " -m " not in line:
        return None
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    begun = next((at for at, word in enumerate(words) if PYTHON.fullmatch(word) or word in LAUNCHERS), None)
    if begun is None:
        return None
    variables = {}
    for word in words[:begun]:
        if ASSIGNMENT.fullmatch(word):
            name, _, variables[name] = word.partition("=")
    at, script = _script(words, begun, folder)
    if not script:
        return None
    before = ["python" if PYTHON.fullmatch(word) else word for word in words[begun:at]]
    if any(SHELL.search(word) for word in before):
        before = ["python"]
    return Start(tuple(before), script, _plain(words[at + 1 :]), variables, where)


def _script(words: Sequence[str], begun: int, folder: Path) -> tuple[int, str]:
    """Where the script stands among the words, and its path in the folder; '' where no word is one of its files.
    `-m a.b` is the file a/b.py: the `-m` stays before it."""
    for at in range(begun + 1, len(words)):
        word = words[at]
        name = word.replace(".", "/") + ".py" if words[at - 1] == "-m" else word.removeprefix("./")
        if name.endswith(".py"):
            inside = not name.startswith(("/", "../")) and (folder / name).is_file()
            return (at, os.path.normpath(name)) if inside else (at, "")
    return 0, ""


def _plain(words: Sequence[str]) -> tuple[str, ...]:
    """The arguments up to the first that a shell would act on; none at all where one of them names a variable."""
    kept = []
    for word in words:
        if "$" in word or "<" in word or "..." in word or "{" in word:
            return ()  # to be filled in, by a shell or by a person
        if SHELL.search(word) or word in ("and", "or"):
            break
        kept.append(word)
    return tuple(kept)
