"""Nsight Systems' SQLite exports (`nsys export --type sqlite`), of every schema since 2.9.

Tables and columns come and go with versions and with what was collected, so each column is looked for by its name. Time
is in whole ns since the capture began. Kernels inside CUDA graphs are there only where the capture was made with
--cuda-graph-trace=node; else CUPTI_ACTIVITY_KIND_GRAPH_TRACE has one row for a launch, which becomes Work.GRAPH.

Source of the format: the comments in the exports' own CREATE TABLE statements, and NVIDIA's documentation of CUPTI's
activity records.
"""

from __future__ import annotations

from pathlib import Path

from campaign.errors import BadInput
from campaign.traces import _nsys_facts as facts
from campaign.traces._nsys_calls import NVTX, RUNTIME, Calls, Processes
from campaign.traces._nsys_file import MAGIC, Export
from campaign.traces._nsys_marks import project
from campaign.traces._nsys_names import Names
from campaign.traces._nsys_places import Places
from campaign.traces._nsys_work import TABLES, DeviceWork
from campaign.traces.spool import Spool
from campaign.traces.timeline import CALL, Notice, Source, Timeline

FORMAT = "Nsight Systems export (.sqlite)"
# Other SQLite files that come from profiling, by a table that each has.
OTHERS = {
    "STRINGTABLE": (
        "an export of nvprof, which NVIDIA has retired",
        "nsys profile -t cuda,nvtx --cuda-graph-trace=node -o profile COMMAND",
    ),
    "ROCPD_METADATA": (
        "a database of ROCm's rocprofv3",
        "campaign profile hypothesis=NAME, which records ROCm with torch.profiler",
    ),
    "ALEMBIC_VERSION": ("a database of MLflow or another service", "campaign diagnose FILE, with a profile"),
}


def recognises(head: bytes, path: Path) -> bool:
    """SQLite's magic. Whether it is an export is seen from its tables."""
    return head.startswith(MAGIC)


def read(path: Path) -> Timeline:
    """Read an export. Raises BadInput for a SQLite file that is none, for one that is cut or damaged, and for a table
    of events without times, with the table's name."""
    export = Export(path)
    try:
        return _read(export)
    finally:
        export.close()


def _read(export: Export) -> Timeline:
    _check_export(export)
    names, processes = Names(export), Processes()
    calls = Calls(export, names, processes)
    calls.runtime()
    places = Places(export, names, tuple(TABLES))
    work = DeviceWork(export, names, processes, places)
    work.read(calls.graph_launches, join=export.has(NVTX))
    calls.annotations(work.last)
    marks, marked = _marks(calls, work)
    none: list[Notice] = []
    later: list[Notice] = []
    said = facts.attempt(lambda: facts.diagnostics(export), none, later)
    costs = facts.attempt(lambda: facts.overhead(export, work.first, work.last), none, later)
    source = Source(
        file=str(export.path),
        format="nsys",
        tool=facts.attempt(lambda: facts.tool(export), "Nsight Systems", later),
        size_bytes=export.path.stat().st_size,
        resolution_ns=work.resolution_ns,
        base_ns=facts.attempt(lambda: facts.epoch_ns(export), 0, later),
    )
    timeline = Timeline(
        source=source,
        names=names.texts,
        devices=places.devices(facts.attempt(places.facts, {}, later)),
        streams=places.streams(),
        threads=calls.labels(facts.attempt(calls.thread_names, {}, later)),
        events=work.events,
        calls=calls.calls,
        marks=marks,
        shapes=work.shapes,
        metrics=tuple(facts.attempt(lambda: facts.metrics(export), [], later)),
        graph_launches=calls.graph_launches,
    )
    missing = [] if len(work.events) else [facts.without_work(export)]
    found = [*missing, *facts.graphs(calls, work), *work.notices(), *calls.notices(), *places.notices(), *marked]
    timeline.notices = (*found, *said, *costs, *names.notices(), *later)
    return timeline


def _marks(calls: Calls, work: DeviceWork) -> tuple[Spool, list[Notice]]:
    marks = Spool(CALL)
    notices: list[Notice] = []
    if len(calls.ranges) and len(calls.launches) and len(work.joined):
        marks, notices = project(calls.launches, work.joined, calls.ranges)
    for spool in (calls.launches, work.joined, calls.ranges):
        spool.close()
    return marks, notices


def _check_export(export: Export) -> None:
    known = {*TABLES, *facts.META, RUNTIME, NVTX}
    other = next((found for table, found in OTHERS.items() if export.has(table)), None)
    if other is None and known & set(export.tables):
        return
    what, remedy = other or ("no Nsight Systems export", export.again())
    raise BadInput(
        f"{export.path}: a SQLite file, but {what}. Its tables are {facts.described(export.tables)}", remedy=remedy
    )
