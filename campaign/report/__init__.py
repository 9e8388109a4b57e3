"""What a person reads. Modules: `listing` and `stack` (light verbs), `export` (Markdown, CSV, JSON), `check` (replay
and judge again), `progress`, `verdict_text` and `describe` (a run).

The names that a run needs are here, loaded when first asked for: a listing must not pay for the records.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # the name that type checkers know, without importing `typing`
if TYPE_CHECKING:
    from typing import Any

    from campaign.report.describe import describe_engagement, describe_parity
    from campaign.report.progress import Progress
    from campaign.report.verdict_text import decision_json, decision_text

__all__ = ["Progress", "decision_json", "decision_text", "describe_engagement", "describe_parity"]

_HOMES = {
    "Progress": "progress",
    "decision_json": "verdict_text",
    "decision_text": "verdict_text",
    "describe_engagement": "describe",
    "describe_parity": "describe",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
