"""Records to JSON values and back, by their annotations. Unknown keys are ignored (a newer writer may add some);
a missing key takes the field's default or is an error that names it."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from typing import Any, TypeVar

T = TypeVar("T")


def to_json(record: Any) -> Any:
    """A dataclass, tuple or dict as plain JSON values (dict, list, str, int, float, bool, None)."""
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {f.name: to_json(getattr(record, f.name)) for f in dataclasses.fields(record)}
    if isinstance(record, dict):
        return {str(key): to_json(value) for key, value in record.items()}
    if isinstance(record, (list, tuple)):
        return [to_json(value) for value in record]
    if record is None or isinstance(record, (str, int, float, bool)):
        return record
    raise TypeError(f"{type(record).__name__} has no JSON form in a record: {record!r}")


def from_json(kind: type[T], value: Any) -> T:
    """The record of class `kind` that `value` (from `to_json`) stands for.

    Raises ValueError naming the field when a value is missing or of the wrong shape.
    """
    return typing.cast(T, _load(kind, value, kind.__name__))


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _load(kind: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if kind is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        options = typing.get_args(kind)
        if value is None and type(None) in options:
            return None
        return _load(next(o for o in options if o is not type(None)), value, where)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{where}: expected a list, got {value!r}")
        inner = typing.get_args(kind)
        if len(inner) == 2 and inner[1] is Ellipsis:
            return tuple(_load(inner[0], item, f"{where}[{i}]") for i, item in enumerate(value))
        if len(inner) != len(value):
            raise ValueError(f"{where}: expected {len(inner)} values, got {len(value)}")
        return tuple(_load(t, item, f"{where}[{i}]") for i, (t, item) in enumerate(zip(inner, value, strict=True)))
    if origin is dict or kind is dict:
        if not isinstance(value, dict):
            raise ValueError(f"{where}: expected an object, got {value!r}")
        inner_value = typing.get_args(kind)[1] if origin is dict else Any
        return {str(k): _load(inner_value, v, f"{where}.{k}") for k, v in value.items()}
    if dataclasses.is_dataclass(kind):
        return _load_record(typing.cast(type, kind), value, where)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{where}: expected {kind.__name__}, got {value!r}")
    return value


def _load_record(kind: type, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{where}: expected an object, got {value!r}")
    hints = _hints(kind)
    given = {}
    for field in dataclasses.fields(kind):
        if field.name in value:
            given[field.name] = _load(hints[field.name], value[field.name], f"{where}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{where}: {field.name} is missing")
    return kind(**given)
