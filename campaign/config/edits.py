"""What a hypothesis changes: its overrides parsed, kept inside the workload, and checked against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, QuotedString
from hydra.errors import HydraException, OverrideParseException

from campaign.config.explain import as_bad_input
from campaign.errors import BadInput
from campaign.records import CODE_EDITS, Edit

FIXED = ("workload.device",)
DIRTY = "dirty"
LAUNCHED = "campaign.launch."  # a command of the person's own, which may read any file of the project


@dataclass(frozen=True)
class Setting:
    """One key that an edit sets, as it was written."""

    key: str
    value: Any
    written: str


def parse(text: str, *, where: str = "") -> Override:
    """An override in Hydra's grammar. Raises BadInput."""
    try:
        return OverridesParser.create().parse_override(text)
    except OverrideParseException as error:
        raise as_bad_input(error, (text,), known=(), where=where) from error
    except HydraException as error:
        # The lexer does not name the override it stumbled over.
        raise as_bad_input(OverrideParseException(text, str(error)), (text,), known=(), where=where) from error


def settings(edit: Edit, *, where: str) -> tuple[Setting, ...]:
    """Every key that the edit sets, a mapping's keys one by one.

    Raises BadInput for an override that is not plain `workload.KEY=VALUE`, and for two that disagree.
    """
    found: list[Setting] = []
    for written in edit.overrides:
        override = parse(written, where=where)
        key = override.key_or_group
        plain = not (override.is_add() or override.is_force_add() or override.is_delete() or override.package)
        if not plain or override.is_sweep_override() or not key.startswith("workload."):
            raise BadInput(
                f"{where}: the edit {written!r} is not of the form workload.KEY=VALUE; an edit sets existing keys of "
                "the workload, once each",
                remedy="campaign run --cfg job -p workload    (shows the workload's keys)",
            )
        if any(key == fixed or key.startswith(f"{fixed}.") for fixed in FIXED):
            raise BadInput(
                f"{where}: the edit {written!r} changes {key}; control and treatment run on one device",
                remedy=f"choose the device for both sides: {written}",
            )
        found.extend(Setting(leaf, value, written) for leaf, value in _flat(key, override.value()))
    refuse_clashes([(setting, where) for setting in found])
    return tuple(found)


def check_code(edit: Edit, key: str) -> None:
    """Raises BadInput for more than one edit of code, and for a word that git or a terminal could misread."""
    given = [kind for kind in CODE_EDITS if getattr(edit, kind)]
    if len(given) > 1:
        raise BadInput(
            f"{key} has {' and '.join(given)}: an edit of code is one of {', '.join(CODE_EDITS)}",
            remedy=f"keep one: {key}.{given[0]}={getattr(edit, given[0])}",
        )
    for kind in given:
        word = getattr(edit, kind)
        if word.startswith("-") or not word.isprintable():
            raise BadInput(
                f"{key}.{kind} = {word!r}: a name may not start with '-' or hold control characters",
                remedy=f"{key}.{kind}=NAME" if kind != "worktree" else f"{key}.worktree={DIRTY}",
            )
    if edit.worktree and edit.worktree != DIRTY:
        raise BadInput(
            f"{key}.worktree = {edit.worktree!r}: the working tree against HEAD is called {DIRTY!r}",
            remedy=f"{key}.worktree={DIRTY}, or {key}.ref={edit.worktree} for a branch",
        )


def long_form(word: str) -> str:
    """`edit.ref=NAME` on a command line is `++hypothesis.edit.ref=NAME`: a hypothesis need not have the key."""
    key = word.lstrip("+").partition("=")[0]
    return f"++hypothesis.{word.lstrip('+')}" if key in {f"edit.{kind}" for kind in CODE_EDITS} else word


def stacked(edits: Sequence[tuple[str, Edit]], *, where: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The overrides and the environment of several edits applied in order; each comes with the name of its hypothesis.

    Raises BadInput naming both hypotheses when two of them set the same key or the same variable, to whatever values:
    what each does alone could not be told apart.
    """
    keys: dict[str, tuple[str, Setting]] = {}
    overrides: list[str] = []
    environment: dict[str, str] = {}
    owners: dict[str, str] = {}
    for name, edit in edits:
        found = settings(edit, where=f"{where}, {name}")
        for setting in found:
            for key, (other, earlier) in keys.items():
                if other != name and _overlap(key, setting.key):
                    raise _both_set(where, other, earlier.written, name, setting.written)
        keys.update({setting.key: (name, setting) for setting in found})
        overrides += edit.overrides
        for variable, value in edit.environment.items():
            if variable in owners:
                earlier_said = f"{variable}={environment[variable]}"
                raise _both_set(where, owners[variable], earlier_said, name, f"{variable}={value}")
            owners[variable], environment[variable] = name, value
    return tuple(overrides), environment


def _overlap(one: str, other: str) -> bool:
    """Whether two keys are the same, or one is a part of the other."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _both_set(where: str, first: str, first_written: str, second: str, second_written: str) -> BadInput:
    return BadInput(
        f"{where}: {first} and {second} set the same key: {first_written} and {second_written}",
        remedy=f"keep one of the two in the stack: campaign stack --revert {first} --why TEXT",
    )


def refuse_clashes(found: Sequence[tuple[Setting, str]]) -> None:
    """Raises BadInput when one key is set to two values, or both as a value and as a mapping."""
    by_key: dict[str, tuple[Setting, str]] = {}
    for setting, where in found:
        first, _ = by_key.setdefault(setting.key, (setting, where))
        if first.value != setting.value or type(first.value) is not type(setting.value):
            raise BadInput(
                f"{where}: {setting.key} is set twice, to {first.value!r} ({first.written}) and to "
                f"{setting.value!r} ({setting.written})",
                remedy="keep one of the two",
            )
    for key, (setting, where) in by_key.items():
        inside = next((other for other in by_key if other.startswith(f"{key}.")), None)
        if inside is not None:
            raise BadInput(
                f"{where}: {setting.written} sets {key} as a whole and {by_key[inside][0].written} a part of it",
                remedy="set the parts one by one",
            )


def _flat(key: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        pairs = []
        for name, inner in value.items():
            label = name.text if isinstance(name, QuotedString) else str(name)
            pairs.extend(_flat(f"{key}.{label}", inner))
        return pairs
    return [(key, value)]
