"""The numbers of Kineto's events, which come as integers, floats or text, or are missing: exact, or said to be bad."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import numpy as np

from campaign.traces._kineto_events import EXACT_BELOW_US, Arguments
from campaign.traces.timeline import Shape

LARGEST_NS = 1 << 62
SMALL_EXPONENT = 16  # of microseconds; larger numbers are looked at one by one


def nanoseconds(values: list[Any]) -> np.ndarray | None:
    """Microseconds as whole nanoseconds, where all are numbers that a double holds to the nanosecond; else None."""
    try:
        found = np.fromiter(values, np.float64, len(values))
    except (TypeError, ValueError, OverflowError):
        return None
    if not len(found) or not np.abs(found).max() < EXACT_BELOW_US:  # also where it is not a number
        return None
    return np.rint(found * 1000).astype(np.int64)


def any_nanoseconds(values: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Whatever they are, microseconds as nanoseconds one by one, and which of them are no such number."""
    classes = {value.__class__ for value in values}
    try:
        found = np.empty(0, np.int64)
        # The exponent first: 1e999999999 as a whole number would take all there is of time and memory.
        if classes == {Decimal} and all(value.is_finite() and value.adjusted() < SMALL_EXPONENT for value in values):
            found = np.fromiter((round(value.scaleb(3)) for value in values), np.int64, len(values))
        elif classes == {int}:
            found = np.fromiter(values, np.int64, len(values))
            found = found * 1000 if np.abs(found).max() < LARGEST_NS // 1000 else found[:0]
        if len(found) and np.abs(found).max() < LARGEST_NS:
            return found, np.zeros(len(found), bool)
    except (InvalidOperation, TypeError, ValueError, OverflowError):
        pass
    bad = np.zeros(len(values), bool)
    exact = np.zeros(len(values), np.int64)
    for place, value in enumerate(values):
        one = _exact(value)
        bad[place] = one is None
        exact[place] = one or 0
    return exact, bad


def _exact(value: Any) -> int | None:
    """One number of microseconds, however it is written, as nanoseconds."""
    try:
        number = Decimal(value if isinstance(value, (int, str, Decimal)) else repr(value))
        if not number.is_finite() or number.adjusted() >= SMALL_EXPONENT or abs(number) > LARGEST_NS // 1000:
            return None
        return int((number * 1000).to_integral_value())
    except (InvalidOperation, TypeError, ValueError):
        return None


def whole(value: Any, otherwise: Any) -> Any:
    """An integer, however it is written, or what is to stand for anything else."""
    if value.__class__ is int:
        return value if -LARGEST_NS < value < LARGEST_NS else otherwise
    if isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit() and len(value) < 19:
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else otherwise


def wholes(values: list[Any], otherwise: int) -> np.ndarray:
    """Integers, with another one in the place of everything else."""
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
        return np.fromiter((whole(value, otherwise) for value in values), np.int64, len(values))


def shape(args: Arguments) -> Shape:
    """How a kernel was launched, as far as its arguments say it."""
    registers, shared = whole(args.registers, None), whole(args.shared, None)
    return Shape(registers, _product(args.block), _product(args.grid), shared)


def _product(raw: msgspec.Raw) -> int | None:
    try:
        numbers = msgspec.json.decode(raw, type=list[int]) if raw else []
    except (ValueError, TypeError, RecursionError):
        return None
    found = math.prod(numbers)
    return found if numbers and 0 <= found < LARGEST_NS else None
