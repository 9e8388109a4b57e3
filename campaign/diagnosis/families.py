"""Kernel families: which kind of work a kernel is, from its name, by rules that are data (`families.yaml`).

A name is looked at in three steps: the category that the profiler gave (a copy is a copy), the ordered rules, the first
that fits, and, for a GEMM, its precision from the whole name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from campaign.diagnosis.names import LONGEST, normal, symbol
from campaign.errors import BadInput, UnknownName
from campaign.traces.timeline import Work

GEMM, OTHER, GRAPH = "gemm", "other", "graph"
PROJECT_FILE = "conf/diagnosis.yaml"
_NAMESPACES = re.compile(r"(fbgemm(_gpu)?|flashinfer)::|\d*flashinfer")


@dataclass(frozen=True)
class Rule:
    """`pattern` is searched in the bare symbol or, where `whole`, in the whole name; `unless` must not be there."""

    family: str
    pattern: re.Pattern[str]
    whole: bool
    unless: re.Pattern[str] | None = None


@cache
def document() -> dict[str, Any]:
    """families.yaml as it stands."""
    text = files("campaign.diagnosis").joinpath("families.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return found


@cache
def _built_in() -> tuple[tuple[Rule, ...], tuple[Rule, ...], re.Pattern[str]]:
    found = document()
    return (
        tuple(_rule(one) for one in found["rules"]),
        tuple(_rule({**one, "in": "name"}) for one in found["gemm"]),
        re.compile(found["wrappers"]),
    )


def titles() -> Mapping[str, str]:
    """What each family is called on a page, in the order of the page."""
    found: Mapping[str, str] = document()["titles"]
    return found


def groups() -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """What several families are called together, and which they are, by what a hypothesis calls them."""
    found = document()
    return {name: (found["group_titles"][name], tuple(one)) for name, one in found["groups"].items()}


def members(name: str) -> tuple[str, ...]:
    """The families of a group, or the family itself; empty for a name that is neither."""
    groups = document()["groups"]
    return tuple(groups.get(name, ())) or ((name,) if name in titles() else ())


class Classifier:
    """Gives a kernel its family. `rules` are the project's own, asked first: mappings with `family` and `pattern`
    (searched in the whole name). A family that is not built in is one of the project's.

    Raises BadInput for a rule that is not one, and for a pattern that does not compile.
    """

    def __init__(self, rules: Sequence[Mapping[str, Any]] = ()) -> None:
        self.own = tuple(_own(place, one) for place, one in enumerate(rules, 1))
        self.rules, self.gemm, self.wrappers = _built_in()
        self.titles = {**titles(), **{one.family: one.family for one in self.own if one.family not in titles()}}
        self._known: dict[tuple[str, Work], str] = {}

    def family(self, name: str, kind: Work = Work.KERNEL) -> str:
        """The family's key."""
        found = self._known.get((name, kind))
        if found is None:
            found = self._known[name, kind] = self._family(name, kind)
        return found

    def _family(self, name: str, kind: Work) -> str:
        whole = name[:LONGEST]
        for rule in self.own:
            if rule.pattern.search(whole):
                return rule.family
        if kind in (Work.MEMCPY, Work.MEMSET):
            return kind.name.lower()
        if kind == Work.GRAPH:
            return GRAPH
        # A library's name is no reason: fbgemm_gpu:: holds quantizers and embeddings, flashinfer:: norms and GEMMs.
        whole = _NAMESPACES.sub("", normal(name) or whole)
        bare = _NAMESPACES.sub("", symbol(name))
        if not self.wrappers.match(bare):
            whole = _relevant(whole, bare)
        for rule in self.rules:
            text = whole if rule.whole else bare
            if rule.pattern.search(text) and not (rule.unless and rule.unless.search(text)):
                return self._precision(name) if rule.family == GEMM else rule.family
        return OTHER

    def _precision(self, name: str) -> str:
        for rule in self.gemm:
            if rule.pattern.search(name[:LONGEST]):
                return rule.family
        return "gemm_other"


def check_family(name: str, known: Mapping[str, str] | None = None) -> None:
    """Raises UnknownName, with the nearest, for what is neither a family nor a group."""
    if not members(name) and name not in (known or {}):
        raise UnknownName("kernel family", name, [*titles(), *document()["groups"], *(known or {})])


def _relevant(whole: str, bare: str) -> str:
    """The qualified function without its template arguments, whose types say what it works on and not what it does."""
    depth, kept = 0, []
    for letter in whole:
        if letter == "<":
            depth += 1
        elif letter == ">":
            depth = max(depth - 1, 0)
        elif depth == 0:
            kept.append(letter)
    return "".join(kept) or bare


def _rule(one: Mapping[str, Any]) -> Rule:
    unless = re.compile(one["not"], re.IGNORECASE) if "not" in one else None
    return Rule(one["family"], re.compile(one["pattern"], re.IGNORECASE), one.get("in") == "name", unless)


def _own(place: int, one: Any) -> Rule:
    where = f"{PROJECT_FILE}, families, rule {place}"
    remedy = f"{PROJECT_FILE}: families: [{{family: norm, pattern: 'my_norm_.*'}}]"
    if not isinstance(one, Mapping) or not all(isinstance(one.get(key), str) for key in ("family", "pattern")):
        raise BadInput(f"{where}: {one!r} is not a mapping with a family and a pattern", remedy=remedy)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", one["family"]):
        raise BadInput(f"{where}: family {one['family']!r}: small letters, digits and _ only", remedy=remedy)
    try:
        return Rule(one["family"], re.compile(one["pattern"], re.IGNORECASE), whole=True)
    except re.error as error:
        raise BadInput(f"{where}: pattern {one['pattern']!r} does not compile: {error}", remedy=remedy) from error
