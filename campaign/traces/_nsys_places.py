"""Which device and stream a row of an Nsight Systems export belongs to.

A device is what TARGET_INFO_CUDA_DEVICE says that a process's `deviceId` is (processes may see other devices under the
same number), else the `deviceId` itself.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from campaign.traces._nsys_file import MISSING, Export
from campaign.traces._nsys_names import Names
from campaign.traces.timeline import Device, Notice, Stream

GPUS, CUDA_DEVICES = "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE"
DEVICES, STREAMS = 1024, 1 << 16  # the most that are told apart
UNKNOWN = -1


class Places:
    """Devices and streams as they are met. `devices` and `streams` index as EVENT's columns do."""

    def __init__(self, export: Export, names: Names, tables: tuple[str, ...]) -> None:
        self.export, self.names = export, names
        select = ", ".join(export.whole(CUDA_DEVICES, name) for name in ("pid", "cudaId", "gpuId"))
        rows = export.some(CUDA_DEVICES, select)
        self._gpus = {(pid, cuda): gpu for pid, cuda, gpu in rows if 0 <= gpu < DEVICES}
        self._ordinals: dict[int, int] = {}
        self._streams: dict[tuple[int, int, int, int], int] = {}
        self._stray: int = 0
        self._more_streams = False
        self._processes: dict[int, set[int]] = defaultdict(set)
        known = self._known(tables)
        for ordinal in sorted(known):
            self._ordinals[ordinal] = len(self._ordinals)
        self._alone = next(iter(known)) if len(known) == 1 else None
        self.undeclared = [table for table in tables if export.has(table) and "deviceid" not in export.columns(table)]

    def of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The index of the device and of the stream of each row."""
        pids = rows["process"] >> 24
        firsts, inverse = distinct(rows["device"], pids, rows["context"], rows["stream"])
        counts = np.bincount(inverse)
        table = np.empty((len(firsts), 2), np.int64)
        for place, (first, count) in enumerate(zip(firsts, counts, strict=True)):
            row = rows[first]
            table[place] = self._place(
                int(row["device"]), int(pids[first]), int(row["context"]), int(row["stream"]), int(count)
            )
        return table[inverse, 0], table[inverse, 1]

    def facts(self) -> dict[int, tuple[Any, ...]]:
        """What TARGET_INFO_GPU says of each GPU."""
        export = self.export
        fields = ("id", "smCount", "memoryBandwidth", "computeMajor", "computeMinor")
        select = ", ".join(export.whole(GPUS, name) for name in fields)
        rows = export.some(GPUS, f"{select}, {export.text(GPUS, 'name', 120)}")
        return {row[0]: row[1:] for row in reversed(rows)}

    def devices(self, known: dict[int, tuple[Any, ...]]) -> list[Device]:
        """The devices that have work, with the known facts of them."""
        found = []
        for ordinal in self._ordinals:
            if ordinal == UNKNOWN:
                found.append(Device(ordinal, "unknown device"))
                continue
            count, bandwidth, major, minor, name = known.get(ordinal, (MISSING, MISSING, MISSING, MISSING, None))
            architecture = f"sm_{major}{minor}" if 0 < major < 100 and 0 <= minor < 10 else ""
            found.append(
                Device(
                    ordinal,
                    name or "",
                    architecture,
                    count if count > 0 else None,
                    float(bandwidth) if bandwidth > 0 else None,
                )
            )
        return found

    def streams(self) -> list[Stream]:
        """Streams with their number as label, and their process and context where the number alone is ambiguous."""
        labels: dict[tuple[int, int], int] = defaultdict(int)
        for device, _, _, stream in self._streams:
            labels[device, stream] += 1
        found = []
        for device, pid, context, stream in self._streams:
            label = str(stream) if stream != MISSING else "?"
            if labels[device, stream] > 1:
                where = f"process {pid & 0xFFFFFF}, " if pid != MISSING >> 24 else ""
                label += f" ({where}context {context if context != MISSING else '?'})"
            found.append(Stream(device, label))
        return found

    def notices(self) -> list[Notice]:
        found = []
        if self.undeclared:
            found.append(Notice("no_device_id", f"{', '.join(self.undeclared)} without deviceId: taken as device 0"))
        if self._stray:
            where = f"device {self._alone}" if self._alone is not None else "a device of their own"
            text = f"events of no real device (as a graph that begins on the host), put on {where}: {self._stray:,}"
            found.append(Notice("stray_device", text))
        if self._more_streams:
            found.append(Notice("many_streams", f"more than {STREAMS:,} streams: the rest is taken as one"))
        for ordinal, pids in sorted(self._processes.items()):
            if len(pids) > 1 and not self._gpus:
                text = (
                    f"{len(pids):,} processes have work on deviceId {ordinal}, read as one device: where each saw "
                    "another one (CUDA_VISIBLE_DEVICES) its idle is too small; this file does not say"
                )
                found.append(Notice("shared_device", text))
        return found

    def _known(self, tables: tuple[str, ...]) -> set[int]:
        """The real devices of all rows."""
        found: set[int] = set()
        for table in tables:
            if not self.export.has(table):
                continue
            select = f"DISTINCT {self.export.whole(table, 'deviceId')}, {self.export.whole(table, 'globalPid')} >> 24"
            for device, pid in self.export.some(table, select, most=1 << 16):
                device = self._ordinal(device, pid, "deviceid" in self.export.columns(table))
                found |= {device} if device != UNKNOWN else set()
        return found

    def _ordinal(self, device: int, pid: int, declared: bool = True) -> int:
        if not declared:
            return 0
        device = self._gpus.get((pid & 0xFFFFFF, device), device)
        return device if 0 <= device < DEVICES else UNKNOWN

    def _place(self, device: int, pid: int, context: int, stream: int, count: int) -> tuple[int, int]:
        declared = device != MISSING or not self.undeclared
        ordinal = self._ordinal(device, pid, declared)
        if ordinal == UNKNOWN:
            self._stray += count
            ordinal = UNKNOWN if self._alone is None else self._alone
        elif device >= 0 and pid != MISSING >> 24:
            self._processes[ordinal].add(pid)
        place = self._ordinals.setdefault(ordinal, len(self._ordinals))
        key = (place, pid, context, stream)
        if key not in self._streams and len(self._streams) >= STREAMS:
            self._more_streams = True
            key = (place, MISSING >> 24, MISSING, MISSING)
        return place, self._streams.setdefault(key, len(self._streams))


def distinct(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each different combination first stands, and which one each row has."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        if (column == column[0]).all():
            continue
        _, inverse = np.unique(column, return_inverse=True)
        _, code = np.unique(code * (int(inverse.max()) + 1) + inverse, return_inverse=True)
    _, firsts, inverse = np.unique(code, return_index=True, return_inverse=True)
    return firsts, inverse
