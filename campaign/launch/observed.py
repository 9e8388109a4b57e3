"""A command that knows nothing of campaigns: it runs freely, and its steps are what it tells of them.

The weaker protocol: it cannot be held at a gate, so the arms of a round are whole processes in turn, and drift between
them is not cancelled block by block. Memory is the peak of its processes from their start.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from campaign import likeness, timing
from campaign.copies import foreign_programs
from campaign.launch import readings
from campaign.launch.command import CommandLine, Failed, ended
from campaign.launch.readings import Reading

SAMPLE_SECONDS = 0.02
FIRST_STEP_HINT = "does workload.steps fit what it writes? Its output is in the log"


class Command:
    """A launched command, watched. Answers what a trial is asked; the rest (`static`, `profile`, `restart`) it cannot
    offer, and says so."""

    def __init__(self, line: CommandLine, root: Path, steps: Mapping[str, Any], tokens: int) -> None:
        readings.check(steps)
        self._line, self._steps, self._tokens = line, steps, max(1, tokens)
        self._queue: queue.Queue[Reading | Failed | None] = queue.Queue()
        self._samples: list[tuple[float, float, float]] = []  # perf_counter, time, CPU seconds of the command
        self._sampling = threading.Lock()
        self._last: Reading | None = None
        self._seen = 1  # steps that it told of, the first one too
        self._stride = 1  # steps from one reading to the next, as last counted
        self._began = time.time()
        folder = root / line.directory
        piped = subprocess.PIPE if steps["from"] == "output" else None
        self._source = self._sourced(folder)
        self._process = line.start(root, {"PYTHONUNBUFFERED": "1"}, stdout=piped, imports=False)
        for work in (self._read, self._keep_sampling):
            threading.Thread(target=work, daemon=True).start()

    @classmethod
    def launch(cls, root: Path, config: Mapping[str, Any]) -> Command:
        """Start the command of a workload node. Raises Failed, and ValueError for a node that is none."""
        return cls(CommandLine.of(config), root, config["steps"], int(config.get("tokens") or 0))

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one command of the trial. Raises Failed."""
        command = request["command"]
        if command == "block":
            return self._block(request)
        if command == "probe":
            return self._probe(request["steps"])
        return {
            "build": self._build,
            "pin": lambda request: self._pin(request["cores"]),
            "settle": lambda request: {},
            "last": lambda request: {**self._told(), "unmoved": []},
            "restart": lambda request: {"loss": None, "gradient_norm": None, "gradients_sha256": ""},
            "memory": lambda request: self._memory(),
            "profile": lambda request: {"offered": False},
            "static": lambda request: {"offered": False, "rows": [], "runs_on": ""},
            "copies": lambda request: {"foreign": foreign_programs(request, timing.descendants("self"))},
            "exit": lambda request: self._end(),
        }[command](request)

    def _build(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """It is built when it has told of its first step, whose time is its start as well and counts nowhere."""
        self._last = self._next("its first step", FIRST_STEP_HINT)
        facts = {
            "name": self._line.name,
            "way": "command",
            "protocol": "processes in turn",
            "ranks": 1,
            "threads": len(os.sched_getaffinity(0)),
        }
        fingerprint = likeness.of_arm("cpu", facts, set(request["excluded"]))
        return {
            "facts": facts,
            "device": self._line.device,
            "low_precision": "unknown",
            "tokens_per_step": self._tokens,
            "fingerprint": {**fingerprint, "device": likeness.spelled(self._line.device)},
        }

    def _block(self, request: Mapping[str, Any]) -> dict[str, Any]:
        lead = self._taken(request["lead"]) if request.get("lead") else None
        reply = self._taken(request["steps"])
        if lead is not None:
            reply |= {f"lead_{name}": lead[name] for name in ("steps", "wall_seconds", "cpu_seconds")}
        return reply

    def _taken(self, wanted: int) -> dict[str, Any]:
        """The next `wanted` steps, or as many more as are told at once."""
        first = self._last
        assert first is not None  # `build` came before
        steps, last = 0, first
        while steps < wanted or last.at <= first.at:  # many may be told at one moment
            steps += self._advance("a step")
            assert self._last is not None
            last = self._last
        self._sample()  # the block may have ended since the latest one
        cpu = self._cpu_seconds(last.at) - self._cpu_seconds(first.at)
        return {
            "steps": steps,
            "tokens": steps * self._tokens,
            "wall_seconds": last.at - first.at,
            "cpu_seconds": cpu,
            "device_seconds": None,
            "involuntary_switches": 0,
            "recompiled": 0,
            "idle_cpu_seconds": None,
            **self._told(),
        }

    def _probe(self, steps: int) -> dict[str, Any]:
        found = []
        for _ in range(steps):
            found.append(self._last)
            self._advance("a probed step")
        told = [one for one in found if one is not None]
        return {
            "losses": [one.loss for one in told if one.loss is not None],
            "gradient_norms": [one.gradient_norm for one in told if one.gradient_norm is not None],
            "gradients_sha256": "",
            "later_gradients_sha256": "",
            "counters": {},
            "facts": {"name": self._line.name, "way": "command", "low_precision": "unknown"},
        }

    def _told(self) -> dict[str, float | None]:
        last = self._last or Reading(0.0)
        return {"loss": last.loss, "gradient_norm": last.gradient_norm}

    def _advance(self, what: str) -> int:
        """Go on to the next step that is told, and say how many steps that are: by the command's own count, where it
        has one. One that is told again is none; where the count begins anew it goes on in the strides that it had.
        Raises Failed where the clock of what tells them went back."""
        before = self._last
        assert before is not None  # `build` came before
        steps = 0
        while not steps:
            found = self._next(what)
            if found.at < before.at:
                raise Failed("garbage", f"the times of its steps go back by {before.at - found.at:.3f} s")
            if before.step is None or found.step is None:
                steps = 1
            elif found.step < before.step:
                steps = self._stride
            elif steps := found.step - before.step:
                self._stride = steps
        self._last = found
        self._seen += steps
        return steps

    def _next(self, what: str, hint: str = "") -> Reading:
        found = self._queue.get()
        if isinstance(found, Failed):
            raise found
        if found is None:
            self._process.wait()
            if self._process.returncode == 0 and not hint:
                raise Failed(
                    "crashed",
                    f"the command came to its end after {self._seen} steps, and the protocol wants more steps",
                    "raise its own limit of steps or epochs; or fewer: protocol.pairs=N, protocol.warmup_limit_steps=N",
                )
            said = f"; {hint}" if hint else ""
            raise Failed("crashed", f"the command {ended(self._process)} before {what}{said}")
        return found

    def _sourced(self, folder: Path) -> Any:
        """What starts reading once the command runs. A file that is there already is looked at before it starts."""
        node, running = self._steps, lambda: self._process.poll() is None
        if node["from"] == "output":
            return lambda: readings.from_output(node, self._process.stdout, running)  # type: ignore[arg-type]
        if node["from"] == "jsonl":
            path = folder / node["file"]
            begun = path.open("rb") if path.is_file() else None
            if begun is not None:
                begun.seek(0, os.SEEK_END)
            return lambda: readings.from_jsonl(node, path, begun, running)
        if node["from"] == "tensorboard":
            return lambda: readings.from_tensorboard(node, folder / node["folder"], running, self._began)
        node = {"uri": self._line.environment.get("MLFLOW_TRACKING_URI"), **node}
        return lambda: readings.from_mlflow(node, folder, running, self._began)

    def _read(self) -> None:
        """Runs in a thread: a step is stamped when it is told, not when somebody asks for it."""
        try:
            found: Iterator[Reading] = self._source()
            for reading in found:
                self._queue.put(reading)
            self._queue.put(None)
        except Failed as failure:
            self._queue.put(failure)
        except Exception as error:  # it must reach the trial, whose answer it becomes
            self._queue.put(Failed("crashed", f"reading its steps: {type(error).__name__}: {error}"))

    def _keep_sampling(self) -> None:
        while self._process.poll() is None:
            self._sample()
            time.sleep(SAMPLE_SECONDS)

    def _sample(self) -> None:
        with self._sampling:  # two threads take them, and they stay in order
            self._samples.append((time.perf_counter(), time.time(), timing.descendants_cpu_seconds()))

    def _cpu_seconds(self, at: float) -> float:
        """CPU time of the command's processes up to `at`, between the two nearest samples in proportion."""
        clock = 0 if self._steps["from"] in ("output", "jsonl") else 1
        samples = self._samples[:]
        after = min(max(1, bisect.bisect_left(samples, at, key=lambda one: one[clock])), len(samples) - 1)
        if after < 1:
            return samples[0][2] if samples else 0.0
        (before, low), (then, high) = ((samples[i][clock], samples[i][2]) for i in (after - 1, after))
        return low + (high - low) * min(1.0, max(0.0, (at - before) / max(then - before, 1e-9)))

    def _pin(self, cores: list[int]) -> dict[str, Any]:
        for pid in timing.descendants("self"):
            for thread in _listed(f"/proc/{pid}/task"):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(int(thread), cores)
        os.sched_setaffinity(0, cores)
        return {"cores": sorted(os.sched_getaffinity(0))}

    def _memory(self) -> dict[str, Any]:
        """The sum of the peaks of its living processes since they started, in bytes: of resident memory, or of a
        device's. No step is weighed by itself, so no loss belongs to it."""
        pids = timing.descendants("self")
        resident = sum(_resident_peak(pid) for pid in pids)
        used = _device_used(pids) if self._line.device.startswith("cuda") else None
        held = {"process_peak_bytes": resident, "live_peak_bytes": resident if used is None else used}
        return {**held, "device_used_bytes": used, "loss": None}

    def _end(self) -> dict[str, Any]:
        for which in (signal.SIGTERM, signal.SIGKILL):
            for pid in timing.descendants("self"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), which)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2.0)
        return {}


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _resident_peak(pid: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), 0)


def _device_used(pids: list[str]) -> int:
    """Device memory that the processes hold now, as nvidia-smi tells it. Raises Failed where it does not."""
    asked = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError) as error:
        reason = f"device memory of a watched command comes from nvidia-smi, and that failed: {error}"
        remedy = "a workload of campaign.launch.Script measures it itself (docs/own.md)"
        raise Failed("unavailable", reason, remedy) from error
    rows = [line.split(",") for line in said.splitlines() if line.count(",") == 1]
    return sum(int(used) << 20 for pid, used in rows if pid.strip() in pids and used.strip().isdigit())
