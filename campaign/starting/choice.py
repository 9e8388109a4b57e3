"""Everything that `campaign init` found out and chose, each with the line that says so."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from campaign.errors import BadInput
from campaign.starting import surroundings
from campaign.starting.ideas import Idea, ideas
from campaign.starting.printed import GENERAL, TRAINER
from campaign.starting.script import STYLES, Script, Value, read
from campaign.starting.search import Candidate, Start, candidates
from campaign.starting.surroundings import Git

EXAMPLE = "train_example.py"
FILES = Path(__file__).parent / "files"
SHOWN_FLAGS = 6
HUGGING_FACE = ("transformers", "trl")


@dataclass(frozen=True)
class Choice:
    """How a folder's training is measured. `folder` is where the command runs, `project` where conf/ and runs/ are laid
    down; `way` is 1 (any command) or 2 (it stops at gates). `said` holds the lines of what was found, by a word each.
    """

    folder: Path
    project: Path
    script: str
    example: bool
    others: tuple[str, ...]
    way: int
    command: str
    flag: str
    flags: dict[str, Value]
    environment: dict[str, str]
    device: str
    pattern: str
    ideas: tuple[Idea, ...]
    git: Git
    said: dict[str, str]

    @property
    def directory(self) -> str:
        """Where the command runs, from the project's root."""
        return os.path.relpath(self.folder, self.project)


def choose(folder: Path, project: Path, script: str | None = None) -> Choice:
    """Look at `folder` and choose. `script` is the person's own choice; raises BadInput where it is not there."""
    found = candidates(folder)
    picked = _picked(folder, found, script)
    name = EXAMPLE if picked is None else picked.path
    laid_down = (FILES / EXAMPLE).read_text(encoding="utf-8")
    text = laid_down if picked is None else (folder / name).read_text(encoding="utf-8-sig", errors="replace")
    # Another init may have been interrupted after this file, or be at work now: both get the project they began.
    example = name == EXAMPLE and text == laid_down
    said_by_itself = read(text)
    python = surroundings.interpreter(folder)
    device = surroundings.device()
    # What starts our own example was not there to be found when the project was begun.
    start = (picked.start if picked is not None and not example else None) or Start(("python",), name)
    before, after = list(start.before), list(start.after)
    flags, after = _moved(said_by_itself, after)
    if before[0] == "python":
        before[0] = python.value
    module = before[-1] == "-m"
    word = _module(name) if module else f"./{name}" if name.startswith("-") else name
    command = shlex.join([*before, word, *after])
    way = 2 if said_by_itself.gate else 1
    others = tuple(one.path for one in found if one.path != name)
    if "device" in flags and flags["device"] in ("cpu", "cuda") and example:
        flags["device"] = device.value
    needed = [one for one in said_by_itself.needed if flags.get(one) is None and not after]
    line = said_by_itself.line
    said = {
        "script": _script(picked, name, others) + _flaw(said_by_itself),
        "command": f"{command}{f', as {start.where} has it' if start.where else ''}{_needs(needed)}",
        "python": python.said,
        "way": _way(way, said_by_itself, name, python.value),
        **({} if way == 2 else {"steps": _steps(said_by_itself, name)}),
        "flags": _flags(said_by_itself, flags),
        "device": device.said,
    }
    known = surroundings.git(folder, [name])
    said["git"] = _git(known, folder)
    return Choice(
        folder=folder,
        project=project,
        script=name,
        example=example,
        others=others,
        way=way,
        command=command,
        flag=STYLES[said_by_itself.style],
        flags=flags,
        environment={"OMP_NUM_THREADS": "1"} if example and device.value == "cpu" else dict(start.variables),
        device=device.value,
        pattern=line.pattern if line is not None else TRAINER if said_by_itself.trainer in HUGGING_FACE else GENERAL,
        ideas=tuple(ideas(flags, device.value, example=example)),
        git=known,
        said=said,
    )


def _picked(folder: Path, found: Sequence[Candidate], script: str | None) -> Candidate | None:
    if script is None:
        return found[0] if found else None
    path = folder / script
    name = os.path.relpath(path, folder)
    if not path.is_file() or name.startswith(".."):
        near = ", ".join(one.path for one in found[:5])
        raise BadInput(
            f"--script {script}: there is no such file in {folder}",
            remedy=f"campaign init --script {found[0].path}    (seems to train: {near})" if found else "campaign init",
        )
    known = next((one for one in found if one.path == name), None)
    return known or Candidate(name, 0, "--script names it")


