"""The hypotheses of a project as jobs, for a campaign that goes through all of them.

`conf/ideas/NAME.yaml` may hold a list of hypotheses, to be named like one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from yaml import YAMLError, safe_load

from campaign.config.app import Line, checked
from campaign.config.compose import Composer
from campaign.config.edits import parse
from campaign.config.job import Job
from campaign.config.load import load
from campaign.errors import BadInput, DoesNotFit, UnknownName

FOLDER = "ideas"
NULL = "aa_null"


def ideas(
    root: Path, overrides: Sequence[str], only: Sequence[str] = (), *, json: bool = False
) -> tuple[Job, list[Job], dict[str, str]]:
    """The A/A null, a job for every other hypothesis, each composed and checked, and why one is struck out that does
    not fit the workload; `only` those, where it names any. One that `only` names itself, and one at least, has to fit.

    `overrides` hold for all of them; a parameter of one hypothesis, for that one alone. Raises BadInput or UnknownName.
    """
    keys = {text: parse(text).key_or_group.split(".", 1)[0] for text in overrides}
    folders = [text for text in overrides if text.startswith("hydra.searchpath=")]
    hypotheses = checked(root, Line((), tuple(folders), False, json))[0].options("hypothesis")
    own = [text for text in overrides if keys[text] in hypotheses]
    composer, searchpath, shared = checked(
        root, Line((), tuple(text for text in overrides if text not in own), False, json)
    )
    if any(text.startswith("hypothesis=") for text in shared):
        raise BadInput(
            "--all goes through every hypothesis, so none is chosen", remedy="campaign run --all --only NAME,NAME"
        )
    names = _named(only, composer, hypotheses) if only else hypotheses
    for text in own:
        if keys[text] not in names:
            said = f"{text!r} is about hypothesis {keys[text]}, which is not among those of --only"
            raise BadInput(said, remedy=f"--only {keys[text]}, or leave it out")
    found: list[Job] = []
    struck: dict[str, str] = {}
    for name in names:
        words = [f"hypothesis={name}", *shared, *(text for text in own if keys[text] == name)]
        try:
            found.append(load(root, words, json=json, searchpath=searchpath))
        except DoesNotFit as error:
            struck[name] = error.message
            if name in only:
                raise
    if struck and all(job.hypothesis.null for job in found):
        name, why = next(iter(struck.items()))
        raise DoesNotFit(
            f"no hypothesis fits the workload; {name}: {why}", remedy="workload=NAME of another, or --only NAME"
        )
    nulls = [job for job in found if job.hypothesis.null]
    if not nulls:
        nulls = [load(root, [f"hypothesis={NULL}", *shared], json=json, searchpath=searchpath)]
    return nulls[0], [job for job in found if not job.hypothesis.null], struck


def _named(only: Sequence[str], composer: Composer, known: Sequence[str]) -> list[str]:
    """The hypotheses that `only` names, lists opened, each once, in order."""
    folders = [folder / FOLDER for folder in composer.folders]
    lists = {path.stem: path for folder in reversed(folders) for path in folder.glob("*.yaml")}
    names: list[str] = []
    for word in only:
        names += [word] if word in known else _listed(lists[word]) if word in lists else [word]
    for name in names:
        if name not in known:
            raise UnknownName("hypothesis", name, [*known, *lists], remedy="campaign run --all --only NAME,NAME")
    return list(dict.fromkeys(names))


def _listed(path: Path) -> list[str]:
    try:
        names = safe_load(path.read_text(encoding="utf-8"))
    except (OSError, YAMLError) as error:
        raise BadInput(f"{path} cannot be read: {error}", remedy="correct the file") from error
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
        raise BadInput(f"{path} must be a list of hypotheses", remedy="- NAME, one a line")
    return names
