"""Nsight Systems SQLite exports made by hand: the tables and columns that its schema generations have.

Columns are those of real exports (schema 2.9.1, 3.0.0, 3.13.2, 3.24.14, 3.25.0); a table without rows is not made, as
nsys does not make it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PID = 4242
LARGEST_INT32 = 2**31 - 1


def global_pid(pid: int) -> int:
    return (1 << 48) | (pid << 24)


@dataclass(frozen=True)
class Kernel:
    name: str
    start: int
    end: int | None
    correlation: int | None = None
    device: int = 0
    stream: int = 7
    pid: int = PID
    context: int = 1
    graph_node: int | None = None
    registers: int = 32
    grid: tuple[int, int, int] = (128, 1, 1)
    block: tuple[int, int, int] = (256, 1, 1)
    static_shared: int = 0
    dynamic_shared: int = 0
    local_per_thread: int = 0


@dataclass(frozen=True)
class Memcpy:
    start: int
    end: int
    bytes: int
    kind: int = 8  # CUDA_MEMCPY_KIND_DTOD
    correlation: int | None = None
    device: int = 0
    stream: int = 7
    pid: int = PID
    context: int = 1
    graph_node: int | None = None
    count: int = 1


@dataclass(frozen=True)
class Memset:
    start: int
    end: int
    bytes: int
    correlation: int | None = None
    device: int = 0
    stream: int = 7
    pid: int = PID
    context: int = 1
    graph_node: int | None = None


@dataclass(frozen=True)
class GraphTrace:
    start: int
    end: int
    correlation: int | None = None
    graph: int = 1
    device: int = 0
    stream: int = 7
    pid: int = PID
    context: int = 1


@dataclass(frozen=True)
class Runtime:
    name: str
    start: int
    end: int
    correlation: int | None = None
    pid: int = PID
    tid: int = PID
    event_class: int = 0


@dataclass(frozen=True)
class Nvtx:
    """`kind` 59 is a pushed and popped range, 60 one started and ended, 34 a mark, 75 a domain's name."""

    text: str
    start: int
    end: int | None
    pid: int = PID
    tid: int = PID
    kind: int = 59
    domain: int = 0
    registered: bool = False  # the text stands in StringIds
    end_tid: int | None = None


@dataclass(frozen=True)
class Gpu:
    id: int = 0
    name: str = "NVIDIA H100 80GB HBM3"
    multiprocessors: int = 132
    bandwidth: int = 3_352_320_000_000
    major: int = 9
    minor: int = 0


@dataclass(frozen=True)
class Sample:
    """A sample of a GPU metric; `type_id` ends in the device's number."""

    timestamp: int
    metric: str
    value: int
    type_id: int = 0x1_0000_0000_0000


class _Strings(dict[str, int]):
    def __missing__(self, text: str) -> int:
        self[text] = found = 100 + len(self)
        return found


