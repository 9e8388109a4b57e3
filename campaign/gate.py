"""The gate at which a training script waits for its turn. Runs in the script's own process, on the script's own thread.

The script and the controller (which answers the trial's commands, as `campaign.worker` does for a workload of its own)
are two greenlets of one thread: taking a step is a switch from the controller to the script, which runs to its next
gate. One thread, so that whatever is bound to a thread (dispatch modes, the profiler, the CUDA device, autograd's
switches) sees the script's work. Imports greenlet; torch only where the script has imported it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any

import greenlet

from campaign import timing
from campaign.worker import Worker, answer


class Gate:
    """This process's end of a trial. `arrive` is called by the script where a step begins; `count`, `record` within it.

    Raises OSError where the trial that started this process is gone.
    """

    def __init__(self, address: str) -> None:
        self.rank, self.ranks = _rank()
        self.loop = Loop(self)
        self._lifeline = _connected(address)
        self._channel = _connected(address)
        self._cores = os.sched_getaffinity(0)  # before it is held to as many as it has threads
        os.register_at_fork(after_in_child=self._leave)
        self._commands = self._channel.makefile("r", encoding="utf-8")
        hello = {"pid": os.getpid(), "rank": self.rank, "ranks": self.ranks}
        self._lifeline.sendall((json.dumps({**hello, "lifeline": True}) + "\n").encode())
        self._channel.sendall((json.dumps(hello) + "\n").encode())
        threading.Thread(target=self._die_with_the_trial, daemon=True, name="campaign-lifeline").start()
        # Before the threads that the script leaves are waited for, where this Python can do that.
        getattr(threading, "_register_atexit", atexit.register)(self._ended)
        self.left = False
        self._thread = threading.get_ident()
        self._script: Any = None
        self._children: list[int] = []
        self._controller: Any = greenlet.greenlet(self._control)

    def arrive(self, tokens: int = 0) -> None:
        """Wait at the gate until the next step is wanted. Raises RuntimeError on another thread than the first time."""
        if self.left:
            return
        if threading.get_ident() != self._thread:
            raise RuntimeError("campaign: every step of a process must begin on one thread")
        self._script = greenlet.getcurrent()
        self._controller.switch()
        self.count(tokens)

    def count(self, tokens: int) -> None:
        self.loop.counted += tokens
        self.loop.per_step = tokens

    def record(self, loss: Any, gradient_norm: Any, model: Any) -> None:
        """What is told of one step in several calls is put together."""
        for name, value in (("loss", loss), ("gradient_norm", gradient_norm)):
            if value is not None:
                # One that is kept whole would keep its graph alive, and with it the memory of a step.
                self.loop.latest[name] = value.detach() if hasattr(value, "detach") else value
        if model is not None:
            self.loop.model = model

    def step(self) -> None:
        """Let the script run to its next gate; called by the controller."""
        self.loop.latest = {}  # a step that tells nothing must not pass for one that tells what an earlier one did
        self._signal_children(signal.SIGCONT)
        self._script.switch()
        self.loop.taken += 1

    def pause(self) -> None:
        """A script's children (a loader's workers) wait while no step is taken: what they would prepare meanwhile, no
        clock would see. Called at the end of a block, while its clock still runs, so it lists no processes."""
        self._signal_children(signal.SIGSTOP)

    def _control(self) -> None:
        """What is raised while the script waits (by a signal's handler, such as an alarm's) must not let it run on
        with nobody at the gate."""
        try:
            self._serve()
        except greenlet.GreenletExit:
            raise  # the interpreter's end
        except BaseException:
            print("campaign: raised while the script waited for its turn", file=sys.stderr)
            traceback.print_exc()
            _flush()
            timing.leave_nothing()

    def _serve(self) -> None:
        """Answer commands, on the controller's side, until the end of the process."""
        worker = _LoopWorker(self.loop)
        self._look_for_children()
        for line in self._commands:
            request = json.loads(line)
            reply = answer(worker, request)
            self._channel.sendall((json.dumps(reply) + "\n").encode())
            if request["command"] == "exit":
                _flush()
                self._signal_children(signal.SIGCONT)  # one that is stopped does not see that its parent is gone
                os._exit(0)  # the script is in the middle of its loop, and what it would do at its end is not wanted
            self._look_for_children()
        timing.leave_nothing()

    def _look_for_children(self) -> None:
        """Learn of those that were started in the latest steps, by a fork server as well. One that was not forked is
        here given the cores that `_leave` gives to one that was."""
        self._children = [int(pid) for pid in timing.descendants("self")]
        self.pause()
        held = os.sched_getaffinity(0)
        for pid in self._children if held != self._cores else ():
            with contextlib.suppress(OSError):
                if os.sched_getaffinity(pid) == held:
                    os.sched_setaffinity(pid, self._cores)

    def _signal_children(self, which: signal.Signals) -> None:
        for pid in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, which)

    def _die_with_the_trial(self) -> None:
        self._lifeline.recv(1)
        timing.leave_nothing()

    def _ended(self) -> None:
        """The script came to its end by itself, which the trial did not want."""
        if self.left:
            return
        said = {"ok": False, "ended": True, "steps": self.loop.taken}
        self._channel.sendall((json.dumps(said) + "\n").encode())

    def _leave(self) -> None:
        """A forked child (a loader's worker) is no part of the trial and must not keep its connections open, and has
        the cores that it would have outside one: on those of the loop alone it would take the step's time."""
        self.left = True
        os.sched_setaffinity(0, self._cores)
        self._lifeline.close()
        self._channel.close()


