"""A training script that stops at gates: one process or several ranks, stepped together."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import socket
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from campaign import timing
from campaign.launch import ranks
from campaign.launch.command import CommandLine, Failed, ended
from campaign.loop import GATE_VARIABLE

POLL_SECONDS = 0.2  # how often it is asked whether the command still runs
BURIAL_SECONDS = 10.0
ONCE = "start each rank once, with RANK and WORLD_SIZE or after init_process_group"
LARGEST_REPLY = 64 << 20
PORTS = ("PET_MASTER_PORT", "MASTER_PORT")  # torchrun's option, and what a script without torchrun reads


class Script:
    """A command whose processes reach `campaign.steps`, `campaign.step` or a callback. Each of them is a rank: they get
    every command at once, and the trial's answer is made of theirs (`ranks.merged`)."""

    def __init__(self, line: CommandLine, root: Path) -> None:
        # In no folder: nothing of it is left, however this process ends. Strangers who connect are not let in.
        address = f"campaign-gate-{secrets.token_hex(16)}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind("\0" + address)
        self._listener.listen()
        self._device = line.device
        self._name = line.name
        self._lifelines: list[socket.socket] = []
        self._ranks: list[_Rank] = []
        self._process = line.start(root, {GATE_VARIABLE: address, **_port(line.environment)})

    @classmethod
    def launch(cls, root: Path, config: Mapping[str, Any]) -> Script:
        """Start the command of a workload node. Raises Failed, and ValueError for a node that is none."""
        return cls(CommandLine.of(config), root)

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of all ranks to one command. Raises Failed with the first rank's failure."""
        command = request["command"]
        if command == "build":
            self._gather()
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
            if (rank := self._arrived()) is not None:
                self._ranks.append(rank)
                if rank.of > 1:  # in the log, for one who waits for the others in vain
                    print(f"campaign: rank {rank.number} of {rank.of} is at the gate", flush=True)
        self._ranks.sort(key=lambda rank: rank.number)
        numbers = [rank.number for rank in self._ranks]
        if numbers != list(range(self._ranks[0].of)):
            raise Failed("garbage", f"the ranks that came are {numbers} of {self._ranks[0].of}", ONCE)

    def _arrived(self) -> _Rank | None:
        """Who came to the gate; None for a process's other connection, by which it learns of our end."""
        channel, _ = self._listener.accept()
        uid = struct.unpack("3i", channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))[1]
        if uid != os.getuid():
            channel.close()
            return None
        rank = _Rank(channel)
        if rank.lifeline:
            self._lifelines.append(channel)
            return None
        return rank

    def _refuse_another(self) -> None:
        """Raises Failed for a process that comes to the gate when every rank is there: what it does, no clock sees."""
        while select.select([self._listener], [], [], 0)[0]:
            if (rank := self._arrived()) is not None:
                reason = f"another process (pid {rank.pid}) came to the gate as rank {rank.number} of {rank.of}"
                raise Failed("garbage", reason, ONCE)

    def _replies(self, command: str) -> list[tuple[int, dict[str, Any]]]:
        waiting = {rank.channel: rank for rank in self._ranks}
        found = []
        while waiting:
            if command != "exit":
                self._refuse_another()
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
            if self._process.returncode not in (0, None):
                raise self._lost(rank, command)
            self._bury()  # other ranks may wait for this one for ever
            raise Failed(
                "crashed",
                f"{rank.called} came to its end after {reply['steps']} steps, during {command!r}; the protocol wants"
                " more",
                "raise its own limit of steps or epochs; or fewer: protocol.pairs=N, protocol.warmup_limit_steps=N",
            )
        if not reply.pop("ok"):
            raise Failed(reply["kind"], f"rank {rank.number}: {reply['message']}", reply["remedy"])
        return reply

    def _lost(self, rank: _Rank, command: str) -> Failed:
        """A rank is gone. Its own words are in the log."""
        code = self._bury()
        said = f"; the command {ended(self._process)}" if code is not None else ""
        killed = code is not None and code < 0
        return Failed("killed" if killed else "crashed", f"{rank.called} ended during {command!r}{said}")

    def _wait(self, channels: Sequence[socket.socket], what: str) -> list[socket.socket]:
        """The channels with something to read. Raises Failed where the command ends meanwhile."""
        while True:
            ready = select.select(channels, [], [], POLL_SECONDS)[0]
            if ready:
                return ready
            if self._process.poll() is not None and not select.select(channels, [], [], POLL_SECONDS)[0]:
                hint = "" if self._ranks else ": it never came to campaign.steps, campaign.step or a callback"
                raise Failed("crashed", f"the command {ended(self._process)} before {what}{hint}")

    def _bury(self) -> int | None:
        """End what is left of the command and all that it started; its exit code, None where it went on."""
        for lifeline in self._lifelines:
            lifeline.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(BURIAL_SECONDS)
        code = self._process.returncode
        timing.kill_descendants()
        return code


class _Rank:
    """One process at its gate, seen from the trial's."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self._buffer = b""
        while (hello := self.reply()) is None:
            if not self.read():
                raise Failed("crashed", "a rank ended on its way to the gate")
        self.number, self.of, self.pid = hello["rank"], hello["ranks"], hello["pid"]
        self.lifeline = bool(hello.get("lifeline"))
        self.called = f"rank {self.number} of {self.of}" if self.of > 1 else "the script"

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


def _port(said: Mapping[str, Any]) -> dict[str, str]:
    """A port of its own for ranks that meet, which take one and the same by default: arms run side by side. torchrun
    reads its options' defaults from variables of the first spelling; what the
    person says, in the workload or the shell, comes first."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return {name: str(free.getsockname()[1]) for name in PORTS if not {name} & {*os.environ, *said}}


def _for_rank(request: Mapping[str, Any], rank: int) -> Mapping[str, Any]:
    """Files that a command names are rank 0's; the others write beside them."""
    names = ("gradients", "file")
    return request if rank == 0 else {**request, **{key: f"{request[key]}.{rank}" for key in names if key in request}}
