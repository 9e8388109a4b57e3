"""Interpreter, device and git of a folder, found without importing torch or GitPython."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

GIT_SECONDS = 10.0


@dataclass(frozen=True)
class Found:
    """A value that a workload gets, and the line that says why."""

    value: str
    said: str


def interpreter(folder: Path) -> Found:
    """The Python that runs the script: the folder's own environment where it has one, else the one running now.

    `python` in a command is the interpreter that runs the campaign; another one is written with its whole path, which
    holds in a worktree too."""
    for name in (".venv", "venv", "env"):
        own = folder / name
        python = own / "bin" / "python"
        if (own / "pyvenv.cfg").is_file() and python.exists():
            if own.resolve() == Path(sys.prefix).resolve():
                return Found("python", f"{name}/bin/python, this folder's own, which runs campaign too")
            there = any(own.glob("lib/python*/site-packages/campaign*"))
            without = "" if there else f"; it has no campaign: {name}/bin/python -m pip install campaign"
            return Found(str(python.absolute()), f"{name}/bin/python, this folder's own{without}")
    return Found("python", f"{sys.executable}, which runs campaign")


def has_campaign(python: str) -> bool:
    """Whether the interpreter of `interpreter` can import campaign."""
    return python == "python" or any(Path(python).parents[1].glob("lib/python*/site-packages/campaign*"))


def device() -> Found:
    """`cuda` where there are an NVIDIA device and a torch built for it, else `cpu`."""
    nodes = [name for name in _listed("/dev") if re.fullmatch(r"nvidia\d+", name)]
    if not nodes:
        return Found("cpu", "cpu: there is no NVIDIA device here")
    spec = importlib.util.find_spec("torch")
    version = Path(spec.origin).with_name("version.py") if spec is not None and spec.origin else None
    built = (
        re.search(r"^cuda\b.*=\s*['\"]", version.read_text(), re.MULTILINE) if version and version.is_file() else None
    )
    if built is None:
        return Found("cpu", "cpu: there is an NVIDIA device, but this torch was built without CUDA")
    return Found("cuda", f"cuda: {len(nodes)} NVIDIA device{'s' * (len(nodes) > 1)}")


@dataclass(frozen=True)
class Git:
    """`top` is the working tree's top, '' outside one; `commit` is HEAD's, '' before the first; `known` are the
    asked files that HEAD has."""

    top: str = ""
    commit: str = ""
    known: frozenset[str] = frozenset()


def git(folder: Path, files: list[str]) -> Git:
    """What git says of a folder. Nothing, where there is no git."""
    top = _git(folder, "rev-parse", "--show-toplevel")
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "--short", "HEAD") if top else ""
    tree = _git(folder, "ls-tree", "--name-only", "HEAD", "--", *files) if commit else ""
    return Git(top, commit, frozenset(tree.splitlines()))


def environments(folder: Path) -> tuple[str, ...]:
    """The folders of `folder` that are a Python environment and that git would take in."""
    found = [name for name in sorted(_listed(str(folder))) if (folder / name / "pyvenv.cfg").is_file()]
    told = _text(folder / ".gitignore").split()
    return tuple(
        name
        for name in found
        # Newer ones ignore themselves. Where there is no repository yet, what .gitignore says by name.
        if not (folder / name / ".gitignore").is_file()
        and not {name, f"{name}/", f"/{name}", f"/{name}/"} & set(told)
        and not _git(folder, "check-ignore", name)
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS,
            check=False,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
