"""Reading the machine once, over a window of at least a second, for all checks. Imports no torch."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from campaign.machine import gpu
from campaign.machine.checks._look import Counters, Gpu, Look, Place, Project, Timer
from campaign.machine.host import HERE, Host

WINDOW_SECONDS = 1.0
PACKAGES = ("torch", "triton", "mlflow", "numpy", "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12")
COMPILERS = ("c++", "g++", "clang++")  # the order in which kernels are built with them
GPU_FIELDS = (
    "name",
    "driver_version",
    "persistence_mode",
    "clocks.sm",
    "clocks.max.sm",
    "clocks.applications.graphics",
    "clocks.default_applications.graphics",
    "mig.mode.current",
    "ecc.mode.current",
    "ecc.mode.pending",
    "ecc.errors.uncorrected.volatile.total",
    "power.limit",
    "power.default_limit",
    "power.draw",
    "temperature.gpu",
)


def gather(
    device: str,
    host: Host = HERE,
    *,
    threads: int = 1,
    folders: Mapping[str, Path] | None = None,
    project: Callable[[], Project] | None = None,
    window_seconds: float = WINDOW_SECONDS,
) -> Look:
    """Everything that the checks look at. `threads` is how many cores rounds are pinned to, `folders` are those that
    are written to, by name; the temporary one joins them. `project` is asked within the window."""
    cores = tuple(sorted(os.sched_getaffinity(0)))
    before = counters(host)
    on_gpu = asked(host, device) if gpu.is_cuda(device) else None
    found = project() if project else None
    compiler = cxx()
    timer = resolution()
    written = {**(folders or {}), "temporary files": Path(tempfile.gettempdir())}
    places = tuple(place(name, folder, host) for name, folder in written.items())
    packages = {name: _version(name) for name in PACKAGES}
    time.sleep(max(0.0, before.seconds + window_seconds - time.monotonic()))
    return Look(
        host=host,
        device=device,
        cores=cores,
        pinned=cores[-threads:],
        before=before,
        after=counters(host),
        timer=timer,
        gpu=on_gpu,
        packages=packages,
        compiler=compiler,
        python={
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "debug": bool(sysconfig.get_config_var("Py_DEBUG")),
            "tuple": sys.version_info[:2],
        },
        places=places,
        project=found,
    )


def counters(host: Host) -> Counters:
    """What the kernel has counted by now."""
    cores = {}
    for line in (host.text("proc", "stat") or "").splitlines():
        name, *rest = line.split()
        if re.fullmatch(r"cpu\d+", name) and len(rest) >= 8:
            ticks = [int(word) for word in rest[:8]]  # user nice system idle iowait irq softirq steal
            cores[int(name[3:])] = (sum(ticks) - ticks[3] - ticks[4] - ticks[7], ticks[7], sum(ticks))
    swapped = _pairs(host.text("proc", "vmstat")).get("pswpin")
    heat = [
        int(word)
        for core in cores
        if (
            word := host.text(
                "sys", "devices", "system", "cpu", f"cpu{core}", "thermal_throttle", "core_throttle_count"
            )
        )
        and word.isdigit()
    ]
    return Counters(
        seconds=time.monotonic(),
        cores=cores,
        own_seconds=sum(os.times()[:4]),
        swapped_in_pages=swapped,
        quota_periods=_periods(host),
        heat_events=sum(heat) if heat else None,
    )


def _periods(host: Host) -> tuple[int, int] | None:
    """(stopped, all) periods of this process's CPU quota: cgroup v2 of its own group, or v1's."""
    own = next(
        (line[3:] for line in (host.text("proc", "self", "cgroup") or "").splitlines() if line[:3] == "0::"), "/"
    )
    parts = [part for part in own.split("/") if part]
    for path in (parts, [], ["cpu"], ["cpu,cpuacct"]):
        found = _pairs(host.text("sys", "fs", "cgroup", *path, "cpu.stat"))
        if found.get("nr_periods"):
            return found.get("nr_throttled", 0), found["nr_periods"]
    return None


def _pairs(text: str | None) -> dict[str, int]:
    """A kernel file of 'name number' lines."""
    words = (line.split() for line in (text or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdigit()}


def resolution(limit_seconds: float = 0.05, tries: int = 20) -> Timer:
    """The smallest step of the clocks that blocks are timed with, seen by reading them until they move."""

    def smallest(clock: Callable[[], float]) -> float:
        steps = []
        given_up = time.monotonic() + limit_seconds
        for _ in range(tries):
            first = clock()
            while (now := clock()) == first and time.monotonic() < given_up:
                pass
            steps.append(now - first if now > first else limit_seconds)
        return min(steps)

    begun = time.perf_counter()
    for _ in range(1000):
        time.perf_counter()
    reading = (time.perf_counter() - begun) / 1000
    return Timer(smallest(time.perf_counter), smallest(time.process_time), reading, limit_seconds)


def asked(host: Host, device: str) -> Gpu:
    """What nvidia-smi says of `device`. A field that its driver does not know is asked for alone, and is None."""
    try:
        fields = gpu.query(host, device, GPU_FIELDS)
    except gpu.NoAnswer:
        try:
            fields = gpu.query(host, device, GPU_FIELDS[:1])
        except gpu.NoAnswer as why:
            return Gpu(absent=str(why))
        for name in GPU_FIELDS[1:]:
            try:
                fields |= gpu.query(host, device, (name,))
            except gpu.NoAnswer:
                fields[name] = None
    processes: tuple[tuple[int, str], ...] | None
    held: frozenset[str] | None
    try:
        processes = tuple(gpu.compute_processes(host, device))
    except gpu.NoAnswer:
        processes = None
    try:
        reason = gpu.reason_field(host, device)
        said = gpu.query(host, device, (reason,))[reason]
        held = None if said is None else frozenset(gpu.reasons(said))
    except gpu.NoAnswer:
        held = None
    return Gpu("", fields, processes, held, _cuda(host))


def _cuda(host: Host) -> str:
    """The newest CUDA that the driver runs, from the head of nvidia-smi's table."""
    try:
        found = re.search(r"CUDA Version: *(\d+\.\d+)", gpu.ask(host))
    except gpu.NoAnswer:
        return ""
    return found[1] if found else ""


