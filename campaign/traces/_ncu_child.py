"""Run by `ncu_rep` in a process of its own: NVIDIA's reader dies on some damaged reports. Imports nothing of campaign.

Writes one JSON line a launch, its name and its metrics with their units; an exception ends in a line with `error`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any


def main(path: str) -> None:
    try:
        import ncu_report

        for action in _actions(ncu_report.load_report(path)):
            metrics = {}
            for name in action.metric_names():
                metric = action.metric_by_name(name)
                value = metric.value() if metric is not None else None
                if isinstance(value, int | float):
                    # JSON has no NaN: null stands for what could not be collected.
                    metrics[name] = (value if abs(value) < float("inf") else None, metric.unit() or "")
            name = action.name(type(action).NameBase_DEMANGLED) or "(unnamed)"
            print(json.dumps({"name": name, "metrics": metrics}), flush=True)
    except Exception as error:  # the reader raises errors of several kinds, and its own are no tree
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)


def _actions(report: Any) -> Iterator[Any]:
    for which in range(report.num_ranges()):
        found = report.range_by_idx(which)
        for place in range(found.num_actions()):
            yield found.action_by_idx(place)


if __name__ == "__main__":
    main(sys.argv[1])
