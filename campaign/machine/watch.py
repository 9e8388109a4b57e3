"""What else the machine did while a round was timed."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Collection
from typing import IO

from campaign.machine import gpu
from campaign.machine.host import HERE, Host, process_tree
from campaign.records import Surroundings

SAMPLE_MILLISECONDS = 1000


class Watch:
    """Watches the machine from entering to leaving; `surroundings` then says what it saw.

    `ours` are the pids of the trials; their descendants and this process's are ours as well. On a CPU nothing runs
    in between: the counters of /proc are read at both ends. On CUDA one nvidia-smi writes the clock event reasons to
    a file once a second, and the processes on the device are listed at both ends. What cannot be read is None or
    empty, never an error; `warnings` says so beforehand.
    """

    def __init__(self, device: str, ours: Collection[int] = (), host: Host = HERE) -> None:
        self._device = device
        self._ours = tuple(ours)
        self._host = host
        self._cores = _cores(self._ours)
        self._foreign: set[str] = set()
        self._throttled: set[str] = set()
        self._field: str | None = None
        self._sampler: subprocess.Popen[bytes] | None = None
        self._samples: IO[bytes] | None = None
        self._ticks: tuple[int, int] | None = None
        self._seen = Surroundings()

    def __enter__(self) -> Watch:
        if gpu.is_cuda(self._device):
            self._start_sampler()
            self._look_at_device()
        self._ticks = self._host.cpu_ticks(self._cores)
        return self

    def __exit__(self, *_: object) -> None:
        steal = self._steal()
        load, pressure = self._host.load(), self._host.pressure()
        if gpu.is_cuda(self._device):
            self._look_at_device()
            self._stop_sampler()
        self._seen = Surroundings(
            load=load,
            pressure=pressure,
            steal=steal,
            foreign=tuple(sorted(self._foreign)),
            throttled=tuple(sorted(self._throttled)),
        )

    def surroundings(self) -> Surroundings:
        """What was seen between entering and leaving."""
        return self._seen

    def _steal(self) -> float | None:
        before, after = self._ticks, self._host.cpu_ticks(self._cores)
        if before is None or after is None:
            return None
        total = after[1] - before[1]
        return max(0.0, (after[0] - before[0]) / total) if total > 0 else 0.0

    def _look_at_device(self) -> None:
        try:
            running = gpu.compute_processes(self._host, self._device)
            if self._field:
                value = gpu.query(self._host, self._device, [self._field])[self._field]
                self._throttled |= gpu.reasons(value or "")
        except gpu.NoAnswer:
            return
        ours = process_tree((os.getpid(), *self._ours), self._host)
        hidden = [pid for pid, _ in running if not (self._host.proc / str(pid)).exists()]
        self._foreign |= {f"{name} ({pid})" for pid, name in running if pid not in ours and pid not in hidden}
        # In a container nvidia-smi tells the host's pids, which match none of ours: then only their number says
        # whether there are more processes than trials.
        if (extra := len(hidden) - len(self._ours)) > 0:
            self._foreign.add(f"{extra} more than our {len(self._ours)}, outside this container")

    def _start_sampler(self) -> None:
        try:
            self._field = gpu.reason_field(self._host, self._device)
            self._samples = tempfile.TemporaryFile()
            self._sampler = subprocess.Popen(
                [
                    self._host.nvidia_smi,
                    f"--query-gpu={self._field}",
                    "--format=csv,noheader",
                    "-i",
                    gpu.selector(self._device),
                    f"--loop-ms={SAMPLE_MILLISECONDS}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=self._samples,
                stderr=subprocess.DEVNULL,
            )
        except (gpu.NoAnswer, OSError):
            self._sampler = None

    def _stop_sampler(self) -> None:
        if self._sampler is not None:
            self._sampler.terminate()
            try:
                self._sampler.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._sampler.kill()
                self._sampler.wait()
        if self._samples is not None:
            self._samples.seek(0)
            self._throttled |= gpu.reasons(self._samples.read().decode("utf-8", "replace"))
            self._samples.close()


def _cores(pids: Collection[int]) -> set[int]:
    """The cores that `pids` may run on; empty, for all, when that cannot be said."""
    found: set[int] = set()
    for pid in pids:
        try:
            found |= os.sched_getaffinity(pid)
        except (OSError, AttributeError):
            return set()
    return found
