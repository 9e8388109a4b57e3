"""Hydra's compose as plain values: the folders searched, the options of each group, and the composed config."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from campaign.config import shared
from campaign.config.explain import REFUSED, as_bad_input, leaves
from campaign.config.schema import fields_of
from campaign.discovery import config_folders, shared_options
from campaign.errors import BadInput
from campaign.records import Hypothesis, Protocol

GROUPS = ("protocol", "workload", "hypothesis")
TOP = ("campaign", "tracking", "lease", "json", *GROUPS)


@dataclass(frozen=True)
class Composed:
    """A composed config as plain, resolved values, and the option that each group ended up with. `for_hydra`: some of
    it is for Hydra's application, a sweep that the config itself asks for (`hydra.mode`) or a callback."""

    values: dict[str, Any]
    choices: dict[str, str | None]
    for_hydra: bool


class Composer:
    """Composes `<root>/conf`. Packaged protocols and the packaged A/A null are there too, after the project's files;
    so is the rest of the packaged config where the project has no workload of its own.

    `searchpath` holds further config folders in Hydra's spelling (`file://DIR`), searched after the project's own.
    """

    def __init__(self, root: Path, searchpath: Sequence[str] = ()) -> None:
        shared.register()
        self.root = root
        self.searchpath = tuple(searchpath)
        self.conf = root / "conf"
        fallback = config_folders(self.conf)[1:]
        self._more = (*searchpath, *_declared_searchpath(self.conf), *(f"file://{folder}" for folder in fallback))
        for folder in self.folders:
            if not folder.is_dir():
                raise BadInput(f"the config folder {folder} is not there", remedy="'hydra.searchpath=[file://DIR]'")
        self._composed: dict[tuple[str, ...], Composed] = {}

    @property
    def folders(self) -> tuple[Path, ...]:
        """Every config folder that is a plain directory, in the order of search."""
        more = (Path(path.removeprefix("file://")) for path in self._more if not path.startswith("pkg://"))
        return (self.conf, *(folder if folder.is_absolute() else self.root / folder for folder in more))

    @property
    def hydra_overrides(self) -> list[str]:
        """What Hydra must be told besides the person's overrides."""
        return searchpath_override([*self._more, shared.PLACE])

    @property
    def every_option_is_known(self) -> bool:
        """Whether all options are files in `folders`; a package on the search path (`pkg://`) may hold others."""
        return not any(path.startswith("pkg://") for path in self._more)

    def options(self, group: str) -> list[str]:
        """The options of a config group, by their file names."""
        found = {path.stem for folder in self.folders for path in (folder / group).glob("*.yaml")}
        return sorted(found | shared_options(group).keys())

    def file(self, group: str, option: str) -> Path | None:
        """The file that Hydra reads for `group=option`, None where it is in no plain folder."""
        paths = (folder / group / f"{option}.yaml" for folder in self.folders)
        own = next((path for path in paths if path.is_file()), None)
        return own or shared_options(group).get(option)

    def compose(self, overrides: Iterable[str], *, where: str = "") -> Composed:
        """The config under these overrides. `where` says in an error whose overrides they are.

        Raises BadInput for anything that Hydra, OmegaConf or a YAML file refuses, UnknownName for a misspelt key.
        """
        key = tuple(overrides)
        try:
            return copy.deepcopy(self._kept(key))
        except REFUSED as error:
            raise as_bad_input(error, key, known=self.known_keys(key), where=where) from error

    def _kept(self, key: tuple[str, ...]) -> Composed:
        if key not in self._composed:
            self._composed[key] = self._compose(key)
        return self._composed[key]

    def _compose(self, overrides: Sequence[str]) -> Composed:
        with ExitStack() as stack:
            if not GlobalHydra().is_initialized():
                stack.enter_context(
                    initialize_config_dir(config_dir=str(self.conf), version_base="1.3", job_name="campaign")
                )
            tree = compose("config", overrides=[*self.hydra_overrides, *overrides], return_hydra_config=True)
            return Composed(plain(tree), dict(tree.hydra.runtime.choices), _for_hydra(tree.hydra))

    def is_for_hydra(self, overrides: Iterable[str]) -> bool:
        """Whether some of this config is for Hydra's application; what does not compose is, which says why."""
        try:
            return self._kept(tuple(overrides)).for_hydra
        except REFUSED:
            return True

    def known_keys(self, overrides: Sequence[str]) -> set[str]:
        """The dotted paths of every key that may be set, with the group choices of `overrides`."""
        known = {*fields_of(Protocol, "protocol"), *fields_of(Hypothesis, "hypothesis")}
        try:
            known.update(leaves(self._kept(tuple(group_choices(overrides))).values))
        except REFUSED:
            return known  # the groups themselves do not compose; the records' own keys are still right
        return known


def searchpath_override(paths: Sequence[str]) -> list[str]:
    """The override that makes Hydra search these folders too; none for none."""
    return [f"hydra.searchpath=[{','.join(_quoted(path) for path in paths)}]"] if paths else []


def group_choices(overrides: Iterable[str]) -> list[str]:
    """The overrides that choose an option of a group, without those that set a key."""
    return [text for text in overrides if text.split("=", 1)[0] in GROUPS]


def plain(tree: DictConfig) -> dict[str, Any]:
    """The config as dicts, lists and scalars, every interpolation resolved, without Hydra's own node.

    Raises OmegaConfBaseException for an interpolation that leads nowhere or a mandatory value left out.
    """
    values = {}
    for name in tree:
        if name != "hydra":
            node = tree[name]
            values[str(name)] = (
                OmegaConf.to_container(node, resolve=True, throw_on_missing=True) if OmegaConf.is_config(node) else node
            )
    return values


def _for_hydra(node: DictConfig) -> bool:
    open_ = any(OmegaConf.is_interpolation(node, name) for name in ("mode", "callbacks"))
    return open_ or node.mode == RunMode.MULTIRUN or bool(node.callbacks)


def _declared_searchpath(conf: Path) -> tuple[str, ...]:
    """`hydra.searchpath` as the project's config.yaml declares it."""
    try:
        declared = OmegaConf.select(OmegaConf.load(conf / "config.yaml"), "hydra.searchpath")
    except (YAMLError, OmegaConfBaseException) as error:
        raise BadInput(f"{conf / 'config.yaml'} cannot be read: {error}", remedy="correct the file") from error
    if declared is None:
        return ()
    if not OmegaConf.is_list(declared) or not all(isinstance(path, str) for path in declared):
        raise BadInput(
            f"hydra.searchpath in {conf / 'config.yaml'} must be a list of strings, not {declared!r}",
            remedy="hydra: {searchpath: ['file://DIR']} in that file, or take the key out",
        )
    return tuple(declared)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@functools.cache
def composer_for(root: Path, searchpath: tuple[str, ...] = ()) -> Composer:
    """One composer a project and search path, so that a sweep composes each configuration once."""
    return Composer(root, searchpath)
