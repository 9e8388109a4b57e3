"""Device events of an Nsight Systems export: kernels, copies, sets, and graphs that were traced as a whole."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from campaign.errors import BadInput
from campaign.traces._nsys_calls import LARGEST_NS, Processes, usable
from campaign.traces._nsys_file import MISSING, Export, aside
from campaign.traces._nsys_names import Names
from campaign.traces._nsys_places import Places, distinct
from campaign.traces.spool import Spool
from campaign.traces.timeline import EVENT, Notice, Shape, Work

KERNEL, MEMCPY = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET, GRAPH = "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
TABLES = {KERNEL: Work.KERNEL, MEMCPY: Work.MEMCPY, MEMSET: Work.MEMSET, GRAPH: Work.GRAPH}
LONG_NS = 1_000_000_000
NAMES = ("demangledName", "shortName", "mangledName")
COMMON: Mapping[str, Sequence[str]] = {
    "start": ["start"],
    "end": ["end"],
    "device": ["deviceId"],
    "context": ["contextId"],
    "stream": ["streamId"],
    "correlation": ["correlationId"],
    "process": ["globalPid"],
    "node": ["graphNodeId"],
}
MORE: Mapping[Work, Mapping[str, Sequence[str]]] = {
    Work.KERNEL: {"name": NAMES}
    | {name: [name] for name in ("registersPerThread", "staticSharedMemory", "dynamicSharedMemory")}
    | {name: [name] for name in ("localMemoryPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")},
    Work.MEMCPY: {name: [name] for name in ("bytes", "copyKind", "srcKind", "dstKind", "copyCount")},
    Work.MEMSET: {name: [name] for name in ("bytes", "memKind")},
    Work.GRAPH: {"graph": ["graphId", "graphExecId"]},
}
SAYS = {
    "start": ("bad_times", "rows without a usable start, left out", True),
    "end": ("bad_durations", "rows without a usable end (missing, before the start, too large), without time", True),
    "zero": ("not_collected", "rows with start and end 0, which CUPTI writes for times not collected, left out", True),
    "twice": ("graph_rows", "graphs whose nodes were traced as well, counted once", False),
}
# ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND, in Kineto's words.
COPIES = ("Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
UNIFIED = {11: "HtoD (Unified)", 12: "DtoH (Unified)", 13: "DtoD (Unified)"}
MEMORY = ("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static")


class DeviceWork:
    """Reads the device's side. `joined` has what `_nsys_marks` needs of events, by their correlation: EVENT rows whose
    `start` is the correlation and whose `correlation` is the start."""

    def __init__(self, export: Export, names: Names, processes: Processes, places: Places) -> None:
        self.export, self.names, self.processes, self.places = export, names, processes, places
        self.events, self.joined = Spool(EVENT), aside(EVENT)
        self.shapes: dict[int, Shape] = {}
        self.bad: Counter[tuple[str, str]] = Counter()
        self.first: int | None = None
        self.last: int | None = None
        self.rows, self.summed_ns = Counter[Work](), Counter[Work]()
        self.long = self.gcd = 0
        self._nodes: list[np.ndarray] = [np.empty(0, np.int64)]
        self._launched: list[np.ndarray] = [np.empty(0, np.int64)]

    def read(self, graph_launches: np.ndarray, join: bool) -> None:
        """All tables that are there, the graphs last: one whose nodes were traced too is not counted twice."""
        for table, kind in TABLES.items():
            if self.export.has(table):
                self._check_columns(table)
                for rows in self.export.blocks(table, {**COMMON, **MORE[kind]}):
                    self._take(rows, kind, table, graph_launches, join)

    @property
    def node_correlations(self) -> np.ndarray:
        """The correlations of nodes of graphs, sorted."""
        return np.unique(np.concatenate(self._nodes))

    @property
    def launched(self) -> np.ndarray:
        """Those correlations of graph launches that have device work, sorted."""
        return np.unique(np.concatenate(self._launched))

    @property
    def resolution_ns(self) -> int:
        """The step of the file's clock: what all its times are multiples of, 1 us at most."""
        return self.gcd or 1

    def notices(self) -> list[Notice]:
        found = []
        for key, (code, text, lowers) in SAYS.items():
            counts = {table: count for (what, table), count in self.bad.items() if what == key and count}
            if counts:
                rows = ", ".join(f"{count:,} in {table}" for table, count in counts.items())
                found.append(Notice(code, f"{text}: {rows}", lowers))
        if self.long:
            text = f"device events longer than 1 s, counted as they are; see whether they are real: {self.long:,}"
            found.append(Notice("long_events", text, lowers_confidence=True))
        if self.resolution_ns > 1 and len(self.events):
            text = f"all times are multiples of {self.resolution_ns:,} ns: each gap and each event may be off by that"
            found.append(Notice("coarse_clock", text))
        return found

    def _check_columns(self, table: str) -> None:
        columns = self.export.columns(table)
        missing = [name for name in ("start", "end") if name not in columns]
        if missing:
            listed = ", ".join(repr(name[:40]) for name in list(columns.values())[:12])
            raise BadInput(
                f"{self.export.path}: {table} has no column {' and no column '.join(missing)} (it has {listed})",
                remedy=self.export.again(),
            )

    def _take(self, rows: np.ndarray, kind: Work, table: str, graph_launches: np.ndarray, join: bool) -> None:
        rows, start, end = self._times(rows, table)
        if not len(rows):
            return
        found = np.zeros(len(rows), EVENT)
        found["start"], found["end"], found["kind"], found["count"] = start, end, kind, 1
        found["device"], found["stream"] = self.places.of(rows)
        found["correlation"] = self.processes.correlations(rows["correlation"], rows["process"] >> 24)
        node = (rows["node"] != MISSING) & (rows["node"] != 0)
        launched = np.isin(found["correlation"], graph_launches)
        self._nodes.append(np.unique(found["correlation"][node]))
        self._launched.append(np.unique(found["correlation"][launched]))
        if kind == Work.KERNEL:
            found["name"] = self.names.places(rows["name"], "kernel")
            self._shaped(rows, found["name"])
        elif kind == Work.GRAPH:
            found["name"] = self._named(rows, ("graph",), _graph)
        else:
            self._moved(rows, found, kind)
        if kind == Work.GRAPH:
            twice = np.isin(found["correlation"], self.node_correlations) & (found["correlation"] >= 0)
            self.bad["twice", table] += int(twice.sum())
            found = found[~twice]
        else:
            found["in_graph"] = node | launched
        self._count(found, kind)
        self.events.append(found)
        if join:
            turned = found[found["correlation"] >= 0]
            turned["start"], turned["correlation"] = turned["correlation"].copy(), turned["start"].copy()
            self.joined.append(turned)

    def _count(self, found: np.ndarray, kind: Work) -> None:
        if not len(found):
            return
        start, end = found["start"], found["end"]
        first, last, lengths = int(start.min()), int(end.max()), end - start
        self.first = first if self.first is None else min(first, self.first)
        self.last = last if self.last is None else max(last, self.last)
        self.rows[kind] += int(found["count"].sum())
        self.summed_ns[kind] += int(lengths.sum())
        self.long += int((lengths > LONG_NS).sum())
        if self.gcd != 1:
            self.gcd = math.gcd(self.gcd or 1000, int(np.gcd.reduce(np.abs(start))), int(np.gcd.reduce(lengths)))

    def _times(self, rows: np.ndarray, table: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        bad = ~usable(rows["start"])
        zero = (rows["start"] == 0) & (rows["end"] == 0)
        self.bad["start", table] += int(bad.sum())
        self.bad["zero", table] += int(zero.sum())
        left = bad | zero
        rows = rows[~left] if left.any() else rows
        start, end = rows["start"], rows["end"]
        wrong = (end < start) | (end > LARGEST_NS)
        self.bad["end", table] += int(wrong.sum())
        return rows, start, np.where(wrong, start, end)

    def _moved(self, rows: np.ndarray, found: np.ndarray, kind: Work) -> None:
        """Bytes, names and counts of copies and sets."""
        found["bytes"] = np.clip(rows["bytes"], 0, LARGEST_NS)
        if kind == Work.MEMSET:
            found["name"] = self._named(rows, ("memKind",), lambda one: f"Memset ({_memory(one) or 'Device'})")
            return
        found["name"] = self._named(rows, ("copyKind", "srcKind", "dstKind"), _copy)
        found["count"] = np.where(rows["copyCount"] > 1, np.minimum(rows["copyCount"], 1 << 30), 1)

    def _named(self, rows: np.ndarray, fields: tuple[str, ...], form: Callable[..., str]) -> np.ndarray:
        """Names that a few numbers of a row give."""
        firsts, inverse = distinct(*(rows[field] for field in fields))
        table = [self.names.place(form(*(int(rows[field][place]) for field in fields))) for place in firsts]
        return np.array(table, np.int32)[inverse]

    def _shaped(self, rows: np.ndarray, names: np.ndarray) -> None:
        for name, place in zip(*np.unique(names, return_index=True), strict=True):
            if int(name) not in self.shapes:
                self.shapes[int(name)] = _shape(rows[place])


def _memory(kind: int) -> str:
    return MEMORY[kind] if 0 <= kind < len(MEMORY) else ""


def _graph(number: int) -> str:
    return f"CUDA graph {number}" if number >= 0 else "CUDA graph"


def _copy(kind: int, source: int, target: int) -> str:
    """'Memcpy DtoD (Device -> Device)', as Kineto writes it."""
    if kind in UNIFIED:
        return f"Memcpy {UNIFIED[kind]}"
    direction = COPIES[kind] if 0 <= kind < len(COPIES) else "Unknown"
    if not (_memory(source) and _memory(target)):
        return f"Memcpy {direction}"
    return f"Memcpy {direction} ({_memory(source)} -> {_memory(target)})"


def _shape(row: np.ndarray) -> Shape:
    def one(*fields: str) -> int | None:
        values = [int(row[field]) for field in fields]
        return math.prod(values) if min(values) >= 0 else None

    shared = [one("staticSharedMemory"), one("dynamicSharedMemory")]
    return Shape(
        registers=one("registersPerThread"),
        threads=one("blockX", "blockY", "blockZ"),
        blocks=one("gridX", "gridY", "gridZ"),
        shared_bytes=None if None in shared else sum(value or 0 for value in shared),
        local_bytes_per_thread=one("localMemoryPerThread"),
    )