def cxx() -> tuple[str, str]:
    """(command, first line of its --version) of the compiler that kernels are built with: CXX, else the first of
    `COMPILERS` on the PATH; ('', why not) without one."""
    configured = shlex.split(os.environ.get("CXX", ""))
    tried = [configured] if configured else [[name] for name in COMPILERS]
    command = next((words for words in tried if shutil.which(words[0])), None)
    if command is None:
        if configured:
            return "", f"CXX={os.environ['CXX']} is not on this machine"
        return "", f"none on the PATH (looked for {', '.join(COMPILERS)})"
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"{shlex.join(command)} does not run: {error}"
    if done.returncode != 0 or not done.stdout.strip():
        return "", f"{shlex.join(command)} --version ended with exit status {done.returncode}"
    return shlex.join(command), done.stdout.strip().splitlines()[0]


def place(name: str, folder: Path, host: Host) -> Place:
    """The room in a folder (where it is not there yet, in the nearest one above), for whoever is no superuser."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    room = os.statvfs(there)
    flaw = "" if os.access(there, os.W_OK | os.X_OK) else "it may not be written to"
    return Place(name, str(folder), room.f_bavail * room.f_frsize, _file_system(there.resolve(), host), flaw)


def _file_system(folder: Path, host: Host) -> str:
    """The type of the file system that `folder` lies on; proc_pid_mountinfo(5): field 5 is where, and the type follows
    the separator '-'."""
    best, kind = "", ""
    for line in (host.text("proc", "self", "mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        words, told = left.split(), right.split()
        if len(words) < 5 or not told:
            continue
        mounted = words[4].replace("\\040", " ")
        if folder.is_relative_to(mounted) and len(mounted) >= len(best):
            best, kind = mounted, told[0]
    return kind


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
