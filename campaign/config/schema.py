"""Checks that say the key, the value and the rule; and unknown keys found by a record's own fields."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from campaign.config.explain import SEE_CONFIG, unknown_key
from campaign.errors import BadInput
from campaign.records import from_json

T = TypeVar("T")


def fields_of(kind: Any, prefix: str) -> Iterator[str]:
    """The dotted paths of a record's fields, nested records included (a list of records under its own path)."""
    for name, hint in typing.get_type_hints(kind).items():
        path = f"{prefix}.{name}"
        inner = _record_in(hint)
        if inner is not None and dataclasses.is_dataclass(hint):
            yield from fields_of(inner, path)
        else:
            yield path


def refuse_unknown(kind: Any, value: Any, prefix: str) -> None:
    """Raises UnknownName for a key under `prefix` that the record `kind` has no field for, at any depth."""
    if not isinstance(value, dict):
        raise BadInput(f"{prefix} must be a mapping, not {value!r}", remedy=SEE_CONFIG)
    hints = typing.get_type_hints(kind)
    for name, inner in value.items():
        path = f"{prefix}.{name}"
        if name not in hints:
            raise unknown_key(path, fields_of(kind, prefix))
        record = _record_in(hints[name])
        if record is not None and isinstance(inner, dict):
            refuse_unknown(record, inner, path)
        elif record is not None and isinstance(inner, list):
            for index, item in enumerate(inner):
                refuse_unknown(record, item, f"{path}[{index}]")


def as_record(kind: type[T], value: dict[str, Any], prefix: str, *, file: str) -> T:
    """`value` as the record `kind`, unknown keys and wrong types refused under their dotted names.

    `file` is where the value came from, for the remedy.
    """
    refuse_unknown(kind, value, prefix)
    try:
        return from_json(kind, value)
    except ValueError as error:
        said = str(error).replace(f"{kind.__name__}.", f"{prefix}.", 1).replace(f"{kind.__name__}:", f"{prefix}:", 1)
        key, _, what = said.partition(": ")
        if key == prefix and what.endswith(" is missing"):
            key = f"{prefix}.{what.split()[0]}"
        key = key if key.startswith(f"{prefix}.") else f"{prefix}.KEY"
        raise BadInput(said, remedy=f"{key}=VALUE, or correct {file}") from error


def section(values: Any, prefix: str, known: Iterable[str]) -> dict[str, Any]:
    """A config node that must be a mapping with these keys and no others."""
    if not isinstance(values, dict):
        raise BadInput(
            f"{prefix} must be a mapping with {', '.join(known)}, not {values!r}",
            remedy=" ".join(f"{prefix}.{name}=VALUE" for name in known),
        )
    paths = {f"{prefix}.{name}" for name in known}
    for name in values:
        if f"{prefix}.{name}" not in paths:
            raise unknown_key(f"{prefix}.{name}", paths)
    for name in known:
        if name not in values:
            raise BadInput(f"{prefix}.{name} is missing", remedy=f"{prefix}.{name}=VALUE")
    return values


def number(value: Any, key: str, rule: str, allowed: bool) -> None:
    """Raises BadInput with `rule` unless `value` is a finite number and `allowed`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not allowed:
        raise BadInput(f"{key} = {value!r}: {rule}", remedy=f"{key}=VALUE")


def one_of(value: Any, key: str, allowed: Iterable[str]) -> None:
    """Raises BadInput unless `value` is one of `allowed`."""
    allowed = tuple(allowed)
    if value not in allowed:
        raise BadInput(f"{key} = {value!r}: must be one of {', '.join(allowed)}", remedy=f"{key}={allowed[0]}")


def text(value: Any, key: str) -> None:
    """Raises BadInput unless `value` is a string with something in it."""
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"{key} = {value!r}: must be a text that is not empty", remedy=f"{key}='in a few words'")


def _record_in(hint: Any) -> Any:
    """The record class that a field's annotation holds, directly or in a tuple; None when it holds none."""
    if dataclasses.is_dataclass(hint):
        return hint
    for inner in typing.get_args(hint):
        found = _record_in(inner)
        if found is not None:
            return found
    return None
