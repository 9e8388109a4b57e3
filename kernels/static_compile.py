"""Compiles Triton kernels for a GPU that need not be here, in a process of its own.

`python -m kernels.static_compile FOLDER` reads requests from standard input, one JSON object a line, and answers each
with one JSON object a line on standard output, in order. A compiler pass that aborts ends this process and not the
one that asked, which sees how far the answers went. `FOLDER` takes Triton's cache and the cubins.

    {module, kernel, signature, constants, aligned, divisible, options, arch} -> the fields of `Compiled`, or {error}
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SHOWN = 400  # characters of a compiler's complaint
_CUOBJDUMP_SECONDS = 60
# What Triton's frontend, its passes and its tools raise besides errors of their own. Each is that kernel's answer.
_RAISED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    subprocess.SubprocessError,
)


def compiled(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What compiling one kernel gave: `name` in the cubin, the log of `ptxas`, the report of `cuobjdump`, threads,
    bytes of shared memory. Raises what Triton and its tools raise."""
    import triton
    from triton import knobs
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = getattr(importlib.import_module(request["module"]), request["kernel"])
    arguments = list(request["signature"])
    # What a launch adds to the types: torch's tensors start at multiples of 16 bytes, and sizes that are multiples
    # of 16 are told apart. It decides how wide loads are, and with that the registers.
    aligned = {(arguments.index(name),): [["tt.divisibility", 16]] for name in request["aligned"]}
    source = ASTSource(
        fn=kernel, signature=request["signature"], constexprs=request["constants"], attrs=aligned or None
    )
    said = io.StringIO()
    with knobs.cache.scope(), knobs.nvidia.scope(), contextlib.redirect_stdout(said):
        # One each: of a kernel that is in the cache the assembler says nothing.
        knobs.cache.dir = tempfile.mkdtemp(prefix="cache-", dir=folder)
        knobs.nvidia.dump_ptxas_log = True
        built = triton.compile(source, target=GPUTarget("cuda", request["arch"], 32), options=request["options"])
        cuobjdump = knobs.nvidia.cuobjdump.path
    cubin = folder / "kernel.cubin"
    cubin.write_bytes(built.asm["cubin"])
    told = subprocess.run(
        [cuobjdump, "--dump-resource-usage", str(cubin)],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_CUOBJDUMP_SECONDS,
        check=False,
    )
    if told.returncode != 0:
        raise RuntimeError(f"cuobjdump failed with exit code {told.returncode}: {told.stderr.strip()[:_SHOWN]}")
    return {
        "name": built.metadata.name,
        "ptxas": said.getvalue(),
        "cuobjdump": told.stdout,
        "threads": 32 * built.metadata.num_warps,
        "shared_bytes": built.metadata.shared,
    }


def complaint(error: Exception, stderr: str) -> str:
    """The compiler's own words in one line, in this order: what the assembler refused, what a pass of Triton called an
    error on `stderr`, the first line of what was raised."""
    lines = [line.strip() for line in (*str(error).splitlines(), *stderr.splitlines())]
    assembler = [line for line in lines if re.match(r"ptxas.*\b(?:fatal|error)\s*:", line)]
    passes = [line for line in lines if "error:" in line and not line.startswith("PTXAS error:")]
    raised = [line for line in lines if line] or ["it said nothing"]
    return f"{type(error).__name__}: {(assembler or passes or raised)[0]}"[:_SHOWN]


def _written_since(start: int) -> str:
    """What this process, its C++ included, wrote to standard error from `start` on; empty where it is no file."""
    try:
        end = os.lseek(2, 0, os.SEEK_END)
        return os.pread(2, min(end - start, 1 << 20), start).decode("utf-8", "replace")
    except OSError:
        return ""


def _end_of_errors() -> int:
    try:
        return os.lseek(2, 0, os.SEEK_END)
    except OSError:
        return 0


def main() -> None:
    from triton.errors import TritonError

    folder = Path(sys.argv[1])
    for line in sys.stdin:
        start = _end_of_errors()
        try:
            reply = compiled(json.loads(line), folder)
        except (TritonError, *_RAISED) as error:
            reply = {"error": complaint(error, _written_since(start))}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
