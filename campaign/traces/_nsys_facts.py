"""What stands beside the events in an Nsight Systems export: versions, the profiler's own complaints and costs, samples
of GPU metrics, and what is missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from campaign.errors import BadInput
from campaign.traces._nsys_calls import Calls
from campaign.traces._nsys_file import MISSING, Export
from campaign.traces._nsys_names import Names
from campaign.traces._nsys_work import GRAPH, KERNEL, MEMCPY, DeviceWork
from campaign.traces.timeline import Metric, Notice, Work

META = ("META_DATA_EXPORT", "EXPORT_META_DATA")  # since 2023, and before
NODES = "--cuda-graph-trace=node"
AGAIN = f"nsys profile -t cuda,nvtx {NODES} -o profile COMMAND, then nsys export --type sqlite profile.nsys-rep"
MUCH_OVERHEAD = 0.01  # of the range
MESSAGES, MESSAGE_LENGTH = 5, 300
METRICS = 200
_LOST = re.compile(r"(might|may) (be missing|not have been)|not all .*(collected|captured)|dropped|\blost\b|overflow|"
                   r"truncated|incomplete|out of memory", re.IGNORECASE)  # fmt: skip
_OTHER_TRACES = re.compile(r"\b(nvtx|opengl|vulkan|osrt|os runtime|cpu|callchain|backtrace|sampl\w+)\b", re.IGNORECASE)
_CUDA = re.compile(r"\b(cuda|cupti|gpu|device|driver)\b", re.IGNORECASE)
Found = TypeVar("Found")


def tool(export: Export) -> str:
    """'Nsight Systems 2026.2.1.210, schema 3.25.0', as far as the file says."""
    said: dict[str, str] = {}
    for table in META:
        rows = export.some(table, f"{export.text(table, 'name', 64)}, {export.text(table, 'value', 64)}")
        said |= {name: value for name, value in rows if name and value}
    product, schema = said.get("EXPORT_PRODUCT_VERSION"), said.get("EXPORT_SCHEMA_VERSION")
    return f"Nsight Systems{f' {product}' if product else ''}{f', schema {schema}' if schema else ''}"


def epoch_ns(export: Export) -> int:
    """When the capture began, in ns of the epoch; 0 where the file does not say."""
    table = "TARGET_INFO_SESSION_START_TIME"
    rows = export.some(table, export.whole(table, "utcEpochNs"), most=1)
    return rows[0][0] if rows and rows[0][0] > 0 else 0


def metrics(export: Export) -> list[Metric]:
    """Samples of GPU metrics since the capture began. The device is the low byte of the type's number."""
    table, info = "GPU_METRICS", "TARGET_INFO_GPU_METRICS"
    columns = export.columns(table)
    if not {"typeid", "metricid", "value"} <= set(columns):
        return []
    names = ", ".join(export.whole(info, name) for name in ("typeId", "metricId"))
    listed = export.some(info, f"{names}, {export.text(info, 'metricName', 120)}")
    known = {(kind, metric): name for kind, metric, name in listed}
    kind, metric = export.whole(table, "typeId"), export.whole(table, "metricId")
    where = f"typeof({_column(columns['value'])}) IN ('integer', 'real')"
    if "timestamp" in columns:
        where += f" AND {export.whole(table, 'timestamp')} >= 0"
    value = _column(columns["value"])
    select = f"{kind} AS kind, {metric} AS metric, count(*), avg({value}), max({value})"
    rows = export.some(table, select, f"WHERE {where} GROUP BY 1, 2", most=METRICS)
    return [
        Metric(kind & 0xFF, known.get((kind, metric)) or f"metric {metric}", count, float(mean), float(largest))
        for kind, metric, count, mean, largest in rows
        if MISSING not in (kind, metric)
    ]


def diagnostics(export: Export) -> list[Notice]:
    """What nsys itself said of lost events, of errors, and of CUDA."""
    table = "DIAGNOSTIC_EVENT"
    rows = export.some(table, f"{export.whole(table, 'severity')}, {export.text(table, 'text', 2000)}")
    lost: list[str] = []
    rest: list[str] = []
    for severity, text in rows:
        said = " ".join((text or "").split())
        said = said if len(said) <= MESSAGE_LENGTH else f"{said[:MESSAGE_LENGTH].rsplit(' ', 1)[0]} ..."
        if _LOST.search(said):
            about_work = bool(_CUDA.search(said)) or not _OTHER_TRACES.search(said)
            (lost if about_work else rest).append(said)
        elif severity == 3 or (severity == 2 and _CUDA.search(said)):
            rest.append(said)
    found = [Notice("profiler_lost", f"nsys says: {text}", True) for text in dict.fromkeys(lost)][:MESSAGES]
    return found + [Notice("profiler_says", f"nsys says: {text}") for text in dict.fromkeys(rest)][:MESSAGES]


