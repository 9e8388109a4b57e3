"""Where a command tells of its steps: lines of its output, a JSON-lines file, TensorBoard events or MLflow metrics.

A source yields `Reading`s as they come, and stops when the command has ended and all was read. Times are those at which
a line was seen here (output, jsonl: seconds of `time.perf_counter`), or those that the event carries (tensorboard,
mlflow: seconds of `time.time`).
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from campaign.launch.command import Failed
from campaign.launch.output import CHUNK, LONGEST_LINE, Log, lines

FILE_POLL_SECONDS = 0.002
EVENT_POLL_SECONDS = 0.5
NUMBERS = ("step", "loss", "gradient_norm")
# The keys that each source takes, and whether it needs them.
SOURCES: dict[str, dict[str, bool]] = {
    "output": {"pattern": True},
    "jsonl": {"file": True, "step": False, "loss": False, "gradient_norm": False},
    "tensorboard": {"folder": True, "loss": True},
    "mlflow": {"loss": True, "uri": False, "experiment": False},
}


@dataclass(frozen=True)
class Reading:
    """One step that was told, at `at` seconds. `step` is its number as the command counts, None where it does not."""

    at: float
    step: int | None = None
    loss: float | None = None
    gradient_norm: float | None = None


Running = Callable[[], bool]


def check(node: Mapping[str, Any]) -> None:
    """Raises Failed for a `workload.steps` node that cannot be read."""
    source = node.get("from")
    if source not in SOURCES:
        raise Failed("crashed", f"workload.steps.from = {source!r}: must be one of {', '.join(SOURCES)}")
    known = {"from": True, **SOURCES[source]}
    for name, value in node.items():
        if name not in known:
            raise Failed("crashed", f"workload.steps.{name} is no key of from: {source}; known are {', '.join(known)}")
        if value is not None and not isinstance(value, str):
            raise Failed("crashed", f"workload.steps.{name} = {value!r}: must be a text")
    for name, needed in SOURCES[source].items():
        if needed and not node.get(name):
            raise Failed("crashed", f"workload.steps.{name} is missing: reading from {source} needs it")
    if source == "output":
        try:
            groups = re.compile(node["pattern"]).groupindex
        except re.error as error:
            raise Failed("crashed", f"workload.steps.pattern does not compile: {error}") from error
        if odd := set(groups) - set(NUMBERS):
            raise Failed("crashed", f"workload.steps.pattern has the groups {sorted(odd)}; known are {NUMBERS}")


def from_output(node: Mapping[str, Any], output: IO[bytes], running: Running) -> Iterator[Reading]:
    """Each line of `output` in which the pattern is found is a step; all of it goes on to the trial's log."""
    pattern = re.compile(node["pattern"])
    for at, line in lines(output.fileno(), running, Log(sys.stdout.buffer)):
        if found := pattern.search(line.decode("utf-8", "replace")):
            yield _reading(at, found.groupdict())


def from_jsonl(node: Mapping[str, Any], path: Path, begun: IO[bytes] | None, running: Running) -> Iterator[Reading]:
    """Each object that is written to `path` and has the keys that the node names is a step. `begun` is the file that
    was there before the command started, at its end. A file that is put in its place, or written anew, is read too."""
    file, held = begun, b""
    try:
        while True:
            alive = running()
            if file is None and path.exists():
                file = path.open("rb")
            at = time.perf_counter()
            if file is not None and (data := file.read(CHUNK)):
                *found, held = (held + data).split(b"\n")
                held = held[:LONGEST_LINE]
                for line in found:
                    if (reading := _object(at, line, node)) is not None:
                        yield reading
            elif file is not None and _is_replaced(file, path):
                file.close()
                file, held = None, b""
            elif not alive:
                return
            else:
                time.sleep(FILE_POLL_SECONDS)
    finally:
        if file is not None:
            file.close()


def _is_replaced(file: IO[bytes], path: Path) -> bool:
    """Whether `path` is another file by now, or this one cut short; one that is away may come back."""
    try:
        now = path.stat()
    except FileNotFoundError:
        return False
    return now.st_ino != os.fstat(file.fileno()).st_ino or now.st_size < file.tell()


def _object(at: float, line: bytes, node: Mapping[str, Any]) -> Reading | None:
    try:
        values = json.loads(line)
    except ValueError:
        return None  # another writer's line; a step is what has the keys
    keys = {name: node.get(name) for name in NUMBERS if node.get(name)}
    if not isinstance(values, dict) or not all(key in values for key in keys.values()):
        return None
    return _reading(at, {name: values[key] for name, key in keys.items()})


def from_tensorboard(node: Mapping[str, Any], folder: Path, running: Running, since: float) -> Iterator[Reading]:
    """Each scalar `loss` of the event files that were begun after `since` (seconds of `time.time`)."""
    try:
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
        from tensorboard.util.tensor_util import make_ndarray
    except ImportError as error:
        raise Failed("unavailable", "tensorboard is not installed here", "pip install tensorboard") from error
    loaders: dict[Path, Any] = {}
    while True:
        alive = running()
        for path in sorted(folder.rglob("events.out.tfevents.*")):
            if path not in loaders and path.stat().st_mtime >= since:
                loaders[path] = EventFileLoader(str(path))
        for loader in loaders.values():
            for event in loader.Load():
                for value in event.summary.value:
                    if value.tag == node.get("loss"):
                        loss = float(make_ndarray(value.tensor)) if value.HasField("tensor") else value.simple_value
                        yield Reading(event.wall_time, int(event.step), _finite(loss, "loss"))
        if not alive:
            return
        time.sleep(EVENT_POLL_SECONDS)


def from_mlflow(node: Mapping[str, Any], folder: Path, running: Running, since: float) -> Iterator[Reading]:
    """Each value of the metric `loss` in the newest run that was started after `since` (seconds of `time.time`) by a
    command that runs in `folder`."""
    from campaign.tracking.metrics import history, store

    told = 0
    while True:
        alive = running()
        rows = history(store(node.get("uri"), folder), node.get("experiment"), node["loss"], since)
        for at, step, loss in rows[told:]:
            yield Reading(at, step, _finite(loss, "loss"))
        told = max(told, len(rows))
        if not alive:
            return
        time.sleep(EVENT_POLL_SECONDS)


def _reading(at: float, values: Mapping[str, Any]) -> Reading:
    step = values.get("step")
    if isinstance(step, str):
        step = step.replace(",", "")  # of thousands
    number = _finite(step, "step")
    return Reading(
        at,
        None if number is None else int(number),
        _finite(values.get("loss"), "loss"),
        _finite(values.get("gradient_norm"), "gradient_norm"),
    )


def _finite(value: Any, name: str) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise Failed("garbage", f"{name} is {value!r}, which is no number", "correct workload.steps") from None
    if not math.isfinite(number):
        raise Failed("garbage", f"{name} is {number}: a training step must give finite numbers")
    return number
