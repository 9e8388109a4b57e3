"""Triton kernels on a machine without a GPU: run by Triton's interpreter, and compiled for Hopper."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels.every import INTERPRETED, ROOT, files_that_define

# The tests of every kernel, which the interpreter runs again.
ELSEWHERE = sorted(str(path) for path in Path(__file__).parent.glob("test_every_kernel*.py"))


def test_triton_kernels_agree_with_the_reference_under_the_interpreter() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    if INTERPRETED:
        pytest.skip("this is the interpreter's own run")
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *ELSEWHERE, "-k", "triton-cpu"],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout[-4000:] + told.stderr[-2000:]
    assert re.search(r"\d+ passed", told.stdout) and "skipped" not in told.stdout, told.stdout[-2000:]


def test_triton_kernels_compile_for_hopper_without_spills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    triton = pytest.importorskip("triton", reason="Triton is not installed")
    if INTERPRETED:
        pytest.skip("interpreted kernels are not compiled")
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import get_ptxas
    from triton.compiler import ASTSource

    # Triton ships more than one; only the one it takes itself knows the version of PTX that it writes.
    ptxas = Path(get_ptxas(90).path)
    if not ptxas.is_file():
        pytest.skip(f"this Triton has no assembler at {ptxas}")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    specializations = [
        entry
        for name in files_that_define("SPECIALIZATIONS")
        for entry in importlib.import_module(name).SPECIALIZATIONS
    ]
    assert specializations
    for entry in specializations:
        source = ASTSource(fn=entry.kernel, signature=entry.signature, constexprs=entry.constants)
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": entry.warps})
        ptx = tmp_path / f"{entry.name}.ptx"
        ptx.write_text(compiled.asm["ptx"])
        architecture = re.search(r"^\.target (\w+)", compiled.asm["ptx"], re.MULTILINE)
        assert architecture is not None
        told = subprocess.run(
            [ptxas, "-v", f"--gpu-name={architecture[1]}", ptx, "-o", tmp_path / "cubin"],
            capture_output=True,
            text=True,
            check=True,
        )
        print(entry.name, entry.warps, told.stderr)
        assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in told.stderr, told.stderr
