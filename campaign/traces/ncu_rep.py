"""Nsight Compute reports (`.ncu-rep`), through NVIDIA's own reader, which is an optional package.

The report's values are those of the CSV exports before they were rounded and scaled, under the raw page's names. The
reader runs in a process of its own, which a damaged report may end.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
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
CHILD = Path(__file__).with_name("_ncu_child.py")


def recognises(head: bytes, path: Path) -> bool:
    return head.startswith(MAGIC)


def read(path: Path) -> KernelReport:
    """Raises BadInput where the reader is not installed, cannot read the file, or finds no launch in it."""
    table = shlex.quote(str(path.with_suffix(".csv")))
    export = f"ncu --import {shlex.quote(str(path))} --csv --page raw > {table}"
    if find_spec("ncu_report") is None:
        raise BadInput(
            f"{path}: an Nsight Compute report, which only NVIDIA's reader opens (ncu_report is not installed)",
            remedy=f"{export}, then campaign diagnose {table}; or, in the folder of this tool's source:"
            " pip install -e '.[ncu]'",
        )
    launches: list[KernelCounters] = []
    beyond = 0
    for record, found in enumerate(_records(path), 1):
        if "error" in found:
            raise BadInput(
                f"{path}, record {record}: NVIDIA's reader cannot read it ({found['error']})",
                remedy=f"{export}, with the version of ncu that wrote it",
            )
        if len(launches) < MOST_LAUNCHES:
            launches.append(_launch(found, record))
        else:
            beyond += 1
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


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """What the reader finds, launch by launch, and `error` where it ends before its time."""
    command = [sys.executable, "-P", str(CHILD), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        for line in child.stdout:
            try:
                yield json.loads(line)
            except json.JSONDecodeError:  # it died within a line
                break
        status = child.wait()
    if status:
        yield {"error": f"the reader ended with {f'signal {-status}' if status < 0 else f'status {status}'}"}


def _launch(found: dict[str, Any], record: int) -> KernelCounters:
    readings = {name: Reading(value, unit) for name, (value, unit) in found["metrics"].items() if is_wanted(name)}
    return launch(found["name"], record, readings)
