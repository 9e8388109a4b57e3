"""What the host did: CUDA calls and NVTX ranges of an Nsight Systems export, as rows of CALL."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np

from campaign.traces._kineto_events import call_kind
from campaign.traces._nsys_file import MISSING, Export, TooLong, aside
from campaign.traces._nsys_names import Names, plain_call
from campaign.traces.spool import Spool
from campaign.traces.timeline import CALL, LONGEST_NAME, Call, Notice

RUNTIME, NVTX = "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"
LARGEST_NS = 1 << 62
LARGEST_CORRELATION = 1 << 32  # CUPTI's ids have 32 bits; 0 is CUPTI_CORRELATION_ID_UNKNOWN
BACKTRACES = (67, 68, 69)  # event classes that repeat a call with its backtrace (ENUM_NSYS_EVENT_CLASS)
RANGES, STARTED, DOMAIN = (59, 70), (60, 71), 75  # event types of NVTX: pushed and popped, started and ended
# torch.autograd.profiler.emit_nvtx writes operators as 'aten::mm, seq = 12, op_id = 345, sizes = [...]'.
_OPERATOR = re.compile(r", (?:stashed )?(?:seq|op_id|sizes) = ")


def usable(times: np.ndarray) -> np.ndarray:
    """Which of these times are times."""
    found: np.ndarray = (times >= -LARGEST_NS) & (times <= LARGEST_NS)
    return found


class Processes:
    """Correlation ids are unique in a process: those of the second and later ones get their process above 32 bits."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}

    def correlations(self, ids: np.ndarray, pids: np.ndarray) -> np.ndarray:
        """`pids` are global ids shifted right by 24. A row without one belongs to the process if there is only one."""
        known = (ids > 0) & (ids < LARGEST_CORRELATION)
        unique, inverse = np.unique(pids, return_inverse=True)
        table = [self._place(int(one)) for one in unique]
        place = np.array(table, np.int64)[inverse]
        return np.where(known & (place >= 0), ids + (np.maximum(place, 0) << 32), -1)

    def _place(self, pid: int) -> int:
        if pid == MISSING >> 24:
            return 0 if len(self.seen) <= 1 else -1
        return self.seen.setdefault(pid, len(self.seen))