def _moved(script: Script, after: list[str]) -> tuple[dict[str, Value], list[str]]:
    """The flags with the values that the found command line gives them, and the words of it that are no flags: a value
    in both places would be said twice, and an edit could change only one. Where a script takes more flags than it
    names (transformers, Hydra) those of the line are flags too; `a.b` among them, but not beside a flag `a`, whose
    value it would be part of."""
    named = {*script.flags, *(word.partition("=")[0] for word in after)}
    flags = {name: value for name, value in script.flags.items() if not _within(name, named)}
    moved, left = dict(flags), []
    words = list(after)
    lead = STYLES[script.style].partition("{")[0]
    while words:
        word = words.pop(0)
        name, equals, value = word.removeprefix(lead).partition("=")
        open_ = script.style in ("transformers", "hydra") and re.fullmatch(r"[A-Za-z_][\w-]*(\.[A-Za-z_]\w*)*", name)
        known = name in flags or (open_ and (lead or equals) and not _within(name, named))
        if not word.startswith(lead) or not known:
            left.append(word)
        elif name not in flags and not equals and not (words and not words[0].startswith("-")):
            moved[name] = True
        elif flags.get(name) is False:
            moved[name] = True
        elif equals or (words and not words[0].startswith("-")):
            said = value if equals else words.pop(0)
            whether = {"true": True, "false": False}.get(said.lower()) if not lead else None
            moved[name] = _as(flags.get(name), said) if whether is None else whether
        else:
            left.append(word)
    return moved, left


def _within(name: str, names: Iterable[str]) -> bool:
    """Whether `name` is `a.b` where `a` is a name too."""
    return any(name.startswith(f"{other}.") for other in names)


def _as(default: Value, text: str) -> Value:
    for kind in (int, float) if not isinstance(default, str) else ():
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _module(name: str) -> str:
    return name.removesuffix(".py").replace("/", ".")


def _script(picked: Candidate | None, name: str, others: Sequence[str]) -> str:
    if picked is None:
        return f"none that trains was found, so {name} is laid down to start from (--script FILE names yours)"
    also = f"; also {', '.join(others[:4])}{', ...' if len(others) > 4 else ''} (--script)" if others else ""
    return f"{name}: {picked.why}{also}"


def _flaw(script: Script) -> str:
    return f"; this Python cannot read it ({script.flaw}), so nothing else of it is known" if script.flaw else ""


def _needs(needed: Sequence[str]) -> str:
    return f"; it needs {', '.join(needed)}: add to workload.command in conf/workload/own.yaml" if needed else ""


def _way(way: int, script: Script, name: str, python: str) -> str:
    if way == 2:
        without = "" if surroundings.has_campaign(python) else ", which its Python cannot import yet"
        return f"{script.gate} is called in {name}: its steps take turns block by block{without}"
    tighter = "two lines in the loop (docs/own.md) make blocks of steps take turns"
    if script.trainer in (*HUGGING_FACE, "lightning", "pytorch_lightning"):
        tighter = f"a callback of campaign.callbacks for {script.trainer}'s Trainer makes blocks of steps take turns"
    return f"any command, the weaker protocol: whole processes take turns; {tighter}"


def _steps(script: Script, name: str) -> str:
    if script.line is None and script.trainer in HUGGING_FACE:
        return f"read from what its Trainer prints every logging_steps (1 makes each a step): {TRAINER}"
    if script.line is None:
        said = f"no line with a step and its loss was seen in {name}"
        return f"{said}: correct workload.steps.pattern in conf/workload/own.yaml"
    return f"read from what line {script.line.source} prints: {script.line.pattern}"


def _flags(script: Script, flags: dict[str, Value]) -> str:
    if script.style == "hydra" and not flags:
        return "Hydra's NAME=VALUE; name those that edits set under workload.flags"
    if not flags:
        said = "it takes none that were seen" if script.style == "plain" else f"{script.style}, none with a default"
        return f"{said}; edits set environment and code"
    some = ", ".join(list(flags)[:SHOWN_FLAGS]) + (", ..." if len(flags) > SHOWN_FLAGS else "")
    if script.style in ("hydra", "transformers"):
        return f"{script.style}, {len(flags)} of them named: {some}"
    return f"{script.style}, {len(flags)} with {'their default' if len(flags) > 1 else 'its default'}: {some}"


def _git(git: Git, folder: Path) -> str:
    if not git.top:
        return "none: edits of code need a repository (git init)"
    if not git.commit:
        return "a repository without a commit: edits of code need one"
    inside = "" if Path(git.top).resolve() == folder.resolve() else f" of {git.top}"
    return f"HEAD {git.commit}{inside}"
