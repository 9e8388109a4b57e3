"""What compilers say about the kernels that a configuration selects, without running one and without a GPU.

Triton's kernels are compiled for each architecture of `ARCHITECTURES`: registers and stack from the cubin's resource
report, spills from the assembler's log, shared memory and threads from Triton. The objects of the CPU kernels are
disassembled (`kernels.static_text` says what counts as a spill there). Such numbers explain a measurement; they are
never one.

A row has the keys of `FIELDS`: `kernel` and `variant` name what was compiled; `target` is cpu, sm_90 or sm_100;
`registers` are those of a thread (CPU: distinct vector registers used); `stack_bytes`, `spill_store_bytes` and
`spill_load_bytes` are per thread, spills counted once each in the code; `shared_bytes` and `threads` are per block;
`spill_instructions` and `object`, the file's name, are for the CPU only. What does not apply is None. `status` is ok,
or unavailable with a `reason` and a `remedy`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernels import static_text
from kernels.errors import Unavailable
from kernels.static_families import CpuKernel, TritonKernel, selected

ARCHITECTURES = (90, 100)
NUMBERS = (
    "registers",
    "stack_bytes",
    "spill_store_bytes",
    "spill_load_bytes",
    "shared_bytes",
    "threads",
    "spill_instructions",
)
FIELDS = ("kernel", "target", "variant", *NUMBERS, "object", "status", "reason", "remedy")

_COMPILE_SECONDS = 300
_OBJDUMP_SECONDS = 60
_INSTALL_TRITON = "pip install 'campaign[triton]'"
_INSTALL_OBJDUMP = "Install binutils (apt-get install binutils, or dnf install binutils)."
_REFUSED = "Another cap, or another release of Triton, may compile it."
_SHOWN = 300

Row = dict[str, Any]


def rows_for(ops: Mapping[str, Any], device: str, shapes: Mapping[str, Any]) -> list[Row]:
    """The kernels that this configuration selects, and always the recurrent backward of its variant and cap for every
    target. `ops` and `shapes` are the workload's sections `ops` and `model`, `device` is cpu or cuda: its kernels
    come first.

    Raises ValueError or KeyError for a configuration that the workload would refuse too.
    """
    wanted = selected(ops, device, shapes)
    rows = [cpu_row(kernel) for kernel in wanted if isinstance(kernel, CpuKernel)]
    compiled = triton_rows([kernel for kernel in wanted if isinstance(kernel, TritonKernel)])
    return [*compiled, *rows] if device.startswith("cuda") else [*rows, *compiled]


def cpu_row(kernel: CpuKernel) -> Row:
    """The row of one kernel of a CPU object, which is built now unless it is in the cache."""
    try:
        built = kernel.build()
        found = cpu_resources(built, kernel.symbol)
    except Unavailable as error:
        return _unavailable(kernel.name, "cpu", kernel.variant, error.reason, error.remedy)
    return {**_row(kernel.name, "cpu", kernel.variant, **found), "object": built.name}


def cpu_resources(built: Path, symbol: str) -> dict[str, int]:
    """Vector registers, stack frame, spill instructions and their bytes of `symbol` in the shared object `built`.

    Raises Unavailable without a working objdump, and for code other than x86-64.
    """
    objdump = shutil.which("objdump")
    if objdump is None:
        raise Unavailable(reason="There is no objdump on the PATH to read the object with.", remedy=_INSTALL_OBJDUMP)
    try:
        told = subprocess.run(
            [objdump, "-d", "--no-show-raw-insn", "-M", "att", str(built)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_OBJDUMP_SECONDS,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(reason=f"objdump does not run: {error}.", remedy=_INSTALL_OBJDUMP) from error
    if told.returncode != 0:
        reason = f"objdump failed with exit code {told.returncode}: {told.stderr.strip()[:_SHOWN]}"
        raise Unavailable(reason=reason, remedy=_INSTALL_OBJDUMP)
    if "file format elf64-x86-64" not in told.stdout:
        raise Unavailable(
            reason="Spills are read from x86-64 code only, and this object holds other code.",
            remedy="Read this evidence on an x86-64 machine.",
        )
    try:
        found = static_text.vectors(told.stdout, symbol)
    except static_text.Unreadable as error:
        raise Unavailable(reason=f"{error}.", remedy=f"See: objdump -d {built}") from error
    return {
        "registers": found.registers,
        "stack_bytes": found.stack_bytes,
        "spill_store_bytes": found.spill_store_bytes,
        "spill_load_bytes": found.spill_load_bytes,
        "spill_instructions": found.spill_instructions,
    }


def triton_resources(specialization: Any, arch: int, divisible: Sequence[str] = ()) -> dict[str, int]:
    """Registers, stack, spills, shared memory and threads of one specialization compiled for `arch` (90 is sm_90).
    `divisible` names the integer arguments that are multiples of 16 at a launch.

    Raises Unavailable without Triton, and with the compiler's words where it refuses.
    """
    if importlib.util.find_spec("triton") is None:
        raise Unavailable(reason="Triton is not installed.", remedy=_INSTALL_TRITON)
    (reply,) = _compile([_request(specialization, arch, divisible)])
    return _read(reply)


def triton_rows(kernels: Sequence[TritonKernel], architectures: Sequence[int] = ARCHITECTURES) -> list[Row]:
    """One row for each kernel and architecture; all are compiled in one process where none aborts it."""
    pairs = [(kernel, arch) for kernel in kernels for arch in architectures]
    if importlib.util.find_spec("triton") is None:
        return [_missing(kernel, arch, "Triton is not installed.", _INSTALL_TRITON) for kernel, arch in pairs]
    try:
        loaded = [kernel.load() for kernel in kernels]
    except ImportError as error:
        reason = f"Triton is installed and cannot be imported: {error}."
        return [_missing(kernel, arch, reason, _INSTALL_TRITON) for kernel, arch in pairs]
    requests = [_request(entry, arch, divisible) for entry, divisible in loaded for arch in architectures]
    rows = []
    for (kernel, arch), reply in zip(pairs, _compile(requests), strict=True):
        try:
            rows.append(_row(kernel.name, f"sm_{arch}", kernel.variant, **_read(reply)))
        except Unavailable as error:
            rows.append(_missing(kernel, arch, error.reason, error.remedy))
    return rows


def _missing(kernel: TritonKernel, arch: int, reason: str, remedy: str) -> Row:
    return _unavailable(kernel.name, f"sm_{arch}", kernel.variant, reason, remedy)


def _request(entry: Any, arch: int, divisible: Sequence[str]) -> dict[str, Any]:
    function = getattr(entry.kernel, "fn", entry.kernel)
    return {
        "module": function.__module__,
        "kernel": function.__name__,
        "signature": dict(entry.signature),
        "constants": dict(entry.constants),
        "aligned": [*(name for name, kind in entry.signature.items() if kind.startswith("*")), *divisible],
        "options": {"num_warps": entry.warps, **entry.options},
        "arch": arch,
    }


def _compile(requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The answer to each request; one that ends the compiling process is answered with how it ended."""
    replies: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="campaign-static-") as folder:
        while len(replies) < len(requests):
            replies += _in_one_process(requests[len(replies) :], Path(folder))
    return replies


