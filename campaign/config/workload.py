"""The workload node: what the campaign itself reads of it, and that nobody invents keys."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from campaign.config.explain import leaves, unknown_key
from campaign.config.launched import check_launched
from campaign.config.protocol import DEVICES
from campaign.config.schema import one_of
from campaign.errors import BadInput

TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def check_workload(node: Any, choice: str | None, options: Iterable[str]) -> dict[str, Any]:
    """The `workload` node as a dict with a dotted `_target_` and a `device`. Raises BadInput."""
    if not isinstance(node, dict) or choice is None:
        raise BadInput("no workload is chosen", remedy=f"workload=NAME, one of: {', '.join(options)}")
    target = node.get("_target_")
    if not isinstance(target, str) or not TARGET.fullmatch(target):
        said = "is missing" if target is None else f"= {target!r} is not a dotted path"
        raise BadInput(
            f"workload._target_ {said}: conf/workload/{choice}.yaml must name the class to build",
            remedy="_target_: models.workload.ReferenceWorkload",
        )
    if "device" not in node:
        raise BadInput("workload.device is missing", remedy="device: cpu, or device: cuda")
    one_of(node["device"], "workload.device", DEVICES)
    check_launched(node)
    return node


def same_shape(given: Any, known: Any, *, where: str = "", path: str = "workload") -> None:
    """Raises unless `given` has exactly the keys of `known`, each with a value of the same kind.

    The workload itself checks values; this keeps a misspelt or wrongly typed one from costing a started process.
    """
    prefix = f"{where}: " if where else ""
    if isinstance(known, dict) and known:
        if not isinstance(given, dict):
            raise BadInput(
                f"{prefix}{path} = {given!r}: must be a mapping with {', '.join(map(str, known))}",
                remedy=f"set a key of it: {path}.{next(iter(known))}=VALUE",
            )
        for name in given:
            if name not in known:
                raise unknown_key(f"{path}.{name}", leaves(known, path), where=where)
        for name, value in known.items():
            if name not in given:
                raise BadInput(f"{prefix}{path}.{name} is missing", remedy=f"set it: {path}.{name}=VALUE")
            same_shape(given[name], value, where=where, path=f"{path}.{name}")
        return
    if isinstance(given, float) and not math.isfinite(given):
        raise BadInput(f"{prefix}{path} = {given!r}: must be a finite number", remedy=f"{path}={_spelled(known)}")
    if known is not None and _kind(given) != _kind(known):
        raise BadInput(
            f"{prefix}{path} = {given!r}: must be {_kind(known)}, as {known!r} is", remedy=f"{path}={_spelled(known)}"
        )


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else "a text"


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).replace(" ", "") if isinstance(value, list) else str(value)
