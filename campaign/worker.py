"""The trial's process: builds one arm and does what the parent asks, one command at a time.

`python -m campaign.worker --commands FD --replies FD` reads one JSON object a line from the first descriptor and
answers each with one JSON object on the second. Standard output and error belong to the workload and go to the
trial's log. The parent never holds a device context; this process never reads a clock except in `timing`, which is
imported before the workload.

    build   {root, target, config, variant, excluded, probing}
                                                         imports the workload, builds it, says what it is
    pin     {cores}                                      CPU affinity, after the imports
    settle  {}                                           collects and freezes garbage after warm-up
    block   {steps, lead}                                `lead` steps timed apart, then one timed block
    last    {}                                           loss and gradient norm of the latest step, and which
                                                         parameters one more leaves as they are
    restart {}                                           back to the start, and step 1 again (see `probe`)
    memory  {}                                           peak memory of an untimed step, and its loss
    probe   {steps, gradients}                           the untimed look (see `probe`)
    profile {steps, warmup, file}                        a trace of whole steps under torch.profiler
    peaks   {device, precision}                          the rates of a matmul and a copy, without a workload
    static  {} or {root, target, config} without build   resource reports of the kernels that the config selects
    copies  {own, tree, runs, names}                     modules that are not from the arm's worktree (see `copies`)
    exit    {}
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import importlib
import json
import math
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from campaign import likeness, timing

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_MMAP_THRESHOLD = 32 << 20  # glibc refuses more


class Worker:
    """The commands, by name. Each returns the JSON-ready reply."""

    def __init__(self) -> None:
        self.workload: Any = None
        self.launched: Any = None  # a command of the person's, in processes below this one, which answers for itself
        self.config: dict[str, Any] = {}
        self.captured: dict[str, float] = {}
        self.cpu_ended_seconds = 0.0

    def build(self, request: Mapping[str, Any]) -> dict[str, Any]:
        workload_class = _workload_class(request)
        config = dict(request["config"])
        if launch := getattr(workload_class, "launch", None):
            _end_with_parent()
            self.launched = launch(Path(request["root"]), config)
            return self.launched.answer(request)
        if request["variant"]:
            config = _variant(workload_class, request["variant"])(config)
        self.config = config
        if request["probing"] and str(config.get("device", "")).startswith("cuda"):
            # A captured graph dispatches its operators once, while it is built.
            from campaign.probe.operators import counted

            self.workload, self.captured = counted(lambda: workload_class(**config))
        else:
            self.workload = workload_class(**config)
        return self.told(request)

    def told(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What the built workload is; the answer to `build`."""
        facts = self.workload.facts()
        self.settle(request)  # what was imported outlives the trial; collecting it after each step would take longer
        return {
            "facts": facts,
            "device": self.workload.device,
            "low_precision": self.workload.low_precision,
            "tokens_per_step": self.workload.tokens_per_step,
            "fingerprint": likeness.of_arm(self.workload.device, facts, set(request["excluded"])),
        }

    def pin(self, request: Mapping[str, Any]) -> dict[str, Any]:
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), request["cores"])
        return {"cores": sorted(os.sched_getaffinity(0))}

    def settle(self, request: Mapping[str, Any]) -> dict[str, Any]:
        gc.collect()
        gc.freeze()
        self.cpu_ended_seconds = timing.cpu_seconds()
        return {}

    def block(self, request: Mapping[str, Any]) -> dict[str, Any]:
        # The first steps of a turn find the caches full of the other arm's data, as no step of a training does.
        lead = timing.timed_block(self.workload, request["lead"]) if request.get("lead") else None
        reply = timing.timed_block(self.workload, request["steps"])
        # What was computed while it was the other arm's turn: our own collection and hand-over, and nothing else.
        idle = 0.0
        for one in (lead, reply):
            if one is not None:
                idle += one.pop("cpu_began_seconds") - self.cpu_ended_seconds
                self.cpu_ended_seconds = one.pop("cpu_ended_seconds")
        reply["idle_cpu_seconds"] = idle
        if lead is not None:
            reply["recompiled"] += lead["recompiled"]
            reply |= {f"lead_{name}": lead[name] for name in ("steps", "wall_seconds", "cpu_seconds")}
        return reply

    def memory(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from campaign.memory import step_memory
        from campaign.records import to_json

        weighed = to_json(step_memory(self.workload))
        return {**weighed, "loss": timing.told(self.workload)["loss"]}

    def last(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from campaign.probe import unmoved_parameters

        return {**timing.told(self.workload), "unmoved": unmoved_parameters(self.workload)}

    def probe(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from campaign.probe import probe_workload

        file = Path(request["gradients"])
        return probe_workload(self.workload, request["steps"], file, self.captured, timing.compilations)

    def profile(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if "torch" not in sys.modules:  # not for its sake: a workload that never imported it runs nothing of it
            return {"offered": False}
        from campaign.probe.profiler import profile_steps

        file = Path(request["file"])
        return {"offered": True, **profile_steps(self.workload, request["steps"], request["warmup"], file)}

    def peaks(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from campaign.probe.peaks import measured_peaks

        return measured_peaks(request["device"], request["precision"], timing)

    def restart(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from campaign.probe import restarted_step

        return restarted_step(self.workload)

    def static(self, request: Mapping[str, Any]) -> dict[str, Any]:
        # Without a build too: kernels can be compiled for a device that this machine does not have.
        asked = "target" in request
        workload_class = _workload_class(request) if asked else type(self.workload)
        report = getattr(workload_class, "static", None)
        config = request["config"] if asked else self.config
        rows = [dict(row) for row in report(config)] if report else []
        if not asked:
            from campaign.probe.loaded import only_what_is_loaded

            only_what_is_loaded(rows)
        return {"offered": report is not None, "rows": rows, "runs_on": "" if asked else self._architecture()}

    def _architecture(self) -> str:
        """The built workload's device as a static row's `target` spells it: cpu, sm_90."""
        if not self.workload.device.startswith("cuda"):
            return "cpu"
        import torch

        return "sm_{}{}".format(*torch.cuda.get_device_capability())

    def copies(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from campaign.copies import foreign

        return {"foreign": foreign(request["own"], request["tree"], request["runs"], request["names"])}

    def exit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if self.workload is not None:
            self.workload.close()
        return {}


def _workload_class(request: Mapping[str, Any]) -> Any:
    sys.path.insert(0, request["root"])
    module, _, name = request["target"].rpartition(".")
    return getattr(importlib.import_module(module), name)


class NoVariant(Exception):
    """A workload that has no such variant; `answer` makes a failed trial of it."""

    kind = "crashed"
    remedy = "claim what needs no reference: hypothesis.parity.kind=loss, or bitwise"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _variant(workload_class: Any, name: str) -> Any:
    """The classmethod that makes the config of a variant. Raises NoVariant."""
    found = getattr(workload_class, name, None)
    if found is None:
        raise NoVariant(f"{workload_class.__name__} has no `{name}`, by which the parity claim is judged")
    return found


def answer(worker: Worker, request: Mapping[str, Any]) -> dict[str, Any]:
    """The reply to one command; what it raises becomes a failure with its kind, and the traceback goes to the log."""
    try:
        launched = worker.launched
        said = launched.answer(request) if launched else getattr(worker, request["command"])(request)
        reply = {"ok": True, **said}
        wrong = _not_finite(reply)
        if wrong:
            return _failure("garbage", f"{wrong}: a training step must give finite numbers")
        return reply
    except MemoryError as error:
        traceback.print_exc()
        return _failure("out_of_memory", str(error) or "MemoryError")
    except Exception as error:  # the parent turns it into a recorded trial; nothing is swallowed
        reason, remedy, kind = (getattr(error, name, None) for name in ("reason", "remedy", "kind"))
        if isinstance(reason, str) and isinstance(remedy, str):
            if not kind:  # the log of a launched command that failed ends with its own words
                traceback.print_exc()
            return _failure(kind or "unavailable", reason, remedy)
        traceback.print_exc()
        kind = "out_of_memory" if _is_out_of_memory(error) else "crashed"
        return _failure(kind, f"{type(error).__name__}: {error}".splitlines()[0])


def serve(commands: TextIO, replies: TextIO) -> None:
    """Answer commands until `exit` or the parent closes its end."""
    worker = Worker()
    for line in commands:
        request = json.loads(line)
        replies.write(json.dumps(answer(worker, request)) + "\n")
        replies.flush()
        if request["command"] == "exit":
            return


def _failure(kind: str, message: str, remedy: str = "") -> dict[str, Any]:
    return {"ok": False, "kind": kind, "message": message, "remedy": remedy}


def _is_out_of_memory(error: Exception) -> bool:
    return type(error).__name__ == "OutOfMemoryError" or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    )


def _not_finite(value: Any, where: str = "") -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"{where} is {value}"
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for key, item in items if (found := _not_finite(item, f"{where} {key}".strip()))), "")


def _tie_to_parent(parent: int) -> None:
    """Die with the parent, however it dies; stay the ancestor of every process that is started here, so that none
    computes unseen; and let glibc keep freed pages: faults would double the step."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != parent:
        sys.exit(1)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD)
        libc.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)


def _end_with_parent() -> None:
    """Where a command runs below this process: end it too when the parent dies. A SIGKILL to us would leave it."""
    signal.signal(signal.SIGTERM, timing.leave_nothing)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def main() -> None:
    parser = argparse.ArgumentParser(description="One trial of a campaign; started by the campaign itself.")
    parser.add_argument("--commands", type=int, required=True)
    parser.add_argument("--replies", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    given = parser.parse_args()
    _tie_to_parent(given.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(given.commands) as commands, os.fdopen(given.replies, "w") as replies:
        serve(commands, replies)
    timing.kill_descendants()


if __name__ == "__main__":
    main()