class Calls:
    """Reads the host's side. `launches` has the calls that may have caused device work with correlation and start in
    each other's place, `ranges` the ranges that enclose calls of their thread: `_nsys_marks` joins them."""

    def __init__(self, export: Export, names: Names, processes: Processes) -> None:
        self.export, self.names, self.processes = export, names, processes
        self.calls, self.launches, self.ranges = Spool(CALL), aside(CALL), aside(CALL)
        self.threads: dict[int, int] = {}
        self.bad: Counter[str] = Counter()
        self.backtraces = self.graph_calls = self.open = 0
        self.last: int | None = None
        self._graphs: list[np.ndarray] = [np.empty(0, np.int64)]

    def runtime(self) -> None:
        """Calls of the CUDA runtime and driver."""
        fields = {"start": ["start"], "end": ["end"], "class": ["eventClass"], "thread": ["globalTid"]}
        fields |= {"correlation": ["correlationId"], "name": ["nameId"]}
        kinds: dict[int, Call] = {}
        for rows in self.export.blocks(RUNTIME, fields) if self.export.has(RUNTIME) else ():
            repeated = np.isin(rows["class"], BACKTRACES)
            self.backtraces += int(repeated.sum())
            rows, start, end = self._times(rows[~repeated] if repeated.any() else rows, RUNTIME)
            if not len(rows):
                continue
            found = self._called(rows, start, end)
            found["name"] = self.names.places(rows["name"], "CUDA call", plain_call)
            for name in np.unique(found["name"]):
                kinds.setdefault(int(name), call_kind(self.names.texts[name]))
            unique, inverse = np.unique(found["name"], return_inverse=True)
            found["kind"] = np.array([kinds[int(one)] for one in unique], np.uint8)[inverse]
            found["correlation"] = self.processes.correlations(rows["correlation"], rows["thread"] >> 24)
            graphs = found[found["kind"] == Call.GRAPH_LAUNCH]
            self.graph_calls += len(graphs)
            self._graphs.append(np.unique(graphs["correlation"][graphs["correlation"] >= 0]))
            self.calls.append(found)
            turned = found[found["correlation"] >= 0]
            turned["start"], turned["correlation"] = turned["correlation"].copy(), turned["start"].copy()
            self.launches.append(turned)

    @property
    def graph_launches(self) -> np.ndarray:
        """The correlations of graph launches, sorted."""
        return np.unique(np.concatenate(self._graphs))

    def annotations(self, until: int | None) -> None:
        """NVTX ranges, those that were never closed until the last moment that the trace knows. An operator that
        emit_nvtx wrote becomes one; a range of a domain is called `domain:range`, as nsys does it."""
        export = self.export
        if not export.has(NVTX):
            return
        self._until = max((one for one in (until, self.last) if one is not None), default=None)
        fields = [["start"], ["end"], ["eventType"], ["globalTid"], ["endGlobalTid"], ["textId"], ["domainId"]]
        numbers = ", ".join(export.whole(NVTX, *names) for names in fields)
        domains = self._domains()
        types = export.columns(NVTX).get("eventtype")
        only = f'WHERE "{types}" IN {(*RANGES, *STARTED)}' if types else ""
        text = export.text(NVTX, "text", LONGEST_NAME + 1)
        try:
            for block in export.rows(NVTX, f"{numbers}, {text}", only):
                self._ranges(block, domains)
        except TooLong:  # the texts cannot be had: the ranges can
            self.bad["text"] += 1
            self._restart()
            for block in export.rows(NVTX, f"{numbers}, NULL", only):
                self._ranges(block, domains)
        export.finished.append(NVTX)

    def thread_names(self) -> dict[int, str]:
        """The names of the threads that have calls, as far as ThreadNames has them."""
        export = self.export
        select = f"{export.whole('ThreadNames', 'globalTid')}, {export.whole('ThreadNames', 'nameId')}"
        named = dict(export.some("ThreadNames", select, most=100_000))
        wanted = {thread: named[thread] for thread in self.threads if thread in named}
        texts = self.names.lookup(sorted(set(wanted.values())))
        return {thread: texts[name][:80] for thread, name in wanted.items() if name in texts}

    def labels(self, names: dict[int, str]) -> list[str]:
        """'pid tid name' of each thread."""
        return [
            f"{thread >> 24 & 0xFFFFFF} {thread & 0xFFFFFF} {names.get(thread, '')}".rstrip() if thread >= 0 else "?"
            for thread in self.threads
        ]

    def notices(self) -> list[Notice]:
        found = []
        if self.backtraces:
            text = f"calls that {RUNTIME} repeats with their backtrace, not counted again: {self.backtraces:,}"
            found.append(Notice("backtraces", text))
        if self.open:
            text = f"NVTX ranges that were never closed, taken to the end of the capture: {self.open:,}"
            found.append(Notice("open_ranges", text))
        if self.bad["text"]:
            found.append(Notice("long_names", f"{NVTX} has a text too long to read: ranges with own texts lack names"))
        for table in (RUNTIME, NVTX):
            if count := self.bad[table]:
                text = f"rows of {table} without a usable start (left out) or end (without time): {count:,}"
                found.append(Notice("bad_times", text))
        return found

    def _restart(self) -> None:
        """Forget the ranges of a reading that did not end. Calls of the runtime stay."""
        kept = Spool(CALL)
        for batch in self.calls.batches():
            kept.append(batch[(batch["kind"] != Call.ANNOTATION) & (batch["kind"] != Call.OPERATOR)].copy())
        self.calls.close()
        self.ranges.close()
        self.calls, self.ranges, self.open = kept, aside(CALL), 0
        self.bad[NVTX] = 0

    def _domains(self) -> dict[tuple[int, int], str]:
        """The names of NVTX domains by process and number."""
        export, columns = self.export, self.export.columns(NVTX)
        if not {"eventtype", "domainid", "globaltid"} <= set(columns):
            return {}
        select = ", ".join(export.whole(NVTX, name) for name in ("globalTid", "domainId", "textId"))
        where = f'WHERE "{columns["eventtype"]}" = {DOMAIN}'
        try:
            rows = export.some(NVTX, f"{select}, {export.text(NVTX, 'text', 64)}", where)
        except TooLong:
            rows = []
        texts = self.names.lookup(sorted({row[2] for row in rows if row[2] >= 0}))
        return {(row[0] >> 24, row[1]): (row[3] or texts.get(row[2], ""))[:64] for row in rows}

    def _ranges(self, block: list[tuple[Any, ...]], domains: dict[tuple[int, int], str]) -> None:
        fields = ("start", "end", "type", "thread", "last", "text", "domain")
        dtype = np.dtype([(field, np.int64) for field in fields])
        rows = np.fromiter((row[:-1] for row in block), dtype, len(block))
        texts = [row[-1] for row in block]
        endless = rows["end"] == MISSING
        if endless.any() and self._until is not None:
            self.open += int(endless.sum())
            rows["end"] = np.where(endless, np.maximum(self._until, rows["start"]), rows["end"])
        kept = usable(rows["start"])
        texts = [text for text, good in zip(texts, kept, strict=True) if good]
        rows, start, end = self._times(rows, NVTX)
        if not len(rows):
            return
        found = self._called(rows, start, end)
        found["correlation"], found["kind"] = -1, Call.ANNOTATION
        wanted = {number for number, text in zip(rows["text"].tolist(), texts, strict=True) if text is None}
        registered = self.names.lookup(sorted(wanted))
        names, kinds = [], []
        keys = (rows["thread"] >> 24).tolist(), rows["domain"].tolist(), rows["text"].tolist(), texts
        for pid, domain, number, text in zip(*keys, strict=True):
            text = registered.get(number, "(range without a name)") if text is None else text
            cut = _OPERATOR.search(text) if ", " in text else None
            kinds.append(Call.OPERATOR if cut else Call.ANNOTATION)
            text = text[: cut.start()] if cut else text
            prefix = domains.get((pid, domain)) if domain > 0 else None
            names.append(self.names.place(f"{prefix}:{text}" if prefix else text))
        found["name"], found["kind"] = names, kinds
        self.calls.append(found)
        # A range that another thread ended encloses no calls of one thread.
        across = np.isin(rows["type"], STARTED) & (rows["last"] != MISSING) & (rows["last"] != rows["thread"])
        self.ranges.append(found[(found["kind"] == Call.ANNOTATION) & ~across])

    def _called(self, rows: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        found = np.zeros(len(rows), CALL)
        found["start"], found["end"] = start, end
        unique, inverse = np.unique(rows["thread"], return_inverse=True)
        table = [self.threads.setdefault(int(one), len(self.threads)) for one in unique]
        found["thread"] = np.array(table, np.int32)[inverse]
        self.last = max(int(end.max()), int(end.max()) if self.last is None else self.last)
        return found

    def _times(self, rows: np.ndarray, table: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows with a usable start; a row without a usable end takes no time."""
        bad = ~usable(rows["start"])
        rows = rows[~bad] if bad.any() else rows
        start, end = rows["start"], rows["end"]
        wrong = (end < start) | (end > LARGEST_NS)
        self.bad[table] += int(bad.sum()) + int(wrong.sum())
        return rows, start, np.where(wrong, start, end)