def write_nsys(
    path: Path,
    kernels: Iterable[Kernel] = (),
    memcpys: Iterable[Memcpy] = (),
    memsets: Iterable[Memset] = (),
    runtime: Iterable[Runtime] = (),
    nvtx: Iterable[Nvtx] = (),
    graph_trace: Iterable[GraphTrace] = (),
    gpus: Iterable[Gpu] = (Gpu(),),
    metrics: Iterable[Sample] = (),
    diagnostics: Iterable[tuple[int, str]] = (),
    overheads: Iterable[tuple[int, int]] = (),
    cuda_devices: Iterable[tuple[int, int, int]] = (),
    capture: Mapping[str, str] | None = None,
    schema: str | None = "3.25.0",
    product: str = "2026.2.1.210",
) -> Path:
    """Write an export. `schema` None leaves the version out; `diagnostics` are (severity, text), `overheads` (start,
    end) of the profiler's own work, `cuda_devices` (gpu id, cuda id, pid)."""
    version = tuple(int(part) for part in (schema or "0").split("."))
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    strings = _Strings()
    write = _Writer(connection)
    if schema is not None:
        table = "META_DATA_EXPORT" if version >= (3, 7) else "EXPORT_META_DATA"
        rows = [("EXPORT_PRODUCT_VERSION", product), ("EXPORT_SCHEMA_VERSION", schema)]
        write(table, "name TEXT NOT NULL, value TEXT", rows)
    if capture:
        write("META_DATA_CAPTURE", "name TEXT NOT NULL, value TEXT", list(capture.items()))
    green = "greenContextId INTEGER, " if version >= (3, 13) else ""
    clusters = ", graphId INTEGER, clusterX INTEGER" if version >= (3, 24) else ""
    no_clusters = (None, 0) if clusters else ()
    places = f"deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, {green}streamId INTEGER NOT NULL"
    origin = "correlationId INTEGER, globalPid INTEGER"
    write(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        f"start INTEGER NOT NULL, end INTEGER, {places}, {origin}, demangledName INTEGER NOT NULL, "
        "shortName INTEGER NOT NULL, registersPerThread INTEGER NOT NULL, gridX INTEGER, gridY INTEGER, gridZ INTEGER, "
        "blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, "
        f"localMemoryPerThread INTEGER, graphNodeId INTEGER{clusters}",
        [
            (
                *_placed(one, bool(green)),
                strings[one.name],
                strings[one.name.split("<")[0]],
                one.registers,
                *one.grid,
                *one.block,
                one.static_shared,
                one.dynamic_shared,
                one.local_per_thread,
                one.graph_node,
                *no_clusters,
            )
            for one in kernels
        ],
    )
    batches = ", copyCount INTEGER" if version >= (3, 25) else ""
    write(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        f"start INTEGER NOT NULL, end INTEGER NOT NULL, {places}, {origin}, bytes INTEGER NOT NULL, "
        f"copyKind INTEGER NOT NULL, graphNodeId INTEGER{batches}",
        [
            (*_placed(one, bool(green)), one.bytes, one.kind, one.graph_node, *((one.count,) if batches else ()))
            for one in memcpys
        ],
    )
    write(
        "CUPTI_ACTIVITY_KIND_MEMSET",
        f"start INTEGER NOT NULL, end INTEGER NOT NULL, {places}, {origin}, value INTEGER, bytes INTEGER NOT NULL, "
        "graphNodeId INTEGER",
        [(*_placed(one, bool(green)), 0, one.bytes, one.graph_node) for one in memsets],
    )
    write(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        f"start INTEGER NOT NULL, end INTEGER NOT NULL, {places}, {origin}, graphId INTEGER NOT NULL, "
        "graphExecId INTEGER NOT NULL",
        [(*_placed(one, bool(green)), one.graph, one.graph + 1) for one in graph_trace],
    )
    write(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, "
        "correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER",
        [(*_called(one), one.correlation, strings[one.name], 0, None) for one in runtime],
    )
    write(
        "NVTX_EVENTS",
        "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, text TEXT, "
        "globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER",
        [
            (
                *(one.start, one.end, one.kind, None, None if one.registered else one.text, _thread(one.pid, one.tid)),
                *(_thread(one.pid, one.end_tid), strings[one.text] if one.registered else None, one.domain),
            )
            for one in nvtx
        ],
    )
    write(
        "TARGET_INFO_GPU",
        "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, memoryBandwidth INTEGER, smCount INTEGER, "
        "computeMajor INTEGER, computeMinor INTEGER",
        [(1 << 48, one.id, one.name, one.bandwidth, one.multiprocessors, one.major, one.minor) for one in gpus],
    )
    write(
        "TARGET_INFO_CUDA_DEVICE",
        "gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL",
        list(cuda_devices),
    )
    _metrics(write, list(metrics))
    write(
        "DIAGNOSTIC_EVENT",
        "timestamp INTEGER NOT NULL, timestampType INTEGER NOT NULL, source INTEGER NOT NULL, "
        "severity INTEGER NOT NULL, text TEXT NOT NULL, globalPid INTEGER",
        [(0, 1, 1, severity, text, None) for severity, text in diagnostics],
    )
    write(
        "PROFILER_OVERHEAD",
        "start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER",
        [(start, end, global_pid(PID) | PID, strings["overhead"], 0) for start, end in overheads],
    )
    write(
        "StringIds",
        "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
        [(number, text) for text, number in strings.items()],
    )
    connection.commit()
    connection.close()
    return path


def _placed(one: Kernel | Memcpy | Memset | GraphTrace, green: bool) -> tuple[object, ...]:
    place = (one.device, one.context, None, one.stream) if green else (one.device, one.context, one.stream)
    return (one.start, one.end, *place, one.correlation, global_pid(one.pid))


def _thread(pid: int, tid: int | None) -> int | None:
    return None if tid is None else global_pid(pid) | tid


def _called(one: Runtime) -> tuple[object, ...]:
    return (one.start, one.end, one.event_class, _thread(one.pid, one.tid))


def _metrics(write: _Writer, samples: list[Sample]) -> None:
    ids = _Strings()
    rows = [(one.timestamp, one.type_id, ids[one.metric], one.value) for one in samples]
    write("GPU_METRICS", "timestamp INTEGER, typeId INTEGER NOT NULL, metricId INTEGER NOT NULL, value INTEGER", rows)
    known = sorted({(one.type_id, 0, "GPU Metrics", ids[one.metric], one.metric) for one in samples})
    columns = "typeId INTEGER NOT NULL, sourceId INTEGER, typeName TEXT, metricId INTEGER NOT NULL, metricName TEXT"
    write("TARGET_INFO_GPU_METRICS", columns, known)


class _Writer:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __call__(self, table: str, columns: str, rows: Sequence[Sequence[object]]) -> None:
        if rows:
            self.connection.execute(f"CREATE TABLE {table} ({columns})")
            marks = ", ".join("?" * len(rows[0]))
            self.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
