"""The command line through Hydra: flags, single runs and sweeps, down to a list of checked jobs."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import ValueType
from omegaconf import DictConfig, OmegaConf

from campaign.config.compose import Composer, composer_for
from campaign.config.edits import long_form, parse
from campaign.config.explain import REFUSED, as_bad_input
from campaign.config.job import Job
from campaign.config.load import load
from campaign.config.overrides import check_overrides
from campaign.errors import BadInput, DoesNotFit, UnknownName

FULL_ERROR = "HYDRA_FULL_ERROR"
WITH_VALUE = ("--cfg", "-c", "--package", "-p")
MAYBE_VALUE = ("--info", "-i")
INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
ALONE = ("--help", "-h", "--hydra-help", "--resolve", "--run", "-r", "--multirun", "-m", "--shell-completion", "-sc")
ELSEWHERE = {
    "--config-path": "export CAMPAIGN_PROJECT=FOLDER, then the same command without it",
    "-cp": "export CAMPAIGN_PROJECT=FOLDER, then the same command without it",
    "--config-name": "campaign --help    (put the options in one file of a group)",
    "-cn": "campaign --help    (put the options in one file of a group)",
    "--config-dir": "campaign 'hydra.searchpath=[file://DIR]'",
    "-cd": "campaign 'hydra.searchpath=[file://DIR]'",
    "--experimental-rerun": "campaign replay DECISION",
}


@dataclass(frozen=True)
class Line:
    """A command line taken apart: `flags` in Hydra's spelling with their values, `overrides`, and what is ours."""

    flags: tuple[str, ...]
    overrides: tuple[str, ...]
    sweep: bool
    json: bool


def read_line(argv: Sequence[str]) -> Line:
    """The command line's parts. Raises UnknownName for a flag that nobody has, BadInput for one not for here."""
    flags: list[str] = []
    overrides: list[str] = []
    json = False
    words = list(argv)
    while words:
        word = words.pop(0)
        name = word.split("=", 1)[0]
        if word in ("--json", "json=true"):
            json = True
        elif not word.startswith("-"):
            overrides.append(long_form(word))
        elif name in ELSEWHERE:
            raise BadInput(
                f"{name} is not for this program: the project says where its config is", remedy=ELSEWHERE[name]
            )
        elif word in ALONE or (name in WITH_VALUE + MAYBE_VALUE and "=" in word):
            flags.append(word)
        elif word in WITH_VALUE:
            if not words:
                raise BadInput(
                    f"{word} needs a value", remedy="--cfg job" if word in ("--cfg", "-c") else "-p protocol"
                )
            flags.extend((word, words.pop(0)))
        elif word in MAYBE_VALUE:
            flags.extend((word, words.pop(0)) if words and words[0] in INFO else (word,))
        else:
            known = ("--json", *ALONE, *WITH_VALUE, *MAYBE_VALUE)
            raise UnknownName(
                "option", name, [flag for flag in known if flag.startswith("--")], remedy="campaign --help"
            )
    return Line(tuple(flags), tuple(overrides), bool({"-m", "--multirun"} & set(flags)), json)


def jobs(root: Path, argv: Sequence[str]) -> list[Job]:
    """Every job that the command line asks for, composed by Hydra and checked; none was started.

    A sweep (-m) gives one job each: A/A nulls first, because the floor that they measure serves the rest; what
    compiles in each fresh process last, because once accepted it does so in every later round; else in Hydra's
    order. An empty list: Hydra showed help or the config instead, as asked.
    Raises BadInput or UnknownName.
    """
    found, misfits = fitting(root, argv)
    for error in misfits.values():
        raise error
    return found


def fitting(root: Path, argv: Sequence[str]) -> tuple[list[Job], dict[str, DoesNotFit]]:
    """`jobs`, and of the hypotheses that a pattern (`hypothesis=glob(*)`) named those that do not fit the workload,
    with the reason. One that was named itself, and a pattern of which none fits, raise as in `jobs`."""
    line = read_line(argv)
    composer, searchpath, overrides = checked(root, line)
    asked: list[list[str]] = []
    with _understood(composer, overrides):
        if line.flags or _about_hydra(overrides) or composer.is_for_hydra(overrides):
            _through_hydra(composer, line.flags, overrides, asked.append)
        else:  # one job: Hydra's application would compose it twice to say so
            asked.append(overrides)
    pattern = any(_is_pattern(text) for text in overrides)
    found: list[Job] = []
    misfits: dict[str, DoesNotFit] = {}
    for words in asked:
        try:
            found.append(load(root, words, json=line.json, searchpath=searchpath))
        except DoesNotFit as error:
            misfits[" ".join(text.removeprefix("hypothesis=") for text in words if not _is_shared(text, asked))] = error
            if not pattern:
                raise
    if misfits and not found:
        raise next(iter(misfits.values()))
    order = sorted(found, key=lambda job: (not job.hypothesis.null, "torch_compile" in job.hypothesis.needs))
    return order, misfits


