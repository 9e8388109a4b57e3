"""A training script that stops at gates: one process or several ranks, stepped together."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from campaign.launch import ranks
from campaign.launch.command import CommandLine, Failed, ended
from campaign.loop import GATE_VARIABLE

POLL_SECONDS = 0.2  # how often it is asked whether the command still runs
BURIAL_SECONDS = 10.0
LARGEST_REPLY = 64 << 20
TORCHRUN_PORT = "PET_MASTER_PORT"


class Script:
    """A command whose processes reach `campaign.steps`, `campaign.step` or a callback. Each of them is a rank: they get
    every command at once, and the trial's answer is made of theirs (`ranks.merged`)."""

    def __init__(self, line: CommandLine, root: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="campaign-gate-")  # 0700: nobody else can connect
        address = str(Path(self._folder.name) / "gate")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen()
        self._device = line.device
        self._name = line.name
        self._lifelines: list[socket.socket] = []
        self._ranks: list[_Rank] = []
        self._process = line.start(root, {GATE_VARIABLE: address, **_port()})

    @classmethod
    def launch(cls, root: Path, config: Mapping[str, Any]) -> Script:
        """Start the command of a workload node. Raises Failed, and ValueError for a node that is none."""
        return cls(CommandLine(**config), root)

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of all ranks to one command. Raises Failed with the first rank's failure."""
        command = request["command"]
        if command == "build":
            try:
                self._gather()
            finally:  # at once: a trial that is killed cleans nothing up
                self._listener.close()
                self._folder.cleanup()
            request = {**request, "config": {"device": self._device}}
        for rank in self._ranks:
            rank.send(_for_rank(request, rank.number))
        replies = [reply for _, reply in sorted(self._replies(command))]
        if command == "exit":
            self._bury()
            return {}
        merged = ranks.merged(command, replies)
        if command == "build":
            merged["facts"] |= {"name": self._name}
        return merged

    def _gather(self) -> None:
        """Wait until every rank has come to its first gate; the trial's own deadline bounds it."""
        while not self._ranks or len(self._ranks) < self._ranks[0].of:
            self._wait([self._listener], "its first step")
            channel, _ = self._listener.accept()
            rank = _Rank(channel)
            if rank.lifeline:
                self._lifelines.append(channel)
            else:
                self._ranks.append(rank)
        self._ranks.sort(key=lambda rank: rank.number)
        numbers = [rank.number for rank in self._ranks]
        if numbers != list(range(self._ranks[0].of)):
            raise Failed("garbage", f"the ranks that came are {numbers} of {self._ranks[0].of}", "start each rank once")

    def _replies(self, command: str) -> list[tuple[int, dict[str, Any]]]:
        waiting = {rank.channel: rank for rank in self._ranks}
        found = []
        while waiting:
            for channel in self._wait(list(waiting), command):
                rank = waiting[channel]
                if not rank.read():
                    if command == "exit":  # it ends on this command, and may do so before its answer is read
                        del waiting[channel]
                        continue
                    raise self._lost(rank, command)
                if (reply := rank.reply()) is not None:
                    del waiting[channel]
                    found.append((rank.number, self._good(reply, rank, command)))
        return found

    def _good(self, reply: dict[str, Any], rank: _Rank, command: str) -> dict[str, Any]:
        if reply.get("ended"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(BURIAL_SECONDS)  # by itself: what it had to say of its end is in its exit code
            if self._bury() not in (0, None):
                raise self._lost(rank, command)
            raise Failed(
                "crashed",
                f"the script came to its end after {reply['steps']} steps, during {command!r}; the protocol wants more",
                "raise its own limit of steps or epochs; or fewer: protocol.pairs=N, protocol.warmup_limit_steps=N",
            )
        if not reply.pop("ok"):
            raise Failed(reply["kind"], f"rank {rank.number}: {reply['message']}", reply["remedy"])
        return reply

    def _lost(self, rank: _Rank, command: str) -> Failed:
        """A rank is gone. Its own words are in the log."""
        which = f"rank {rank.number} of {rank.of}" if rank.of > 1 else "the script"
        code = self._bury()
        said = f"; the command {ended(self._process)}" if code is not None else ""
        killed = code is not None and code < 0
        return Failed("killed" if killed else "crashed", f"{which} ended during {command!r}{said}", "read the log")

    def _wait(self, channels: Sequence[socket.socket], what: str) -> list[socket.socket]:
        """The channels with something to read. Raises Failed where the command ends meanwhile."""
        while True:
            ready = select.select(channels, [], [], POLL_SECONDS)[0]
            if ready:
                return ready
            if self._process.poll() is not None and not select.select(channels, [], [], POLL_SECONDS)[0]:
                hint = "" if self._ranks else ": it never came to campaign.steps, campaign.step or a callback"
                raise Failed("crashed", f"the command {ended(self._process)} before {what}{hint}", "read the log")

    def _bury(self) -> int | None:
        """End what is left of the command; its exit code, None where it goes on."""
        for lifeline in self._lifelines:
            lifeline.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(BURIAL_SECONDS)
        return self._process.returncode


class _Rank:
    """One process at its gate, seen from the trial's."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self._buffer = b""
        while (hello := self.reply()) is None:
            if not self.read():
                raise Failed("crashed", "a rank ended on its way to the gate", "read the log")
        self.number, self.of, self.pid = hello["rank"], hello["ranks"], hello["pid"]
        self.lifeline = bool(hello.get("lifeline"))

    def send(self, request: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # its end is told by what is read
            self.channel.sendall((json.dumps(request) + "\n").encode())

    def read(self) -> bool:
        """Read what is there; False at the end."""
        try:
            data = self.channel.recv(1 << 16)
        except ConnectionResetError:
            return False
        self._buffer += data
        if len(self._buffer) > LARGEST_REPLY:
            raise Failed("garbage", f"rank {self.number} answered with more than {LARGEST_REPLY} bytes")
        return bool(data)

    def reply(self) -> dict[str, Any] | None:
        """The next whole answer; None while it is not all there."""
        if b"\n" not in self._buffer:
            return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        return reply


def _port() -> dict[str, str]:
    """A port of its own for torchrun, which takes one and the same by default: arms run side by side. It reads its
    options' defaults from variables of this spelling; what the person says comes first."""
    if TORCHRUN_PORT in os.environ:
        return {}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return {TORCHRUN_PORT: str(free.getsockname()[1])}


def _for_rank(request: Mapping[str, Any], rank: int) -> Mapping[str, Any]:
    """Files that a command names are rank 0's; the others write beside them."""
    names = ("gradients", "file")
    return request if rank == 0 else {**request, **{key: f"{request[key]}.{rank}" for key in names if key in request}}
