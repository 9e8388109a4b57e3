"""Hydra's, OmegaConf's and YAML's errors in this project's words, with the nearest right name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    InterpolationKeyError,
    InterpolationResolutionError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)
from yaml import YAMLError

from campaign.errors import BadInput, DoesNotFit, UnknownName, nearest

QUOTING = "quote a value that holds '=', ',', '(', '#' or spaces: \"key='free text'\""
EDIT_QUOTING = "quote every edit: \"hypothesis.edit.overrides=['workload.KEY=VALUE','workload.KEY=VALUE']\""
SEE_CONFIG = "campaign run --cfg job    (shows every key and its value)"


# What composing raises for a wrong config or command line; the last where files build on one another in a circle.
REFUSED = (HydraException, OmegaConfBaseException, YAMLError, RecursionError)


def as_bad_input(error: Exception, overrides: Sequence[str], *, known: Iterable[str], where: str = "") -> BadInput:
    """The BadInput that stands for `error`, raised while composing `overrides`.

    `known` are the dotted paths of the keys that exist; the nearest right one is looked up in them.
    """
    prefix = f"{where}: " if where else ""
    cause = error if isinstance(error, OmegaConfBaseException) else error.__cause__
    if isinstance(error, RecursionError):
        return BadInput(
            f"{prefix}files of conf/ name one another in their `defaults`, in a circle",
            remedy="take one of them out of the other's defaults; grep -rn -A4 defaults conf    (shows them)",
        )
    if isinstance(error, OverrideParseException):
        remedy = EDIT_QUOTING if error.override.startswith("hypothesis.edit.overrides=") else QUOTING
        return BadInput(
            f"{prefix}the override {error.override!r} cannot be parsed: {_first_line(error)}", remedy=remedy
        )
    if isinstance(error, MissingConfigException):
        return BadInput(f"{prefix}{_first_line(error)}", remedy=_listed(error.options))
    if isinstance(cause, InterpolationKeyError | InterpolationResolutionError):
        missing = re.search(r"'(workload\.[^']+)' not found", str(cause))
        if missing and str(cause.full_key).startswith("hypothesis."):
            chosen = [text.partition("=")[2] for text in overrides if text.startswith("hypothesis=")]
            name = f"hypothesis {chosen[-1]}" if chosen else "the hypothesis"
            return DoesNotFit(
                f"{prefix}{name} refers to {missing[1]}, which this workload does not have ({cause.full_key})",
                remedy="campaign run --cfg job -p workload    (shows the workload's keys)",
            )
        return BadInput(
            f"{prefix}{cause.full_key or 'a value'} refers to something that is not there: {_first_line(cause)}",
            remedy="correct the ${...} reference",
        )
    if isinstance(cause, MissingMandatoryValue):
        return BadInput(f"{prefix}{cause.full_key} is mandatory and has no value", remedy=f"{cause.full_key}=VALUE")
    if isinstance(cause, ConfigAttributeError | ConfigKeyError) and cause.full_key:
        written = [item.lstrip("+~").split("=", 1)[0] for item in overrides]
        refused = str(cause.full_key)
        return unknown_key(next((key for key in written if key.startswith(f"{refused}.")), refused), known, where=where)
    if isinstance(error, YAMLError):
        return BadInput(f"{prefix}a config file is not valid YAML: {error}", remedy="correct the file")
    detail = f" ({_first_line(cause)})" if cause is not None and _first_line(cause) else ""
    return BadInput(f"{prefix}{_first_line(error) or type(error).__name__}{detail}", remedy=SEE_CONFIG)


def unknown_key(key: str, known: Iterable[str], *, where: str = "") -> BadInput:
    """The error for a key that does not exist, or that exists and is only absent from this file."""
    known = set(known)
    prefix = f"{where}: " if where else ""
    if key in known:
        return BadInput(f"{prefix}{key} is not set in the chosen config", remedy=f"add it with a plus: +{key}=VALUE")
    kind = f"{prefix}config key"
    every = known | {parent for path in known for parent in _parents(path)}
    # The first part that is wrong decides where to look: mesure.pairs is about mesure, protocol.pair about pair.
    base = next(parent for parent in (*_parents(key), "") if parent in every or not parent)
    wrong = key[: len(base) + 1 + (key[len(base) + 1 :] + ".").index(".")] if base else key.split(".", 1)[0]
    siblings = [path for path in every if path.rpartition(".")[0] == base]
    if not nearest(wrong, siblings):
        elsewhere = [path for path in known if path.rpartition(".")[2] == key.rpartition(".")[2]]
        elsewhere = [path for path in elsewhere if ".by_device." not in path] or elsewhere
        if elsewhere:
            return UnknownName(kind, key, elsewhere, remedy=f"{min(elsewhere)}=VALUE")
        return UnknownName(kind, wrong, siblings, remedy=SEE_CONFIG)
    closest = difflib.get_close_matches(wrong, siblings, n=6, cutoff=0.3) if len(siblings) > 10 else siblings
    return UnknownName(kind, wrong, closest, remedy=SEE_CONFIG)


def leaves(values: Any, prefix: str = "") -> Iterator[str]:
    """The dotted paths of every value in a nested dict; a list is one value, an empty dict too."""
    if isinstance(values, dict) and values:
        for name, value in values.items():
            yield from leaves(value, f"{prefix}.{name}" if prefix else str(name))
    elif prefix:
        yield prefix


def _parents(path: str) -> Iterator[str]:
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0].strip()


def _listed(options: Sequence[str] | None) -> str:
    return f"one of: {', '.join(options)}" if options else SEE_CONFIG