def _about_hydra(overrides: Sequence[str]) -> bool:
    """Whether one of them sets something of Hydra itself, which its application acts on."""
    return any(text.lstrip("+~").startswith("hydra") for text in overrides)


def _is_pattern(text: str) -> bool:
    """Whether an override names hypotheses by a pattern, `hypothesis=glob(*)`."""
    return text.startswith("hypothesis=") and parse(text).value_type == ValueType.GLOB_CHOICE_SWEEP


def _is_shared(text: str, asked: Sequence[Sequence[str]]) -> bool:
    """Whether every job has this override."""
    return all(text in words for words in asked)


def each_job(root: Path, line: Line, more: Sequence[str], act: Callable[[list[str]], float | None]) -> None:
    """Let Hydra's sweeper ask for one job after another: `act` is called with the overrides of each, inside Hydra's
    own call, and what it returns is the sweeper's objective (None: no value, which costs the sweeper that job only).

    `more` are further overrides, for Hydra itself. What `act` raises ends the sweep and goes through. Raises BadInput
    or UnknownName for a command line that cannot be swept.
    """
    composer, _, overrides = checked(root, line)
    before = os.environ.get(FULL_ERROR)

    def call(words: list[str]) -> float | None:
        with _full_errors(before):
            try:
                return act(words)
            except Exception as error:
                raise _Stopped from error

    try:
        with _understood(composer, overrides):
            _through_hydra(composer, line.flags, [*overrides, *more], call)
    except _Stopped as stopped:
        raise stopped.__cause__ or stopped from None
    except (AssertionError, TypeError) as error:
        raise BadInput(f"the sweeper does not take this: {error}", remedy="campaign --help") from error


class _Stopped(BaseException):
    """What a job raised, as an exception that Hydra does not keep as the job's result."""


def checked(root: Path, line: Line) -> tuple[Composer, tuple[str, ...], list[str]]:
    """The composer, the folders that it searches besides, and the overrides without those that name folders; all of
    them looked at. Raises BadInput or UnknownName."""
    theirs = [text for text in line.overrides if text.startswith("hydra.searchpath=")]
    searchpath = tuple(str(path) for text in theirs for path in _listed(text))
    overrides = [text for text in line.overrides if text not in theirs]
    composer = composer_for(root.resolve(), searchpath)
    check_overrides(overrides, composer, sweep=line.sweep)
    return composer, searchpath, overrides


def _through_hydra(
    composer: Composer, flags: Sequence[str], overrides: Sequence[str], act: Callable[[list[str]], Any]
) -> None:
    """Hydra's application with this command line; `act` gets the overrides of each job."""

    def task(_: DictConfig) -> Any:
        # Unresolved: an override may hold a ${...} reference, which belongs to the config, not to this list.
        words = OmegaConf.to_container(HydraConfig.get().overrides.task, resolve=False)
        return act([str(text) for text in words] if isinstance(words, list) else [])

    with tempfile.TemporaryDirectory(prefix="campaign-compose-") as scratch:
        # Hydra writes multirun.yaml and creates its folders whatever the config says: give it a place to throw away.
        places = [f"hydra.run.dir='{scratch}'", f"hydra.sweep.dir='{scratch}'"]
        words = ["campaign", *flags, *places, *composer.hydra_overrides, *overrides]
        app = hydra.main(config_path=str(composer.conf), config_name="config", version_base="1.3")(task)
        with _as_argv(words), _full_errors("1"):
            app()


@contextmanager
def _understood(composer: Composer, overrides: Sequence[str]) -> Iterator[None]:
    """What Hydra refuses of a command line, as a BadInput."""
    try:
        yield
    except REFUSED as error:
        raise as_bad_input(error, overrides, known=composer.known_keys(overrides)) from error
    except ValueError as error:
        # Hydra refuses some words this way instead of with an error of its own.
        raise BadInput(f"the command line is not understood: {error}", remedy="campaign --help") from error
    except SystemExit as left:
        # Hydra's help and argparse leave this way; what they wanted to say is on the terminal already.
        if left.code:
            raise BadInput("the command line is not understood", remedy="campaign --help") from left


def _listed(text: str) -> list[object]:
    value = parse(text).value()
    if not isinstance(value, list):
        raise BadInput(f"{text}: must be a list", remedy="'hydra.searchpath=[file://DIR]'")
    return [getattr(item, "text", item) for item in value]


@contextmanager
def _as_argv(words: Sequence[str]) -> Iterator[None]:
    """Hydra reads sys.argv and nothing else."""
    before = sys.argv
    sys.argv = list(words)
    try:
        yield
    finally:
        sys.argv = before


@contextmanager
def _full_errors(value: str | None) -> Iterator[None]:
    """HYDRA_FULL_ERROR as `value`: 1 is Hydra's switch for raising errors to the caller instead of printing and
    exiting. What a job starts must not inherit it."""
    before = os.environ.get(FULL_ERROR)
    try:
        _set(FULL_ERROR, value)
        yield
    finally:
        _set(FULL_ERROR, before)


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
