"""Kernel names in comparable form: profilers of one kernel spell it differently."""

from __future__ import annotations

import re
from functools import lru_cache

LONGEST = 2048  # characters that are looked at: enough for any real name, and no pattern runs for ever
_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|<unnamed>::|_GLOBAL__N_\w+::|`anonymous namespace'::")
_RETURNS = re.compile(r"^(?:(?:static|inline|__global__|void|std::enable_if<.*?>::type)\s+)+")
_LAMBDA = re.compile(r"\{lambda\([^{}]*\)#\d+\}")
# A template argument's value as NVIDIA's demangler writes it, `(int)128` and `(bool)0`; others write 128 and false.
_CASTS = re.compile(r"\((?:(?:un)?signed )?(?:int|long|long long|short|char)\)(?=-?\d)")
_CLONE = re.compile(r"\s*\[clone [^\]]*\]")


@lru_cache(maxsize=1 << 16)
def normal(name: str) -> str:
    """The name without return type, anonymous namespaces, arguments and spaces, with its template arguments: two
    profilers' names of one kernel become equal."""
    found = _RETURNS.sub("", _CLONE.sub("", _ANONYMOUS.sub("", name[:LONGEST].strip())))
    found = _CASTS.sub("", found).replace("(bool)0", "false").replace("(bool)1", "true")
    return re.sub(r"\s+", "", _without_arguments(found))


@lru_cache(maxsize=1 << 16)
def symbol(name: str) -> str:
    """The bare function: no template arguments, namespaces or arguments. 'flash_fwd_kernel' for
    'void flash::flash_fwd_kernel<Traits<128> >(Params)'."""
    cut = _plain(normal(name), "<", ">")
    return cut.rsplit("::", 1)[-1] or cut or name[:LONGEST]


def short(name: str, width: int = 60) -> str:
    """A name that fits a table: the bare function, with what tells instances apart as far as there is room."""
    full = normal(name)
    if len(full) <= width:
        return full
    bare = symbol(name)
    return bare if len(bare) <= width else f"{bare[: width - 3]}..."


def _without_arguments(name: str) -> str:
    """Cut at the first parenthesis that stands outside template brackets and is not part of a lambda's type."""
    depth = 0
    for place, letter in enumerate(name):
        if letter == "<":
            depth += 1
        elif letter == ">":
            depth = max(depth - 1, 0)
        elif letter == "(" and depth == 0 and place > 0:
            return name[:place]
    return name


def _plain(name: str, opening: str, closing: str) -> str:
    depth, kept = 0, []
    for letter in _LAMBDA.sub("", name):
        if letter == opening:
            depth += 1
        elif letter == closing:
            depth = max(depth - 1, 0)
        elif depth == 0:
            kept.append(letter)
    return "".join(kept)
