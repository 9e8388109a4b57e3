"""The person's command line: split without a shell, flags in their place, started below the trial's process."""

from __future__ import annotations

import itertools
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OVERRIDES = "{overrides}"
PYTHONS = ("python", "python3")
SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
OWN_KEYS = ("_target_", "threads")  # of a node, and none of the command line's
HARNESS = str(Path(__file__).resolve().parent.parent.parent)  # what PYTHONPATH begins with in a trial's process


class Failed(Exception):
    """A launched command that cannot go on. `kind` is one of `records.TRIAL_FAILURES`; `remedy` may be empty."""

    def __init__(self, kind: str, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.remedy = remedy


@dataclass(frozen=True)
class CommandLine:
    """A workload node of `campaign.launch`, as it is started. `flags` are in the order of the config; a mapping in them
    is the flags `name.key`, as Hydra and jsonargparse call them.

    Raises ValueError naming the key for a value that no command line can have.
    """

    command: str | list[str]
    name: str = ""
    device: str = "cpu"
    flags: Mapping[str, Any] = field(default_factory=dict)
    flag: str = "--{name}={value}"
    directory: str = "."
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> CommandLine:
        """The command line of a workload node, whose other keys belong to others."""
        return cls(**{key: value for key, value in node.items() if key not in (*OWN_KEYS, "steps", "tokens")})

    def words(self) -> list[str]:
        """The argument vector. `{overrides}` is replaced by the flags where it stands as a word, and by the flags as a
        shell reads them where it stands within one (`bash -c 'python train.py {overrides}'`); else they come last.
        `python` is the interpreter that runs the campaign. Raises ValueError where they would come last behind the text
        of a shell, which would not pass them on."""
        words = shlex.split(self.command) if isinstance(self.command, str) else [str(word) for word in self.command]
        if not words:
            raise ValueError("workload.command is empty: give the command that trains")
        flags = self.flag_words()
        if OVERRIDES in words:
            place = words.index(OVERRIDES)
            words[place : place + 1] = flags
        elif any(OVERRIDES in word for word in words):
            words = [word.replace(OVERRIDES, shlex.join(flags)) for word in words]
        elif flags and _is_shells(words):
            raise ValueError(
                f"workload.command runs a shell's text, which gets no flags: put {OVERRIDES} where they belong in it"
            )
        else:
            words += flags
        if words[0] in PYTHONS:
            words[0] = sys.executable
        return words

    def flag_words(self) -> list[str]:
        """true is a flag without a value, false and null are none, a list is the flag repeated. Where flags are
        NAME=VALUE and have no dash, true and false are values."""
        return [
            word
            for name, value in flat(self.flags)
            for one in (value if isinstance(value, list) else [value])
            for word in self._flag(name, one)
        ]

    def _flag(self, name: str, value: Any) -> list[str]:
        if value is None or (value is False and self.flag.startswith("-")):
            return []
        if value is True and self.flag.startswith("-"):
            return [self.flag.partition("{name}")[0] + name]
        value = str(value).lower() if isinstance(value, bool) else value
        return [word.replace("{name}", name).replace("{value}", str(value)) for word in self.flag.split()]

    def start(
        self, root: Path, more: Mapping[str, str], *, stdout: int | None = None, imports: bool = True
    ) -> subprocess.Popen[bytes]:
        """Start it in `root`/`directory`, with `more` environment variables; all output goes to the trial's log unless
        `stdout` is given. `imports` says that it must find this `campaign`. Raises Failed where there is no such
        program or folder."""
        words, folder = self.words(), root / self.directory
        # The interpreter's own scripts (torchrun, accelerate) before others of the name.
        paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        own = {name: str(value) for name, value in self.environment.items() if value is not None}
        environment = {**os.environ, "PATH": paths, **own}
        if not imports:
            environment |= _without_harness(environment)
        try:
            return subprocess.Popen(
                words,
                cwd=folder,
                env={**environment, **more},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=None if stdout is None else subprocess.STDOUT,
            )
        except (OSError, ValueError) as error:
            if not folder.is_dir():
                raise Failed(
                    "crashed", f"workload.directory: {folder} is no folder", "correct workload.directory"
                ) from error
            said = getattr(error, "strerror", None) or str(error)
            raise Failed("crashed", f"{words[0]} cannot be started: {said}", "correct workload.command") from error


def flat(flags: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Each flag's whole name and its value: `{"model": {"depth": 4}}` is `model.depth`, 4."""
    for name, value in flags.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _is_shells(words: Sequence[str]) -> bool:
    """Whether some word is a shell and the next an option `-c`, alone or in a bundle, as in `bash -lc TEXT`."""
    return any(
        Path(word).name in SHELLS and after.startswith("-") and not after.startswith("--") and "c" in after
        for word, after in itertools.pairwise(words)
    )


def _without_harness(environment: Mapping[str, str]) -> dict[str, str]:
    """PYTHONPATH as the person has it: with the harness's own folder, which is this environment's site-packages as a
    rule, another Python would import this one's packages instead of its own."""
    first, _, rest = environment.get("PYTHONPATH", "").partition(os.pathsep)
    return {"PYTHONPATH": rest} if first == HARNESS else {}


def ended(process: subprocess.Popen[bytes]) -> str:
    """How a command ended, in words."""
    code = process.returncode
    if code is None:
        return "goes on"
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