class Loop:
    """The script's loop as the workload that the harness steps (`campaign.worker` has what it asks of one).

    `counted` sums the tokens of the steps begun so far and `per_step` is the latest's, as the script gives them:
    tensors of a device too, which are read only when no clock runs. `taken` counts the steps that are done.
    """

    low_precision = "unknown"

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.device = "cpu"
        self.taken = 0
        self.counted: Any = 0
        self.per_step: Any = 1
        self.latest: dict[str, Any] = {}
        self.model: Any = None

    @property
    def tokens_seen(self) -> int:
        return int(self.counted)

    @property
    def tokens_per_step(self) -> int:
        return int(self.per_step)

    def step(self) -> None:
        self._gate.step()

    def synchronize(self) -> None:
        if self.device.startswith("cuda") and (torch := sys.modules.get("torch")):
            torch.cuda.synchronize()
        self._gate.pause()

    def last_step(self) -> dict[str, Any]:
        return self.latest

    def gradients(self) -> dict[str, Any]:
        """Gradients of the recorded model as the latest step left them; none where it cleared them at its end."""
        return {name: p.grad for name, p in self._named() if p.grad is not None}

    def parameters(self) -> dict[str, Any]:
        return {name: p.detach() for name, p in self._named()}

    def facts(self) -> dict[str, Any]:
        torch = sys.modules.get("torch")
        found = {"way": "gate", "ranks": self._gate.ranks, "threads": torch.get_num_threads() if torch else 1}
        named = self._named()
        return {**found, "parameters": sum(p.numel() for _, p in named)} if named else found

    def close(self) -> None:
        """Nothing: the process ends."""

    def _named(self) -> list[tuple[str, Any]]:
        return list(self.model.named_parameters()) if self.model is not None else []


class _LoopWorker(Worker):
    """A worker whose workload is the script that it lives in."""

    def __init__(self, loop: Loop) -> None:
        super().__init__()
        self.workload = loop

    def build(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.workload.device = request["config"]["device"]
        return self.told(request)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed by the script, or replaced by something else
            stream.flush()


def _connected(address: str) -> socket.socket:
    """Raises OSError, with what it means: the script's only sight of a trial that is gone."""
    found = socket.socket(socket.AF_UNIX)
    try:
        found.connect("\0" + address)
    except OSError as error:
        raise OSError(error.errno, "campaign: the trial that started this process is over") from error
    return found


def _rank() -> tuple[int, int]:
    """(rank, ranks) of this process: what torch.distributed says once it is initialized, else what a launcher says."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
