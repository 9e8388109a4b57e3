"""One trial's process, seen from the parent: start it, ask it, end it with all its children."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import campaign
from campaign import timing
from campaign.copies import Checkout
from campaign.errors import TrialFailed
from campaign.records import Arm
from campaign.secrecy import redact_file, redacted

GARBAGE_SHOWN = 80
LARGEST_REPLY = 64 << 20
TAIL_BYTES = 1 << 16
LINE_SHOWN = 200
SEE_THE_LOG = "see the log"
IN_A_WORKTREE = f"{SEE_THE_LOG}; a worktree has nothing that git ignores or does not track: give data by its whole path"
BURIAL_SECONDS = 10.0  # from the end of the answers to the end of the process


class TrialProcess:
    """A fresh `campaign.worker` for one arm, in the worktree `place` where it has code of its own. Use as a context
    manager: leaving it kills the whole process group.

    `ask` sends a command and waits for the answer; `send` and `receive` are its halves, for asking several at once.
    Each raises TrialFailed with a reason of `records.TRIAL_FAILURES`.
    """

    def __init__(self, arm: Arm, log: Path, place: Checkout | None = None) -> None:
        self.arm = arm
        self.log = log
        self.place = place
        self.started = time.perf_counter()
        commands_read, commands_write = os.pipe()
        replies_read, replies_write = os.pipe()
        paths = place.paths if place else (str(Path(campaign.__file__).resolve().parent.parent),)
        environment = {**os.environ, **arm.environment}
        python_path = os.pathsep.join(filter(None, [*paths, environment.get("PYTHONPATH", "")]))
        self._environment = {**environment, "PYTHONPATH": python_path}
        # -P: the working directory, which is the worktree, comes after the harness's own `campaign`.
        command = [sys.executable, *(["-P"] if place else []), "-m", "campaign.worker"]
        command += ["--commands", str(commands_read), "--replies", str(replies_write), "--parent", str(os.getpid())]
        try:
            with log.open("wb") as output:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=self._environment,
                    cwd=place.root if place else None,
                    pass_fds=(commands_read, replies_write),
                    start_new_session=True,
                )
        except OSError:
            os.close(commands_write)
            os.close(replies_read)
            raise
        finally:
            os.close(commands_read)
            os.close(replies_write)
        self._commands = commands_write
        self._replies = replies_read
        self._buffer = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, command: str, deadline_seconds: float, **arguments: Any) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        self.send(command, **arguments)
        return self.receive(command, deadline_seconds)

    def send(self, command: str, **arguments: Any) -> None:
        """Send one command without waiting."""
        left = memoryview((json.dumps({"command": command, **arguments}) + "\n").encode())
        try:
            while left:  # a signal may cut a long one short
                left = left[os.write(self._commands, left) :]
        except BrokenPipeError:
            raise self._dead(command) from None

    def receive(self, command: str, deadline_seconds: float) -> dict[str, Any]:
        """The answer to the oldest command not yet answered, within `deadline_seconds`."""
        until = time.monotonic() + deadline_seconds
        while b"\n" not in self._buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._replies], [], [], left)[0]:
                raise self._failed(
                    "hung",
                    f"no answer to {command!r} within {deadline_seconds:.0f} s",
                    "raise protocol.reply_deadline_seconds (start_deadline_seconds for a build), or see the log",
                )
            data = os.read(self._replies, 1 << 16)
            if not data:
                raise self._dead(command)
            self._buffer += data
            if len(self._buffer) > LARGEST_REPLY:
                raise self._garbage(command, self._buffer)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return self._read(command, line)

    def check_copies(self, deadline_seconds: float) -> None:
        """Raises TrialFailed, `wrong_copy`, where the arm has code of its own and imported something else."""
        if self.place is None:
            return
        self.refuse(self.ask("copies", deadline_seconds, **self.place.question())["foreign"])

    def refuse(self, foreign: Sequence[str]) -> None:
        """Raises TrialFailed for modules that came from elsewhere than the arm's own worktree."""
        if foreign:
            more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
            raise self._failed(
                "wrong_copy",
                f"{self.arm.role} imported {foreign[0]}{more}, and not from its own worktree",
                "no absolute path of the project on sys.path; a package of this repository: pip install -e FOLDER",
            )

    def _read(self, command: str, line: bytes) -> dict[str, Any]:
        try:
            reply = json.loads(line)
            if not isinstance(reply, dict) or not isinstance(reply["ok"], bool):
                raise self._garbage(command, line)
            if reply["ok"]:
                return reply
            if reply["kind"] == "crashed" and not reply["remedy"]:
                raise self._crashed(reply["message"])
            raise self._failed(reply["kind"], reply["message"], reply["remedy"])
        except (ValueError, KeyError):
            raise self._garbage(command, line) from None

    def _garbage(self, command: str, line: bytes) -> TrialFailed:
        shown = line[:GARBAGE_SHOWN].decode("utf-8", "replace")
        return self._failed(
            "garbage", f"the answer to {command!r} is not one: {shown!r}", "keep the workload off inherited descriptors"
        )

    def _dead(self, command: str) -> TrialFailed:
        try:
            code = self._process.wait(BURIAL_SECONDS)
        except subprocess.TimeoutExpired:
            return self._failed("hung", f"closed its answers during {command!r} and did not end", SEE_THE_LOG)
        if code < 0:
            name = signal.Signals(-code).name
            hint = "; the kernel's out-of-memory killer does this, or a person" if -code == signal.SIGKILL else ""
            return self._failed("killed", f"killed by {name} during {command!r}{hint}", "see the log, and dmesg")
        return self._crashed(f"exited with {code} during {command!r}")

    def _crashed(self, message: str) -> TrialFailed:
        """With the last line of the log where the message does not have it: most often what the program died of."""
        last = last_line(self.log, self._environment)
        said = f"{message}; its last line: {last}" if last and last not in message else message
        return self._failed("crashed", said, IN_A_WORKTREE if self.place else SEE_THE_LOG)

    def _failed(self, reason: str, message: str, remedy: str) -> TrialFailed:
        said = redacted(message.encode(), self._environment).decode()
        return TrialFailed(reason, said, arm=self.arm.role, log=str(self.log), remedy=remedy)

    def kill(self) -> None:
        """End the process and everything it started, at once; a launcher's ranks have process groups of their own."""
        below = [] if self._process.poll() is not None else timing.descendants(str(self._process.pid))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> TrialProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        redact_file(self.log, self._environment)
        for descriptor in (self._commands, self._replies):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def last_line(log: Path, environment: Mapping[str, str]) -> str:
    """The last line of a log that says something, without the secrets of `environment`, cut to `LINE_SHOWN`
    characters; '' where there is none."""
    try:
        with log.open("rb") as file:
            begun = max(log.stat().st_size - TAIL_BYTES, 0)
            file.seek(begun)
            lines = redacted(file.read(), environment).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    if begun:
        lines[:1] = []  # it was cut, and half a secret is not known for one
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return said if len(said) <= LINE_SHOWN else f"{said[:LINE_SHOWN]}..."


def build_request(
    arm: Arm, root: Path, variant: str, excluded: Mapping[str, str], *, probing: bool = False
) -> dict[str, Any]:
    """The arguments of `build`: what to import, how to configure it, which variables the edits set, and whether a
    probe follows."""
    return {
        "root": str(root),
        "target": arm.target,
        "config": arm.config,
        "variant": variant,
        "excluded": sorted(excluded),
        "probing": probing,
    }
