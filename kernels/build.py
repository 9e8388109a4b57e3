"""Compiles a C++ source once per machine and loads the shared object through ctypes.

Objects live in `$XDG_CACHE_HOME/campaign/kernels` (by default `~/.cache/campaign/kernels`) under a key made of the
source, the flags, the compiler's version and this CPU's instruction sets, because `-march=native` code must not
travel to another CPU. A build writes a temporary file in that directory and renames it, under a file lock: processes
that start together build once, and no reader ever meets half an object. The sha256 beside each object is checked
before every load, so a truncated object is rebuilt instead of crashing the process.

The cache must be writable and private to the user. A shared temporary directory is never used in its place, because
whoever can write there could choose the code that this process runs.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kernels.errors import Unavailable

# No -ffast-math: NaN and infinity must survive, and sums are reordered only where the source says `omp simd`.
# -fopenmp-simd honours those pragmas without the OpenMP runtime, so a kernel never starts threads.
FLAGS = ("-std=c++17", "-O3", "-march=native", "-fopenmp-simd", "-fno-math-errno", "-fPIC", "-shared")

_COMPILERS = ("c++", "g++", "clang++")
_INSTALL = "Install one (apt-get install g++, or dnf install gcc-c++), or point CXX at yours."
_COMPILE_SECONDS = 300
_SHOWN_LINES = 12


def cache_directory() -> Path:
    """The directory that holds built objects; a relative XDG_CACHE_HOME is ignored, as the XDG specification says."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(configured) if os.path.isabs(configured) else Path(os.path.expanduser("~")) / ".cache"
    return root / "campaign" / "kernels"


def find_compiler() -> tuple[str, ...]:
    """The command of the C++ compiler: `CXX` where it is set, else the first of c++, g++ and clang++ on the PATH.

    Raises Unavailable if there is none. A `CXX` that does not exist is an error, never passed over.
    """
    configured = shlex.split(os.environ.get("CXX", ""))
    for command in [configured] if configured else [[name] for name in _COMPILERS]:
        found = shutil.which(command[0])
        if found:
            return (found, *command[1:])
    if configured:
        raise Unavailable(reason=f"There is no C++ compiler at CXX={os.environ['CXX']!r}.", remedy=_INSTALL)
    raise Unavailable(
        reason=f"There is no C++ compiler on the PATH (looked for {', '.join(_COMPILERS)}).", remedy=_INSTALL
    )


@functools.cache
def _compiler_version(command: tuple[str, ...]) -> str:
    try:
        told = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(reason=f"The C++ compiler {command[0]} does not run: {error}.", remedy=_INSTALL) from error
    if told.returncode != 0:
        raise Unavailable(
            reason=f"`{shlex.join(command)} --version` failed with exit code {told.returncode}.", remedy=_INSTALL
        )
    return told.stdout


@functools.cache
def _instruction_sets() -> str:
    """What `-march=native` depends on: the architecture, and on Linux the CPU's model and feature flags."""
    lines = {platform.machine(), platform.processor()}
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        wanted = ("flags", "Features", "model", "cpu family", "CPU part", "CPU implementer")
        lines |= {line for line in cpuinfo.read_text(errors="replace").splitlines() if line.startswith(wanted)}
    return "\n".join(sorted(lines))


def object_key(source: Path, flags: Sequence[str] = FLAGS) -> str:
    """The name of the object that `source` gives with `flags` on this machine: 32 hexadecimal digits of a sha256.

    Raises Unavailable if there is no compiler, since its version is part of the key.
    """
    command = find_compiler()
    digest = hashlib.sha256(source.read_bytes())
    for part in (*flags, "", *command, _compiler_version(command), _instruction_sets()):
        # With its length in front, so that no two lists run together into the same bytes.
        digest.update(len(part.encode()).to_bytes(8, "big") + part.encode())
    return digest.hexdigest()[:32]


