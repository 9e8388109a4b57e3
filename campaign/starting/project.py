"""The files of a new project, and how they are written: each whole or not at all, over nothing that is there."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from campaign.discovery import ROOT_VARIABLE, packaged_conf
from campaign.errors import BadInput
from campaign.starting.choice import EXAMPLE, FILES, Choice
from campaign.starting.ideas import Idea
from campaign.starting.script import Value
from campaign.starting.surroundings import environments

CONFIG = "conf/config.yaml"
IGNORED = "# Ledgers, logs and raw times: kept, and in no commit.\n*\n!.gitignore\n"
OURS = re.compile(r"^\s*-\s*(override\s+)?/?hypothesis\s*:", re.MULTILINE)
ELSEWHERE = "tuning"


@dataclass(frozen=True)
class LaidDown:
    """Paths from the project's root: those that were written, and those that were there and stay as they are."""

    written: tuple[str, ...]
    kept: tuple[str, ...]


def is_project(folder: Path) -> bool:
    """Whether `conf/config.yaml` of a folder is a campaign's, not that of another program that uses Hydra."""
    try:
        return OURS.search((folder / CONFIG).read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False


def is_whole(project: Path) -> bool:
    """Whether a project lacks nothing that it needs, so that nothing is written to it."""
    return is_project(project) and any((project / "conf" / "workload").glob("*.yaml"))


def refuse_where_it_cannot(project: Path, *, here: bool) -> None:
    """Raises BadInput for a place where a project cannot or should not be laid down; nothing was written."""
    named = os.environ.get(ROOT_VARIABLE)
    if named and Path(named).resolve() != project:
        raise BadInput(
            f"{ROOT_VARIABLE}={named} is set, so no command would see a project in {project}",
            remedy=f"unset {ROOT_VARIABLE}; then: campaign init",
        )
    folders = ("conf", "conf/protocol", "conf/workload", "conf/hypothesis", "runs")
    for name in () if is_whole(project) else folders:
        path = project / name
        if path.is_symlink():
            raise BadInput(
                f"{path} is a link to {os.readlink(path)}: init writes through no link",
                remedy=f"campaign init {ELSEWHERE}    (in a folder beside it), or put a folder in the link's place",
            )
        if path.exists() and not path.is_dir():
            raise BadInput(f"{path} is a file, and a project has a folder there", remedy=f"campaign init {ELSEWHERE}")
    if (project / CONFIG).exists() and not is_project(project):
        raise BadInput(
            f"{project / CONFIG} is another program's config: it chooses no hypothesis",
            remedy=f"campaign init {ELSEWHERE}    (the project in a folder of its own, the training where it is)",
        )
    above = next((folder for folder in project.parents if is_project(folder)), None)
    if above is not None and not here and not is_project(project):
        raise BadInput(
            f"{project} is inside the campaign project {above}",
            remedy=f"campaign init --here    (one inside the other), or cd {above}",
        )


def lay_down(choice: Choice) -> LaidDown:
    """Write what the project lacks. A project that is whole is left as it is, whatever was taken out of it since.

    Raises BadInput where a file cannot be written; the ones before it stay, and another `campaign init` goes on.
    """
    project = choice.project
    files = _files(choice)
    if is_whole(project):
        return LaidDown((), tuple(name for name in _below(project)))
    written: list[str] = []
    kept: list[str] = []
    for name, text in files.items():
        try:
            new = _write_new(project / name, text)
        except OSError as error:
            place = f"; written before it: {', '.join(written)}" if written else ""
            raise BadInput(
                f"cannot write {project / name}: {error.strerror or error}{place}",
                remedy=f"ls -ld {project}    (who may write there?), or campaign init FOLDER where you may",
            ) from error
        (written if new else kept).append(name)
    return LaidDown(tuple(written), tuple(kept))


def behind(choice: Choice) -> str:
    """What to do where the project still watches a script that stops at gates by now; empty where it does not."""
    name = "conf/workload/own.yaml"
    try:
        watched = "_target_: campaign.launch.Command" in (choice.project / name).read_text(encoding="utf-8")
    except OSError:
        return ""
    if choice.way != 2 or not watched:
        return ""
    return f"{choice.script} calls campaign by now and {name} only watches it: remove that file and campaign init again"


def _files(choice: Choice) -> dict[str, str]:
    """Every file by its path from the project's root; the config last, because with it the project is whole."""
    files = {"runs/.gitignore": IGNORED}
    if choice.example:
        files[os.path.relpath(choice.folder / EXAMPLE, choice.project)] = (FILES / EXAMPLE).read_text(encoding="utf-8")
    files["conf/workload/own.yaml"] = workload_text(choice)
    packaged = packaged_conf()
    if packaged is not None:
        quick = (packaged / "protocol" / "quick.yaml").read_text(encoding="utf-8")
        if not (choice.project / "conf/protocol/own.yaml").exists():  # theirs may build on quick
            files["conf/protocol/quick.yaml"] = quick.replace("`standard`", "`own`").replace("- standard\n", "- own\n")
        files["conf/hypothesis/aa_null.yaml"] = (packaged / "hypothesis" / "aa_null.yaml").read_text(encoding="utf-8")
    files |= {f"conf/hypothesis/{idea.name}.yaml": hypothesis_text(idea) for idea in choice.ideas}
    return {**files, CONFIG: (FILES / "config.yaml").read_text(encoding="utf-8")}


def workload_text(choice: Choice) -> str:
    """conf/workload/own.yaml."""
    gated = choice.way == 2
    lines = [
        "# @package _global_",
        f"# What is measured: {choice.script}, written by `campaign init`. Yours to change; docs/own.md has every key.",
        "workload:",
        f"  _target_: campaign.launch.{'Script' if gated else 'Command'}",
        "  name: own",
        f"  device: {choice.device}",
        "  # Split as a shell would, and no shell runs. `python` is the interpreter that runs campaign.",
        f"  command: {yaml(choice.command)}",
        f"  # An edit sets workload.flags.NAME=VALUE: {_values(choice.flag)}.",
        "  flags:" if choice.flags else "  flags: {}",
        *_nested(choice.flags, "    "),
        f"  flag: {yaml(choice.flag)}",
        f"  directory: {yaml(choice.directory)} # from the project's root",
        "  environment:" if choice.environment else "  environment: {} # for both arms",
        *(f"    {name}: {yaml(value)}" for name, value in choice.environment.items()),
    ]
    if not gated:
        lines += [
            "  # Where its steps are told: each line of its output with the pattern. docs/own.md has other ways.",
            "  steps:",
            "    from: output",
            f"    pattern: {yaml(choice.pattern)}",
            "  tokens: 0 # a step; 0 where nobody knows",
        ]
    return "\n".join(lines) + "\n"


def _values(flag: str) -> str:
    return "true is a bare flag; false and null leave it out" if flag.startswith("-") else "null leaves it out"


def _nested(flags: Mapping[str, Value], indent: str) -> Iterator[str]:
    """The flags as YAML, `a.b` below `a`: an edit names it `workload.flags.a.b`."""
    groups: dict[str, dict[str, Value]] = {}
    for name, value in flags.items():
        head, _, rest = name.partition(".")
        groups.setdefault(head, {})[rest] = value
    for head, inner in groups.items():
        if "" not in inner:
            yield f"{indent}{yaml(head)}:"
            yield from _nested(inner, f"{indent}  ")
        else:
            yield f"{indent}{yaml(head)}: {yaml(inner[''])}"


def hypothesis_text(idea: Idea) -> str:
    """conf/hypothesis/NAME.yaml."""
    lines = [
        "# @package _global_",
        "hypothesis:",
        f"  name: {idea.name}",
        f"  claim: {yaml(idea.claim)}",
        f"  mechanism: {yaml(idea.mechanism)}",
        f"  acts_on: {idea.acts_on}",
        "  edit:",
        "    overrides:" if idea.overrides else "    overrides: []",
        *(f"      - {yaml(text)}" for text in idea.overrides),
        "    environment:" if idea.environment else "    environment: {}",
        *(f"      {name}: {yaml(value)}" for name, value in idea.environment),
        f"  predicted_ratio: {idea.ratio}",
        "  predicted_evidence:" if idea.evidence else "  predicted_evidence: []",
        *([f"    - {{counter: {yaml(idea.evidence)}, change: appears}}"] if idea.evidence else []),
        "  # The losses of each probed step lie within this share of control's.",
        f"  parity: {{kind: loss, bound: {idea.bound}}}",
    ]
    return "\n".join(lines) + "\n"


def yaml(value: object) -> str:
    """A scalar as YAML that neither YAML nor OmegaConf reads as anything else."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        text = repr(value)
        return text if "." in text or "e" not in text else text.replace("e", ".0e")  # YAML 1.1 wants the point
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if re.fullmatch(r"[A-Za-z_][\w./-]*( [A-Za-z_./-][\w./-]*)*", text) and text.lower() not in WORDS:
        return text
    return "'" + text.replace("'", "''").replace("${", r"\${") + "'"


WORDS = ("null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf")


def _write_new(path: Path, text: str) -> bool:
    """Write a file that is not there, whole or not at all; False where it is there. Raises OSError."""
    if os.path.lexists(path):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o666 & ~_mask())
        try:
            os.link(name, path)  # fails where somebody else was faster, unlike a rename
        except FileExistsError:
            return False
        except OSError:
            os.rename(name, path)  # a file system without links
        return True
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _below(project: Path) -> list[str]:
    """The files that make a project a project, as they are."""
    names = ["conf/protocol", "conf/workload", "conf/hypothesis"]
    found = [path for name in names for path in sorted((project / name).glob("*.yaml"))]
    return [CONFIG, *(path.relative_to(project).as_posix() for path in found)]


def next_commands(choice: Choice, laid: LaidDown, cwd: Path) -> list[Mapping[str, str]]:
    """The next three commands, each with what it does; they work as they are printed, from `cwd` and in this order. One
    for git comes before the third where the script is in no commit."""
    names = sorted(path.stem for path in (choice.project / "conf" / "hypothesis").glob("*.yaml"))
    preferred = [idea.name for idea in reversed(choice.ideas) if idea.name in names]
    name = next(iter([*preferred, *(one for one in names if one != "aa_null")]), "aa_null")
    enter = "" if choice.project == cwd else f"cd {shlex.quote(os.path.relpath(choice.project, cwd))} && "
    first = {"command": f"{enter}campaign", "what": "an A/A null: what this machine can resolve"}
    second = {"command": f"campaign hypothesis={name}", "what": "an example idea, to its verdict"}
    third = {"command": "campaign try", "what": "after your next edit of the code: is it slower?"}
    if choice.script in choice.git.known:
        return [first, second, third]
    # The repository is around the training, which may lie above the project.
    git = "git" if choice.directory == "." else f"git -C {shlex.quote(choice.directory)}"
    begin = "" if choice.git.top else f"{git} init -q && "
    ignored = shlex.quote(os.path.relpath(choice.folder / ".gitignore", choice.project))
    # With a newline before it: the last line there may have none.
    spared = [f"printf '\\n%s\\n' {shlex.quote(name + '/')} >> {ignored} && " for name in environments(choice.folder)]
    commit = f'{begin}{"".join(spared)}{git} add -A && {git} commit -q -m "Start a campaign"'
    return [first, second, {"command": commit, "what": "what campaign try compares with"}, third]