def _in_one_process(requests: Sequence[Mapping[str, Any]], folder: Path) -> list[dict[str, Any]]:
    root = str(Path(__file__).resolve().parents[1])
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([root, *filter(None, sys.path)]))
    asked = "".join(json.dumps(request) + "\n" for request in requests)
    with tempfile.TemporaryFile("w+b") as errors:
        try:
            told = subprocess.run(
                [sys.executable, "-m", "kernels.static_compile", str(folder)],
                input=asked.encode(),
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                timeout=_COMPILE_SECONDS,
                check=False,
            )
            output, ended = told.stdout, _how_it_ended(told.returncode)
        except subprocess.TimeoutExpired as error:
            output, ended = error.stdout or b"", f"gave no answer within {_COMPILE_SECONDS} s"
        errors.seek(0)
        written = errors.read().decode("utf-8", "replace").strip().splitlines()
    replies = _parsed(output.decode("utf-8", "replace"))[: len(requests)]
    if len(replies) < len(requests):
        last = f": {written[-1].strip()[:_SHOWN]}" if written else ""
        replies.append({"error": f"the compiling process {ended}{last}"})
    return replies


def _parsed(output: str) -> list[dict[str, Any]]:
    replies = []
    for line in output.splitlines():
        try:
            reply = json.loads(line)
        except ValueError:
            continue  # a compiler that writes on standard output
        if isinstance(reply, dict):
            replies.append(reply)
    return replies


def _how_it_ended(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def _read(reply: Mapping[str, Any]) -> dict[str, int]:
    if "error" in reply:
        raise Unavailable(reason=str(reply["error"]), remedy=_REFUSED)
    try:
        needs = static_text.resources(reply["cuobjdump"], reply["name"])
        spilled = static_text.spills(reply["ptxas"], reply["name"])
    except static_text.Unreadable as error:
        raise Unavailable(reason=f"{error}.", remedy="Install the Triton release that pyproject.toml names.") from error
    return {
        "registers": needs.registers,
        "stack_bytes": needs.stack_bytes,
        "spill_store_bytes": spilled.store_bytes,
        "spill_load_bytes": spilled.load_bytes,
        "shared_bytes": reply["shared_bytes"],
        "threads": reply["threads"],
    }


def _row(kernel: str, target: str, variant: str, **numbers: int) -> Row:
    named = {"kernel": kernel, "target": target, "variant": variant}
    return {**named, **dict.fromkeys(NUMBERS), **numbers, "object": None, "status": "ok", "reason": "", "remedy": ""}


def _unavailable(kernel: str, target: str, variant: str, reason: str, remedy: str) -> Row:
    return {**_row(kernel, target, variant), "status": "unavailable", "reason": reason, "remedy": remedy}