def overhead(export: Export, first: int | None, last: int | None) -> list[Notice]:
    """How long the profiler's own work, and CUDA's (loading modules, waiting for room in the command buffer), took on
    host threads within the range of device work."""
    if first is None or last is None or last <= first:
        return []
    found = []
    own = _spent(export, "PROFILER_OVERHEAD", first, last)
    if total := sum(nanoseconds for _, _, nanoseconds in own):
        share = total / (last - first)
        text = (
            f"the profiler's own work took {total / 1e6:,.3f} ms of host threads within the range ({100 * share:.2f} % "
            f"of it): {_listed(own)}. Idle may be larger than without it"
        )
        found.append(Notice("profiler_overhead", text, share >= MUCH_OVERHEAD))
    if cuda := _spent(export, "CUPTI_ACTIVITY_KIND_OVERHEAD", first, last):
        found.append(Notice("cuda_overhead", f"CUDA's own work on host threads within the range: {_listed(cuda)}"))
    return found


def _spent(export: Export, table: str, first: int, last: int) -> list[tuple[str, int, int]]:
    """What each kind of overhead is called, how often it was, and its ns within the range, the longest first."""
    columns = export.columns(table)
    if not {"start", "end"} <= set(columns):
        return []
    start, end = _column(columns["start"]), _column(columns["end"])
    good = f"typeof({start}) = 'integer' AND typeof({end}) = 'integer' AND {end} >= {start}"
    select = f"{export.whole(table, 'nameId')}, count(*), total(min({end}, {last}) - max({start}, {first}))"
    rest = f"WHERE {good} AND {start} < {last} AND {end} > {first} GROUP BY 1 ORDER BY 3 DESC"
    rows = export.some(table, select, rest, most=100)
    names = Names(export).lookup([row[0] for row in rows])
    return [(names.get(name, "overhead")[:60], count, int(total)) for name, count, total in rows]


def _listed(rows: list[tuple[str, int, int]]) -> str:
    parts = [f"{name} {count:,} times, {nanoseconds / 1e6:,.3f} ms" for name, count, nanoseconds in rows[:3]]
    return "; ".join(parts) + ("; ..." if len(rows) > 3 else "")


def graphs(calls: Calls, work: DeviceWork) -> list[Notice]:
    """Whether what graphs launched was traced, and how."""
    found = []
    launches, launched, nodes = len(calls.graph_launches), len(work.launched), len(work.node_correlations)
    if calls.graph_calls > launches > 0:
        ids = f"{launches:,} correlation id{'s' * (launches > 1)}"
        text = f"{calls.graph_calls:,} graph launches share {ids}: launches are counted by calls"
        found.append(Notice("graph_correlations", text))
    whole = work.rows[Work.GRAPH]
    if whole:
        every = sum(work.summed_ns.values())
        share = f"{100 * work.summed_ns[Work.GRAPH] / every:.1f} %" if every else "all"
        text = (
            f"graph launches traced as a whole, without the kernels in them: {whole:,} ({share} of the summed time). "
            f"Families are not known there, and idle inside a graph is not seen. For both: {AGAIN}"
        )
        found.append(Notice("graphs_whole", text))
    elif calls.graph_calls and not launched and not nodes:
        text = (
            f"graph launches without any device work of theirs: all {calls.graph_calls:,} (no rows in {GRAPH}, no "
            f"kernel with their correlation). Busy time is too small and idle too large. {NODES} is missing: {AGAIN}"
        )
        found.append(Notice("graphs_missing", text, True))
    elif launches > launched > 0:
        text = f"graph launches without device work (cut off or dropped): {launches - launched:,} of {launches:,}"
        found.append(Notice("graphs_incomplete", text, True))
    if nodes:
        text = (
            f"graphs were traced node by node (launches: {nodes:,}), which costs time at each node: idle is an upper "
            "bound. Confirm the pass time with CUDA events in a run without a profiler"
        )
        found.append(Notice("graph_nodes", text))
    if nodes > max(launches, calls.graph_calls) > 0:
        text = f"graph launches with device work: {nodes:,}, their calls: {launches:,}; calls were dropped"
        found.append(Notice("graph_calls_missing", text, True))
    return found


def without_work(export: Export) -> Notice:
    """Why there is nothing, and what to type."""
    missing = [table for table in (KERNEL, MEMCPY, GRAPH) if not export.has(table)]
    why = f"no table {', '.join(missing)}" if missing else "no usable row of device work"
    text = f"the export has no device work ({why}): nsys makes a table only for what it collected"
    return Notice("no_device_work", f"{text}. Profile again: {AGAIN}")


def attempt(what: Callable[[], Found], otherwise: Found, notices: list[Notice]) -> Found:
    """`what()`; where its table cannot be read, `otherwise` and a notice. For tables that no time comes from."""
    try:
        return what()
    except BadInput as error:
        notices.append(Notice("damaged_table", f"left out: {error.message}", True))
        return otherwise


def described(tables: dict[str, str]) -> str:
    """The names of some tables, as they are safe to print."""
    listed: list[Any] = [repr(name[:40]) for name in sorted(tables.values())]
    return ", ".join(listed[:10]) + (f" and {len(listed) - 10:,} more" if len(listed) > 10 else "") or "none"


def _column(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
