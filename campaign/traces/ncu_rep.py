"""Nsight Compute reports (`.ncu-rep`), through NVIDIA's own reader, which is an optional package.

The report's values are those of the CSV exports before they were rounded and scaled, under the raw page's names.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from campaign.errors import BadInput
from campaign.traces._ncu_launch import launch
from campaign.traces._ncu_metrics import is_wanted
from campaign.traces._ncu_numbers import Reading
from campaign.traces.counters import KernelCounters, KernelReport
from campaign.traces.timeline import Notice, Source

FORMAT = "Nsight Compute report (.ncu-rep, with the extra `ncu`)"
MAGIC = b"NVR\0"
MOST_LAUNCHES = 20_000


def recognises(head: bytes, path: Path) -> bool:
    return head.startswith(MAGIC)


def read(path: Path) -> KernelReport:
    """Raises BadInput where the reader is not installed, cannot read the file, or finds no launch in it."""
    table = shlex.quote(str(path.with_suffix(".csv")))
    export = f"ncu --import {shlex.quote(str(path))} --csv --page raw > {table}"
    try:
        import ncu_report
    except ImportError as error:
        raise BadInput(
            f"{path}: an Nsight Compute report, which only NVIDIA's reader opens ({error})",
            remedy=f"{export}, then campaign diagnose {table}; or, in the folder of this tool's"
            " source: pip install -e '.[ncu]'",
        ) from error
    launches: list[KernelCounters] = []
    beyond = 0
    try:
        # A newer report than the reader, and a damaged one, end in exceptions of several kinds.
        for record, action in enumerate(_actions(ncu_report.load_report(str(path))), 1):
            if len(launches) < MOST_LAUNCHES:
                launches.append(_launch(action, record))
            else:
                beyond += 1
    except Exception as error:
        raise BadInput(
            f"{path}, record {len(launches) + 1}: NVIDIA's reader cannot read it ({type(error).__name__}: {error})",
            remedy=f"{export}, with the version of ncu that wrote it",
        ) from error
    if not launches:
        raise BadInput(
            f"{path}: NVIDIA's reader finds no launch in it; the file is cut, or nothing was profiled",
            remedy="ncu --set full -k regex:KERNEL -c 1 -o FILE PROGRAM",
        )
    unprofiled = sorted({one.name for one in launches if not one.profiled})
    notices = [Notice("not-profiled", f"nothing was measured of {', '.join(unprofiled[:3])}")] if unprofiled else []
    if beyond:
        text = f"{beyond:,} launches after the first {MOST_LAUNCHES:,} were not read"
        notices.append(Notice("launches-beyond", text))
    tool = f"Nsight Compute, read by ncu_report {version('ncu_report')}"
    return KernelReport(Source(str(path), "ncu-rep", tool, path.stat().st_size), tuple(launches), tuple(notices))


def _actions(report: Any) -> Iterator[Any]:
    for which in range(report.num_ranges()):
        found = report.range_by_idx(which)
        for place in range(found.num_actions()):
            yield found.action_by_idx(place)


def _launch(action: Any, record: int) -> KernelCounters:
    readings = {}
    for name in action.metric_names():
        if is_wanted(name):
            metric = action.metric_by_name(name)
            value = metric.value() if metric is not None else None
            number = float(value) if isinstance(value, int | float) else math.nan
            readings[name] = Reading(number if math.isfinite(number) else None, metric.unit() or "" if metric else "")
    return launch(action.name(type(action).NameBase_DEMANGLED), record, readings)