def build(source: Path, flags: Sequence[str] = FLAGS) -> Path:
    """The path of the shared object of `source`, built now unless an intact one is in the cache.

    Raises Unavailable if there is no compiler, if the source does not compile, or if the cache cannot be written.
    """
    built = _object_path(source, flags)
    if not _intact(built):
        with _locked(built):
            # Another process may have built it while this one waited for the lock.
            if not _intact(built):
                _compile(source, flags, built)
    return built


@functools.cache
def load(source: Path, flags: tuple[str, ...] = FLAGS) -> ctypes.CDLL:
    """The loaded shared object of `source`, built first if need be. The caller declares `argtypes` and `restype`.

    Raises Unavailable as `build` does, and if the object does not load even when it is fresh.
    """
    built = build(source, flags)
    try:
        return ctypes.CDLL(str(built))
    except OSError:
        # Intact by its sum, yet not loadable: built against a runtime that this machine no longer has.
        with _locked(built):
            _compile(source, flags, built)
    try:
        return ctypes.CDLL(str(built))
    except OSError as error:
        raise Unavailable(
            reason=f"The object built from {source.name} does not load: {error}.",
            remedy=f"If {built.parent} is mounted noexec, set XDG_CACHE_HOME to a directory that is not.",
        ) from error


def _object_path(source: Path, flags: Sequence[str]) -> Path:
    return cache_directory() / f"{source.stem}-{object_key(source, flags)}.so"


def _sum_path(built: Path) -> Path:
    return built.with_suffix(".sha256")


def _intact(built: Path) -> bool:
    try:
        return hashlib.sha256(built.read_bytes()).hexdigest() == _sum_path(built).read_text()
    except (OSError, UnicodeDecodeError):
        return False


@contextmanager
def _locked(built: Path) -> Iterator[None]:
    """Holds the lock of one object; released by the kernel of the system even if this process is killed."""
    try:
        built.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = open(built.with_suffix(".lock"), "a")
    except OSError as error:
        raise Unavailable(
            reason=f"The kernel cache {built.parent} cannot be written: {error}.",
            remedy="Set XDG_CACHE_HOME to a directory of yours that can be written.",
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _compile(source: Path, flags: Sequence[str], built: Path) -> None:
    command = find_compiler()
    try:
        handle, name = tempfile.mkstemp(dir=built.parent, prefix=f"{built.stem}.", suffix=".partial")
        os.close(handle)
    except OSError as error:
        raise Unavailable(
            reason=f"The kernel cache {built.parent} cannot be written: {error}.",
            remedy="Set XDG_CACHE_HOME to a directory of yours that can be written.",
        ) from error
    partial = Path(name)
    try:
        called = [*command, *flags, str(source), "-o", str(partial)]
        try:
            # One language for messages, so that a report reads the same everywhere.
            told = subprocess.run(
                called,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_COMPILE_SECONDS,
                check=False,
                env={**os.environ, "LC_ALL": "C"},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(reason=f"{source.name} could not be compiled: {error}.", remedy=_INSTALL) from error
        if told.returncode != 0:
            said = "\n".join(told.stderr.strip().splitlines()[-_SHOWN_LINES:])
            raise Unavailable(
                reason=f"{source.name} does not compile (exit code {told.returncode}):\n{said}\n",
                remedy=f"See the whole output with: {shlex.join([*called[:-1], '/dev/null'])}",
            )
        checksum = hashlib.sha256(partial.read_bytes()).hexdigest()
        sum_partial = partial.with_suffix(".sum")
        sum_partial.write_text(checksum)
        # A reader between the two renames sees a sum that does not match, takes the lock, and looks again.
        os.replace(partial, built)
        os.replace(sum_partial, _sum_path(built))
    except OSError as error:
        raise Unavailable(
            reason=f"The object of {source.name} could not be stored in {built.parent}: {error}.",
            remedy="Free some space there, or set XDG_CACHE_HOME to another directory.",
        ) from error
    finally:
        partial.unlink(missing_ok=True)
        partial.with_suffix(".sum").unlink(missing_ok=True)
