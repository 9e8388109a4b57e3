"""Kernel names where there is little room: what tells two of them apart stays as long as it can."""

from __future__ import annotations

import re
from functools import lru_cache

from campaign.diagnosis.names import LONGEST, normal

MARK = "..."
DEEPEST = 3  # arguments within arguments
# A copy or a set, with its direction; a graph that was traced whole, with its number.
_COPY = re.compile(r"^([Mm]em(?:cpy|set)|CUDA graph) ?(?=$|[A-Z(\d])")
_VOID = re.compile(r"\bvoid\s+")
_SPACES = re.compile(r"(?:\w+::)+(?=[\w{(])")
# Lambdas and the calls of them, the iterators that every functor is given, what wraps every functor.
_LAMBDAS = re.compile(
    r"(?:::)?(?:\{lambda\([^{}]*\)#\d+\}|\[lambda\([^\[\]]*\)\(instance\d+\)\])|::operator\(\)\([^()]*\)(?:const)?"
)
_ITERATOR = re.compile(r"\((?:at::)?TensorIterator\w*(?:const)?&[^()]*\)")
_WRAPPER = re.compile(r"gpu_kernel_impl(?:_nocast)?<")
# What all instances of a template share: pointers in arrays, calculators of offsets, one type many times.
_SHARED = re.compile(
    r",?(?:(?:std::)?[Aa]rray<char\*,\d+\w*>|(?:Trivial)?OffsetCalculator<[^<>]*>|memory::\w+(?:<[^<>]*>)?"
    r"|(?:Load|Store)With(?:out)?Cast(?:<[^<>]*>)?)"
)
_REPEATED = re.compile(r"\b(\w+)(?:,\1\b)+")
_SCALARS = re.compile(r"(?<=[<,])(?:\d+|float|double|int|long|bool|true|false|unsigned\w*),")


@lru_cache(maxsize=1 << 12)
def shown(name: str, room: int) -> str:
    """The name in at most `room` characters: without return type and arguments; if that is too long, without
    namespaces; if that is too long, without what tells no two instances apart; and then cut in the middle of its
    template arguments."""
    full = " ".join(name.split())
    if _COPY.match(full):
        full = _COPY.sub(r"\1 ", full).strip()
    else:
        full = normal(_VOID.sub("", full[: 4 * LONGEST])) or full
    for shorter in (str, _without_spaces, _without_shared, _without_scalars):
        full = shorter(full)
        if len(full) <= room:
            return full
    function, bracket, arguments = full.partition("<")
    left = room - len(function) - len(bracket) - len(MARK)
    if not bracket or left < 12:
        return full[: max(room - len(MARK), 0)] + MARK
    arguments = arguments.rstrip(">")
    if len(arguments) <= left:
        return f"{function}{bracket}{arguments}{MARK}"
    tail = left // 3
    return f"{function}{bracket}{arguments[: left - tail]}{MARK}{arguments[len(arguments) - tail :]}"


def _without_spaces(name: str) -> str:
    return _SPACES.sub("", name)


def _without_shared(name: str) -> str:
    """Without wrappers and shared arguments; brackets that lost their partners go too."""
    found = _LAMBDAS.sub("", name)
    for _ in range(DEEPEST):
        found = _ITERATOR.sub("", found)
    found = _REPEATED.sub(r"\1", _SHARED.sub("", _WRAPPER.sub("", found)))
    unopened = found.count(">") - found.count("<") - 2 * found.count("->")
    return found[: len(found) - unopened] if unopened > 0 and found.endswith(">" * unopened) else found


def _without_scalars(name: str) -> str:
    return _SCALARS.sub("", name)
