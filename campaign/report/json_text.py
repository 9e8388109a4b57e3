"""Values as one JSON text that every reader takes: no NaN, no infinity."""

from __future__ import annotations

import json
import math

from campaign.report.plain import as_json_escapes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def as_text(value: Any) -> str:
    """`value` (dicts, lists, tuples, strings, numbers) as indented JSON; a number that is not finite becomes null."""
    return as_json_escapes(json.dumps(finite(value), indent=2, ensure_ascii=False, allow_nan=False))


def as_line(value: Any) -> str:
    """The same in one line, so that the outcomes of a sweep are JSON lines."""
    return as_json_escapes(json.dumps(finite(value), ensure_ascii=False, allow_nan=False))


def finite(value: Any) -> Any:
    """`value` with every number that is not finite replaced by None, at any depth."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
